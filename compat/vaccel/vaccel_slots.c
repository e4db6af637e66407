#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <kymo/atomic.h>
#include <kymo/pool.h>

#include "vaccel_slots.h"

#define BY_ADDRESS 65536u
#define SHOW_NS 4000u
#define TOUCHED_MAX 64u

char *slots_arena;
static uint64_t free_slots; /* a pool */
static uint32_t slot_count;
/* The slot that an address got last: a region that went out of scope without destroy gives its slot
   to the next one at that address. */
static uint32_t by_address[BY_ADDRESS];

/* Slots that a lane's thread is registered in: it leaves them when it ends. */
struct touched {
	uint32_t count;
	struct {
		uint32_t slot;
		uint64_t generation;
	} list[TOUCHED_MAX];
};
static struct touched *touched_by_lane[65536];

static struct slot *vaccel_slots_slot_at(uint32_t index)
{
	return (struct slot *)(void *)kymo__load_acquire(&slots_arena) + index;
}

static void *map_new(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/* Maps `bytes` into *place once, by the first thread. */
static void *map_once(void **place, size_t bytes)
{
	void *mine, *there = kymo__load_acquire(place);

	if (there)
		return there;
	mine = map_new(bytes);
	if (mine && !kymo__cas_acq_rel_acquire(place, &there, mine)) {
		munmap(mine, bytes);
		return there;
	}
	return mine;
}

/* ---- the pool ------------------------------------------------------------------------------ */

static uint32_t *slot_next_free(uint32_t index)
{
	return &vaccel_slots_slot_at(index)->next_free;
}

static struct slot *slot_new(void)
{
	struct slot *slot;
	uint32_t index;

	if (kymo__pool_pop(&free_slots, slot_next_free, &index))
		return vaccel_slots_slot_at(index);
	if (!map_once((void **)&slots_arena, SLOTS_MAX * sizeof(struct slot)))
		return NULL;
	index = kymo__load_relaxed(&slot_count);
	do {
		if (index >= SLOTS_MAX)
			return NULL;
	} while (!kymo__cas_relaxed(&slot_count, &index, index + 1));
	slot = vaccel_slots_slot_at(index);
	slot->index = index;
	return slot;
}

/* A new life of the slot: what its shards hold and the starts that are open belong to the one
   before. */
static void slot_begin(struct slot *slot, struct vaccel_prof_region *region)
{
	/* Ten bits, after which it counts from 0 again; those above are the owner's. */
	uint32_t life = ((kymo__load_relaxed(&slot->tag) >> 17) + 1) & 1023u;

	free(kymo__exchange_acq_rel(&slot->long_name, NULL));
	kymo__store_relaxed(&slot->name_id, 0);
	kymo__store_relaxed(&slot->tag, KYMO_OPEN_VACCEL | life << 17 | (slot->index + 1) << 1 |
						KYMO_OPEN_REGION);
	slot_clear(slot);
	kymo__store_release(&slot->region, region);
}

void slot_detach(struct slot *slot)
{
	struct vaccel_prof_region *region = kymo__load_relaxed(&slot->region);

	/* Two that destroy one region at once: one of them does it. */
	if (!region || !kymo__cas_acq_rel(&slot->region, &region, NULL))
		return;
	slot_begin(slot, NULL);
	kymo__pool_push(&free_slots, slot->index, slot_next_free);
}

/* ---- regions to slots ---------------------------------------------------------------------- */

static uint32_t *address_entry(const struct vaccel_prof_region *region)
{
	return &by_address[((uintptr_t)region >> 3) * 0x9e3779b97f4a7c15ull >> 48];
}

/* The slot of a region that was at this address and is gone. */
static struct slot *slot_left_behind(struct vaccel_prof_region *region)
{
	uint32_t index = kymo__load_acquire(address_entry(region));
	struct slot *slot = index ? vaccel_slots_slot_at(index - 1) : NULL;

	return slot && kymo__load_relaxed(&slot->region) == region ? slot : NULL;
}

static void give_to(struct slot *slot, struct vaccel_prof_region *region)
{
	slot_begin(slot, region);
	kymo__store_relaxed(&region->size, sizeof(struct slot));
	kymo__store_release(&region->samples, (struct vaccel_prof_sample *)(void *)slot);
	kymo__store_release(address_entry(region), slot->index + 1);
}

struct slot *slot_renew(struct vaccel_prof_region *region)
{
	struct slot *slot = vaccel_slots_slot_of(region);

	if (!slot)
		slot = slot_left_behind(region);
	if (!slot)
		slot = slot_new();
	if (slot)
		give_to(slot, region);
	return slot;
}

/* Several threads may meet a static region's first start at once: one slot wins. */
struct slot *slot_attach(struct vaccel_prof_region *region)
{
	struct vaccel_prof_sample *was = kymo__load_acquire(&region->samples);
	struct slot *slot = vaccel_slots_slot_of(region), *mine;

	if (slot)
		return slot;
	mine = slot_left_behind(region);
	/* By address, it may also be the one that another thread has just attached. */
	if (mine && (slot = vaccel_slots_slot_of(region)))
		return slot;
	if (!mine)
		mine = slot_new();
	if (!mine)
		return NULL;
	slot_begin(mine, region);
	if (!kymo__cas_acq_rel_acquire(&region->samples, &was,
				       (struct vaccel_prof_sample *)(void *)mine)) {
		if ((struct slot *)(void *)was != mine)
			slot_detach(mine);
		return vaccel_slots_slot_of(region);
	}
	/* nr_entries is 0 already, or is not ours to write: another thread may count by now. */
	kymo__store_relaxed(&region->size, sizeof(struct slot));
	kymo__store_release(address_entry(region), mine->index + 1);
	return mine;
}

void slot_clear(struct slot *slot)
{
	kymo__store_relaxed(&slot->cleared_ticks, kymo__ticks());
	kymo__store_relaxed(&slot->printed_ns, 0);
	kymo__store_relaxed(&slot->others, 0);
	kymo__store_relaxed(&slot->solo, 0);
	kymo__store_relaxed(&slot->users, 0);
	kymo__fetch_add_seq_cst(&slot->generation, 1);
}

/* ---- sums ---------------------------------------------------------------------------------- */

static void add_shards(const struct shard *shards, uint32_t count, uint64_t generation,
		       uint64_t *out_count, uint64_t *out_ticks)
{
	for (uint32_t i = 0; i < count; i++) {
		if (kymo__load_acquire(&shards[i].generation) != generation)
			continue;
		*out_count += kymo__load_relaxed(&shards[i].count);
		*out_ticks += kymo__load_relaxed(&shards[i].ticks);
	}
}

void slot_sum(struct slot *slot, uint64_t *out_count, uint64_t *out_ticks)
{
	uint64_t generation = kymo__load_seq_cst(&slot->generation);

	*out_count = *out_ticks = 0;
	add_shards(slot->shards, SLOT_SHARDS, generation, out_count, out_ticks);
	for (uint32_t level = 0; level < SLOT_LEVELS; level++) {
		struct shard *shards = kymo__load_acquire(&slot->more[level]);

		if (shards)
			add_shards(shards, (SLOT_SHARDS * 7) << 3 * level, generation, out_count,
				   out_ticks);
	}
}

/* ---- nr_entries, which the program reads without a call ------------------------------------- */

static void vaccel_slots_raise_to(size_t *entries, uint64_t count)
{
	size_t old = kymo__load_relaxed(entries);

	while (old < count && !kymo__cas_weak_relaxed(entries, &old, count))
		;
}

/* Alone from now on: every stop shows its count with a plain store. Pairs with shard_register():
   one of the two threads sees the other. */
static void try_solo(struct slot *slot, const struct shard *shard, uint32_t lane)
{
	uint64_t count, ticks;

	slot_sum(slot, &count, &ticks);
	kymo__store_relaxed(&slot->others, count - shard->count);
	kymo__store_seq_cst(&slot->solo, lane + 1);
	if (kymo__load_seq_cst(&slot->users) != 1)
		kymo__store_seq_cst(&slot->solo, 0);
}

void slot_show(struct slot *slot, struct shard *shard, uint32_t lane, uint64_t now_ticks)
{
	static uint64_t pause_ticks; /* every thread computes the same value */
	uint64_t pause = kymo__load_relaxed(&pause_ticks), count, ticks;
	struct vaccel_prof_region *region;

	if (!pause) {
		uint64_t ns = kymo_ticks_ns(1u << 20);

		pause = ns ? ((uint64_t)SHOW_NS << 20) / ns : 1;
		kymo__store_relaxed(&pause_ticks, pause);
	}
	if (kymo__load_relaxed(&slot->users) == 1)
		try_solo(slot, shard, lane);
	else if (now_ticks - shard->shown_ticks < pause)
		return;
	shard->shown_ticks = now_ticks;
	slot_sum(slot, &count, &ticks);
	region = kymo__load_relaxed(&slot->region);
	if (region)
		vaccel_slots_raise_to(&region->nr_entries, count);
}

/* The region may be gone without destroy, and its memory too: only what still looks as we left it
   is written. */
static void show_at_end(struct slot *slot)
{
	struct vaccel_prof_region copy, *region = kymo__load_acquire(&slot->region);
	struct iovec to = { &copy, sizeof(copy) }, from = { region, sizeof(copy) };
	uint64_t count, ticks;

	if (!region || process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof(copy))
		return;
	slot_sum(slot, &count, &ticks);
	if ((struct slot *)(void *)copy.samples == slot && copy.size == sizeof(struct slot) &&
	    copy.nr_entries < count)
		vaccel_slots_raise_to(&region->nr_entries, count);
}

/* ---- threads ------------------------------------------------------------------------------- */

static void lane_ends(struct kymo__lane *lane)
{
	struct touched *touched = touched_by_lane[lane->index];

	for (uint32_t i = 0; touched && i < touched->count; i++) {
		struct slot *slot = vaccel_slots_slot_at(touched->list[i].slot);
		struct shard *shard = shard_of(slot, lane->index);
		uint64_t generation = touched->list[i].generation;

		if (!shard || shard->live != generation)
			continue;
		shard->live = 0;
		kymo__fence_seq_cst();
		if (kymo__load_relaxed(&slot->generation) != generation)
			continue;
		show_at_end(slot);
		kymo__fetch_sub_seq_cst(&slot->users, 1);
	}
	if (touched)
		touched->count = 0;
}

void slots_after_fork(void)
{
	for (uint32_t i = 0; i < slot_count && i < SLOTS_MAX; i++) {
		struct slot *slot = vaccel_slots_slot_at(i);

		slot->users = slot->solo = 0;
		for (uint32_t n = 0; n < SLOT_SHARDS; n++)
			slot->shards[n].live = 0;
		for (uint32_t level = 0; level < SLOT_LEVELS && slot->more[level]; level++)
			for (uint32_t n = 0; n < (SLOT_SHARDS * 7) << 3 * level; n++)
				slot->more[level][n].live = 0;
	}
	for (uint32_t i = 0; i < 65536 && touched_by_lane[i]; i++)
		touched_by_lane[i]->count = 0;
}

static bool vaccel_slots_remember(struct kymo__lane *lane, struct slot *slot, uint64_t generation)
{
	struct touched *touched = map_once((void **)&touched_by_lane[lane->index & 65535u],
					   sizeof(struct touched));
	uint32_t i = 0;

	if (!touched)
		return false;
	while (i < touched->count && touched->list[i].slot != slot->index)
		i++;
	if (i == TOUCHED_MAX)
		return false;
	touched->list[i].slot = slot->index;
	touched->list[i].generation = generation;
	if (i == touched->count)
		touched->count++;
	return true;
}

struct shard *shard_register(struct slot *slot, struct kymo__lane *lane)
{
	uint64_t generation = kymo__load_acquire(&slot->generation);
	struct shard *shard;

	if (lane->index >= SLOT_SHARDS) {
		uint32_t level = (28u - (uint32_t)__builtin_clz(lane->index)) / 3u;

		if (level >= SLOT_LEVELS ||
		    !map_once((void **)&slot->more[level],
			      ((size_t)(SLOT_SHARDS * 7) << 3 * level) * sizeof(struct shard)))
			return NULL;
	}
	shard = shard_of(slot, lane->index);
	kymo__store_release(&kymo__at_lane_end, lane_ends);
	if (shard->generation != generation) {
		kymo__store_relaxed(&shard->count, 0);
		kymo__store_relaxed(&shard->ticks, 0);
		kymo__store_release(&shard->generation, generation);
	}
	/* Who is in more regions than can be remembered stays a user of them for ever: they are
	   never alone again. */
	vaccel_slots_remember(lane, slot, generation);
	shard->live = generation;
	if (kymo__add_fetch_seq_cst(&slot->users, 1) != 1)
		kymo__store_seq_cst(&slot->solo, 0);
	return shard;
}
