/* `kymo report`: where the time of a run went, for a terminal. */
#ifndef KYMO_VIEWS_REPORT_REPORT_H
#define KYMO_VIEWS_REPORT_REPORT_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/term/text.h"

/* subtract_overhead: what recording cost is taken off the regions' self times, and that is said. */
int report_print(struct tables *tables, bool subtract_overhead, const struct text_style *style,
		 FILE *out, struct kymo_error *err);

#endif
