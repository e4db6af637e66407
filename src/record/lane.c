/* Lanes: the state of a thread that records. Taken at its first row, returned when it ends. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/atomic.h>
#include <kymo/pool.h>

#include "record/record.h"

#define LANES_MAX 65536u
#define RETRY_MS 10

__thread struct kymo__lane *kymo__lane __attribute__((tls_model("initial-exec")));
/* In lane_make(): rows of a signal handler are lost. */
static __thread uint8_t entering __attribute__((tls_model("initial-exec")));
/* The thread has returned its lane. */
static __thread uint8_t closed __attribute__((tls_model("initial-exec")));
/* See lane_thread_ends(). */
static __thread uint8_t ending __attribute__((tls_model("initial-exec")));

void (*kymo__at_lane_end)(struct kymo__lane *lane);
static struct kymo__full_lane *lanes[LANES_MAX];
static uint32_t lane_count;
static uint64_t free_lanes; /* a pool */
static uint64_t retry_ticks;
static pthread_key_t at_thread_end;
static int has_key;

static uint32_t *lane_next_free(uint32_t index)
{
	return &lanes[index]->next_free;
}

static struct kymo__full_lane *lane_make(void)
{
	uint32_t index = kymo__load_relaxed(&lane_count);
	struct kymo__full_lane *lane;
	void *map = mmap(NULL, sizeof(*lane), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (map == MAP_FAILED)
		return NULL;
	do {
		if (index >= LANES_MAX) {
			munmap(map, sizeof(*lane));
			return NULL;
		}
	} while (!kymo__cas_relaxed(&lane_count, &index, index + 1));
	lane = map;
	lane->hot.index = index;
	kymo__store_release(&lanes[index], lane);
	return lane;
}

static void lane_give(struct kymo__full_lane *lane)
{
	struct kymo__stream *zones = lane->streams[SCHEMA_ZONES];

	if (zones) {
		zones->next = lane->hot.next;
		zones->limit = lane->hot.limit;
	}
	for (uint32_t i = 0; i < KYMO_TABLES_MAX; i++) {
		if (lane->streams[i])
			kymo__stream_give(lane->streams[i]);
		lane->streams[i] = NULL;
	}
	kymo__pool_push(&free_lanes, lane->hot.index, lane_next_free);
}

/* Destructors of the program's own keys run in the same round, most of them after this one, and
   free the thread's data. So the lane is returned in the next round: a destructor that sets its key
   again is called again, at most four times. */
static void lane_thread_ends(void *value)
{
	struct kymo__full_lane *lane = value;
	void (*at_end)(struct kymo__lane * lane);

	if (kymo__lane != &lane->hot)
		return; /* from before a fork */
	if (!ending && !pthread_setspecific(at_thread_end, lane)) {
		ending = 1;
		return;
	}
	at_end = kymo__load_acquire(&kymo__at_lane_end);
	if (at_end)
		at_end(&lane->hot);
	kymo__region_thread_ends(lane);
	kymo__lane = NULL;
	closed = 1;
	kymo__thread_ended(lane->hot.thread);
	lane_give(lane);
}

void kymo__lanes_init(void)
{
	has_key = !pthread_key_create(&at_thread_end, lane_thread_ends);
}

void kymo__lanes_forget(void)
{
	uint32_t count = lane_count < LANES_MAX ? lane_count : LANES_MAX;

	for (uint32_t i = 0; i < count; i++) {
		if (lanes[i])
			munmap(lanes[i], sizeof(*lanes[i]));
		lanes[i] = NULL;
	}
	lane_count = 0;
	free_lanes = 0;
	retry_ticks = 0;
	if (has_key)
		pthread_setspecific(at_thread_end, NULL);
}

static void lane_reset(struct kymo__full_lane *lane, struct kymo__stream *zones, uint32_t thread)
{
	lane->hot.busy = 0;
	lane->hot.thread = thread;
	lane->hot.next = zones->next;
	lane->hot.limit = zones->limit;
	lane->hot.head = &zones->live->head;
	lane->hot.open = zones->open;
	lane->hot.step = &kymo__process.control->step;
	lane->streams[SCHEMA_ZONES] = zones;
	lane->text_number = 0;
	lane->range_thread = lane->kept_regions = 0;
	memset(lane->steps, 0, sizeof(lane->steps));
}

static struct kymo__full_lane *lane_take(void)
{
	struct kymo__full_lane *lane;
	struct kymo__stream *zones;
	uint32_t thread, index;

	lane = kymo__pool_pop(&free_lanes, lane_next_free, &index) ? lanes[index] : lane_make();
	if (!lane)
		return NULL;
	zones = kymo__stream_take(&kymo__tables[SCHEMA_ZONES], 0);
	if (!zones) {
		kymo__pool_push(&free_lanes, lane->hot.index, lane_next_free);
		return NULL;
	}
	/* Only now: failed attempts must not use up entries of the table. */
	thread = kymo__thread_add();
	kymo__store_relaxed(&zones->live->thread, thread);
	lane_reset(lane, zones, thread);
	if (has_key)
		pthread_setspecific(at_thread_end, lane);
	return lane;
}

struct kymo__full_lane *kymo__lane_for(uint32_t table)
{
	struct kymo__full_lane *lane = NULL;
	uint64_t now;
	int kept_errno;

	if (kymo__lane)
		return kymo__full(kymo__lane);
	if (closed || entering) {
		kymo__lost(table, closed ? KYMO_DROP_CLOSED : KYMO_DROP_REENTRANT);
		return NULL;
	}
	entering = 1;
	/* The program's: it may not have read it yet, especially if a signal handler records. */
	kept_errno = errno;
	now = kymo__ticks();
	if (kymo__process_ready() && now >= kymo__load_relaxed(&retry_ticks)) {
		lane = lane_take();
		if (!lane)
			kymo__store_relaxed(&retry_ticks,
					    now + RETRY_MS * kymo__process.ticks_per_ms);
	}
	if (lane)
		kymo__lane = &lane->hot;
	else
		kymo__lost(table, KYMO_DROP_FAILED);
	errno = kept_errno;
	entering = 0;
	return lane;
}

struct kymo__lane *kymo__lane_get(void)
{
	struct kymo__full_lane *lane = kymo__lane_for(SCHEMA_ZONES);

	return lane ? &lane->hot : NULL;
}

char *kymo__turn(struct kymo__lane *lane)
{
	struct kymo__stream *zones = kymo__full(lane)->streams[SCHEMA_ZONES];
	char *row;

	if (!zones) { /* the lane of cost.c */
		return kymo__cost_lane_rewind(lane);
	}
	row = kymo__stream_turn(zones);
	lane->next = zones->next;
	lane->limit = zones->limit;
	return row;
}

void kymo__zone_lost(struct kymo__lane *lane)
{
	const struct kymo__stream *zones = kymo__full(lane)->streams[SCHEMA_ZONES];

	if (zones)
		kymo__fetch_add_relaxed(&zones->live->dropped[KYMO_DROP_REENTRANT], 1);
}

void kymo_thread_name(const char *name)
{
	struct kymo__full_lane *lane;

	if (!name || !kymo_enabled())
		return;
	lane = kymo__lane_for(SCHEMA_NONE);
	if (!lane)
		return;
	kymo__thread_rename(lane->hot.thread, name);
	kymo__ranges_rename(lane);
}
