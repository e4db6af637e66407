#include "base/files/totals_image.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <kymo/atomic.h>

#include "base/fold.h"
#include "base/page_memory.h"

#define HASH_SLOTS 32768u /* twice KYMO_TOTALS_MAX */
#define LOOKS 200 /* reads of a slot that keeps changing */

static size_t totals_image_bytes(void)
{
	return kymo_totals_slot_offset(KYMO_TOTALS_MAX);
}

static size_t slot_bytes(uint32_t slot)
{
	return slot < KYMO_TOTALS_WITH_HIST ? KYMO_SLOT_WITH_HIST_BYTES : KYMO_SLOT_BYTES;
}

static size_t room_bytes(void)
{
	return 2 * totals_image_bytes() + KYMO_TOTALS_MAX * sizeof(uint64_t) +
	       HASH_SLOTS * sizeof(uint16_t);
}

/* Untouched pages cost nothing: room for all slots at once keeps the arithmetic simple. */
static int totals_image_make_room(struct totals_image *copy)
{
	if (copy->image) {
		memset(copy->slot_of_hash, 0, HASH_SLOTS * sizeof(uint16_t));
		return 0;
	}
	copy->image = page_memory_take(room_bytes());
	if (!copy->image)
		return -ENOMEM;
	copy->again = copy->image + totals_image_bytes();
	copy->histogram_upto = (uint64_t *)(void *)(copy->again + totals_image_bytes());
	copy->slot_of_hash = (uint16_t *)(void *)(copy->histogram_upto + KYMO_TOTALS_MAX);
	return 0;
}

int totals_image_begin(struct totals_image *copy)
{
	memset(copy, 0, sizeof(*copy));
	return totals_image_make_room(copy);
}

void totals_image_free(struct totals_image *copy)
{
	page_memory_give(copy->image, room_bytes());
	memset(copy, 0, sizeof(*copy));
}

/* The word that selects child_at must be unchanged after the copy. */
static bool take_state(struct totals_image *copy, const struct readat *file)
{
	const uint64_t at = KYMO_LIVE_OFFSET + offsetof(struct kymo_stream_live, fold_state);
	const uint64_t child_at = KYMO_LIVE_OFFSET + offsetof(struct kymo_stream_live, child_at);
	uint64_t before, after, untotalled;

	for (int look = 0; look < LOOKS; look++) {
		if (!readat_all(file, at, &before, sizeof(before)) ||
		    !readat_all(file, child_at + (before & 1) * sizeof(copy->child_at),
				copy->child_at, sizeof(copy->child_at)))
			return false;
		kymo__fence_acquire();
		if (!readat_all(file, at, &after, sizeof(after)))
			return false;
		if (before == after)
			break;
	}
	copy->from = before >> 1;
	copy->had_untotalled = readat_all(file,
					  KYMO_LIVE_OFFSET +
						  offsetof(struct kymo_stream_live, untotalled),
					  &untotalled, 8) &&
			       untotalled;
	return before == after;
}

/*
 * Reads slots [first, end) twice, and in between the row number up to which histograms are
 * complete. A slot that is equal in both reads was complete in between, and its histogram matches
 * that number: everything that a fold writes into a slot only grows.
 */
static bool look_twice(struct totals_image *copy, const struct readat *head_file,
		       const struct readat *file, uint32_t first, uint32_t end, uint64_t *out_upto)
{
	const uint64_t at = kymo_totals_slot_offset(first);
	const size_t bytes = (size_t)(kymo_totals_slot_offset(end) - at);
	bool read = readat_copy_stored(file, at, copy->image + at, bytes) == bytes;

	kymo__fence_acquire();
	read = read &&
	       readat_all(head_file,
			  KYMO_LIVE_OFFSET + offsetof(struct kymo_stream_live, histogram_upto),
			  out_upto, sizeof(*out_upto));
	kymo__fence_acquire();
	return read && readat_copy_stored(file, at, copy->again + at, bytes) == bytes;
}

static bool is_settled(const struct totals_image *copy, uint32_t slot)
{
	const uint64_t at = kymo_totals_slot_offset(slot);

	return !memcmp(copy->image + at, copy->again + at, slot_bytes(slot));
}

/* A slot that is being written: a single one can be read between two folds. */
static bool watch_slot(struct totals_image *copy, const struct readat *head_file,
		       const struct readat *file, uint32_t slot)
{
	for (int look = 0; look < LOOKS; look++)
		if (!look_twice(copy, head_file, file, slot, slot + 1, &copy->histogram_upto[slot]))
			return false;
		else if (is_settled(copy, slot))
			return true;
	return false;
}

static void take_slots(struct totals_image *copy, const struct readat *head_file,
		       const struct readat *file)
{
	uint64_t upto = 0;
	bool read = look_twice(copy, head_file, file, 0, copy->count, &upto);

	for (uint32_t slot = 0; slot < copy->count; slot++) {
		copy->histogram_upto[slot] = upto;
		if ((!read || !is_settled(copy, slot)) && !watch_slot(copy, head_file, file, slot))
			copy->unsettled++;
	}
}

static uint32_t totals_image_hash_of(uint32_t name)
{
	return (name * 2654435761u >> 11) & (HASH_SLOTS - 1);
}

/* The position of the name's slot + 1, existing or free. */
static uint16_t *totals_image_find_slot(const struct totals_image *copy, uint32_t name)
{
	uint32_t at = totals_image_hash_of(name);

	while (copy->slot_of_hash[at] &&
	       totals_image_slot(copy, copy->slot_of_hash[at] - 1u)->name != name)
		at = (at + 1) & (HASH_SLOTS - 1);
	return &copy->slot_of_hash[at];
}

/* The end of the file without a hole there; *out_stored: the bytes before it that are stored. */
static uint64_t stored_end(const struct readat *file, uint64_t *out_stored)
{
	const uint64_t size = readat_size(file);
	uint64_t from, to, end = 0;

	*out_stored = 0;
	for (uint64_t at = 0; readat_stored(file, at, size, &from, &to); at = end = to)
		*out_stored += to - from;
	return end;
}

/* The number of slots in the file that are complete or were begun. */
static uint32_t slots_that_fit(const struct readat *file, uint64_t claimed, uint64_t *out_stored)
{
	/* A slot may end with zeros, which a copy of the file leaves out. */
	uint64_t size = readat_size(file), end = stored_end(file, out_stored);
	uint32_t low = 0,
		 high = claimed < KYMO_TOTALS_MAX ? (uint32_t)claimed : KYMO_TOTALS_MAX - 1;

	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (kymo_totals_slot_offset(middle) <= size &&
		    (!middle || kymo_totals_slot_offset(middle - 1) < end))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

int totals_image_take(struct totals_image *copy, const struct readat *head_file,
		      const struct readat *totals_file, const char *label, struct kymo_error *err)
{
	struct kymo_totals_head head;
	int rc = readat_head(totals_file, KYMO_MAGIC_TOTALS, &head, sizeof(head), label, err);

	if (!rc && totals_image_make_room(copy))
		rc = error_set(err, ENOMEM, "no memory for the totals of %s", label);
	if (rc)
		return rc;
	copy->unsettled = 0;
	if (!take_state(copy, head_file))
		return error_set(err, EPROTO, "%s: the state of its totals cannot be read", label);
	/* After the state, so that no slot is missing whose rows are below `from`. */
	if (!readat_all(totals_file, offsetof(struct kymo_totals_head, count), &head.count,
			sizeof(head.count)))
		return error_set(err, EPROTO, "%s is cut short", label);
	copy->count = slots_that_fit(totals_file, head.count, &copy->stored_bytes);
	copy->stored_bytes *= 2;
	if (copy->count < head.count)
		copy->had_untotalled = true;
	take_slots(copy, head_file, totals_file);
	for (uint32_t slot = 0; slot < copy->count; slot++)
		*totals_image_find_slot(copy,
					totals_image_slot(copy, slot)->name) = (uint16_t)(slot + 1);
	return 0;
}

/* The slot of a name that is new to the recorder; 0: none, as the recorder would decide. */
static uint16_t add_slot(struct totals_image *copy, uint32_t name)
{
	uint32_t slot = copy->count;

	if (copy->had_untotalled || slot >= KYMO_TOTALS_MAX - 1)
		return 0;
	memset(totals_image_slot(copy, slot), 0, slot_bytes(slot));
	totals_image_slot(copy, slot)->name = name;
	copy->histogram_upto[slot] = 0;
	copy->count++;
	return (uint16_t)(slot + 1);
}

static void fold_one(struct totals_image *copy, const struct kymo_zone_row *row, uint64_t number)
{
	uint64_t child = fold_child(copy->child_at, row);
	uint16_t *found = totals_image_find_slot(copy, row->name);
	uint32_t slot;

	if (!*found)
		*found = add_slot(copy, row->name);
	if (!*found)
		return;
	slot = *found - 1u;
	fold_resume(totals_image_slot(copy, slot), totals_image_histogram(copy, slot),
		    copy->histogram_upto[slot], number, row->duration_ticks, child);
}

void totals_image_fold(struct totals_image *copy, const struct kymo_zone_row *rows,
		       uint64_t first_row, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (first_row + i == copy->from) {
			fold_one(copy, &rows[i], first_row + i);
			copy->from++;
		}
}

bool totals_image_finish(struct totals_image *copy, uint64_t head)
{
	uint64_t held = 0;

	for (uint32_t slot = 0; slot < copy->count; slot++) {
		uint64_t count = totals_image_half(copy, slot)->count;

		if (count > head - held) {
			copy->untotalled = 0;
			return false;
		}
		held += count;
	}
	copy->untotalled = head - held;
	return true;
}
