/*
 * Where a vAccel region keeps what does not fit its 40 bytes: a slot of an arena that is never
 * unmapped, so that a thread which is late with a stop writes into memory of ours, whoever has
 * destroyed the region meanwhile.
 *
 * A slot has one shard for each lane of kymo, that is for each thread that lives; only that thread
 * adds to it. So no stop waits for another thread, and sums are exact. Who reads adds the shards
 * up.
 */
#ifndef KYMO_COMPAT_VACCEL_SLOTS_H
#define KYMO_COMPAT_VACCEL_SLOTS_H

#include <stdint.h>

#include <kymo/atomic.h>
#include <kymo/kymo.h>
#include <vaccel_prof.h>

#define SLOTS_MAX 65535u
#define SLOT_SHARDS 8u /* in the slot; those of more threads follow when they come */
#define SLOT_LEVELS 5u /* lanes 8..63, 64..511, ... */
#define SLOT_NAME_BYTES 256u

/* One cache line. Written by its lane's thread alone; read by whoever sums. */
struct shard {
	uint64_t live; /* the generation, while the thread that it is registered for lives */
	uint64_t generation; /* that count and ticks belong to */
	uint64_t count;
	uint64_t ticks;
	uint64_t shown_ticks; /* when nr_entries was last brought up to date */
	uint64_t reserved[3];
};

struct slot {
	struct vaccel_prof_region *region; /* whose it is; NULL: in the pool */
	/* grows with each clear and each new tenant: older shards count as empty */
	uint64_t generation;
	uint64_t cleared_ticks; /* what started before does not count */
	uint32_t name_id; /* 0: not looked up yet */
	uint32_t tag; /* flags on kymo's stack of open zones: whose start it is */
	uint32_t solo; /* lane + 1 of the only thread that uses it; 0: there are several */
	uint32_t users; /* threads that live and have used it in this generation */
	uint64_t others; /* with solo: what all other shards have counted */
	/* totals never shrink, though the clock's rate is known better and better */
	uint64_t printed_ns;
	char *long_name;
	uint32_t index, next_free;
	struct shard *more[SLOT_LEVELS];
	char name[SLOT_NAME_BYTES +
		  1]; /* the last byte is never written: whoever reads it finds an end */
	struct shard shards[SLOT_SHARDS] __attribute__((aligned(64)));
};

extern char *slots_arena; /* NULL until the first */

/* The region's slot, or NULL. Anything may be in region->samples: memory that nobody ever
   initialised. */
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

/* The region's slot, a new one where it has none; NULL: no memory. name_id is 0 then. */
struct slot *slot_attach(struct vaccel_prof_region *region);
/* An empty slot for a region that begins anew, whatever it held before. */
struct slot *slot_renew(struct vaccel_prof_region *region);
/* Back to the pool. */
void slot_detach(struct slot *slot);
/* Counts and times of before are gone. */
void slot_clear(struct slot *slot);
/* Exact for all that has ended before the call. */
void slot_sum(struct slot *slot, uint64_t *out_count, uint64_t *out_ticks);

/* In the child of a fork, where one thread is left: it registers again where it was. */
void slots_after_fork(void);

/* The first stop of a thread in this generation; NULL: no memory. */
struct shard *shard_register(struct slot *slot, struct kymo__lane *lane);
/* Brings region->nr_entries up to date where several threads use it. */
void slot_show(struct slot *slot, struct shard *shard, uint32_t lane, uint64_t now_ticks);

#endif
