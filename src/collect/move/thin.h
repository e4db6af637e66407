/*
 * Thinning: the rows of a table become one row in each period for each of its things (a thread, a
 * process, a device, a counter).
 *
 * Samples: one of the rows of the period, chosen at random by its weight, with the sum of the
 * weights: the time of all rows stays exact, and the share of a stack is right on average. Metrics:
 * the last row of the period, in which figures of a moment are means (the largest for host.memory)
 * and cpu_pct is the CPU time since the row before. Counters and variables: the last row.
 */
#ifndef KYMO_COLLECT_MOVE_THIN_H
#define KYMO_COLLECT_MOVE_THIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/format.h"

#define THIN_COLUMNS_MOST 16
#define THIN_KEY_BYTES 40

enum thin_kind { THIN_KEY, THIN_MEAN, THIN_MAX, THIN_SUM, THIN_WEIGHT, THIN_RATE, THIN_CPU };

struct thin_column {
	enum thin_kind kind;
	uint32_t type; /* enum kymo_type */
	uint32_t offset, bytes;
};

/* How the rows of one stream are thinned. */
struct thin_plan {
	uint32_t row_bytes, time_offset;
	struct thin_column columns[THIN_COLUMNS_MOST];
	unsigned count;
};

/* False: rows of this table are not thinned, or the header does not describe it. */
bool thin_plan_make(struct thin_plan *plan, const struct kymo_stream_head *head);
/* True for a table whose rows can be thinned. */
bool thin_knows(const char *table);
/* Writes at most `count` rows to `out`, by time. Returns their number, or SIZE_MAX: no memory. Rows
   without a time are left out. */
size_t thin_rows(const struct thin_plan *plan, const unsigned char *rows, size_t count,
		 uint64_t period_ticks, double ns_per_tick, unsigned char *out);

#endif
