/* `kymo report`: where the time of a run went, for a terminal. */
#ifndef KYMO_VIEWS_REPORT_REPORT_H
#define KYMO_VIEWS_REPORT_REPORT_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/term/text.h"

/* subtract_overhead: subtracts the cost of recording from the regions' self times, and prints a
   note on it. */
int report_print(struct tables *tables, bool subtract_overhead, const struct text_style *style,
		 FILE *out, struct kymo_error *err);

#endif
