/* The last stacks taken of programs that have ended. */
#ifndef KYMO_VIEWS_STACKS_LAST_STACKS_H
#define KYMO_VIEWS_STACKS_LAST_STACKS_H

#include <stdio.h>

#include "collect/backtrace/stacks.h"
#include "views/term/text.h"

/* The stacks of python.backtrace, one for each process. path: from store_resolve(). 0, or a
   negative errno and *err; -ENODATA: none were taken. */
int last_stacks_take(const char *path, struct stacks **out, size_t *out_count,
		     struct kymo_error *err);
void last_stacks_free(struct stacks *stacks, size_t count);
/* Prints the last stack of the main thread of the first process, and the command that shows the
   rest. False: no stack was taken, nothing is printed. */
bool last_stacks_print(const char *path, const struct text_style *style, FILE *out);

#endif
