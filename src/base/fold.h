/*
 * Exact totals: how the recorder (record/totals.c) folds rows into the slots of their regions, and
 * how a reader brings the slots up to the newest row at any instant, even in the middle of a fold.
 *
 * The recorder folds a batch of rows [F, H) at a time, F = fold_state >> 1:
 *	1 row by row: private sums; one histogram bucket of the slot; then histogram_upto = row + 1
 *	2 each touched slot: fill the other half (old + private sums, upto = H), then generation + 1
 *	3 fold_state = H << 1 | which child_at
 * If the process dies in between, a slot's `upto` tells whether its sums hold the batch, and
 * histogram_upto which rows the histograms hold; for the row at histogram_upto itself, the sum over
 * the buckets tells.
 *
 * A reader, live or dead:
 *	1 state = fold_state, child_at[state & 1]; repeat until fold_state is unchanged
 *	2 each slot with its histogram: repeat until generation and histogram_upto are unchanged;
 *	  keep histogram_upto with the slot
 *	3 head, floor and the rows (format.h); if state >> 1 is below the oldest row kept, restart
 *	4 for each row in [state >> 1, head): child = fold_child(); fold_resume()
 * Totals are then exact for head.
 */
#ifndef KYMO_BASE_FOLD_H
#define KYMO_BASE_FOLD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/format.h"
#include "base/hist.h"

/* Child time of a row that ends at this depth. child_at has KYMO_CHILD_DEPTHS + 2 entries. All time
   of deeper rows counts as child time: the row at the last depth already has it, so the sum of self
   times of nested zones never exceeds the elapsed time. Zones of another thread and ranges are not
   nested in the zones of this one: they are not child time of others and have none. */
static inline uint64_t fold_child(uint64_t *child_at, const struct kymo_zone_row *row)
{
	const uint64_t ticks = row->duration_ticks;
	uint32_t depth;
	uint64_t child;

	/* With the flags above it: one load and one comparison for most rows, whose flags are 0. */
	memcpy(&depth, &row->depth, sizeof(depth));
	if (KYMO__UNLIKELY(depth > KYMO_CHILD_DEPTHS)) {
		if (row->flags & (KYMO_ZONE_FOREIGN | KYMO_ZONE_RANGE))
			return 0;
		depth = row->depth;
		if (depth > KYMO_CHILD_DEPTHS)
			return ticks;
	}
	child = child_at[depth + 1];
	if (child) /* most zones have no children: saves a store */
		child_at[depth + 1] = 0;
	child_at[depth] += ticks;
	return child;
}

_Static_assert(offsetof(struct kymo_zone_row, flags) ==
		       offsetof(struct kymo_zone_row, depth) + sizeof(uint16_t),
	       "they are read together");

static inline void fold_add_square(struct kymo_totals_half *half, unsigned __int128 square)
{
	square += (unsigned __int128)half->square_high << 64 | half->square_low;
	half->square_low = (uint64_t)square;
	half->square_high = (uint64_t)(square >> 64);
}

static inline int fold_is_in_histogram(const struct kymo_totals_half *half,
				       const uint64_t *histogram, uint64_t histogram_upto,
				       uint64_t row)
{
	uint64_t counted = 0;

	if (row != histogram_upto)
		return row < histogram_upto;
	for (uint32_t i = 0; i < KYMO_HIST_BUCKETS; i++)
		counted += histogram[i];
	return counted > half->count;
}

/*
 * For readers, on their own copy: adds the row unless the slot holds it. Call it in row order.
 * histogram is NULL if the slot has none. A slot that is new to the reader is all zero, with
 * histogram_upto 0.
 */
static inline void fold_resume(struct kymo_totals_slot *slot, uint64_t *histogram,
			       uint64_t histogram_upto, uint64_t row, uint64_t ticks,
			       uint64_t child_ticks)
{
	struct kymo_totals_half *half = &slot->half[slot->generation & 1];

	if (half->upto > row)
		return;
	if (histogram && !fold_is_in_histogram(half, histogram, histogram_upto, row))
		histogram[hist_bucket(ticks)]++;
	if (!half->count || ticks < half->min_ticks)
		half->min_ticks = ticks;
	if (!half->count || ticks > half->max_ticks)
		half->max_ticks = ticks;
	half->upto = row + 1;
	half->count++;
	half->sum_ticks += ticks;
	half->child_ticks += child_ticks;
	fold_add_square(half, (unsigned __int128)ticks * ticks);
}

#endif
