/*
 * Exact totals per region, folded from the rows in batches. base/fold.h defines the order of the
 * stores. The sums of a batch are kept in private memory (in registers over a run of equal names),
 * because adding to the mapped slot for each row costs more than twice as much.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/atomic.h>

#include "base/fold.h"
#include "record/record.h"

#define STEP_BYTES (16u << 10)
#define NO_SLOT 0xffffu
#define SLOT_MAP_BYTES (KYMO_NAMES_MAX * sizeof(uint16_t))
#define PRIVATE_BYTES (SLOT_MAP_BYTES + KYMO_TOTALS_MAX * sizeof(struct kymo__sums))

/* The sums that a batch adds to a slot. */
struct kymo__sums {
	uint64_t count; /* 0: not touched in this batch */
	uint64_t sum_ticks, child_ticks;
	uint64_t min_ticks, max_ticks;
	uint64_t *histogram; /* in the slot; NULL: none */
	unsigned __int128 square;
};

static struct kymo_totals_slot *totals_slot_at(const struct kymo__stream *stream, uint32_t slot)
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

struct kymo__sums *kymo__totals_scratch(void)
{
	static struct kymo__sums sums;

	return &sums;
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
	totals_slot_at(stream, (uint32_t)slot)->name = name;
	kymo__store_release(stream->totals_head_count, slot + 1);
	stream->slot_of_name[name] = (uint16_t)(slot + 1);
	return (uint32_t)slot + 1;
}

/* The rows of a batch are contiguous: a batch never crosses a segment or the ring's end. */
static const struct kymo_zone_row *row_at(const struct kymo__stream *stream, uint64_t number)
{
	uint64_t slot = stream->cap_rows ? number % stream->cap_rows
					 : number - stream->segment_first_row;

	return (const struct kymo_zone_row *)(const void *)(stream->data.base +
							    sizeof(struct kymo_segment_head)) +
	       slot;
}

struct batch {
	struct kymo__stream *stream;
	uint64_t *child_at;
	uint32_t touched_count;
	uint16_t touched[KYMO_BATCH_ROWS];
};

static void commit(struct kymo__stream *stream, uint32_t slot, uint64_t upto)
{
	struct kymo_totals_slot *at = totals_slot_at(stream, slot);
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
	kymo__store_release(&at->generation, at->generation + 1);
}

/* The sums of a row's name, initialised for this batch; `lost` if there is no slot for it. */
static struct kymo__sums *sums_begin(struct batch *batch, uint32_t name, struct kymo__sums *lost)
{
	struct kymo__stream *stream = batch->stream;
	uint32_t slot = stream->slot_of_name[name];
	struct kymo__sums *sums;

	if (!slot)
		slot = slot_add(stream, name);
	if (slot == NO_SLOT)
		return lost;
	sums = &stream->sums[slot - 1];
	if (!sums->count) {
		*sums = (struct kymo__sums){ .min_ticks = UINT64_MAX };
		sums->histogram = slot <= KYMO_TOTALS_WITH_HIST
					  ? (uint64_t *)(void *)(totals_slot_at(stream, slot - 1) +
								 1)
					  : NULL;
		batch->touched[batch->touched_count++] = (uint16_t)(slot - 1);
	}
	return sums;
}

static inline void fold_row(struct kymo__sums *sums, uint64_t ticks, uint64_t child_ticks)
{
	sums->count++;
	sums->sum_ticks += ticks;
	if (child_ticks)
		sums->child_ticks += child_ticks;
	sums->square += (unsigned __int128)ticks * ticks;
	if (KYMO__UNLIKELY(ticks < sums->min_ticks))
		sums->min_ticks = ticks;
	if (KYMO__UNLIKELY(ticks > sums->max_ticks))
		sums->max_ticks = ticks;
	if (KYMO__LIKELY(sums->histogram != NULL))
		sums->histogram[hist_bucket(ticks)]++;
}

/* A run of rows of one name, starting at `row`: their sums stay in registers. Returns the length of
   the run. */
static uint64_t fold_run(struct batch *batch, struct kymo__sums *sums,
			 const struct kymo_zone_row *row, uint64_t number, uint64_t end)
{
	uint64_t *upto = &batch->stream->live->histogram_upto, from = number;
	const uint32_t name = row->name;
	struct kymo__sums sum = *sums;

	do {
		fold_row(&sum, row->duration_ticks, fold_child(batch->child_at, row));
		kymo__store_release(upto, ++number);
		row++;
	} while (number < end && row->name == name);
	*sums = sum;
	return number - from;
}

/* If the next row has another name, its sums are updated in memory: loading and storing all of them
   costs more. */
static void fold_rows(struct batch *batch, const struct kymo_zone_row *row, uint64_t number,
		      uint64_t end)
{
	struct kymo__stream *stream = batch->stream;
	const uint16_t *slot_of_name = stream->slot_of_name;
	struct kymo__sums *sums_of_slot = stream->sums - 1, *sums, lost = { 0 };
	uint64_t *upto = &stream->live->histogram_upto, count;

	for (; number < end; number += count, row += count) {
		uint32_t slot = slot_of_name[row->name];

		sums = &sums_of_slot[slot];
		if (KYMO__UNLIKELY(!slot || slot == NO_SLOT || !sums->count))
			sums = sums_begin(batch, row->name, &lost);
		if (number + 1 < end && row[1].name == row->name) {
			count = fold_run(batch, sums, row, number, end);
			continue;
		}
		fold_row(sums, row->duration_ticks, fold_child(batch->child_at, row));
		kymo__store_release(upto, number + 1);
		count = 1;
	}
	if (KYMO__UNLIKELY(lost.count)) {
		stream->live->untotalled += lost.count;
		kymo__fetch_add_relaxed(&kymo__process.control->totals_full, lost.count);
	}
}

void kymo__totals_fold(struct kymo__stream *stream, uint64_t head)
{
	struct kymo_stream_live *live = stream->live;
	uint64_t state = live->fold_state;
	struct batch batch;

	if (state >> 1 == head)
		return;
	batch.stream = stream;
	batch.child_at = live->child_at[(state & 1) ^ 1];
	batch.touched_count = 0;
	memcpy(batch.child_at, live->child_at[state & 1], sizeof(live->child_at[0]));
	fold_rows(&batch, row_at(stream, state >> 1), state >> 1, head);
	for (uint32_t i = 0; i < batch.touched_count; i++)
		commit(stream, batch.touched[i], head);
	/* Readers use the other child_at until this word changes. */
	kymo__store_release(&live->fold_state, head << 1 | ((state & 1) ^ 1));
}
