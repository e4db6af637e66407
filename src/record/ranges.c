/*
 * Ranges: open zones that are not on a thread's stack, because they outlasted a scope in which they
 * began (regions), or because another thread may end them (kymo_range_begin()). They are kept in
 * the zone stream of the thread that began them, and stay there when that thread ends. Rows carry a
 * lane of that thread's ranges: an entry of the thread table with its tid, where the depth is the
 * place in the table. A place is used again only for a range that began after the last one there
 * ended, so that zones of one lane and depth never overlap.
 *
 * Only the thread that holds the stream takes places; any thread may give one back. Both may be
 * interrupted by a signal handler that does the same.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/atomic.h>

#include "record/record.h"

#define PLACES 4096u
/* Regions of a thread that are kept. One that is never stopped was closed by its scope before
   ranges existed; of more than these, the oldest is given up. */
#define REGIONS_MOST 64u
#define PLACE_BITS 12u
#define STREAM_BITS 14u

struct range {
	/* 0: none. The thread that sets it to 0 owns the place until it clears the bit. Atomic. */
	uint64_t number;
	uint64_t start_ticks;
	uint64_t free_from; /* end of the last range here */
	uint32_t name;
	uint32_t thread; /* the lane */
	uint32_t flags; /* of a region; 0: a range that any thread may end */
	uint32_t reserved;
};

struct kymo__ranges {
	/* A bit per place. Set by the thread that holds the stream, cleared with release by the one
	   that ends the range; pairs with the acquire in range_take(). */
	uint64_t taken[PLACES / 64];
	struct range list[PLACES];
};

/* Continues in a forked child, so that numbers of the parent's ranges mean nothing there. */
static uint64_t last_number;

static struct kymo__ranges *ranges_make(struct kymo__stream *stream)
{
	void *map = mmap(NULL, sizeof(struct kymo__ranges), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct kymo__ranges *there = NULL;

	if (map == MAP_FAILED)
		return NULL;
	/* A signal handler of this thread may have been faster. */
	if (!kymo__cas_acq_rel_acquire(&stream->ranges, &there, (struct kymo__ranges *)map)) {
		munmap(map, sizeof(struct kymo__ranges));
		return there;
	}
	return map;
}

void kymo__ranges_forget(struct kymo__stream *stream)
{
	if (stream->ranges)
		munmap(stream->ranges, sizeof(*stream->ranges));
	stream->ranges = NULL;
}

/* ---- places -------------------------------------------------------------------------------- */

/* The lowest place that is free since before the start. NULL: none. */
static struct range *range_take(struct kymo__ranges *ranges, uint64_t start_ticks)
{
	for (uint32_t word = 0; word < PLACES / 64; word++) {
		uint64_t taken = kymo__load_acquire(&ranges->taken[word]);

		while (~taken) {
			uint64_t bit = ~taken & (taken + 1);
			struct range *range =
				&ranges->list[word * 64 + (uint32_t)__builtin_ctzll(bit)];

			if (range->free_from <= start_ticks &&
			    !(kymo__fetch_or_relaxed(&ranges->taken[word], bit) & bit))
				return range;
			taken |= bit;
		}
	}
	return NULL;
}

static uint32_t range_place(const struct kymo__ranges *ranges, const struct range *range)
{
	return (uint32_t)(range - ranges->list);
}

/* In the mapped stream; NULL: beyond the listed ones. */
static struct kymo_open_range *range_listed(const struct kymo__stream *stream, uint32_t place)
{
	return place < KYMO_RANGES_MAX ? &stream->open->ranges[place] : NULL;
}

/* Takes the range out of the table; false: it has ended already. */
static bool range_close(const struct kymo__stream *stream, struct range *range, uint64_t number,
			uint64_t end_ticks, struct range *out)
{
	struct kymo__ranges *ranges = stream->ranges;
	uint32_t place = range_place(ranges, range);
	struct kymo_open_range *listed = range_listed(stream, place);

	if (!number || !kymo__cas_acq_rel(&range->number, &number, 0))
		return false;
	*out = *range;
	if (listed)
		kymo__store_relaxed(&listed->name, 0);
	/* Counters of two cores may differ by some ticks. */
	range->free_from = end_ticks > range->start_ticks ? end_ticks : range->start_ticks;
	range->flags = 0;
	kymo__fetch_and_release(&ranges->taken[place / 64], ~(1ull << place % 64));
	return true;
}

/* ---- lanes --------------------------------------------------------------------------------- */

void kymo__ranges_rename(const struct kymo__full_lane *lane)
{
	char name[KYMO_THREAD_NAME_BYTES], own[KYMO_THREAD_NAME_BYTES];

	if (!lane->range_thread)
		return;
	kymo__thread_name_of(lane->hot.thread, own);
	own[kymo__utf8_cut(own, strlen(own), sizeof(own) - sizeof(KYMO_RANGES_SUFFIX))] = '\0';
	snprintf(name, sizeof(name), "%s" KYMO_RANGES_SUFFIX, own);
	kymo__thread_rename(lane->range_thread, name);
}

static uint32_t range_lane(struct kymo__full_lane *lane)
{
	if (!lane->range_thread) {
		lane->range_thread = kymo__thread_add();
		kymo__ranges_rename(lane);
	}
	return lane->range_thread;
}

static struct range *range_open(struct kymo__full_lane *lane, uint64_t start_ticks, uint32_t name,
				uint32_t flags)
{
	struct kymo__stream *stream = lane->streams[SCHEMA_ZONES];
	struct kymo__ranges *ranges = stream->ranges ? stream->ranges : ranges_make(stream);
	struct range *range = ranges ? range_take(ranges, start_ticks) : NULL;
	struct kymo_open_range *listed;

	if (!range) {
		kymo__fetch_add_relaxed(&stream->live->dropped[KYMO_DROP_FULL], 1);
		return NULL;
	}
	range->start_ticks = start_ticks;
	range->name = name;
	range->flags = flags;
	range->thread = range_lane(lane);
	listed = range_listed(stream, range_place(ranges, range));
	if (listed) {
		kymo__store_relaxed(&listed->start_ticks, start_ticks);
		kymo__store_relaxed(&listed->thread, range->thread);
		kymo__store_release(&listed->name, name);
	}
	kymo__store_release(&range->number, kymo__add_fetch_relaxed(&last_number, 1));
	return range;
}

/* The depth is the place in the table of the stream in which it began. */
static void range_write(struct kymo__full_lane *lane, const struct range *range, uint32_t place,
			uint64_t end_ticks)
{
	struct kymo_zone zone = { &lane->hot, range->start_ticks, range->name, place };

	if (end_ticks < zone.start_ticks)
		end_ticks = zone.start_ticks;
	kymo__zone_write_as(&lane->hot, &zone, end_ticks, place, KYMO_ZONE_RANGE, range->thread);
}

/* ---- regions that outlast a scope ---------------------------------------------------------- */

/* The latest (or oldest) region among the ranges. name 0: of any name; flags 0: and of any API. */
static struct range *range_find(const struct kymo__full_lane *lane, uint32_t name, uint32_t flags,
				bool oldest)
{
	const struct kymo__stream *stream = lane->streams[SCHEMA_ZONES];
	struct kymo__ranges *ranges = stream && lane->kept_regions ? stream->ranges : NULL;
	struct range *found = NULL;

	for (uint32_t word = 0; ranges && word < PLACES / 64; word++)
		for (uint64_t left = kymo__load_relaxed(&ranges->taken[word]); left;
		     left &= left - 1) {
			struct range *range =
				&ranges->list[word * 64 + (uint32_t)__builtin_ctzll(left)];

			if (!range->flags || (name && range->name != name) ||
			    (flags && range->flags != flags))
				continue;
			if (!found || (range->start_ticks < found->start_ticks) == oldest)
				found = range;
		}
	return found;
}

static void range_give_up_oldest(struct kymo__full_lane *lane)
{
	struct range *oldest = range_find(lane, 0, 0, true), gone;

	if (oldest &&
	    range_close(lane->streams[SCHEMA_ZONES], oldest, oldest->number, kymo__ticks(), &gone))
		lane->kept_regions--;
}

void kymo__ranges_keep(struct kymo__full_lane *lane, const struct kymo_open_entry *entry)
{
	uint32_t flags = entry->flags & ~KYMO_OPEN_SHADOWED;

	if (!lane->streams[SCHEMA_ZONES]) /* the lane of cost.c */
		return;
	if (lane->kept_regions >= REGIONS_MOST)
		range_give_up_oldest(lane);
	if (range_open(lane, entry->start_ticks, entry->name, flags))
		lane->kept_regions++;
}

bool kymo__ranges_stop(struct kymo__full_lane *lane, uint32_t name, uint32_t flags,
		       uint64_t after_ticks, uint64_t end_ticks, uint64_t *out_start_ticks)
{
	const struct kymo__stream *stream = lane->streams[SCHEMA_ZONES];
	struct range *range = range_find(lane, name, flags, false), ended;

	if (!range || range->start_ticks < after_ticks ||
	    !range_close(stream, range, range->number, end_ticks, &ended))
		return false;
	lane->kept_regions--;
	*out_start_ticks = ended.start_ticks;
	range_write(lane, &ended, range_place(stream->ranges, range), end_ticks);
	return true;
}

void kymo__ranges_thread_ends(struct kymo__full_lane *lane)
{
	/* Bounded, should one not close: a thread must end. */
	for (uint32_t i = 0; i < REGIONS_MOST && lane->kept_regions; i++)
		range_give_up_oldest(lane);
	lane->kept_regions = 0;
	kymo__thread_ended(lane->range_thread);
}

/* ---- ranges that any thread may end -------------------------------------------------------- */

uint64_t kymo_range_begin_id(uint32_t name_id)
{
	uint64_t start_ticks = kymo__ticks();
	struct kymo__full_lane *lane;
	struct kymo__stream *stream;
	struct range *range;

	if (!kymo_enabled())
		return 0;
	lane = kymo__lane_for(SCHEMA_ZONES);
	stream = lane ? lane->streams[SCHEMA_ZONES] : NULL;
	range = stream ? range_open(lane, start_ticks, name_id, 0) : NULL;
	if (!range)
		return 0;
	return range->number << (PLACE_BITS + STREAM_BITS) | (uint64_t)stream->id << PLACE_BITS |
	       range_place(stream->ranges, range);
}

uint64_t kymo_range_begin(const char *name)
{
	return kymo_enabled() ? kymo_range_begin_id(kymo_name(name ? name : "")) : 0;
}

/* The place that the number names; NULL: none. Another range may be there by now. */
static struct range *range_at(uint64_t range, const struct kymo__stream **out_stream)
{
	const uint32_t id = (uint32_t)(range >> PLACE_BITS) & ((1u << STREAM_BITS) - 1);
	struct kymo__ranges *ranges;

	/* First: in the child of a fork, the streams of the parent are forgotten here. */
	if (!range || !kymo__process_ready() || !kymo__stream_at(id, out_stream) || !*out_stream)
		return NULL;
	ranges = kymo__load_acquire(&(*out_stream)->ranges);
	return ranges ? &ranges->list[range & (PLACES - 1)] : NULL;
}

int kymo_range_end(uint64_t range)
{
	uint64_t end_ticks = kymo__ticks();
	const struct kymo__stream *stream;
	struct range *place = range_at(range, &stream), ended;
	struct kymo__full_lane *lane;

	if (!place ||
	    !range_close(stream, place, range >> (PLACE_BITS + STREAM_BITS), end_ticks, &ended))
		return kymo_enabled() && range ? -ENOENT : 0;
	lane = kymo__lane_for(SCHEMA_ZONES);
	if (lane && lane->streams[SCHEMA_ZONES])
		range_write(lane, &ended, range_place(stream->ranges, place), end_ticks);
	return 0;
}

bool kymo__range_start(uint64_t range, uint64_t *out_start_ticks, uint32_t *out_name)
{
	const struct kymo__stream *stream;
	const struct range *place = range_at(range, &stream);
	const uint64_t number = range >> (PLACE_BITS + STREAM_BITS);

	if (!place || kymo__load_acquire(&place->number) != number)
		return false;
	*out_start_ticks = place->start_ticks;
	*out_name = place->name;
	kymo__fence_acquire();
	return kymo__load_relaxed(&place->number) == number;
}
