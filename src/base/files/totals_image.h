/*
 * A copy of a stream's exact totals, taken at any instant from a running, hung or dead program, and
 * brought up to the newest row by folding the rows that the slots lack (base/fold.h explains why
 * this is exact).
 */
#ifndef KYMO_BASE_FILES_TOTALS_IMAGE_H
#define KYMO_BASE_FILES_TOTALS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/readat.h"

struct totals_image {
	unsigned char *image; /* as in the file; NULL: no totals */
	unsigned char *again; /* a second copy, for comparison */
	uint64_t *histogram_upto; /* per slot: the rows in its histogram (base/fold.h) */
	uint16_t *slot_of_hash; /* slot + 1, by the name's hash */
	uint32_t count; /* slots */
	uint64_t stored_bytes; /* memory that the copies take */
	uint64_t from; /* the slots hold all rows below; fold from here */
	uint64_t child_at[KYMO_CHILD_DEPTHS + 2];
	uint64_t untotalled; /* rows without a slot */
	uint32_t unsettled; /* slots that changed during every attempt: not exact */
	/* the recorder ran out of slots: a name without a slot may have earlier rows */
	bool had_untotalled;
};

/* Copies state and slots. Read head and rows after it. */
int totals_image_take(struct totals_image *copy, const struct readat *head_file,
		      const struct readat *totals_file, const char *label, struct kymo_error *err);
/* For a writer: no slots and no rows yet. 0, or -ENOMEM. */
int totals_image_begin(struct totals_image *copy);
/* Folds rows [first_row, first_row + count), in order, from copy->from on. */
void totals_image_fold(struct totals_image *copy, const struct kymo_zone_row *rows,
		       uint64_t first_row, uint64_t count);
/* To be called after all rows below head are folded; sets untotalled. False: the slots hold more
   rows than that. */
bool totals_image_finish(struct totals_image *copy, uint64_t head);
void totals_image_free(struct totals_image *copy);

static inline struct kymo_totals_slot *totals_image_slot(const struct totals_image *copy,
							 uint32_t slot)
{
	return (struct kymo_totals_slot *)(void *)(copy->image + kymo_totals_slot_offset(slot));
}
/* The valid half. */
static inline struct kymo_totals_half *totals_image_half(const struct totals_image *copy,
							 uint32_t slot)
{
	struct kymo_totals_slot *at = totals_image_slot(copy, slot);

	return &at->half[at->generation & 1];
}
/* NULL: the slot has none. */
static inline uint64_t *totals_image_histogram(const struct totals_image *copy, uint32_t slot)
{
	return slot < KYMO_TOTALS_WITH_HIST
		       ? (uint64_t *)(void *)(totals_image_slot(copy, slot) + 1)
		       : NULL;
}

#endif
