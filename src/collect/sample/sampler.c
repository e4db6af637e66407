#include "collect/sample/sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/settings.h"
#include "collect/native/process_memory.h"
#include "collect/sample/sample_pace.h"
#include "collect/sample/sampler_inside.h"
#include "record/record.h"

/* Most children that a program starts in great number are gone by then; finding Python in them
   would cost more than all their samples. */
#define CHILD_AFTER_NS 20000000ull
#define FIRST_TRY_NS 5000000ull /* after a process was found without Python; doubles */
#define LONGEST_TRY_NS 200000000ull
#define TRIES_OF_AGE 4u /* a process that has long been without Python: a quarter of its age */
#define SLOWEST_TRY_NS 2000000000ull
#define AFTER_LATE_NS 5000000000ull
#define FLIGHT_NODES 4000 /* less than half of a ring */
#define CHILDREN_BYTES 16384
/* A sample after a longer gap, in which the process could not be read, stands for its period. */
#define LONGEST_GAP_NS 1000000000ull
#define COST_PARTS 8 /* the mean cost moves by an eighth of the difference */
#define COST_EVERY 8u /* samples: the clock of CPU time is a system call */
#define ZONES_LOOK_NS 10000000ull /* between two searches for slow zones and new marks */

/* ---- a process ------------------------------------------------------------------------------- */

/* A program may load Python at any time, but each attempt reads the list of its mappings. */
static uint64_t longest_try(const struct watched *one, uint64_t now_ns)
{
	uint64_t by_age_ns = (now_ns - one->found_ns) / TRIES_OF_AGE;

	if (one->first_ns || by_age_ns < LONGEST_TRY_NS)
		return LONGEST_TRY_NS;
	return by_age_ns < SLOWEST_TRY_NS ? by_age_ns : SLOWEST_TRY_NS;
}

static void close_stack(struct watched *one, uint64_t now_ns)
{
	uint64_t longest_ns = longest_try(one, now_ns);

	pystack_close(&one->stack);
	one->open = false;
	one->try_ns = now_ns + one->pause_ns;
	one->pause_ns = one->pause_ns * 2 < longest_ns ? one->pause_ns * 2 : longest_ns;
}

static bool find_python(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	int rc;

	if (one->open)
		return true;
	if (now_ns < one->try_ns)
		return false;
	rc = pystack_open(&one->stack, one->pid, NULL);
	one->gone = rc == -ESRCH || paths_starttime(one->pid) != one->starttime;
	if (rc || one->gone) {
		close_stack(one, now_ns);
		return false;
	}
	one->open = true;
	inside->stats.processes++;
	return true;
}

/* The time since the last periodic sample. */
static uint64_t weigh(struct watched *one, uint64_t now_ns)
{
	uint64_t gap_ns = one->last_ns ? now_ns - one->last_ns : UINT64_MAX;
	uint64_t most_ns = one->period_ns > LONGEST_GAP_NS / 2 ? 2 * one->period_ns
							       : LONGEST_GAP_NS;

	one->last_ns = now_ns;
	if (!one->first_ns)
		one->first_ns = now_ns;
	return gap_ns <= most_ns ? gap_ns : one->period_ns;
}

static void take_within(struct sampler_inside *inside, struct watched *one, uint32_t cause)
{
	uint64_t ticks = kymo_ticks(), now_ns = clock_monotonic_ns();
	int rc;

	if (!find_python(inside, one, now_ns))
		return;
	rc = pystack_read(&one->stack, NULL);
	inside->read_ns = now_ns + (clock_monotonic_ns() - now_ns) / 2;
	if (!rc) {
		one->pause_ns = FIRST_TRY_NS;
		sampler_write(inside, one, ticks, cause,
			      cause == inside->period_name ? weigh(one, now_ns) : 0);
		return;
	}
	one->gone = rc == -ESRCH;
	close_stack(one, now_ns); /* Python is starting or ending, or the process has called exec */
}

/* A process that takes longer to read, because its memory is damaged, is left alone for a while. */
static void sampler_take(struct sampler_inside *inside, struct watched *one, uint32_t cause)
{
	process_memory_begin(PROCESS_MEMORY_WITHIN_NS);
	take_within(inside, one, cause);
	if (process_memory_late()) {
		close_stack(one, clock_monotonic_ns());
		one->try_ns = clock_monotonic_ns() + AFTER_LATE_NS;
	}
	process_memory_set_deadline(0);
}

static uint64_t sampler_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t mean_cost(uint64_t mean_ns, uint64_t cost_ns)
{
	return mean_ns ? mean_ns - mean_ns / COST_PARTS + cost_ns / COST_PARTS : cost_ns;
}

/* Right after the stacks: what the memory has grown by since the last sample was taken by what ran
   between them. */
static void sample_memory(struct sampler_inside *inside, struct watched *one)
{
	char text[128];

	if (sampler_held_read(inside, &one->memory_fd, one->pid, one->pid, "statm", text,
			      sizeof(text)) &&
	    host_memory_note(&one->memory, one->pid, host_memory_parse(text), clock_monotonic_ns()))
		one->unchanged = 0;
}

static void take_stacks_and_memory(struct sampler_inside *inside, struct watched *one)
{
	sampler_take(inside, one, inside->period_name);
	if (one->open)
		sample_memory(inside, one);
}

/* All samples of a process's first second are measured, and then every COST_EVERY-th. */
static void take_measured(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	bool first = !one->first_ns || now_ns - one->first_ns < SAMPLE_PACE_FIRST_FOR_NS;
	bool was_open = one->open; /* finding Python costs more, once */
	uint64_t before_ns, cost_ns;

	one->taken += was_open;
	if (!first && one->taken % COST_EVERY) {
		take_stacks_and_memory(inside, one);
		return;
	}
	before_ns = sampler_cpu_ns();
	take_stacks_and_memory(inside, one);
	cost_ns = sampler_cpu_ns() - before_ns;
	if (first)
		inside->first_cost_ns += cost_ns;
	if (was_open && one->open)
		one->cost_ns = mean_cost(one->cost_ns, cost_ns);
}

static void take_periodic(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	if (!one->period_ns)
		sampler_choose_period(inside, one, now_ns);
	take_measured(inside, one, now_ns);
	sampler_learn_idle(one, now_ns);
	sampler_choose_period(inside, one, now_ns);
	/* Keeps a fixed rate; samples missed on a busy machine are not taken later. */
	one->next_ns += one->period_ns;
	if (one->next_ns < now_ns || inside->adaptive)
		one->next_ns = now_ns + one->period_ns;
	if (!one->open && inside->adaptive && one->next_ns < one->try_ns)
		one->next_ns = one->try_ns;
}

/* ---- sampled processes ----------------------------------------------------------------------- */

/* after_ns: until the first attempt to find Python. */
static void python_sampler_watch(struct sampler_inside *inside, pid_t pid, uint64_t after_ns)
{
	uint64_t starttime = paths_starttime(pid);
	struct watched *one;

	for (size_t i = 0; i < inside->watched_count; i++)
		if (inside->watched[i]->pid == pid && inside->watched[i]->starttime == starttime)
			return;
	if (!grow((void **)&inside->watched, &inside->watched_room, inside->watched_count,
		  sizeof(*inside->watched)))
		return;
	one = starttime ? calloc(1, sizeof(*one)) : NULL;
	if (!one)
		return;
	one->pid = pid;
	one->starttime = starttime;
	one->pause_ns = FIRST_TRY_NS;
	one->children_fd = one->memory_fd = -1;
	one->found_ns = clock_monotonic_ns();
	one->next_ns = one->found_ns + after_ns;
	one->is_child = after_ns > 0;
	slow_zones_init(&one->zones, inside->live_dir, pid, starttime);
	inside->watched[inside->watched_count++] = one;
}

static void unwatch(struct sampler_inside *inside, struct watched *one)
{
	sampler_forget_seen(inside, one, 0);
	sampler_held_close(inside, &one->children_fd);
	sampler_held_close(inside, &one->memory_fd);
	free(one->seen);
	if (one->open)
		pystack_close(&one->stack);
	slow_zones_fini(&one->zones);
	free(one);
}

static void look_for_children(struct sampler_inside *inside, pid_t pid, pid_t tid, int *fd)
{
	char text[CHILDREN_BYTES], *at = text, *end;

	if (!sampler_held_read(inside, fd, pid, tid, "children", text, sizeof(text)))
		return;
	for (;; at = end) {
		long child = strtol(at, &end, 10);

		if (end == at)
			break;
		python_sampler_watch(inside, (pid_t)child, CHILD_AFTER_NS);
	}
}

/* From time to time: finds children, and checks that the process exists. */
static void sampler_look(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	one->look_ns = now_ns + SAMPLER_LOOK_NS;
	look_for_children(inside, one->pid, one->pid, &one->children_fd);
	for (size_t i = 0; one->open && i < one->seen_count; i++)
		if (one->seen[i].tid && one->seen[i].tid != one->pid)
			look_for_children(inside, one->pid, one->seen[i].tid,
					  &one->seen[i].children_fd);
	if (!one->open && paths_starttime(one->pid) != one->starttime)
		one->gone = true;
}

static bool is_sampling(const struct sampler_inside *inside)
{
	return inside->period_ns || inside->adaptive;
}

static void sampler_visit(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	char cause[192];

	if (now_ns >= one->look_ns)
		sampler_look(inside, one, now_ns);
	if (now_ns >= one->zones_ns) {
		one->zones_ns = now_ns + ZONES_LOOK_NS;
		if (slow_zones_look(&one->zones, inside->options.slow_ns, cause, sizeof(cause)))
			sampler_take(inside, one, sampler_intern(cause));
	}
	if (!is_sampling(inside) || now_ns < one->next_ns || one->gone)
		return;
	if (inside->adaptive && sampler_is_too_young(one, now_ns))
		one->next_ns = now_ns + CHILD_AFTER_NS;
	else
		take_periodic(inside, one, now_ns);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void take_added(struct sampler_inside *inside)
{
	pthread_mutex_lock(&inside->lock);
	for (size_t i = 0; i < inside->added_count; i++)
		python_sampler_watch(inside, inside->added[i], 0);
	inside->added_count = 0;
	pthread_mutex_unlock(&inside->lock);
}

static uint64_t next_visit(const struct sampler_inside *inside, uint64_t now_ns)
{
	uint64_t next = now_ns + SAMPLER_LOOK_NS, slow_ns = inside->options.slow_ns / 4;

	if (slow_ns && slow_ns < SAMPLER_LOOK_NS)
		next = now_ns + (slow_ns > 1000000 ? slow_ns : 1000000);
	for (size_t i = 0; i < inside->watched_count; i++)
		if (is_sampling(inside) && inside->watched[i]->next_ns < next)
			next = inside->watched[i]->next_ns;
	return next;
}

static void forget_gone(struct sampler_inside *inside)
{
	size_t kept = 0;

	for (size_t i = 0; i < inside->watched_count; i++) {
		if (inside->watched[i]->gone)
			unwatch(inside, inside->watched[i]);
		else
			inside->watched[kept++] = inside->watched[i];
	}
	inside->watched_count = kept;
}

/* The caller has changed `stop` or `added`. */
static void wake_sampler(struct sampler_inside *inside)
{
	kymo__fetch_add_release(&inside->wakes, 1);
	syscall(SYS_futex, &inside->wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void publish_stats(struct sampler_inside *inside)
{
	inside->stats.cpu_ns = sampler_cpu_ns();
	pthread_mutex_lock(&inside->lock);
	inside->published = inside->stats;
	pthread_mutex_unlock(&inside->lock);
}

/*
 * One system call, where a condition variable needs two or three. False: the thread has to end.
 * wakes: as of before `added` was looked at, so that a later addition ends the wait.
 */
static bool wait_until(struct sampler_inside *inside, uint32_t wakes, uint64_t at_ns)
{
	struct timespec at = { (time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u) };

	while (kymo__load_acquire(&inside->wakes) == wakes &&
	       syscall(SYS_futex, &inside->wakes, FUTEX_WAIT_BITSET_PRIVATE, wakes, &at, NULL,
		       FUTEX_BITSET_MATCH_ANY) &&
	       errno == EINTR)
		;
	return !kymo__load_acquire(&inside->stop);
}

/* A shorter period takes effect at once. */
static void take_period(struct sampler_inside *inside, uint64_t now_ns)
{
	const struct kymo_control *control = kymo__process.control;
	uint64_t period_ns = inside->options.period_ns;
	bool adaptive;

	if (!period_ns && control)
		period_ns = kymo__load_relaxed(&control->sample_period_ns);
	adaptive = period_ns == SETTINGS_ADAPTIVE;
	if (adaptive)
		period_ns = 0;
	if (period_ns && period_ns < SAMPLER_SHORTEST_NS)
		period_ns = SAMPLER_SHORTEST_NS;
	if (period_ns == inside->period_ns && adaptive == inside->adaptive)
		return;
	for (size_t i = 0; i < inside->watched_count; i++) {
		inside->watched[i]->next_ns = now_ns;
		inside->watched[i]->period_ns = 0;
	}
	inside->period_ns = period_ns;
	inside->adaptive = adaptive;
}

static void *sampler_run(void *context)
{
	struct sampler_inside *inside = context;
	uint64_t now_ns, settings_ns = 0;
	uint32_t wakes;

	inside->period_name = sampler_intern("period");
	inside->began_ns = clock_monotonic_ns();
	do {
		wakes = kymo__load_acquire(&inside->wakes);
		take_added(inside);
		now_ns = clock_monotonic_ns();
		if (now_ns >= settings_ns) {
			settings_ns = now_ns + SAMPLER_LOOK_NS;
			take_period(inside, now_ns);
			publish_stats(inside);
		}
		/* The list grows while it is walked: new children are visited at once. */
		for (size_t i = 0; i < inside->watched_count; i++)
			sampler_visit(inside, inside->watched[i], now_ns);
		forget_gone(inside);
	} while (wait_until(inside, wakes, next_visit(inside, now_ns)));
	publish_stats(inside);
	return NULL;
}

/* ---- from outside ---------------------------------------------------------------------------- */

/* The default of this process, as `kymo config` shows it; not a change by the user. */
static void begin_adaptive(void)
{
	struct kymo_control *control = kymo__process.control;

	if (control && !settings_is_set(settings_find("sample_rate"), control))
		kymo__store_relaxed(&control->sample_period_ns, SETTINGS_ADAPTIVE);
}

int sampler_start(struct sampler *sampler, const struct sampler_options *options,
		  struct kymo_error *err)
{
	struct sampler_inside *inside = calloc(1, sizeof(*inside));
	int rc;

	sampler->inside = NULL;
	if (!inside)
		return error_set(err, ENOMEM, "out of memory for the sampler");
	inside->options = *options;
	if (options->adaptive)
		begin_adaptive();
	snprintf(inside->live_dir, sizeof(inside->live_dir), "%s",
		 options->live_dir ? options->live_dir : "");
	stacktrie_init(&inside->trie, options->keep == KYMO_KEEP_ALL ? 0 : FLIGHT_NODES);
	pthread_mutex_init(&inside->lock, NULL);
	rc = pthread_create(&inside->thread, NULL, sampler_run, inside);
	if (rc) {
		free(inside);
		return error_set(err, rc, "cannot start the thread of the sampler: %s",
				 strerror(rc));
	}
	sampler->inside = inside;
	return 0;
}

void sampler_watch(struct sampler *sampler, pid_t pid)
{
	struct sampler_inside *inside = sampler->inside;

	if (!inside || pid <= 0)
		return;
	pthread_mutex_lock(&inside->lock);
	if (grow((void **)&inside->added, &inside->added_room, inside->added_count,
		 sizeof(*inside->added)))
		inside->added[inside->added_count++] = pid;
	pthread_mutex_unlock(&inside->lock);
	wake_sampler(inside);
}

void sampler_stats(struct sampler *sampler, struct sampler_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (!sampler->inside)
		return;
	pthread_mutex_lock(&sampler->inside->lock);
	*out = sampler->inside->published;
	pthread_mutex_unlock(&sampler->inside->lock);
}

void sampler_stop(struct sampler *sampler, struct sampler_stats *last)
{
	struct sampler_inside *inside = sampler->inside;

	if (last)
		memset(last, 0, sizeof(*last));
	if (!inside)
		return;
	kymo__store_release(&inside->stop, 1);
	wake_sampler(inside);
	pthread_join(inside->thread, NULL);
	if (last)
		*last = inside->published;
	for (size_t i = 0; i < inside->watched_count; i++)
		unwatch(inside, inside->watched[i]);
	free(inside->watched);
	free(inside->added);
	stacktrie_fini(&inside->trie);
	pthread_mutex_destroy(&inside->lock);
	free(inside);
	sampler->inside = NULL;
}
