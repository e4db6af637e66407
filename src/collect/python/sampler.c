#include "collect/python/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "base/grow.h"
#include "base/schema.h"
#include "base/settings.h"
#include "collect/host/host_memory.h"
#include "collect/host/proc.h"
#include "collect/native/process_memory.h"
#include "collect/python/pystack.h"
#include "collect/python/sample_pace.h"
#include "collect/python/slow_zones.h"
#include "collect/python/stacktrie.h"
#include "collect/wait/wait_sample.h"
#include "record/record.h"

#define LOOK_NS 100000000ull /* between two searches for children and changed settings */
/* Most children that a program starts in great number are gone by then; finding Python in them
   would cost more than all their samples. */
#define CHILD_AFTER_NS 20000000ull
#define FIRST_TRY_NS 5000000ull /* after a process was found without Python; doubles */
#define LONGEST_TRY_NS 200000000ull
#define AFTER_LATE_NS 5000000000ull
#define FLIGHT_NODES 4000 /* less than half of a ring */
#define CHILDREN_BYTES 16384
/* A sample after a longer gap, in which the process could not be read, stands for its period. */
#define LONGEST_GAP_NS 1000000000ull
#define STATE_FOR_NS 50000000ull /* an idle thread's state is read again after this time */
#define SHARED_FRAMES 512 /* of a deeper stack nothing is shared */
#define FILES_MOST 256 /* that stay open; the limit of open files is 1024 */
#define COST_PARTS 8 /* the mean cost moves by an eighth of the difference */
#define COST_EVERY 8u /* samples: the clock of CPU time is a system call */
#define BURST_EVERY_NS 1000000000ull /* at least, while the memory grows */
#define BURST_YOUNG_NS 3000000000ull /* of age: a short run has few seconds */
#define BURST_YOUNG_EVERY_NS 100000000ull
#define BURST_FOR_NS 50000000ull
#define BURST_BYTES (1u << 20) /* of growth since the last burst */
#define ZONES_LOOK_NS 10000000ull /* between two searches for slow zones and new marks */

/* A thread as of the last sample. */
struct seen_thread {
	pid_t tid;
	uint32_t node;
	uint32_t name; /* as a number of this process's names */
	uint16_t gil;
	char state;
	int state_fd; /* /proc/PID/task/TID/stat; -1: not open */
	int children_fd; /* /proc/PID/task/TID/children; -1: not open */
	uint64_t state_ns; /* when it was read */
	struct stacktrie_path path; /* its last stack, as nodes */
	char called[PYSTACK_NAME_BYTES]; /* the text of name */
	struct wait_sample wait;
	uint32_t activity, waits_for; /* names of wait.answer */
	struct wait_answer named; /* the answer that they name */
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
	uint64_t look_ns, zones_ns; /* times of the next search for children, and for slow zones */
	int children_fd; /* of the main thread; -1: not open */
	int memory_fd; /* statm; -1: not open */
	struct host_memory memory;
	uint64_t burst_ns, burst_until_ns; /* when the next burst may begin, the current one ends */
	uint64_t burst_bytes; /* RSS when that was last decided */
	struct seen_thread *seen; /* in the order of stack.threads */
	size_t seen_count, seen_room;
	uint64_t first_ns, last_ns; /* times of the first and the last periodic sample; 0: none */
	uint64_t unchanged; /* samples in a row with the same stacks */
	uint64_t taken; /* periodic samples since Python was found */
	uint64_t cost_ns; /* mean CPU time of a sample */
	uint64_t period_ns; /* the current one */
	uint64_t used_ns, used_at_ns; /* CPU time of the process, and when it was read */
	uint32_t idle_permille; /* between the last two readings */
	struct wait_peers peers;
	struct slow_zones zones;
};

struct sampler_inside {
	struct sampler_options options;
	char live_dir[KYMO_PATH_BYTES];
	pthread_t thread;
	pthread_mutex_t lock; /* held while processes are added, not while they are read */
	uint32_t wakes; /* a futex: grows with each addition and at the end */
	uint32_t stop;
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
	uint64_t began_ns; /* of this thread */
	uint64_t first_cost_ns; /* of samples in the first second of a process */
	uint64_t told_least_ns; /* the slowest pace that was reported */
	size_t files; /* of /proc, held open */
	uint64_t read_ns; /* when the current stacks were read */
	struct sampler_stats stats;
	/* a copy for other threads, under the lock */
	struct sampler_stats published;
};

/* ---- rows ------------------------------------------------------------------------------------ */

static uint32_t sampler_intern(const char *text)
{
	return kymo__intern(text, strlen(text), "", 0, 0, KYMO_SOURCE_PYTHON, 0);
}

static int open_held(struct sampler_inside *inside, pid_t pid, pid_t tid, const char *name)
{
	char path[64];
	int fd;

	if (inside->files >= FILES_MOST)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		inside->files++;
	return fd;
}

static void close_held(struct sampler_inside *inside, int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	*fd = -1;
	inside->files--;
}

/* Opening a file of /proc costs as much as reading it, so it stays open, if not too many are. */
static bool read_held_file(struct sampler_inside *inside, int *fd, pid_t pid, pid_t tid,
			   const char *name, char *text, size_t text_bytes)
{
	char path[64];
	ssize_t bytes = -1;

	if (*fd < 0)
		*fd = open_held(inside, pid, tid, name);
	if (*fd >= 0) {
		bytes = pread(*fd, text, text_bytes - 1, 0);
		if (bytes < 0)
			close_held(inside, fd);
		text[bytes > 0 ? bytes : 0] = '\0';
		return bytes > 0;
	}
	if (inside->files < FILES_MOST)
		return false; /* the thread has ended */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return proc_read(path, text, text_bytes) > 0;
}

static char read_state(struct sampler_inside *inside, pid_t pid, struct seen_thread *seen)
{
	char text[128] = ""; /* the name has at most 64 bytes */
	const char *end;

	read_held_file(inside, &seen->state_fd, pid, seen->tid, "stat", text, sizeof(text));
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : '?';
}

#define FRAMES_OF_WAIT 8 /* the innermost; a queue or a collective operation is among them */

static bool is_wait_for_gil(const struct pystack *stack, const struct wait_sample *wait)
{
	uint64_t futex = wait->call.argument[0];

	for (size_t i = 0; wait->known && i < pystack_gil_count(stack); i++) {
		uint64_t gil = pystack_gil(stack, i);

		if (gil && futex >= gil && futex - gil < (uint64_t)stack->python.layout.gil_size)
			return true;
	}
	return false;
}

static void refine_wait(const struct watched *one, const struct pystack_thread *thread,
			struct wait_sample *wait)
{
	struct wait_frame frames[FRAMES_OF_WAIT];
	size_t count = 0;

	if (wait->answer.kind == WAIT_LOCK && is_wait_for_gil(&one->stack, wait)) {
		wait->answer = (struct wait_answer){ WAIT_GIL, "" };
		return;
	}
	for (; count < thread->frame_count && count < FRAMES_OF_WAIT; count++)
		frames[count] = (struct wait_frame){ thread->frames[count].code->name,
						     thread->frames[count].code->file };
	wait_kind_refine(frames, count, &wait->answer);
}

/* Interns the words only when they change. */
static void name_wait(struct seen_thread *seen)
{
	const struct wait_answer *answer = &seen->wait.answer;

	if (seen->activity && seen->named.kind == answer->kind &&
	    !strcmp(seen->named.target, answer->target))
		return;
	seen->named = *answer;
	seen->activity = sampler_intern(wait_kind_word(answer->kind));
	seen->waits_for = answer->target[0] ? sampler_intern(answer->target) : 0;
}

/* The state of a thread that slept and has the same stack is taken as the same for a while. A
   thread whose instruction changed during the read was running: no file is read. */
static void see_state(struct sampler_inside *inside, struct watched *one,
		      const struct pystack_thread *thread, struct seen_thread *seen, bool same,
		      uint64_t now_ns)
{
	if (same && !thread->ran && seen->state == 'S' && !seen->gil &&
	    now_ns - seen->state_ns < STATE_FOR_NS)
		return;
	seen->state = thread->ran ? 'R' : read_state(inside, one->pid, seen);
	seen->state_ns = now_ns;
	wait_sample_take(&seen->wait, one->pid, seen->tid, seen->state, &one->peers, now_ns);
	refine_wait(one, thread, &seen->wait);
	name_wait(seen);
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
					 .weight_ns = weight_ns,
					 .activity = seen->activity,
					 .waits_for = seen->waits_for };

	if (!kymo__append(SCHEMA_SAMPLES, &row))
		inside->stats.rows++;
}

static void name_thread(const struct watched *one, const struct pystack_thread *thread,
			struct seen_thread *seen)
{
	const char *name = thread->name[0]	     ? thread->name
			   : thread->tid == one->pid ? "MainThread"
						     : "";

	if (!strcmp(seen->called, name))
		return;
	snprintf(seen->called, sizeof(seen->called), "%s", name);
	seen->name = sampler_intern(name);
}

static void reset_seen(struct sampler_inside *inside, struct seen_thread *seen, pid_t tid)
{
	close_held(inside, &seen->state_fd);
	close_held(inside, &seen->children_fd);
	stacktrie_forget(&seen->path);
	*seen = (struct seen_thread){ .tid = tid, .state_fd = -1, .children_fd = -1 };
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
		one->seen[one->seen_count++] = (struct seen_thread){ .state_fd = -1,
								     .children_fd = -1 };
	}
	seen = &one->seen[i];
	if (seen->tid != tid)
		reset_seen(inside, seen, tid);
	return seen;
}

static void forget_seen(struct sampler_inside *inside, struct watched *one, size_t from)
{
	while (one->seen_count > from)
		reset_seen(inside, &one->seen[--one->seen_count], 0);
}

/* For the native sampler. Partial stacks lack the innermost frames. */
static void share_stack(const struct sampler_inside *inside, const struct pystack_thread *thread,
			uint32_t node, uint64_t now_ns)
{
	struct recent_frame frames[SHARED_FRAMES];
	uint64_t key = intern_hash_number(0, node);

	if (!inside->options.recent || thread->partial || thread->frame_count > SHARED_FRAMES)
		return;
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct pystack_frame *from = &thread->frames[i];

		frames[i] = (struct recent_frame){
			.name = stacktrie_name_of(from->code),
			.line = (uint32_t)from->line,
			.entry = from->entry,
			.frame = from->address,
			.code = from->code_address,
			.instruction = from->instruction,
			.code_end = from->code_address + PYCODE_HEAD_MOST + 2ull * from->code->units
		};
		key = intern_hash_number(intern_hash_number(key, from->address),
					 from->code_address + from->entry);
	}
	recent_stacks_add(inside->options.recent, thread->tid, now_ns, key, frames,
			  thread->frame_count);
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
	node = stacktrie_add(&inside->trie, thread, &seen->path);
	share_stack(inside, thread, node, inside->read_ns);
	same = seen->state_ns && node == seen->node && seen->gil == thread->gil;
	seen->node = node;
	seen->gil = thread->gil;
	name_thread(one, thread, seen);
	see_state(inside, one, thread, seen, same, clock_monotonic_ns());
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
	inside->read_ns = now_ns + (clock_monotonic_ns() - now_ns) / 2;
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
		 "every %.0f ms at most, for 0.5 %% of a core: "
		 "a sample of %zu threads takes %.0f us",
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

/* The clock that clock_getcpuclockid() gives, without its check of the process. */
static uint64_t process_cpu_ns(pid_t pid)
{
	clockid_t clock = (clockid_t)((~(unsigned int)pid << 3) | 2u);
	struct timespec used;

	if (clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Of a process that cannot be read it stays 0. */
static void learn_idle(struct watched *one, uint64_t now_ns)
{
	uint64_t past_ns = now_ns - one->used_at_ns, used_ns, spent_ns;

	if (past_ns < LOOK_NS)
		return;
	used_ns = process_cpu_ns(one->pid);
	spent_ns = used_ns > one->used_ns ? used_ns - one->used_ns : 0;
	if (one->used_at_ns && used_ns)
		one->idle_permille = spent_ns < past_ns
					     ? (uint32_t)(1000 - spent_ns * 1000 / past_ns)
					     : 0;
	one->used_ns = used_ns;
	one->used_at_ns = now_ns;
}

/* A function that allocates for a millisecond now and then is met by few of the samples that are
   10 ms apart: while the memory grows, some of each second is sampled every millisecond. */
static bool is_burst(struct watched *one, uint64_t now_ns)
{
	uint64_t every_ns = now_ns - one->first_ns < BURST_YOUNG_NS ? BURST_YOUNG_EVERY_NS
								    : BURST_EVERY_NS;

	if (now_ns < one->burst_until_ns)
		return true;
	if (now_ns < one->burst_ns)
		return false;
	/* The pauses differ, so that bursts do not meet a loop always at the same point. */
	one->burst_ns = now_ns + every_ns + now_ns % every_ns / 4;
	if (one->memory.rss_bytes > one->burst_bytes + BURST_BYTES && one->burst_bytes)
		one->burst_until_ns = now_ns + BURST_FOR_NS;
	one->burst_bytes = one->memory.rss_bytes;
	return now_ns < one->burst_until_ns;
}

static void choose_period(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	struct sample_pace pace = { .fixed_ns = inside->period_ns,
				    .age_ns = one->first_ns && now_ns > one->first_ns
						      ? now_ns - one->first_ns
						      : 0,
				    .unchanged = one->unchanged,
				    .burst = is_burst(one, now_ns),
				    .cost_ns = inside->adaptive ? cost_of_all(inside) : 0,
				    .idle_permille = one->idle_permille,
				    .run_ns = now_ns - inside->began_ns,
				    .spent_ns = inside->first_cost_ns };

	one->period_ns = sample_pace_next(&pace);
	if (!inside->adaptive || !one->first_ns)
		return;
	if (!inside->told_adaptive)
		tell_pace("adaptive");
	inside->told_adaptive = true;
	pace.idle_permille = 0; /* told only if samples are costly */
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

/* Right after the stacks: what the memory has grown by since the last sample was taken by what ran
   between them. */
static void sample_memory(struct sampler_inside *inside, struct watched *one)
{
	char text[128];

	if (read_held_file(inside, &one->memory_fd, one->pid, one->pid, "statm", text,
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
		choose_period(inside, one, now_ns);
	take_measured(inside, one, now_ns);
	learn_idle(one, now_ns);
	choose_period(inside, one, now_ns);
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
	one->next_ns = clock_monotonic_ns() + after_ns;
	slow_zones_init(&one->zones, inside->live_dir, pid, starttime);
	inside->watched[inside->watched_count++] = one;
}

static void unwatch(struct sampler_inside *inside, struct watched *one)
{
	forget_seen(inside, one, 0);
	close_held(inside, &one->children_fd);
	close_held(inside, &one->memory_fd);
	free(one->seen);
	if (one->open)
		pystack_close(&one->stack);
	slow_zones_fini(&one->zones);
	free(one);
}

static void look_for_children(struct sampler_inside *inside, pid_t pid, pid_t tid, int *fd)
{
	char text[CHILDREN_BYTES], *at = text, *end;

	if (!read_held_file(inside, fd, pid, tid, "children", text, sizeof(text)))
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
	one->look_ns = now_ns + LOOK_NS;
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
	if (is_sampling(inside) && now_ns >= one->next_ns && !one->gone)
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
			settings_ns = now_ns + LOOK_NS;
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
