/*
 * Open zones of Python code, by thread. One Region object serves all its uses at once (threads,
 * recursion, tasks), so the state of a use is kept here, on a stack of the thread that entered it.
 *
 * Zones usually end in reverse order, so the zone that ends is on top. Generators and asyncio tasks
 * end zones in any order, and a collected generator may end its zone on another thread. A use is
 * therefore identified by its region and the frame that entered it. When a zone ends below others,
 * those above become loose: they are no longer nested, their rows are marked (KYMO_ZONE_FOREIGN,
 * depth 0), and their ends do not touch the thread's open-zone stack. The depths of all other zones
 * of the thread stay correct.
 *
 * Locking: the GIL protects the items; all functions hold it, except the two that run when a thread
 * begins and ends. A mutex protects the list of holders, because threads end without the GIL.
 */
#ifndef KYMO_PYTHON_HELD_H
#define KYMO_PYTHON_HELD_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/kymo.h>

#define HELD_FIRST_CAPACITY 32u
#define HELD_MAX (1u << 20) /* deeper uses are not recorded */

struct held {
	struct kymo_zone zone;
	const void *region; /* only compared; NULL: ended by another thread */
	const void *frame; /* only compared */
	int32_t phase; /* enum kymo_phase, or -1 */
};

struct holder {
	struct held *items;
	uint32_t count;
	uint32_t capacity;
	uint32_t unheld; /* uses that did not fit into items */
	bool introduced; /* the thread's name is in the recording */
	const char *stack_base;
	const char *stack_floor; /* NULL: not determined yet */
	struct holder *next;
};

static __thread struct holder *held_mine;
static struct holder *held_all;
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t held_key;

/* Not the lane of any thread, and never written: kymo_zone_end() treats the zone as one that ends
   on another thread. */
static struct kymo__lane held_loose;

static inline void held_loosen(struct held *held)
{
	if (held->zone.lane)
		held->zone.lane = &held_loose;
}

static void held_unlink(struct holder *holder)
{
	struct holder **link = &held_all;

	while (*link && *link != holder)
		link = &(*link)->next;
	if (*link)
		*link = holder->next;
}

/* At the end of a thread, without the GIL. */
static void held_thread_ends(void *pointer)
{
	struct holder *holder = pointer;

	pthread_mutex_lock(&held_lock);
	held_unlink(holder);
	pthread_mutex_unlock(&held_lock);
	held_mine = NULL;
	free(holder->items);
	free(holder);
}

static void held_before_fork(void)
{
	pthread_mutex_lock(&held_lock);
}

static void held_after_fork(void)
{
	pthread_mutex_unlock(&held_lock);
}

/* The other threads are gone; the zones of this one began in another process. */
static void held_in_child(void)
{
	struct holder *holder = held_mine;

	held_all = holder;
	if (holder) {
		holder->next = NULL;
		holder->introduced = false;
		for (uint32_t i = 0; i < holder->count; i++)
			held_loosen(&holder->items[i]);
	}
	pthread_mutex_unlock(&held_lock);
}

static int held_init(void)
{
	static bool done;

	if (done)
		return 0;
	if (pthread_key_create(&held_key, held_thread_ends))
		return -1;
	if (pthread_atfork(held_before_fork, held_after_fork, held_in_child))
		return -1;
	done = true;
	return 0;
}

static struct holder *held_make_holder(void)
{
	struct holder *holder = calloc(1, sizeof(*holder));

	if (!holder)
		return NULL;
	holder->items = calloc(HELD_FIRST_CAPACITY, sizeof(*holder->items));
	if (!holder->items || pthread_setspecific(held_key, holder)) {
		free(holder->items);
		free(holder);
		return NULL;
	}
	holder->capacity = HELD_FIRST_CAPACITY;
	pthread_mutex_lock(&held_lock);
	holder->next = held_all;
	held_all = holder;
	pthread_mutex_unlock(&held_lock);
	held_mine = holder;
	return holder;
}

/* NULL: no memory. */
static inline struct holder *held_holder(void)
{
	struct holder *holder = held_mine;

	return KYMO__LIKELY(holder != NULL) ? holder : held_make_holder();
}

static int held_grow(struct holder *holder)
{
	uint32_t capacity = holder->capacity * 2;
	struct held *items = NULL;

	if (capacity <= HELD_MAX)
		items = realloc(holder->items, capacity * sizeof(*items));
	if (!items)
		return -1;
	holder->items = items;
	holder->capacity = capacity;
	return 0;
}

/* Drops zones that other threads have ended; they left the depth to be restored here. */
static void held_drop_ended(struct holder *holder)
{
	while (holder->count && !holder->items[holder->count - 1].region) {
		const struct kymo_zone *zone = &holder->items[--holder->count].zone;

		if (zone->lane && zone->lane == kymo__lane)
			kymo__zone_leave(zone->lane, zone->depth);
	}
}

/* Room for one more, not yet counted. NULL: no room; the next held_leave() accounts for it. */
static inline struct held *held_next(struct holder *holder)
{
	if (KYMO__UNLIKELY(holder->count && !holder->items[holder->count - 1].region))
		held_drop_ended(holder);
	if (KYMO__LIKELY(holder->count < holder->capacity) || !held_grow(holder))
		return &holder->items[holder->count];
	holder->unheld++;
	return NULL;
}

/* Nested entries of a phase count its time once. */
static int32_t held_phase(const struct holder *holder, int32_t phase)
{
	for (uint32_t i = 0; phase >= 0 && i < holder->count; i++)
		if (holder->items[i].region && holder->items[i].phase == phase)
			return -1;
	return phase;
}

static inline void held_end(const struct held *held)
{
	kymo_zone_end(&held->zone);
	if (KYMO__UNLIKELY(held->phase >= 0) && held->zone.lane && held->zone.lane == kymo__lane)
		kymo_step_phase((enum kymo_phase)held->phase,
				kymo_ticks() - held->zone.start_ticks);
}

/* The newest use with that region and frame, else the newest with that region; -1: none. */
static int64_t held_find(const struct holder *holder, const void *region, const void *frame)
{
	int64_t found = -1;

	for (int64_t i = (int64_t)holder->count - 1; i >= 0; i--) {
		if (holder->items[i].region != region)
			continue;
		if (holder->items[i].frame == frame)
			return i;
		if (found < 0)
			found = i;
	}
	return found;
}

/* Ends a use that is not on top. Its end sets the thread's depth, so those above it become
   loose. */
static void held_leave_at(struct holder *holder, uint32_t at)
{
	struct held held = holder->items[at];
	struct held *above = &holder->items[at + 1];
	uint32_t above_count = holder->count - at - 1;

	if (held.zone.lane && held.zone.lane != &held_loose)
		for (uint32_t i = 0; i < above_count; i++)
			held_loosen(&above[i]);
	memmove(above - 1, above, above_count * sizeof(*above));
	holder->count--;
	held_end(&held);
}

/* If it was entered on another thread, it ends here; that thread restores its depth later. */
static void held_leave_elsewhere(const void *region, const void *frame)
{
	struct held held = { .region = NULL };

	pthread_mutex_lock(&held_lock);
	for (struct holder *holder = held_all; holder && !held.region; holder = holder->next) {
		int64_t at = held_find(holder, region, frame);

		if (at >= 0) {
			held = holder->items[at];
			holder->items[at].region = NULL;
		}
	}
	pthread_mutex_unlock(&held_lock);
	if (held.region)
		held_end(&held);
}

static void held_leave_slow(struct holder *holder, const void *region, const void *frame)
{
	int64_t at = -1;

	if (holder && holder->unheld) {
		holder->unheld--;
		return;
	}
	if (holder) {
		held_drop_ended(holder);
		at = held_find(holder, region, frame);
	}
	if (at >= 0)
		held_leave_at(holder, (uint32_t)at);
	else
		held_leave_elsewhere(region, frame);
}

static inline void held_leave(const void *region, const void *frame)
{
	struct holder *holder = held_mine;

	if (KYMO__LIKELY(holder && holder->count && !holder->unheld)) {
		const struct held *top = &holder->items[holder->count - 1];

		if (KYMO__LIKELY(top->region == region && top->frame == frame)) {
			holder->count--;
			held_end(top);
			return;
		}
	}
	held_leave_slow(holder, region, frame);
}

/*
 * A decorated function that calls itself uses C stack, unlike Python's own calls (3.11 and later):
 * very deep recursion must raise an exception, not crash. A stack that is not the thread's own
 * (coroutine libraries) never counts as short. The bounds are read again before the answer is yes,
 * because the main thread's stack grows up to its limit.
 */
static bool held_below_floor(const struct holder *holder)
{
	const char *here = __builtin_frame_address(0);

	return here < holder->stack_floor && here >= holder->stack_base;
}

static void held_ask_stack(struct holder *holder)
{
	pthread_attr_t attr;
	void *base;
	size_t bytes;

	holder->stack_floor = (char *)1; /* unknown: never short */
	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (!pthread_attr_getstack(&attr, &base, &bytes)) {
		holder->stack_base = base;
		holder->stack_floor = (char *)base + (bytes / 8 < 262144 ? bytes / 8 : 262144);
	}
	pthread_attr_destroy(&attr);
}

static bool held_stack_is_short(struct holder *holder)
{
	if (KYMO__UNLIKELY(!holder->stack_floor))
		held_ask_stack(holder);
	if (KYMO__LIKELY(!held_below_floor(holder)))
		return false;
	held_ask_stack(holder);
	return held_below_floor(holder);
}

#endif
