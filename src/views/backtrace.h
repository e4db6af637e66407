/* Stacks for people and for programs. */
#ifndef KYMO_VIEWS_BACKTRACE_H
#define KYMO_VIEWS_BACKTRACE_H

#include <stddef.h>
#include <stdio.h>

#include "collect/stacks.h"
#include "views/text.h"

/* Every thread of a process, its innermost frame first. */
void backtrace_print(const struct stacks *stacks, const struct text_style *style, FILE *out);
/* Many processes: threads with equal stacks together, the smallest group first. */
void backtrace_print_groups(const struct stacks *stacks, size_t count,
			    const struct text_style *style, FILE *out);
/* A JSON array of all threads, the same for one process and for many. */
void backtrace_print_json(const struct stacks *stacks, size_t count, FILE *out);

#endif
