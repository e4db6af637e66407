/* The last stacks that were taken of programs that have ended. */
#ifndef KYMO_VIEWS_STACKS_LAST_STACKS_H
#define KYMO_VIEWS_STACKS_LAST_STACKS_H

#include <stdio.h>

#include "collect/backtrace/stacks.h"
#include "views/term/text.h"

/* As python.backtrace has them, one for each process. path as store_resolve() gives it. 0, or a
   negative errno and *err; -ENODATA: none was ever taken. */
int last_stacks_take(const char *path, struct stacks **out, size_t *out_count,
		     struct kymo_error *err);
void last_stacks_free(struct stacks *stacks, size_t count);
/* Some lines: where its first process was last seen, and what shows the rest. False: no stack was
   ever taken, nothing is said. */
bool last_stacks_say(const char *path, const struct text_style *style, FILE *out);

#endif
