#include "collect/perf/native_sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <kymo/kymo.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/schema.h"
#include "collect/host/proc.h"
#include "collect/perf/address_space.h"
#include "collect/perf/native_rows.h"
#include "collect/perf/native_waits.h"
#include "collect/perf/native_walk.h"
#include "collect/perf/perf_events.h"
#include "record/record.h"

#define STACK_BYTES 32768u
#define LOOK_MS 100 /* rings are read at least this often */
#define WAIT_NS 500000000ull /* samples wait this long for the Python samples after them */
#define WRITE_NS 500000000ull /* between two times of writing */
#define LINES_NS 200000000ull /* for source lines, of each time */
#define LAST_LINES_NS 1000000000ull /* the program has ended, and its user waits */
#define NAMES_MOST 65536

struct thread_name {
	pid_t tid;
	uint32_t name;
};

struct native_sampler_inside {
	struct perf_events events;
	struct address_spaces spaces;
	struct native_rows rows;
	struct native_walk walk;
	struct native_waits waits;
	pid_t first_pid;
	struct recent_stacks *recent;
	enum kymo_keep keep;
	pthread_t thread;
	bool started, stop;
	bool wants_pause, paused; /* the second is the thread's */
	int wake_fd; /* readable when the thread has to end */
	pthread_mutex_t lock; /* of stop, wants_pause, added and published */
	uint64_t opened_ns, fast_until_ns; /* 0: still fast */
	uint64_t fast_samples;
	uint64_t written_ns;
	struct thread_name *names;
	size_t name_count, name_room;
	struct kymo_clock_pair before, now; /* of this look and the one before */
	struct native_sampler_stats stats, published;
	pid_t *added;
	size_t added_count, added_room;
};

/* ---- time ------------------------------------------------------------------------------------ */

static void take_clocks(struct native_sampler_inside *inside)
{
	inside->before = inside->now;
	inside->now.ticks = kymo_ticks();
	inside->now.monotonic_ns = clock_monotonic_ns();
}

/* Samples lie between this look and the one before, so a line through both is exact. */
static uint64_t native_sampler_ticks_at(const struct native_sampler_inside *inside, uint64_t at_ns)
{
	const struct kymo_clock_pair *a = &inside->before, *b = &inside->now;
	double rate;

	if (!a->ticks || b->monotonic_ns <= a->monotonic_ns)
		return b->ticks;
	rate = (double)(b->ticks - a->ticks) / (double)(b->monotonic_ns - a->monotonic_ns);
	/* A time after both is possible, and a negative number has no unsigned value. */
	return b->ticks - (uint64_t)(int64_t)(rate * (double)(int64_t)(b->monotonic_ns - at_ns));
}

/* ---- names of threads ------------------------------------------------------------------------ */

static struct thread_name *native_sampler_find_name(struct native_sampler_inside *inside, pid_t tid)
{
	for (size_t i = 0; i < inside->name_count; i++)
		if (inside->names[i].tid == tid)
			return &inside->names[i];
	if (inside->name_count >= NAMES_MOST || !grow((void **)&inside->names, &inside->name_room,
						      inside->name_count, sizeof(*inside->names)))
		return NULL;
	inside->names[inside->name_count] = (struct thread_name){ .tid = tid };
	return &inside->names[inside->name_count++];
}

static void set_name(struct native_sampler_inside *inside, pid_t tid, const char *text)
{
	struct thread_name *name = native_sampler_find_name(inside, tid);

	if (name && *text)
		name->name = kymo__intern(text, strlen(text), "", 0, 0, KYMO_SOURCE_C, 0);
}

static uint32_t native_sampler_name_of(struct native_sampler_inside *inside, pid_t pid, pid_t tid)
{
	struct thread_name *name = native_sampler_find_name(inside, tid);
	char path[64], text[64];

	if (name && !name->name) { /* it ran before the events did */
		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
		if (proc_read(path, text, sizeof(text)) > 0) {
			text[strcspn(text, "\n")] = '\0';
			set_name(inside, tid, text);
			name = native_sampler_find_name(inside, tid);
		}
	}
	return name ? name->name : 0;
}

static void forget_name(struct native_sampler_inside *inside, pid_t tid)
{
	for (size_t i = 0; i < inside->name_count; i++)
		if (inside->names[i].tid == tid) {
			inside->names[i] = inside->names[--inside->name_count];
			return;
		}
}

/* A new thread has the name of the one that made it. */
static void inherit_name(struct native_sampler_inside *inside, const struct perf_record *record)
{
	struct thread_name *child = native_sampler_find_name(inside, record->tid), *parent;

	parent = child ? native_sampler_find_name(inside, record->fork.parent_tid) : NULL;
	child = parent ? native_sampler_find_name(inside, record->tid) : NULL;
	if (child)
		child->name = parent->name;
}

/* ---- threads that wait ----------------------------------------------------------------------- */

static uint64_t waits_ticks_at(const void *context, uint64_t at_ns)
{
	return native_sampler_ticks_at(context, at_ns);
}

static uint32_t waits_name_of(void *context, pid_t pid, pid_t tid)
{
	return native_sampler_name_of(context, pid, tid);
}

static struct native_waits_with waits_with(struct native_sampler_inside *inside)
{
	return (struct native_waits_with){ .spaces = &inside->spaces,
					   .rows = &inside->rows,
					   .recent = inside->recent,
					   .ticks_at = waits_ticks_at,
					   .name_of = waits_name_of,
					   .context = inside };
}

static void native_sampler_end_thread(struct native_sampler_inside *inside,
				      const struct perf_record *record)
{
	struct native_waits_with with = waits_with(inside);

	native_waits_end_thread(&inside->waits, &with, record->pid, record->tid, record->time_ns);
	forget_name(inside, record->tid);
}

static void begin_thread(struct native_sampler_inside *inside, const struct perf_record *record)
{
	inherit_name(inside, record);
	native_waits_add_thread(&inside->waits, record->pid, record->tid);
}

/* ---- records --------------------------------------------------------------------------------- */

/* At first there is a sample of another event for each millisecond, but not in children. */
static bool is_counted(const struct native_sampler_inside *inside, const struct perf_record *sample)
{
	if (sample->sample.period_ns == PERF_EVENTS_FIRST_NS)
		return true;
	return (inside->fast_until_ns && sample->time_ns >= inside->fast_until_ns) ||
	       !perf_events_is_fast(&inside->events, sample->pid);
}

static void take_sample(struct native_sampler_inside *inside, const struct perf_record *record)
{
	struct address_space *space = address_spaces_get(&inside->spaces, record->pid);
	const int sp = FRAME_SP;
	struct frame_memory memory = { record->sample.registers[sp], record->sample.stack,
				       record->sample.stack_bytes };
	struct native_waiting sample = {
		.ts_ticks = native_sampler_ticks_at(inside, record->time_ns),
		.time_ns = record->time_ns,
		.weight_ns = record->sample.period_ns,
		.pid = record->pid,
		.tid = record->tid,
		.flags = record->sample.in_kernel ? SCHEMA_NATIVE_KERNEL : 0,
	};

	if (!space || !record->sample.has_registers || !is_counted(inside, record))
		return;
	inside->fast_samples += record->sample.period_ns == PERF_EVENTS_FIRST_NS;
	native_walk(space, record, &inside->walk);
	if (inside->walk.unmapped && !space->ended) {
		address_spaces_refresh(&inside->spaces, space, clock_monotonic_ns());
		native_walk(space, record, &inside->walk);
	}
	sample.thread_name = native_sampler_name_of(inside, record->pid, record->tid);
	native_rows_add(&inside->rows, space, &inside->walk, &memory, &sample);
}

static void take_loss(struct native_sampler_inside *inside, uint64_t lost)
{
	inside->stats.lost += lost;
	for (uint64_t i = 0; i < lost && i < 100000; i++)
		kymo__lost(SCHEMA_NATIVE_SAMPLES, KYMO_DROP_FULL);
}

static void take_record(struct native_sampler_inside *inside, const struct perf_record *record)
{
	switch (record->kind) {
	case PERF_RECORD_OF_SAMPLE: take_sample(inside, record); return;
	case PERF_RECORD_OF_LOSS: take_loss(inside, record->lost); return;
	case PERF_RECORD_OF_NAME: set_name(inside, record->tid, record->name.name); break;
	case PERF_RECORD_OF_FORK: begin_thread(inside, record); break;
	case PERF_RECORD_OF_EXIT: native_sampler_end_thread(inside, record); break;
	default: break;
	}
	address_spaces_take(&inside->spaces, record);
}

/* Records of each ring are in order; those of all rings are taken by time. */
struct ring_record {
	struct perf_record record;
	bool valid;
};

static void next_of_ring(struct native_sampler_inside *inside, size_t ring, struct ring_record *out)
{
	const void *bytes;
	size_t count;

	out->valid = false;
	while (!out->valid && perf_events_next(&inside->events, ring, &bytes, &count)) {
		out->valid = perf_record_parse(bytes, count, &out->record);
		if (!out->valid) /* a sample of a 32-bit program, or damaged */
			kymo__lost(SCHEMA_NATIVE_SAMPLES, KYMO_DROP_FAILED);
		inside->stats.damaged += !out->valid;
	}
}

static struct ring_record *earliest_record(struct ring_record *records, size_t count)
{
	struct ring_record *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (records[i].valid &&
		    (!found || records[i].record.time_ns < found->record.time_ns))
			found = &records[i];
	return found;
}

static void read_rings(struct native_sampler_inside *inside)
{
	size_t count = inside->events.ring_count;
	struct ring_record *records = calloc(count + 1, sizeof(*records)), *first;

	if (!records)
		return;
	perf_events_begin(&inside->events);
	take_clocks(inside);
	for (size_t i = 0; i < count; i++)
		next_of_ring(inside, i, &records[i]);
	while ((first = earliest_record(records, count))) {
		take_record(inside, &first->record);
		next_of_ring(inside, (size_t)(first - records), first);
	}
	perf_events_end(&inside->events);
	address_spaces_forget_ended(&inside->spaces);
	free(records);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Mappings that were made in a pause are read where an address is in none. */
static void pause_or_resume(struct native_sampler_inside *inside, bool paused)
{
	if (paused == inside->paused)
		return;
	inside->paused = paused;
	perf_events_pause(&inside->events, paused);
}

/* Publishes the statistics, and returns whether to go on. */
static bool look_outside(struct native_sampler_inside *inside)
{
	bool stop, paused;

	inside->stats.samples = inside->rows.stats.rows;
	inside->stats.complete = inside->rows.stats.complete;
	inside->stats.merged = inside->rows.stats.merged;
	inside->stats.apart = inside->rows.stats.apart;
	inside->stats.functions = inside->rows.places.functions;
	inside->stats.cpu_ns = thread_cpu_ns();
	pthread_mutex_lock(&inside->lock);
	inside->published = inside->stats;
	stop = inside->stop;
	paused = inside->wants_pause;
	for (size_t i = 0; i < inside->added_count; i++) {
		perf_events_add_process(&inside->events, inside->added[i], NULL);
		native_waits_add_process(&inside->waits, inside->added[i]);
	}
	inside->added_count = 0;
	pthread_mutex_unlock(&inside->lock);
	pause_or_resume(inside, paused);
	return !stop;
}

static void slow_down(struct native_sampler_inside *inside)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (inside->fast_until_ns || (now_ns - inside->opened_ns < PERF_EVENTS_FIRST_FOR_NS &&
				      inside->fast_samples < PERF_EVENTS_FIRST_MOST))
		return;
	perf_events_slow_down(&inside->events);
	inside->fast_until_ns = now_ns;
}

static void native_sampler_wait(struct native_sampler_inside *inside)
{
	int pause_ms = inside->paused ? LOOK_MS
				      : native_waits_pause_ms(&inside->waits, clock_monotonic_ns());

	perf_events_wait(&inside->events, inside->wake_fd, pause_ms < LOOK_MS ? pause_ms : LOOK_MS);
}

static void *native_sampler_run(void *context)
{
	struct native_sampler_inside *inside = context;
	struct native_waits_with with = waits_with(inside);
	uint64_t now_ns;

	pthread_setname_np(pthread_self(), "kymo-native");
	native_waits_add_process(&inside->waits, inside->first_pid);
	do {
		native_sampler_wait(inside);
		read_rings(inside);
		/* As of the rings, so that rows are in order of time. */
		if (!inside->paused)
			native_waits_look(&inside->waits, &with, inside->now.monotonic_ns);
		slow_down(inside);
		now_ns = clock_monotonic_ns();
		/* Not while it is fast: a ring would be full before the names are found. */
		if (inside->fast_until_ns && now_ns - inside->written_ns >= WRITE_NS) {
			native_rows_write(&inside->rows, now_ns - WAIT_NS, now_ns + LINES_NS);
			inside->written_ns = clock_monotonic_ns();
		}
	} while (look_outside(inside));
	read_rings(inside);
	native_waits_end(&inside->waits, &with, clock_monotonic_ns());
	native_rows_write(&inside->rows, UINT64_MAX, clock_monotonic_ns() + LAST_LINES_NS);
	look_outside(inside);
	return NULL;
}

/* ---- from outside ---------------------------------------------------------------------------- */

static struct native_sampler_inside *native_sampler_create(struct native_sampler *sampler)
{
	struct native_sampler_inside *inside = calloc(1, sizeof(*inside));

	sampler->inside = NULL;
	if (!inside)
		return NULL;
	inside->wake_fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&inside->lock, NULL);
	return inside;
}

static void native_sampler_destroy(struct native_sampler_inside *inside)
{
	perf_events_close(&inside->events);
	if (inside->wake_fd >= 0)
		close(inside->wake_fd);
	native_waits_fini(&inside->waits);
	native_rows_fini(&inside->rows);
	address_spaces_fini(&inside->spaces);
	pthread_mutex_destroy(&inside->lock);
	free(inside->names);
	free(inside->added);
	free(inside);
}

int native_sampler_open_child(struct native_sampler *sampler, pid_t pid, struct kymo_error *err)
{
	struct native_sampler_inside *inside = native_sampler_create(sampler);
	int rc = inside ? perf_events_open_child(&inside->events, pid, STACK_BYTES, err) : -ENOMEM;

	if (!rc) {
		inside->opened_ns = clock_monotonic_ns();
		inside->first_pid = pid;
		sampler->inside = inside;
	} else if (inside) {
		native_sampler_destroy(inside);
	}
	return rc;
}

int native_sampler_open_process(struct native_sampler *sampler, pid_t pid, struct kymo_error *err)
{
	struct native_sampler_inside *inside = native_sampler_create(sampler);
	int rc = inside ? perf_events_open_process(&inside->events, pid, STACK_BYTES, err)
			: -ENOMEM;
	struct address_space *space;

	if (rc) {
		if (inside)
			native_sampler_destroy(inside);
		return rc;
	}
	inside->opened_ns = clock_monotonic_ns();
	inside->first_pid = pid;
	space = address_spaces_get(&inside->spaces, pid);
	if (space)
		address_spaces_refresh(&inside->spaces, space, inside->opened_ns);
	sampler->inside = inside;
	return 0;
}

bool native_sampler_holds(const struct native_sampler *sampler, int fd)
{
	const struct native_sampler_inside *inside = sampler->inside;

	if (!inside)
		return false;
	for (size_t i = 0; i < inside->events.slow_count; i++)
		if (inside->events.slow[i] == fd)
			return true;
	for (size_t i = 0; i < inside->events.fast_count; i++)
		if (inside->events.fast[i] == fd)
			return true;
	return fd == inside->wake_fd;
}

void native_sampler_add_process(struct native_sampler *sampler, pid_t pid)
{
	struct native_sampler_inside *inside = sampler->inside;

	if (!inside)
		return;
	pthread_mutex_lock(&inside->lock);
	if (grow((void **)&inside->added, &inside->added_room, inside->added_count, sizeof(pid)))
		inside->added[inside->added_count++] = pid;
	pthread_mutex_unlock(&inside->lock);
}

int native_sampler_start(struct native_sampler *sampler, struct recent_stacks *recent,
			 enum kymo_keep keep, struct kymo_error *err)
{
	struct native_sampler_inside *inside = sampler->inside;
	int rc;

	if (!inside)
		return 0;
	inside->recent = recent;
	native_rows_init(&inside->rows, recent, keep);
	take_clocks(inside);
	inside->written_ns = inside->now.monotonic_ns;
	rc = pthread_create(&inside->thread, NULL, native_sampler_run, inside);
	inside->started = !rc;
	if (!rc)
		return 0;
	native_sampler_stop(sampler, NULL);
	return error_set(err, rc, "cannot start the thread of the native sampler: %s",
			 strerror(rc));
}

void native_sampler_pause(struct native_sampler *sampler, bool paused)
{
	if (!sampler->inside)
		return;
	pthread_mutex_lock(&sampler->inside->lock);
	sampler->inside->wants_pause = paused;
	pthread_mutex_unlock(&sampler->inside->lock);
}

void native_sampler_stats(struct native_sampler *sampler, struct native_sampler_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (!sampler->inside)
		return;
	pthread_mutex_lock(&sampler->inside->lock);
	*out = sampler->inside->published;
	pthread_mutex_unlock(&sampler->inside->lock);
}

void native_sampler_stop(struct native_sampler *sampler, struct native_sampler_stats *last)
{
	struct native_sampler_inside *inside = sampler->inside;

	if (last)
		memset(last, 0, sizeof(*last));
	if (!inside)
		return;
	pthread_mutex_lock(&inside->lock);
	inside->stop = true;
	pthread_mutex_unlock(&inside->lock);
	eventfd_write(inside->wake_fd, 1);
	if (inside->started)
		pthread_join(inside->thread, NULL);
	if (last)
		*last = inside->published;
	native_sampler_destroy(inside);
	sampler->inside = NULL;
}
