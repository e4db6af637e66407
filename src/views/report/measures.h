/* The numbers of a whole run, one row per name, for JSON and CSV. */
#ifndef KYMO_VIEWS_REPORT_MEASURES_H
#define KYMO_VIEWS_REPORT_MEASURES_H

#include <stdio.h>

#include "base/buf.h"
#include "views/verdicts/facts.h"

/* A region (times in ms) or a counter (as recorded). Negative count: not known. */
struct measure {
	char *name;
	char source[16];
	double count, total, mean, std, least, most, p50, p90, p99, last;
};

struct measures {
	struct measure *timing, *metrics;
	size_t timing_count, metric_count;
	double wall_ns;
	double peak_allocated, peak_reserved; /* bytes */
	const char *memory_source; /* "allocator", "process" or "not recorded" */
	double iterations_per_s, samples_per_s; /* NAN: not known */
	char iterations_of[128];
};

int measures_gather(struct tables *tables, const struct facts *facts, struct measures *out,
		    struct kymo_error *err);
void measures_fini(struct measures *measures);

/* Gathers them, calls `fill` to make a text, and writes that. */
int measures_write(struct tables *tables,
		   void (*fill)(struct buf *out, struct tables *tables, const struct facts *facts,
				const struct measures *measures),
		   FILE *out, struct kymo_error *err);

#endif
