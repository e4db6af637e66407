/*
 * The state of a vAccel region that does not fit its 40 bytes: a slot of an arena that is never
 * unmapped, so that a late stop in another thread writes to valid memory even if the region was
 * destroyed meanwhile.
 *
 * A slot has one shard per lane, that is per live thread; only that thread adds to it. So no stop
 * waits for another thread, and sums are exact. Readers add up the shards.
 */
#ifndef KYMO_COMPAT_VACCEL_SLOTS_H
#define KYMO_COMPAT_VACCEL_SLOTS_H

#include <stdint.h>

#include <kymo/atomic.h>
#include <kymo/kymo.h>
#include <vaccel_prof.h>

#define SLOTS_MAX 65535u
#define SLOT_SHARDS 8u /* in the slot; shards for more threads are allocated later */
#define SLOT_LEVELS 5u /* lanes 8..63, 64..511, ... */
#define SLOT_NAME_BYTES 256u

/* One cache line. Written only by its lane's thread; read by slot_sum(). */
struct shard {
	uint64_t live; /* the generation while its registered thread lives */
	uint64_t generation; /* of count and ticks */
	uint64_t count;
	uint64_t ticks;
	uint64_t shown_ticks; /* when nr_entries was last updated */
	uint64_t reserved[3];
};

struct slot {
	struct vaccel_prof_region *region; /* the owner; NULL: in the pool */
	/* incremented by each clear and each new owner: older shards count as empty */
	uint64_t generation;
	uint64_t cleared_ticks; /* earlier starts do not count */
	uint32_t name_id; /* 0: not interned yet */
	uint32_t tag; /* flags on the stack of open zones: identifies its starts */
	uint32_t solo; /* lane + 1 of the only thread that uses it; 0: several threads */
	uint32_t users; /* live threads that used it in this generation */
	uint64_t others; /* with solo: the count of all other shards */
	/* printed totals never shrink, although the clock's rate is refined */
	uint64_t printed_ns;
	char *long_name;
	uint32_t index, next_free;
	struct shard *more[SLOT_LEVELS];
	char name[SLOT_NAME_BYTES + 1]; /* the last byte is never written: always terminated */
	struct shard shards[SLOT_SHARDS] __attribute__((aligned(64)));
};

extern char *slots_arena; /* NULL before the first slot */

/* The region's slot, or NULL. region->samples may hold anything: it may be uninitialised. */
static inline struct slot *vaccel_slots_slot_of(const struct vaccel_prof_region *region)
{
	uintptr_t at = (uintptr_t)kymo__load_acquire(&region->samples);
	uintptr_t base = (uintptr_t)kymo__load_acquire(&slots_arena);
	struct slot *slot = (struct slot *)at;

	if (at - base >= SLOTS_MAX * sizeof(struct slot) || !base ||
	    (at & (__alignof__(struct slot) - 1)))
		return NULL;
	return kymo__load_relaxed(&slot->region) == region ? slot : NULL;
}

static inline struct shard *shard_of(struct slot *slot, uint32_t lane)
{
	if (KYMO__LIKELY(lane < SLOT_SHARDS))
		return &slot->shards[lane];
	{
		uint32_t level = (28u - (uint32_t)__builtin_clz(lane)) / 3u;
		struct shard *shards = level < SLOT_LEVELS ? kymo__load_acquire(&slot->more[level])
							   : NULL;

		return shards ? &shards[lane - (SLOT_SHARDS << 3 * level)] : NULL;
	}
}

/* The region's slot, or a new one with name_id 0; NULL: no memory. */
struct slot *slot_attach(struct vaccel_prof_region *region);
/* An empty slot for a region that is initialised, whatever it held before. */
struct slot *slot_renew(struct vaccel_prof_region *region);
/* Returns the slot to the pool. */
void slot_detach(struct slot *slot);
/* Resets counts and times. */
void slot_clear(struct slot *slot);
/* Exact for everything that ended before the call. */
void slot_sum(struct slot *slot, uint64_t *out_count, uint64_t *out_ticks);

/* In a forked child: the one remaining thread registers again. */
void slots_after_fork(void);

/* The first stop of a thread in this generation; NULL: no memory. */
struct shard *shard_register(struct slot *slot, struct kymo__lane *lane);
/* Updates region->nr_entries if several threads use it. */
void slot_show(struct slot *slot, struct shard *shard, uint32_t lane, uint64_t now_ticks);

#endif
