#include "itt.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

/* ---- tasks: they nest on their thread ------------------------------------------------------ */

/* The domain is in the flags, so that the end of a task finds the latest one of its domain. */
static inline uint32_t task_flags(const struct itt_domain *domain)
{
	return KYMO_OPEN_ITT | KYMO_OPEN_REGION | (uint32_t)domain->extra1 << 1;
}

static void task_begin(const struct itt_domain *domain, struct itt_id id, struct itt_id parent,
		       struct itt_string *name)
{
	uint32_t number;

	(void)id;
	(void)parent;
	if (!domain || !kymo__is_on(KYMO_ON_ZONES))
		return;
	number = itt_name_of(domain, name);
	if (KYMO__LIKELY(number)) /* an entry without a name would never be closed */
		kymo__region_open(number, task_flags(domain));
}

static void task_begin_ex(const struct itt_domain *domain, struct itt_clock *clock,
			  unsigned long long at, struct itt_id id, struct itt_id parent,
			  struct itt_string *name)
{
	(void)clock;
	(void)at;
	task_begin(domain, id, parent, name);
}

static __attribute__((noinline)) void task_end_slow(uint32_t flags, uint64_t end_ticks)
{
	uint64_t start_ticks;

	kymo__region_pop(0, flags, end_ticks, &start_ticks);
}

/* Usually the task is the innermost zone. */
static __attribute__((flatten)) void task_end(const struct itt_domain *domain)
{
	uint64_t end_ticks = kymo__ticks();
	struct kymo__lane *lane = kymo__lane;

	if (KYMO__UNLIKELY(!lane || !domain))
		return;
	if (KYMO__UNLIKELY(!kymo__region_close_top(lane, task_flags(domain), end_ticks)))
		task_end_slow(task_flags(domain), end_ticks);
}

static void task_end_ex(const struct itt_domain *domain, struct itt_clock *clock,
			unsigned long long at)
{
	(void)clock;
	(void)at;
	task_end(domain);
}

/* ---- what has an id: it may cross others, and end on another thread ------------------------- */

#define OPEN_MOST 4096u
#define BUCKETS 1024u
#define ATTEMPTS 1000

/* The open ones. next: index + 1 of the next in the bucket or in the list of free ones. */
static struct open_id {
	struct itt_id id;
	uint64_t range;
	uint32_t next;
} open_ids[OPEN_MOST];
static uint32_t buckets[BUCKETS], free_list, used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Never waits for long: a signal handler may have interrupted the thread that holds the lock, and a
   forked child may have inherited it held. Without the lock the call does nothing. */
static bool itt_lock(void)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		if (!pthread_mutex_trylock(&lock))
			return true;
		sched_yield();
	}
	return false;
}

static void itt_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(buckets, 0, sizeof(buckets));
	free_list = used = 0;
}

__attribute__((constructor)) static void itt_tasks_on_load(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

static uint32_t *itt_tasks_bucket(struct itt_id id)
{
	uint64_t mixed = (id.d1 * 3 + id.d2 * 5 + id.d3) * 0x9e3779b97f4a7c15ull;

	return &buckets[mixed >> 54];
}

/* The link to the latest one with that id; NULL: none. */
static uint32_t *find_open(struct itt_id id)
{
	for (uint32_t *link = itt_tasks_bucket(id); *link; link = &open_ids[*link - 1].next)
		if (!memcmp(&open_ids[*link - 1].id, &id, sizeof(id)))
			return link;
	return NULL;
}

static void remember_open(struct itt_id id, uint64_t range)
{
	uint32_t *bucket = itt_tasks_bucket(id), number = free_list;

	if (number)
		free_list = open_ids[number - 1].next;
	else if (used < OPEN_MOST)
		number = ++used;
	else
		return; /* the range stays open: libkymo counts what it drops, this is listed */
	open_ids[number - 1] = (struct open_id){ id, range, *bucket };
	*bucket = number;
}

static uint64_t take_open(struct itt_id id)
{
	uint32_t *link = find_open(id), number = link ? *link : 0;

	if (!number)
		return 0;
	*link = open_ids[number - 1].next;
	open_ids[number - 1].next = free_list;
	free_list = number;
	return open_ids[number - 1].range;
}

uint64_t itt_range_of(struct itt_id id)
{
	uint64_t range = 0;
	uint32_t *link;

	if (!itt_lock())
		return 0;
	link = find_open(id);
	if (link)
		range = open_ids[*link - 1].range;
	itt_unlock();
	return range;
}

static void range_begin(struct itt_id id, uint32_t name)
{
	uint64_t range = kymo_range_begin_id(name);

	if (range && itt_lock()) {
		remember_open(id, range);
		itt_unlock();
	}
}

static void range_end(struct itt_id id)
{
	uint64_t range = 0;

	if (itt_lock()) {
		range = take_open(id);
		itt_unlock();
	}
	kymo_range_end(range);
}

static void overlapped_begin(const struct itt_domain *domain, struct itt_id id,
			     struct itt_id parent, struct itt_string *name)
{
	(void)parent;
	if (domain && kymo_enabled())
		range_begin(id, itt_name_of(domain, name));
}

static void overlapped_begin_ex(const struct itt_domain *domain, struct itt_clock *clock,
				unsigned long long at, struct itt_id id, struct itt_id parent,
				struct itt_string *name)
{
	(void)clock;
	(void)at;
	overlapped_begin(domain, id, parent, name);
}

static void overlapped_end(const struct itt_domain *domain, struct itt_id id)
{
	(void)domain;
	range_end(id);
}

static void overlapped_end_ex(const struct itt_domain *domain, struct itt_clock *clock,
			      unsigned long long at, struct itt_id id)
{
	(void)clock;
	(void)at;
	overlapped_end(domain, id);
}

/* ---- frames ---- */

/* Frames of a domain without an id follow each other. */
static struct itt_id frame_id(const struct itt_domain *domain, const struct itt_id *id)
{
	struct itt_id own = { (uintptr_t)domain, 0, 0 };

	return id && (id->d1 || id->d2 || id->d3) ? *id : own;
}

static void frame_begin(const struct itt_domain *domain, const struct itt_id *id)
{
	if (domain && kymo_enabled())
		range_begin(frame_id(domain, id), itt_name_of(domain, NULL));
}

static void frame_end(const struct itt_domain *domain, const struct itt_id *id)
{
	range_end(frame_id(domain, id));
}

/* Times are of get_timestamp; end 0: now. It may overlap anything: its row is nested in nothing. */
static void frame_submit(const struct itt_domain *domain, const struct itt_id *id,
			 unsigned long long begin, unsigned long long end)
{
	struct kymo__lane *lane;
	struct kymo_zone zone;

	(void)id;
	end = end ? end : kymo__ticks();
	if (!domain || !kymo_enabled() || begin > end)
		return;
	lane = kymo__lane ? kymo__lane : kymo__lane_get();
	if (!lane)
		return;
	zone = (struct kymo_zone){ lane, begin, itt_name_of(domain, NULL), 0 };
	kymo__zone_write(lane, &zone, end, 0, KYMO_ZONE_FOREIGN);
}

/* ---- events: by thread; one without an end is a moment --------------------------------------- */

static int event_create(const char *name, int bytes)
{
	size_t length = name ? strnlen(name, bytes > 0 ? (size_t)bytes : 0) : 0;

	return (int)kymo_name_full(name ? name : "", length, "", 0, 0, KYMO_SOURCE_ITT, 0);
}

static struct itt_id event_id(int event)
{
	struct itt_id id = { (unsigned int)event, (uintptr_t)pthread_self(), ~0ull };

	return id;
}

static int event_start(int event)
{
	if (!event || !kymo_enabled())
		return 0;
	range_end(event_id(event));
	range_begin(event_id(event), (uint32_t)event);
	return 0;
}

static int event_end(int event)
{
	range_end(event_id(event));
	return 0;
}

const struct itt_function itt_tasks[] = {
	{ "task_begin", (void *)task_begin },
	{ "task_begin_ex", (void *)task_begin_ex },
	{ "task_end", (void *)task_end },
	{ "task_end_ex", (void *)task_end_ex },
	{ "task_begin_overlapped", (void *)overlapped_begin },
	{ "task_begin_overlapped_ex", (void *)overlapped_begin_ex },
	{ "task_end_overlapped", (void *)overlapped_end },
	{ "task_end_overlapped_ex", (void *)overlapped_end_ex },
	{ "region_begin", (void *)overlapped_begin },
	{ "region_end", (void *)overlapped_end },
	{ "frame_begin_v3", (void *)frame_begin },
	{ "frame_end_v3", (void *)frame_end },
	{ "frame_submit_v3", (void *)frame_submit },
	{ "event_create", (void *)event_create },
	{ "event_start", (void *)event_start },
	{ "event_end", (void *)event_end },
	{ NULL, NULL },
};
