/* Allocated memory: the peak, the call sites that held it, and growth from step to step. */
#ifndef KYMO_VIEWS_REPORT_ALLOCATIONS_H
#define KYMO_VIEWS_REPORT_ALLOCATIONS_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/verdicts/facts.h"
#include "views/term/text.h"

/* Lines of a report; nothing if no allocations were recorded. 0, or a negative errno and *err. */
int allocations_print(struct tables *tables, const struct text_style *style, FILE *out,
		      struct kymo_error *err);

#endif
