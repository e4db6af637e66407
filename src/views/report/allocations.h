/* Allocated memory: the peak, the call sites that held it, and growth from step to step. */
#ifndef KYMO_VIEWS_REPORT_ALLOCATIONS_H
#define KYMO_VIEWS_REPORT_ALLOCATIONS_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/verdicts/facts.h"
#include "views/term/text.h"

/* Lines of a report: allocations if they were recorded, and growth from step to step, of the
   resident memory if they were not. 0, or a negative errno and *err. */
int allocations_print(struct tables *tables, const struct text_style *style, FILE *out,
		      struct kymo_error *err);

#endif
