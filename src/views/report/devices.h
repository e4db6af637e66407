/* What devices did, for a terminal: models with their latency, queues with what held them up. */
#ifndef KYMO_VIEWS_REPORT_DEVICES_H
#define KYMO_VIEWS_REPORT_DEVICES_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/term/text.h"

/* At most so many rows each. How many were printed, or a negative errno; nothing at all where there
   are none. */
int devices_print_models(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err);
int devices_print_queues(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err);
/*
 * For summaries: a line on the busiest queue, and where models is set one on the model that took
 * most. What cannot be said is left out.
 */
void devices_print_lines(struct tables *tables, bool models, FILE *out,
			 const struct text_style *style);

#endif
