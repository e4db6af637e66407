/*
 * The part of kymo that is compiled into your program: the begin and the end of a zone.
 * Include <kymo/kymo.h>, not this. Everything named kymo__ may change with the library's soname.
 */
#ifndef KYMO_HOT_H
#define KYMO_HOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/atomic.h>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#else
#include <time.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KYMO__EXPORT __attribute__((visibility("default")))
#define KYMO__LIKELY(x) __builtin_expect(!!(x), 1)
#define KYMO__UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#error "kymo needs GCC or Clang"
#endif

/* Bits of the control page's word that selects what is recorded. */
enum kymo__on_bits {
	KYMO_ON_ZONES = 1u << 0, /* zones, regions, marks, counters, steps, text, user tables */
	KYMO_ON_PYTHON = 1u << 1,
	KYMO_ON_TORCH = 1u << 2,
	KYMO_ON_DEVICE = 1u << 3,
	KYMO_ON_ALLOC = 1u << 4,
	KYMO_ON_GC = 1u << 5,
	KYMO_ON_ALLOC_EXACT = 1u << 6, /* with KYMO_ON_ALLOC: every allocation, not samples */
};

/* The origin of a zone: the column `source`. */
enum kymo_source {
	KYMO_SOURCE_C = 0,
	KYMO_SOURCE_PYTHON = 1,
	KYMO_SOURCE_LINE = 2,
	KYMO_SOURCE_TORCH = 3,
	KYMO_SOURCE_DEVICE = 4,
	KYMO_SOURCE_OP = 5, /* an operator of a framework */
	KYMO_SOURCE_MARK = 6, /* a region that another tool's user marked: kymo import */
	KYMO_SOURCE_ITT = 7, /* a task, region, frame or event of the ITT API */
	KYMO_SOURCE_NVTX = 8, /* a range of the NVTX API */
	KYMO_SOURCE_XLA = 9, /* an operation of XLA */
};

/* A row of trace.zones, written when the zone ends. */
struct kymo_zone_row {
	uint64_t start_ticks;
	uint64_t duration_ticks;
	uint32_t name;
	uint32_t thread;
	uint16_t depth;
	uint16_t flags;
	uint32_t step;
};

#define KYMO_ZONE_FOREIGN 1u /* flags: began on another thread; its depth is 0 */
#define KYMO_ZONE_RECOMPUTED 2u
#define KYMO_ZONE_RANGE \
	4u /* a range (below); its thread is the range lane of the one it began on */

#define KYMO_OPEN_MAX 64

struct kymo_open_entry {
	uint64_t start_ticks;
	uint32_t name; /* 0: a hole; the zone ended before the zones above it */
	uint32_t flags; /* 0 for a scope; KYMO_OPEN_REGION and the owner's bits for a region */
};

/* In flags. A stop finds its start by name and flags. Bits 1 to 26 distinguish regions of equal
   name, bits 28 to 31 name the API that started the region, so that two of them never end each
   other's regions. kymo's own regions leave all of these 0. */
#define KYMO_OPEN_REGION 1u
#define KYMO_OPEN_SHADOWED (1u << 27) /* a later start of the region is a range: slow path */
#define KYMO_OPEN_OWNER(number) ((uint32_t)(number) << 28)
#define KYMO_OPEN_VACCEL KYMO_OPEN_OWNER(1)
#define KYMO_OPEN_ITT KYMO_OPEN_OWNER(2)
#define KYMO_OPEN_NVTX KYMO_OPEN_OWNER(3)

/* An open range: a region that outlasted a scope in which it began, or a zone that may end on
   another thread (kymo_range_begin()). Ranges do not nest: the depth of the row is the index here.
   name is stored last and cleared first, by the thread that ends the range. */
struct kymo_open_range {
	uint64_t start_ticks;
	uint32_t name; /* 0: none */
	uint32_t thread; /* the range lane, an entry of the thread table */
};

#define KYMO_RANGES_MAX 128

/* The open zones, outermost first, and the open ranges that began in the stream. It is in the
   mapped stream and so outlives the process. depth may exceed KYMO_OPEN_MAX: deeper zones are
   counted but not listed, and so are more than KYMO_RANGES_MAX ranges. Ranges stay when the thread
   returns the stream. */
struct kymo_open_stack {
	uint32_t depth;
	uint32_t reserved[15];
	struct kymo_open_entry entries[KYMO_OPEN_MAX];
	struct kymo_open_range ranges[KYMO_RANGES_MAX];
};

/* What a thread holds while it records. Private memory except *head and *open. The thread is the
   only writer. */
struct kymo__lane {
	/* set while a row is being written: a signal handler's rows are then dropped */
	uint8_t busy;
	uint8_t reserved[3];
	uint32_t thread;
	char *next; /* the next row of the zone stream */
	char *limit; /* next == limit takes the slow path: a full batch, segment or ring */
	uint64_t *head; /* published rows, in the mapped stream */
	struct kymo_open_stack *open;
	const uint32_t *step; /* the process's current step */
	uint32_t index; /* in the pool of lanes */
};

/* Points to a zero, then to the control page's word once recording is set up. */
extern KYMO__EXPORT const volatile uint32_t *kymo__on;
extern KYMO__EXPORT __thread struct kymo__lane *kymo__lane
	__attribute__((tls_model("initial-exec")));

static inline uint32_t kymo__is_on(uint32_t bits)
{
	return kymo__load_relaxed(kymo__load_relaxed(&kymo__on)) & bits;
}

/* Slow paths. Each may fail, and counts dropped rows. */
KYMO__EXPORT struct kymo__lane *kymo__lane_get(void); /* NULL: no stream available */
/* Returns the next row; NULL: dropped and counted. */
KYMO__EXPORT char *kymo__turn(struct kymo__lane *lane);
KYMO__EXPORT void kymo__zone_lost(struct kymo__lane *lane); /* reentrant */
/* Removes the zone at `depth` and all above it. Regions above it become ranges: they have not
   ended. Scopes above it vanish: longjmp skipped their end. Nothing if there is no such zone, since
   its parent has ended already. */
KYMO__EXPORT void kymo__zone_unwind(struct kymo__lane *lane, uint32_t depth);
KYMO__EXPORT extern uint64_t (*kymo__slow_clock)(void); /* NULL: use the CPU's counter */

/* Ticks of the recording's clock. */
static inline uint64_t kymo__ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	if (KYMO__UNLIKELY(kymo__slow_clock != NULL))
		return kymo__slow_clock();
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	if (KYMO__UNLIKELY(kymo__slow_clock != NULL))
		return kymo__slow_clock();
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* An open zone, in the caller's storage, usually on its stack. */
struct kymo_zone {
	struct kymo__lane *lane; /* NULL: not recorded */
	uint64_t start_ticks;
	uint32_t name;
	uint32_t depth;
};

#define KYMO__BARRIER() __asm__ volatile("" ::: "memory")

static inline struct kymo_zone kymo__zone_open(uint32_t name)
{
	struct kymo_zone zone = { NULL, 0, name, 0 };
	struct kymo__lane *lane = kymo__lane;
	struct kymo_open_stack *open;

	if (KYMO__UNLIKELY(!lane)) {
		lane = kymo__lane_get();
		if (!lane)
			return zone;
	}
	open = lane->open;
	zone.lane = lane;
	zone.depth = open->depth;
	/* Depth first: a signal handler that interrupts here then pushes above this entry. */
	open->depth = zone.depth + 1;
	KYMO__BARRIER();
	zone.start_ticks = kymo__ticks();
	if (KYMO__LIKELY(zone.depth < KYMO_OPEN_MAX)) {
		open->entries[zone.depth].start_ticks = zone.start_ticks;
		open->entries[zone.depth].name = name;
		open->entries[zone.depth].flags = 0;
	}
	return zone;
}

/* Fills and publishes a row; the store of head pairs with the acquire of readers
   (base/format.h). */
static inline void kymo__zone_write_as(struct kymo__lane *lane, const struct kymo_zone *zone,
				       uint64_t end_ticks, uint32_t depth, uint32_t flags,
				       uint32_t thread)
{
	uint64_t *row, head;

	if (KYMO__UNLIKELY(lane->busy)) {
		kymo__zone_lost(lane);
		return;
	}
	lane->busy = 1;
	KYMO__BARRIER();
	row = (uint64_t *)(void *)lane->next;
	if (KYMO__UNLIKELY(lane->next == lane->limit))
		row = (uint64_t *)(void *)kymo__turn(lane);
	if (KYMO__LIKELY(row != NULL)) {
		kymo__store_relaxed(&row[0], zone->start_ticks);
		kymo__store_relaxed(&row[1], end_ticks - zone->start_ticks);
		kymo__store_relaxed(&row[2], zone->name | (uint64_t)thread << 32);
		kymo__store_relaxed(&row[3],
				    (depth < 0xffffu ? depth : 0xffffu) | (uint64_t)flags << 16 |
					    (uint64_t)kymo__load_relaxed(lane->step) << 32);
		head = *lane->head + 1;
		lane->next = (char *)(void *)(row + 4);
		kymo__store_release(lane->head, head);
	}
	KYMO__BARRIER();
	lane->busy = 0;
}

static inline void kymo__zone_write(struct kymo__lane *lane, const struct kymo_zone *zone,
				    uint64_t end_ticks, uint32_t depth, uint32_t flags)
{
	kymo__zone_write_as(lane, zone, end_ticks, depth, flags, lane->thread);
}

/* Removes a zone of this thread from the stack of open zones. It is the innermost one unless zones
   above it have no end yet. */
static inline void kymo__zone_leave(struct kymo__lane *lane, uint32_t depth)
{
	struct kymo_open_stack *open = lane->open;

	if (KYMO__LIKELY(open->depth == depth + 1))
		open->depth = depth;
	else
		kymo__zone_unwind(lane, depth);
}

static inline void kymo__zone_close(const struct kymo_zone *zone)
{
	uint64_t end_ticks = kymo__ticks();
	struct kymo__lane *lane = kymo__lane;

	if (KYMO__UNLIKELY(lane != zone->lane)) {
		/* Ended on another thread, or in the child of a fork. */
		if (!lane)
			lane = kymo__lane_get();
		if (lane)
			kymo__zone_write(lane, zone, end_ticks, 0, KYMO_ZONE_FOREIGN);
		return;
	}
	kymo__zone_leave(lane, zone->depth);
	kymo__zone_write(lane, zone, end_ticks, zone->depth, 0);
}

/* The general case of a region start, at any depth. Returns 0; -ENOMEM: no stream or too deep,
   counted. */
KYMO__EXPORT int kymo__region_push(uint32_t name, uint32_t flags);
/* Ends the latest start with that name and flags; name 0: with those flags. Returns 0 and the
   start; -ENOENT: this thread has not started the region. */
KYMO__EXPORT int kymo__region_pop(uint32_t name, uint32_t flags, uint64_t end_ticks,
				  uint64_t *out_start_ticks);
/* If set, called by an ending thread before it returns its lane. */
KYMO__EXPORT extern void (*kymo__at_lane_end)(struct kymo__lane *lane);

static inline int kymo__region_open(uint32_t name, uint32_t flags)
{
	struct kymo__lane *lane = kymo__lane;
	struct kymo_open_stack *open;
	struct kymo_open_entry *entry;
	uint32_t depth;

	if (KYMO__UNLIKELY(!lane || lane->open->depth >= KYMO_OPEN_MAX))
		return kymo__region_push(name, flags);
	open = lane->open;
	depth = open->depth;
	entry = &open->entries[depth];
	/* Depth first, as in kymo__zone_open(). */
	open->depth = depth + 1;
	KYMO__BARRIER();
	entry->name = name;
	entry->flags = flags;
	entry->start_ticks = kymo__ticks();
	return 0;
}

/* Inline for the usual case, the innermost region. */
static inline int kymo__region_close(uint32_t name, uint32_t flags, uint64_t end_ticks,
				     uint64_t *out_start_ticks)
{
	struct kymo__lane *lane = kymo__lane;
	struct kymo_zone zone = { lane, 0, name, 0 };
	struct kymo_open_entry *entry;
	uint32_t depth;

	if (KYMO__UNLIKELY(!lane))
		return kymo__region_pop(name, flags, end_ticks, out_start_ticks);
	depth = lane->open->depth - 1; /* beyond the list if no zone is open */
	if (KYMO__UNLIKELY(depth >= KYMO_OPEN_MAX))
		return kymo__region_pop(name, flags, end_ticks, out_start_ticks);
	entry = &lane->open->entries[depth];
	/* A hole below must be removed too: slow path. */
	if (KYMO__UNLIKELY(entry->flags != flags || entry->name != name ||
			   (depth && !entry[-1].name && entry[-1].flags == KYMO_OPEN_REGION)))
		return kymo__region_pop(name, flags, end_ticks, out_start_ticks);
	zone.start_ticks = entry->start_ticks;
	lane->open->depth = depth;
	*out_start_ticks = zone.start_ticks;
	kymo__zone_write(lane, &zone, end_ticks, depth, 0);
	return 0;
}

/* Ends the innermost zone if it is a region with those flags, of any name; false: it is not, or a
   hole is below it: kymo__region_pop(). lane is that of the calling thread. */
static inline bool kymo__region_close_top(struct kymo__lane *lane, uint32_t flags,
					  uint64_t end_ticks)
{
	struct kymo_zone zone = { lane, 0, 0, 0 };
	const struct kymo_open_entry *entry;
	uint32_t depth = lane->open->depth - 1; /* beyond the list if no zone is open */

	if (KYMO__UNLIKELY(depth >= KYMO_OPEN_MAX))
		return false;
	entry = &lane->open->entries[depth];
	zone.name = entry->name;
	if (KYMO__UNLIKELY(entry->flags != flags || !zone.name ||
			   (depth && !entry[-1].name && entry[-1].flags == KYMO_OPEN_REGION)))
		return false;
	zone.start_ticks = entry->start_ticks;
	lane->open->depth = depth;
	kymo__zone_write(lane, &zone, end_ticks, depth, 0);
	return true;
}

#ifdef __cplusplus
}
#endif

#endif
