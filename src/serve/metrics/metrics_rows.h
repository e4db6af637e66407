/*
 * Figures of one recording for GET /metrics, from its streams alone: counters that never fall while
 * the server runs. Totals of regions and numbers of rows are exact and kept by the recording; steps
 * are read as they come, and counted in the histogram once.
 */
#ifndef KYMO_SERVE_METRICS_METRICS_ROWS_H
#define KYMO_SERVE_METRICS_METRICS_ROWS_H

#include "serve/openmetrics.h"
#include "store/store.h"

#define METRICS_BUCKETS 22
#define METRICS_RANKS 64 /* the others are counted together */
#define METRICS_REGIONS 30 /* with the longest time */

struct metrics_steps {
	int32_t rank; /* -1: none; METRICS_OTHERS: of all further ranks */
	uint64_t buckets[METRICS_BUCKETS + 1];
	uint64_t count;
	double sum_s;
	double phase_s[KYMO_PHASE_COUNT];
};

struct metrics_rows {
	struct metrics_steps *steps;
	size_t step_count;
	struct metrics_stream *streams; /* private: where the last look ended */
	size_t stream_count;
};

/* Reads what is new in the recording. 0 or -ENOMEM. */
int metrics_rows_read(struct metrics_rows *rows, const struct recording *recording);
/* Appends the samples of each family. `labels`: of the run. */
void metrics_rows_write(const struct metrics_rows *rows, const struct recording *recording,
			const char *labels, struct buf out[OPENMETRICS_COUNT]);
void metrics_rows_fini(struct metrics_rows *rows);

#endif
