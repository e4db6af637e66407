/*
 * Exact totals per region, folded from the rows in batches. The order of the stores is in base/fold.h. Sums of a
 * batch are kept in private memory (in registers over a run of equal names), since adding to the mapped slot row
 * by row costs more than twice as much.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fold.h"
#include "record/record.h"

#define STEP_BYTES (16u << 10)
#define NO_SLOT 0xffffu
#define SLOT_MAP_BYTES (KYMO_NAMES_MAX * sizeof(uint16_t))
#define PRIVATE_BYTES (SLOT_MAP_BYTES + KYMO_TOTALS_MAX * sizeof(struct kymo__sums))

/* What a batch adds to a slot. */
struct kymo__sums {
	uint64_t count; /* 0: not touched in this batch */
	uint64_t sum_ticks, child_ticks;
	uint64_t min_ticks, max_ticks;
	unsigned __int128 square;
};

static struct kymo_totals_slot *slot_at(const struct kymo__stream *stream, uint32_t slot)
{
	return (struct kymo_totals_slot *)(void *)(stream->totals.base +
						   kymo_totals_slot_offset(slot));
}

static void totals_name(char out[48], const struct kymo__stream *stream)
{
	snprintf(out, 48, "s%u.totals", stream->id);
}

int kymo__totals_open(struct kymo__stream *stream)
{
	struct kymo_totals_head *head;
	char name[48];
	void *map;
	int rc;

	totals_name(name, stream);
	rc = kymo__mapfile_create(&stream->totals, name, kymo_totals_slot_offset(KYMO_TOTALS_MAX),
				  STEP_BYTES);
	if (rc)
		return rc;
	map = mmap(NULL, PRIVATE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -ENOMEM;
	stream->slot_of_name = map;
	stream->sums = (struct kymo__sums *)(void *)((char *)map + SLOT_MAP_BYTES);
	head = (struct kymo_totals_head *)(void *)stream->totals.base;
	kymo__mapfile_begun(head, KYMO_MAGIC_TOTALS, sizeof(*head));
	stream->totals_head_count = &head->count;
	return 0;
}

void kymo__totals_close(struct kymo__stream *stream)
{
	kymo__mapfile_close(&stream->totals);
	if (stream->slot_of_name)
		munmap(stream->slot_of_name, PRIVATE_BYTES);
	stream->slot_of_name = NULL;
}

/* A new region of this stream: its slot + 1. */
static uint32_t slot_add(struct kymo__stream *stream, uint32_t name)
{
	uint64_t slot = *stream->totals_head_count;
	uint64_t end = kymo_totals_slot_offset((uint32_t)slot + 1);
	char file[48];

	totals_name(file, stream);
	if (slot >= KYMO_TOTALS_MAX - 1 ||
	    kymo__mapfile_grow(&stream->totals, file,
			       (end + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES)) {
		stream->slot_of_name[name] = NO_SLOT;
		return NO_SLOT;
	}
	slot_at(stream, (uint32_t)slot)->name = name;
	__atomic_store_n(stream->totals_head_count, slot + 1, __ATOMIC_RELEASE);
	stream->slot_of_name[name] = (uint16_t)(slot + 1);
	return (uint32_t)slot + 1;
}

/* Rows of one batch lie one after another: a batch never crosses a segment or the ring's end. */
static const struct kymo_zone_row *row_at(const struct kymo__stream *stream, uint64_t number)
{
	uint64_t slot = stream->cap_rows ? number % stream->cap_rows
					 : number - stream->segment_first_row;

	return (const struct kymo_zone_row *)(const void *)(stream->data.base +
							    sizeof(struct kymo_segment_head)) +
	       slot;
}

struct batch {
	struct kymo_stream_live *live;
	const struct kymo_zone_row *row;
	uint64_t number, end;
	uint64_t *child_at;
};

/* Adds a run of rows of one name; sums may be NULL: the rows are counted as untotalled. */
static void fold_run(struct batch *batch, struct kymo__sums *sums, uint64_t *histogram)
{
	const uint32_t name = batch->row->name;
	struct kymo__sums sum = *sums;

	do {
		uint64_t ticks = batch->row->duration_ticks;

		sum.child_ticks += fold_child(batch->child_at, batch->row->depth, ticks);
		sum.sum_ticks += ticks;
		sum.square += (unsigned __int128)ticks * ticks;
		if (ticks < sum.min_ticks)
			sum.min_ticks = ticks;
		if (ticks > sum.max_ticks)
			sum.max_ticks = ticks;
		sum.count++;
		if (histogram)
			histogram[kymo_hist_bucket(ticks)]++;
		batch->row++;
		batch->number++;
		__atomic_store_n(&batch->live->histogram_upto, batch->number, __ATOMIC_RELEASE);
	} while (batch->number < batch->end && batch->row->name == name);
	*sums = sum;
}

static void commit(struct kymo__stream *stream, uint32_t slot, uint64_t upto)
{
	struct kymo_totals_slot *at = slot_at(stream, slot);
	struct kymo__sums *sums = &stream->sums[slot];
	const struct kymo_totals_half *old = &at->half[at->generation & 1];
	struct kymo_totals_half *half = &at->half[(at->generation + 1) & 1];

	*half = *old;
	half->upto = upto;
	half->sum_ticks += sums->sum_ticks;
	half->child_ticks += sums->child_ticks;
	half->min_ticks = old->count && old->min_ticks < sums->min_ticks ? old->min_ticks
									 : sums->min_ticks;
	half->max_ticks = old->max_ticks > sums->max_ticks ? old->max_ticks : sums->max_ticks;
	half->count += sums->count;
	fold_add_square(half, sums->square);
	sums->count = 0;
	__atomic_store_n(&at->generation, at->generation + 1, __ATOMIC_RELEASE);
}

/* Folds one run; returns the slot + 1 where this batch touched it for the first time, else 0. */
static uint32_t fold_next(struct kymo__stream *stream, struct batch *batch)
{
	uint32_t slot = stream->slot_of_name[batch->row->name];
	struct kymo__sums none = { 0 }, *sums;
	uint64_t from = batch->number;
	uint32_t first_touch = 0;

	if (KYMO__UNLIKELY(!slot))
		slot = slot_add(stream, batch->row->name);
	if (KYMO__UNLIKELY(slot == NO_SLOT)) {
		fold_run(batch, &none, NULL);
		stream->live->untotalled += batch->number - from;
		return 0;
	}
	sums = &stream->sums[slot - 1];
	if (!sums->count) {
		*sums = (struct kymo__sums){ .min_ticks = UINT64_MAX };
		first_touch = slot;
	}
	fold_run(batch, sums,
		 slot <= KYMO_TOTALS_WITH_HIST ? (uint64_t *)(void *)(slot_at(stream, slot - 1) + 1)
					       : NULL);
	return first_touch;
}

void kymo__totals_fold(struct kymo__stream *stream, uint64_t head)
{
	struct kymo_stream_live *live = stream->live;
	uint64_t state = live->fold_state;
	struct batch batch = { live, row_at(stream, state >> 1), state >> 1, head,
			       live->child_at[(state & 1) ^ 1] };
	uint16_t touched[KYMO_BATCH_ROWS];
	uint32_t touched_count = 0;

	if (batch.number == head)
		return;
	memcpy(batch.child_at, live->child_at[state & 1], sizeof(live->child_at[0]));
	while (batch.number < head) {
		uint32_t slot = fold_next(stream, &batch);

		if (slot)
			touched[touched_count++] = (uint16_t)(slot - 1);
	}
	for (uint32_t i = 0; i < touched_count; i++)
		commit(stream, touched[i], head);
	/* Readers take the other child_at until this word changes. */
	__atomic_store_n(&live->fold_state, head << 1 | ((state & 1) ^ 1), __ATOMIC_RELEASE);
}
