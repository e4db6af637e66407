/* Devices, for a terminal: models with their latency, queues with their idle time by cause. */
#ifndef KYMO_VIEWS_REPORT_DEVICES_H
#define KYMO_VIEWS_REPORT_DEVICES_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/term/text.h"

/* At most `most` rows. Returns how many were printed, or a negative errno; without rows, prints
   nothing. */
int devices_print_models(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err);
int devices_print_queues(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err);
/* The critical path, with a heading: its kinds, then its costliest names. */
int devices_print_path(struct tables *tables, size_t most, FILE *out,
		       const struct text_style *style, struct kymo_error *err);
/* For summaries: a line on the busiest queue, and if models is set one on the costliest model. A
   line whose query fails is left out. */
void devices_print_lines(struct tables *tables, bool models, FILE *out,
			 const struct text_style *style);

#endif
