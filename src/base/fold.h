/*
 * Exact totals: how rows are folded into their regions' slots by the recorder (record/totals.c),
 * and how a reader that finds the slots at any instant, also in the middle of a fold, brings them
 * up to the newest row.
 *
 * The recorder folds a batch of rows [F, H) at a time, F = fold_state >> 1:
 *	1 row by row: private sums; one histogram bucket of the slot; then histogram_upto = row + 1
 *	2 slot by slot that was touched: fills the other half (old + private sums, upto = H), then generation + 1
 *	3 fold_state = H << 1 | which child_at
 * At a death in between, a slot's `upto` tells whether the batch is in its sums, histogram_upto
 * which rows are in the histograms; of the one row at histogram_upto the sum over the buckets
 * tells.
 *
 * A reader, live or dead:
 *	1 state = fold_state, child_at[state & 1]; again until fold_state is the same after as before
 *	2 each slot with its histogram: generation and histogram_upto must be the same after as before, else again;
 *	  histogram_upto is kept with that slot
 *	3 head, floor and the rows (format.h); if state >> 1 is below the oldest row kept, begin again
 *	4 for each row in [state >> 1, head): child = fold_child(); fold_resume()
 * Totals are then exact for head.
 */
#ifndef KYMO_BASE_FOLD_H
#define KYMO_BASE_FOLD_H

#include <stdint.h>

#include "base/format.h"

/* Child time of a row that ends at this depth; child_at has KYMO_CHILD_DEPTHS + 2 entries. Of
   deeper rows all time counts as their children's: it is in the row at the last depth already, and
   the sum of self times is never more than the time that passed. */
static inline uint64_t fold_child(uint64_t *child_at, uint32_t depth, uint64_t ticks)
{
	uint64_t child;

	if (depth > KYMO_CHILD_DEPTHS)
		return ticks;
	child = child_at[depth + 1];
	if (child) /* most zones have none inside: a store less */
		child_at[depth + 1] = 0;
	child_at[depth] += ticks;
	return child;
}

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
 * For readers, on their own copy: adds the row unless the slot holds it. Rows come in order.
 * histogram: NULL where the slot has none. A slot that is new to the reader is all zero, and its
 * histogram_upto is 0.
 */
static inline void fold_resume(struct kymo_totals_slot *slot, uint64_t *histogram,
			       uint64_t histogram_upto, uint64_t row, uint64_t ticks,
			       uint64_t child_ticks)
{
	struct kymo_totals_half *half = &slot->half[slot->generation & 1];

	if (half->upto > row)
		return;
	if (histogram && !fold_is_in_histogram(half, histogram, histogram_upto, row))
		histogram[kymo_hist_bucket(ticks)]++;
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
