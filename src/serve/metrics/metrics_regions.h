/* Totals of regions for GET /metrics. */
#ifndef KYMO_SERVE_METRICS_METRICS_REGIONS_H
#define KYMO_SERVE_METRICS_METRICS_REGIONS_H

#include "serve/openmetrics.h"
#include "store/store.h"

/* Appends the regions with the longest time, of all processes together. */
void metrics_regions_write(const struct recording *recording, const char *labels,
			   struct buf out[OPENMETRICS_COUNT]);

#endif
