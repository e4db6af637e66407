/* The last stacks that were taken of programs that have ended. */
#ifndef KYMO_VIEWS_STACKS_LASTSTACKS_H
#define KYMO_VIEWS_STACKS_LASTSTACKS_H

#include <stdio.h>

#include "collect/backtrace/stacks.h"
#include "views/term/text.h"

/* As python.backtrace has them, one for each process. path as store_resolve() gives it. 0, or a
   negative errno and *err; -ENODATA: none was ever taken. */
int laststacks_take(const char *path, struct stacks **out, size_t *out_count,
		    struct kymo_error *err);
void laststacks_free(struct stacks *stacks, size_t count);
/* Some lines: where its first process was last seen, and what shows the rest. False: no stack was
   ever taken, nothing is said. */
bool laststacks_say(const char *path, const struct text_style *style, FILE *out);

#endif
