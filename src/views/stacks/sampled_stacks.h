/* The distinct stacks of python.samples, outermost frame first, with their number of samples and
   their time. */
#ifndef KYMO_VIEWS_STACKS_SAMPLED_STACKS_H
#define KYMO_VIEWS_STACKS_SAMPLED_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "tables/tables.h"
#include "views/stacks/name_table.h"

struct sampled_stack {
	const uint32_t *frames;
	size_t depth;
	uint64_t count;
	uint64_t time_ns; /* that the samples stand for; 0 if no weights were recorded */
};

/* A result of each() other than 0 ends it. */
int sampled_stacks_each(struct tables *tables, bool native, struct name_table *frames,
			int (*each)(const struct sampled_stack *stack, void *context),
			void *context, struct kymo_error *err);

#endif
