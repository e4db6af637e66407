#include "collect/python/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "base/grow.h"
#include "base/schema.h"
#include "base/settings.h"
#include "collect/host/proc.h"
#include "collect/native/process_memory.h"
#include "collect/python/pystack.h"
#include "collect/python/sample_pace.h"
#include "collect/python/slow_zones.h"
#include "collect/python/stacktrie.h"
#include "record/record.h"

#define LOOK_NS 100000000ull /* between two searches for children and changed settings */
#define FIRST_TRY_NS 5000000ull /* after a process was found without Python; doubles */
#define LONGEST_TRY_NS 200000000ull
#define AFTER_LATE_NS 5000000000ull
#define FLIGHT_NODES 4000 /* less than half of a ring */
#define CHILDREN_BYTES 16384
/* A sample after a longer gap, in which the process could not be read, stands for its period. */
#define LONGEST_GAP_NS 1000000000ull
#define STATE_FOR_NS 50000000ull /* an idle thread's state is read again after this time */
#define STATE_FILES_MOST 256 /* that stay open; the limit of open files is 1024 */
#define COST_PARTS 8 /* the mean cost moves by an eighth of the difference */

/* A thread as of the last sample. */
struct seen_thread {
	pid_t tid;
	uint32_t node;
	uint32_t name; /* as a number of this process's names */
	uint16_t gil;
	char state;
	int state_fd; /* /proc/PID/task/TID/stat; -1: not open */
	uint64_t state_ns; /* when it was read */
};

struct watched {
	pid_t pid;
	uint64_t starttime;
	struct pystack stack;
	bool open; /* stack is open */
	bool gone;
	uint64_t try_ns,
		pause_ns; /* time of the next attempt to find Python, and the pause after it */
	uint64_t next_ns;
	uint64_t look_ns;
	struct seen_thread *seen; /* in the order of stack.threads */
	size_t seen_count, seen_room;
	uint64_t first_ns, last_ns; /* times of the first and the last periodic sample; 0: none */
	uint64_t unchanged; /* samples in a row with the same stacks */
	uint64_t cost_ns; /* mean CPU time of a sample */
	uint64_t period_ns; /* the current one */
	struct slow_zones zones;
};

struct sampler_inside {
	struct sampler_options options;
	char live_dir[KYMO_PATH_BYTES];
	pthread_t thread;
	pthread_mutex_t lock; /* held while processes are added, not while they are read */
	pthread_cond_t wake;
	bool stop;
	pid_t *added; /* pids to be added by the thread */
	size_t added_count, added_room;
	/* used by the thread only */
	struct watched **watched;
	size_t watched_count, watched_room;
	struct stacktrie trie;
	uint32_t period_name;
	uint64_t period_ns; /* 0: none, unless adaptive */
	bool adaptive; /* the period is not set */
	bool told_adaptive;
	uint64_t told_least_ns; /* the slowest pace that was reported */
	size_t state_files;
	struct sampler_stats stats;
	/* a copy for other threads, under the lock */
	struct sampler_stats published;
};

/* ---- rows ------------------------------------------------------------------------------------ */

static uint32_t sampler_intern(const char *text)
{
	return kymo__intern(text, strlen(text), "", 0, 0, KYMO_SOURCE_PYTHON, 0);
}

static int open_state(struct sampler_inside *inside, pid_t pid, pid_t tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		inside->state_files++;
	return fd;
}

static void close_state(struct sampler_inside *inside, struct seen_thread *seen)
{
	if (seen->state_fd < 0)
		return;
	close(seen->state_fd);
	seen->state_fd = -1;
	inside->state_files--;
}

/* Opening the file costs as much as reading it, so it stays open. */
static char read_state(struct sampler_inside *inside, pid_t pid, struct seen_thread *seen)
{
	char text[128]; /* the name has at most 64 bytes */
	ssize_t bytes = -1;
	const char *end;

	if (seen->state_fd < 0)
		seen->state_fd = open_state(inside, pid, seen->tid);
	if (seen->state_fd >= 0)
		bytes = pread(seen->state_fd, text, sizeof(text) - 1, 0);
	if (bytes <= 0 || inside->state_files > STATE_FILES_MOST)
		close_state(inside, seen);
	text[bytes > 0 ? bytes : 0] = '\0';
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : '?';
}

/* The state of a thread that slept and has the same stack is taken as the same for a while. */
static void see_state(struct sampler_inside *inside, const struct watched *one,
		      struct seen_thread *seen, bool same, uint64_t now_ns)
{
	if (same && seen->state == 'S' && !seen->gil && now_ns - seen->state_ns < STATE_FOR_NS)
		return;
	seen->state = read_state(inside, one->pid, seen);
	seen->state_ns = now_ns;
}

static void write_thread(struct sampler_inside *inside, const struct watched *one,
			 const struct seen_thread *seen, uint64_t ticks, uint32_t cause,
			 uint64_t weight_ns)
{
	struct schema_sample_row row = { .ts_ticks = ticks,
					 .stack = seen->node,
					 .pid = one->pid,
					 .tid = seen->tid,
					 .thread_name = seen->name,
					 .cause = cause,
					 .state = (uint16_t)seen->state,
					 .gil = seen->gil,
					 .weight_ns = weight_ns };

	if (!kymo__append(SCHEMA_SAMPLES, &row))
		inside->stats.rows++;
}

static uint32_t name_of_thread(const struct watched *one, const struct pystack_thread *thread)
{
	return thread->name[0]		 ? sampler_intern(thread->name)
	       : thread->tid == one->pid ? sampler_intern("MainThread")
					 : 0;
}

/* The place of the i-th thread; of another one if threads have started or ended. */
static struct seen_thread *seen_at(struct sampler_inside *inside, struct watched *one, size_t i,
				   pid_t tid)
{
	struct seen_thread *seen;

	while (one->seen_count <= i) {
		if (!grow((void **)&one->seen, &one->seen_room, one->seen_count,
			  sizeof(*one->seen)))
			return NULL;
		one->seen[one->seen_count++] = (struct seen_thread){ .state_fd = -1 };
	}
	seen = &one->seen[i];
	if (seen->tid != tid) {
		close_state(inside, seen);
		*seen = (struct seen_thread){ .tid = tid, .state_fd = -1 };
	}
	return seen;
}

static void forget_seen(struct sampler_inside *inside, struct watched *one, size_t from)
{
	while (one->seen_count > from)
		close_state(inside, &one->seen[--one->seen_count]);
}

/* Writes the row of a thread. True if its stack is the one of the last sample. */
static bool sample_thread(struct sampler_inside *inside, struct watched *one, size_t i,
			  uint64_t ticks, uint32_t cause, uint64_t weight_ns)
{
	const struct pystack_thread *thread = &one->stack.threads[i];
	struct seen_thread *seen = seen_at(inside, one, i, thread->tid);
	uint32_t node;
	bool same;

	if (!thread->read || !seen) {
		inside->stats.missed++;
		return false;
	}
	node = stacktrie_add(&inside->trie, thread);
	same = seen->state_ns && node == seen->node && seen->gil == thread->gil;
	seen->node = node;
	seen->gil = thread->gil;
	seen->name = name_of_thread(one, thread);
	see_state(inside, one, seen, same, clock_monotonic_ns());
	write_thread(inside, one, seen, ticks, cause, weight_ns);
	return same;
}

static void write_sample(struct sampler_inside *inside, struct watched *one, uint64_t ticks,
			 uint32_t cause, uint64_t weight_ns)
{
	bool same = one->seen_count == one->stack.thread_count;

	inside->stats.samples++;
	pystack_name_threads(&one->stack);
	stacktrie_begin(&inside->trie);
	for (size_t i = 0; i < one->stack.thread_count; i++)
		same &= sample_thread(inside, one, i, ticks, cause, weight_ns);
	forget_seen(inside, one, one->stack.thread_count);
	one->unchanged = same ? one->unchanged + 1 : 0;
}

/* ---- a process ------------------------------------------------------------------------------- */

static void close_stack(struct watched *one, uint64_t now_ns)
{
	pystack_close(&one->stack);
	one->open = false;
	one->try_ns = now_ns + one->pause_ns;
	one->pause_ns = one->pause_ns * 2 < LONGEST_TRY_NS ? one->pause_ns * 2 : LONGEST_TRY_NS;
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
	if (!rc) {
		one->pause_ns = FIRST_TRY_NS;
		write_sample(inside, one, ticks, cause,
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

/* ---- the pace -------------------------------------------------------------------------------- */

static void tell_pace(const char *text)
{
	kymo__config_row("sampling", "", text, "kymo");
}

/* Told when a pace is twice as slow as the one told before, so that there are few rows. */
static void tell_slower(struct sampler_inside *inside, const struct watched *one, uint64_t least_ns)
{
	char text[128];

	if (least_ns < 2 * SAMPLE_PACE_NS || least_ns < 2 * inside->told_least_ns)
		return;
	inside->told_least_ns = least_ns;
	snprintf(text, sizeof(text),
		 "every %.0f ms at most, for 1 %% of a core: a sample of %zu threads takes %.0f us",
		 (double)least_ns / 1e6, one->stack.thread_count, (double)one->cost_ns / 1e3);
	tell_pace(text);
}

/* Of a sample of each process; those that are not read, as they are no Python, cost nothing. */
static uint64_t cost_of_all(const struct sampler_inside *inside)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < inside->watched_count; i++)
		if (inside->watched[i]->open)
			sum += inside->watched[i]->cost_ns;
	return sum;
}

static void choose_period(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	struct sample_pace pace = { .fixed_ns = inside->period_ns,
				    .age_ns = one->first_ns && now_ns > one->first_ns
						      ? now_ns - one->first_ns
						      : 0,
				    .unchanged = one->unchanged,
				    .cost_ns = inside->adaptive ? cost_of_all(inside) : 0 };

	one->period_ns = sample_pace_next(&pace);
	if (!inside->adaptive || !one->first_ns)
		return;
	if (!inside->told_adaptive)
		tell_pace("adaptive");
	inside->told_adaptive = true;
	if (pace.age_ns >= SAMPLE_PACE_FIRST_FOR_NS)
		tell_slower(inside, one, sample_pace_least(&pace));
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

static void take_periodic(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	uint64_t before_ns = sampler_cpu_ns(), cost_ns;
	bool was_open = one->open; /* finding Python costs more, once */

	if (!one->period_ns)
		choose_period(inside, one, now_ns);
	sampler_take(inside, one, inside->period_name);
	cost_ns = sampler_cpu_ns() - before_ns;
	if (was_open && one->open)
		one->cost_ns = mean_cost(one->cost_ns, cost_ns);
	choose_period(inside, one, now_ns);
	/* Keeps a fixed rate; samples missed on a busy machine are not taken later. */
	one->next_ns += one->period_ns;
	if (one->next_ns < now_ns || inside->adaptive)
		one->next_ns = now_ns + one->period_ns;
	if (!one->open && inside->adaptive && one->next_ns < one->try_ns)
		one->next_ns = one->try_ns;
}

/* ---- sampled processes ----------------------------------------------------------------------- */

static void python_sampler_watch(struct sampler_inside *inside, pid_t pid)
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
	one->next_ns = clock_monotonic_ns();
	slow_zones_init(&one->zones, inside->live_dir, pid, starttime);
	inside->watched[inside->watched_count++] = one;
}

static void unwatch(struct sampler_inside *inside, struct watched *one)
{
	forget_seen(inside, one, 0);
	free(one->seen);
	if (one->open)
		pystack_close(&one->stack);
	slow_zones_fini(&one->zones);
	free(one);
}

static void look_for_children(struct sampler_inside *inside, pid_t pid, pid_t tid)
{
	char path[64], text[CHILDREN_BYTES], *at = text, *end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return;
	for (;; at = end) {
		long child = strtol(at, &end, 10);

		if (end == at)
			break;
		python_sampler_watch(inside, (pid_t)child);
	}
}

/* From time to time: finds children, and checks that the process exists. */
static void sampler_look(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	one->look_ns = now_ns + LOOK_NS;
	look_for_children(inside, one->pid, one->pid);
	for (size_t i = 0; one->open && i < one->stack.thread_count; i++)
		if (one->stack.threads[i].tid != one->pid)
			look_for_children(inside, one->pid, one->stack.threads[i].tid);
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
	if (slow_zones_look(&one->zones, inside->options.slow_ns, cause, sizeof(cause)))
		sampler_take(inside, one, sampler_intern(cause));
	if (is_sampling(inside) && now_ns >= one->next_ns && !one->gone)
		take_periodic(inside, one, now_ns);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void take_added(struct sampler_inside *inside)
{
	pthread_mutex_lock(&inside->lock);
	for (size_t i = 0; i < inside->added_count; i++)
		python_sampler_watch(inside, inside->added[i]);
	inside->added_count = 0;
	pthread_mutex_unlock(&inside->lock);
}

static uint64_t next_visit(const struct sampler_inside *inside, uint64_t now_ns)
{
	uint64_t next = now_ns + LOOK_NS, slow_ns = inside->options.slow_ns / 4;

	if (slow_ns && slow_ns < LOOK_NS)
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

/* False: the thread has to end. */
static bool wait_until(struct sampler_inside *inside, uint64_t at_ns)
{
	struct timespec at = { (time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u) };
	bool stop;

	pthread_mutex_lock(&inside->lock);
	inside->stats.cpu_ns = sampler_cpu_ns();
	inside->published = inside->stats;
	while (!inside->stop && !inside->added_count &&
	       pthread_cond_timedwait(&inside->wake, &inside->lock, &at) != ETIMEDOUT)
		;
	stop = inside->stop;
	pthread_mutex_unlock(&inside->lock);
	return !stop;
}

/* A shorter period takes effect at once. */
static void take_period(struct sampler_inside *inside, uint64_t now_ns)
{
	const struct kymo_control *control = kymo__process.control;
	uint64_t period_ns = inside->options.period_ns;
	bool adaptive = !period_ns && control && inside->options.adaptive &&
			!settings_is_set(settings_find("sample_rate"), control);

	if (!period_ns && !adaptive && control)
		period_ns = kymo__load_relaxed(&control->sample_period_ns);
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
	uint64_t now_ns;

	inside->period_name = sampler_intern("period");
	do {
		take_added(inside);
		now_ns = clock_monotonic_ns();
		take_period(inside, now_ns);
		/* The list grows while it is walked: new children are visited at once. */
		for (size_t i = 0; i < inside->watched_count; i++)
			sampler_visit(inside, inside->watched[i], now_ns);
		forget_gone(inside);
	} while (wait_until(inside, next_visit(inside, now_ns)));
	return NULL;
}

/* ---- from outside ---------------------------------------------------------------------------- */

int sampler_start(struct sampler *sampler, const struct sampler_options *options,
		  struct kymo_error *err)
{
	struct sampler_inside *inside = calloc(1, sizeof(*inside));
	pthread_condattr_t monotonic;
	int rc;

	sampler->inside = NULL;
	if (!inside)
		return error_set(err, ENOMEM, "out of memory for the sampler");
	inside->options = *options;
	snprintf(inside->live_dir, sizeof(inside->live_dir), "%s",
		 options->live_dir ? options->live_dir : "");
	stacktrie_init(&inside->trie, options->keep == KYMO_KEEP_ALL ? 0 : FLIGHT_NODES);
	pthread_mutex_init(&inside->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&inside->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
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
	pthread_cond_signal(&inside->wake);
	pthread_mutex_unlock(&inside->lock);
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
	pthread_mutex_lock(&inside->lock);
	inside->stop = true;
	pthread_cond_signal(&inside->wake);
	pthread_mutex_unlock(&inside->lock);
	pthread_join(inside->thread, NULL);
	if (last)
		*last = inside->published;
	for (size_t i = 0; i < inside->watched_count; i++)
		unwatch(inside, inside->watched[i]);
	free(inside->watched);
	free(inside->added);
	stacktrie_fini(&inside->trie);
	pthread_cond_destroy(&inside->wake);
	pthread_mutex_destroy(&inside->lock);
	free(inside);
	sampler->inside = NULL;
}
