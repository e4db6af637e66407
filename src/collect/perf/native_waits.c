#include "collect/perf/native_waits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/schema.h"
#include "collect/host/host_threads.h"
#include "collect/host/proc.h"
#include "collect/native/process_memory.h"
#include "collect/wait/wait_futex.h"
#include "record/record.h"

#define FIRST_NS \
	5000000ull /* between looks in the first second, so that short programs have some */
#define FIRST_FOR_NS 1000000000ull
#define USUAL_NS 20000000ull
#define SLOWEST_NS 100000000ull
#define UNCHANGED_BEFORE_SLOWER 3u
#define FIRST_PERIODS_PER_COST 50u /* 2 % of a core at most */
#define PERIODS_PER_COST 500u /* 0.2 % */
#define LONGEST_NS 2000000000ull
#define LIST_NS 1000000000ull /* between two lists of a process's threads */
#define ROW_NS 250000000ull /* an unchanged wait has a row as often as this */
#define LEAST_NS 100000ull /* shorter waits have no row of their own */
#define STACK_BYTES 16384u
#define LARGE_STACK_BYTES 262144u
#define THREADS_MOST 1024
#define PROCESSES_MOST 1024
#define OPEN_MOST 256

struct native_wait_thread {
	pid_t pid, tid;
	int fd; /* of schedstat; -1: opened for each look */
	bool known; /* the figures are those of a look before */
	bool waits; /* places, activity and target are those of a wait that may last */
	bool seen; /* in the list of the process */
	uint64_t run_ns, delay_ns, slices, looked_ns;
	uint64_t owed_ns; /* time off the CPU that has no row yet */
	uint32_t *places;
	uint32_t count;
	size_t room;
	struct wait_call call;
	struct native_waiting row;
};

/* ---- threads and processes ------------------------------------------------------------------- */

static struct native_wait_thread *find_wait_thread(struct native_waits *waits, pid_t pid, pid_t tid)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->threads[i].tid == tid && waits->threads[i].pid == pid)
			return &waits->threads[i];
	return NULL;
}

static int open_schedstat(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void native_waits_add_process(struct native_waits *waits, pid_t pid)
{
	for (size_t i = 0; i < waits->process_count; i++)
		if (waits->processes[i] == pid)
			return;
	if (waits->process_count >= PROCESSES_MOST ||
	    !grow((void **)&waits->processes, &waits->process_room, waits->process_count,
		  sizeof(pid)))
		return;
	waits->processes[waits->process_count++] = pid;
	waits->listed_ns = 0;
}

void native_waits_add_thread(struct native_waits *waits, pid_t pid, pid_t tid)
{
	struct native_wait_thread *thread = find_wait_thread(waits, pid, tid);

	if (pid == tid)
		native_waits_add_process(waits, pid);
	if (thread) {
		thread->seen = true;
		return;
	}
	if (waits->count >= THREADS_MOST ||
	    !grow((void **)&waits->threads, &waits->room, waits->count, sizeof(*thread)))
		return;
	waits->threads[waits->count++] = (struct native_wait_thread){
		.pid = pid, .tid = tid, .fd = -1, .seen = true
	};
	waits->unchanged = 0;
}

static void drop_wait_thread(struct native_waits *waits, struct native_wait_thread *thread)
{
	struct native_wait_thread gone = *thread;

	*thread = waits->threads[--waits->count];
	if (gone.fd >= 0) {
		close(gone.fd);
		waits->open_count--;
	}
	free(gone.places);
}

static void drop_process(struct native_waits *waits, pid_t pid)
{
	for (size_t i = 0; i < waits->process_count; i++)
		if (waits->processes[i] == pid) {
			waits->processes[i] = waits->processes[--waits->process_count];
			return;
		}
}

/* False: the process has ended. */
static bool native_waits_list(struct native_waits *waits, pid_t pid)
{
	char path[64];
	DIR *directory;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			native_waits_add_thread(waits, pid, tid);
	}
	if (directory)
		closedir(directory);
	return directory != NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void write_wait(struct native_wait_thread *thread, const struct native_waits_with *with,
		       uint64_t now_ns)
{
	if (!thread->waits || thread->owed_ns < LEAST_NS)
		return;
	thread->row.time_ns = now_ns;
	thread->row.ts_ticks = with->ticks_at(with->context, now_ns);
	thread->row.weight_ns = thread->owed_ns;
	native_rows_add_again(with->rows, thread->places, thread->count, &thread->row);
	thread->owed_ns = 0;
}

void native_waits_end_thread(struct native_waits *waits, const struct native_waits_with *with,
			     pid_t pid, pid_t tid, uint64_t now_ns)
{
	struct native_wait_thread *thread = find_wait_thread(waits, pid, tid);

	if (thread) {
		write_wait(thread, with, now_ns);
		drop_wait_thread(waits, thread);
	}
	if (pid == tid)
		drop_process(waits, pid);
}

void native_waits_end(struct native_waits *waits, const struct native_waits_with *with,
		      uint64_t now_ns)
{
	for (size_t i = 0; i < waits->count; i++)
		write_wait(&waits->threads[i], with, now_ns);
}

/* ---- a stack --------------------------------------------------------------------------------- */

static bool read_schedule(struct native_waits *waits, struct native_wait_thread *thread,
			  struct host_threads_schedule *out)
{
	char text[128];
	int fd = thread->fd;
	ssize_t bytes;

	if (fd < 0)
		fd = open_schedstat(thread->pid, thread->tid);
	if (fd < 0)
		return false;
	bytes = pread(fd, text, sizeof(text) - 1, 0);
	if (thread->fd < 0 && bytes > 0 && waits->open_count < OPEN_MOST) {
		thread->fd = fd;
		waits->open_count++;
	} else if (thread->fd < 0) {
		close(fd);
	}
	if (bytes <= 0)
		return false;
	text[bytes] = '\0';
	return host_threads_parse_schedstat(text, out);
}

/* All registers but the stack pointer are unknown. */
static void set_sample(struct perf_record *record, const struct native_wait_thread *thread,
		       const unsigned char *stack, size_t bytes, size_t wanted)
{
	const int sp = FRAME_SP;

	memset(record, 0, sizeof(*record));
	record->kind = PERF_RECORD_OF_SAMPLE;
	record->pid = thread->pid;
	record->tid = thread->tid;
	record->sample.pc = thread->call.pc;
	record->sample.registers[sp] = thread->call.sp;
	record->sample.unknown = ~(1ull << sp);
	record->sample.stack = stack;
	record->sample.stack_bytes = bytes;
	record->sample.stack_is_cut = bytes == wanted;
}

static bool walk_stack(struct native_waits *waits, const struct native_waits_with *with,
		       struct native_wait_thread *thread, struct address_space *space,
		       size_t wanted, struct frame_memory *out)
{
	ssize_t bytes = process_memory_read_some(thread->pid, thread->call.sp, waits->stack,
						 wanted);
	struct perf_record record;

	if (bytes <= 0)
		return false;
	set_sample(&record, thread, waits->stack, (size_t)bytes, wanted);
	*out = (struct frame_memory){ thread->call.sp, waits->stack, (size_t)bytes };
	native_walk(space, &record, waits->walk);
	if (waits->walk->unmapped) {
		address_spaces_refresh(with->spaces, space, clock_monotonic_ns());
		native_walk(space, &record, waits->walk);
	}
	return true;
}

static bool keep_places(struct native_wait_thread *thread, const struct native_rows *rows)
{
	const struct native_waiting *row = &rows->waiting[rows->waiting_count - 1];

	while (thread->room < row->count)
		if (!grow((void **)&thread->places, &thread->room, thread->room, sizeof(uint32_t)))
			return false;
	memcpy(thread->places, rows->places_of + row->first, row->count * sizeof(uint32_t));
	thread->count = row->count;
	return true;
}

/* By its state, outside of a call or in one that is not known. */
static enum wait_kind kind_by_state(const struct native_wait_thread *thread)
{
	struct proc_stat stat = { .state = 'S' };
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)thread->pid, (int)thread->tid);
	if (proc_read(path, text, sizeof(text)) <= 0 || proc_parse_stat(text, &stat))
		return WAIT_OTHER;
	return wait_kind_of_state(stat.state);
}

static void native_waits_name(struct native_waits *waits, struct native_wait_thread *thread)
{
	const struct wait_call *call = &thread->call;
	struct wait_answer answer = { WAIT_OTHER, "" };

	/* A call that a stop has interrupted: of those that are restarted this way, most sleep. */
	if (call->number == SYS_restart_syscall)
		answer.kind = WAIT_SLEEP;
	else if (call->number >= 0)
		wait_kind_of_call(thread->pid, call, &waits->peers, &answer);
	if (answer.kind == WAIT_OTHER && !answer.target[0])
		answer.kind = kind_by_state(thread);
	thread->row.futex = call->number == SYS_futex;
	thread->row.holder = wait_futex_owner(thread->pid, thread->tid, call);
	thread->row.activity = native_rows_word(wait_kind_word(answer.kind));
	thread->row.waits_for = native_rows_word(answer.target);
}

/* The thread ran while its stack was copied if its figures changed. */
static bool has_run_since(struct native_waits *waits, struct native_wait_thread *thread)
{
	struct host_threads_schedule now;

	return !read_schedule(waits, thread, &now) || now.slices != thread->slices ||
	       now.run_ns != thread->run_ns;
}

static bool native_waits_take(struct native_waits *waits, const struct native_waits_with *with,
			      struct native_wait_thread *thread, uint64_t now_ns)
{
	struct address_space *space = address_spaces_get(with->spaces, thread->pid);
	struct frame_memory memory;

	if (!space || wait_call_read(thread->pid, thread->tid, &thread->call) || !thread->call.sp ||
	    !thread->call.pc)
		return false;
	if (!walk_stack(waits, with, thread, space, STACK_BYTES, &memory))
		return false;
	if (!waits->walk->complete && waits->walk->cut)
		walk_stack(waits, with, thread, space, LARGE_STACK_BYTES, &memory);
	if (!waits->walk->count || has_run_since(waits, thread))
		return false;
	thread->row = (struct native_waiting){
		.ts_ticks = with->ticks_at(with->context, now_ns),
		.time_ns = now_ns,
		.weight_ns = thread->owed_ns,
		.pid = thread->pid,
		.tid = thread->tid,
		.thread_name = with->name_of(with->context, thread->pid, thread->tid),
		.flags = SCHEMA_NATIVE_WAITING |
			 (thread->call.number >= 0 ? SCHEMA_NATIVE_KERNEL : 0),
	};
	native_waits_name(waits, thread);
	if (!native_rows_add(with->rows, space, waits->walk, &memory, &thread->row) ||
	    !keep_places(thread, with->rows))
		return false;
	thread->row.flags = with->rows->waiting[with->rows->waiting_count - 1].flags;
	thread->owed_ns = 0;
	waits->stacks++;
	return true;
}

/* ---- looks ----------------------------------------------------------------------------------- */

/* Adds the time since the last look in which the thread neither ran nor was ready to. */
static void owe_time(struct native_wait_thread *thread, const struct host_threads_schedule *now,
		     uint64_t now_ns)
{
	uint64_t busy_ns = now->run_ns - thread->run_ns + (now->delay_ns - thread->delay_ns);
	uint64_t past_ns = now_ns - thread->looked_ns;

	if (thread->known && past_ns > busy_ns)
		thread->owed_ns += past_ns - busy_ns;
}

/* Returns whether it differs from the look before. False in *out_alive: it has ended, which is no
   difference: a program that starts many processes would be looked at as often as possible. */
static bool look_at_thread(struct native_waits *waits, const struct native_waits_with *with,
			   struct native_wait_thread *thread, uint64_t now_ns, bool *out_alive)
{
	struct host_threads_schedule now;
	bool ran;

	*out_alive = read_schedule(waits, thread, &now);
	if (!*out_alive)
		return false;
	ran = !thread->known || now.slices != thread->slices || now.run_ns != thread->run_ns;
	owe_time(thread, &now, now_ns);
	thread->known = true;
	thread->run_ns = now.run_ns;
	thread->delay_ns = now.delay_ns;
	thread->slices = now.slices;
	thread->looked_ns = now_ns;
	if (!ran && thread->waits && thread->owed_ns < ROW_NS)
		return false;
	/* A thread that stayed on its core did not wait: its call is not read. */
	if (thread->owed_ns < LEAST_NS && ran) {
		thread->waits = false;
		return false;
	}
	if (with->recent && recent_stacks_knows(with->recent, thread->tid, now_ns)) {
		thread->waits = false;
		thread->owed_ns = 0;
		return false;
	}
	if (!ran && thread->waits) {
		write_wait(thread, with, now_ns);
		return false;
	}
	thread->waits = native_waits_take(waits, with, thread, now_ns);
	waits->failed += !thread->waits;
	return true;
}

static void list_processes(struct native_waits *waits, const struct native_waits_with *with,
			   uint64_t now_ns)
{
	waits->listed_ns = now_ns;
	for (size_t i = 0; i < waits->count; i++)
		waits->threads[i].seen = false;
	for (size_t i = 0; i < waits->process_count;)
		if (native_waits_list(waits, waits->processes[i]))
			i++;
		else
			waits->processes[i] = waits->processes[--waits->process_count];
	/* From the end: the one that takes the place of a dropped one was looked at before. */
	for (size_t i = waits->count; i-- > 0;)
		if (!waits->threads[i].seen) {
			write_wait(&waits->threads[i], with, now_ns);
			drop_wait_thread(waits, &waits->threads[i]);
		}
}

uint64_t native_waits_period(unsigned unchanged, uint64_t cost_ns, uint64_t age_ns)
{
	bool first = age_ns < FIRST_FOR_NS;
	uint64_t period_ns = first ? FIRST_NS : USUAL_NS;
	uint64_t most_ns = first ? USUAL_NS : SLOWEST_NS;
	uint64_t times = first ? FIRST_PERIODS_PER_COST : PERIODS_PER_COST;
	uint64_t least_ns = cost_ns > LONGEST_NS / times ? LONGEST_NS : cost_ns * times;

	for (unsigned i = unchanged / UNCHANGED_BEFORE_SLOWER; i && period_ns < most_ns; i--)
		period_ns *= 2;
	if (period_ns > most_ns)
		period_ns = most_ns;
	return period_ns > least_ns ? period_ns : least_ns;
}

int native_waits_pause_ms(const struct native_waits *waits, uint64_t now_ns)
{
	return waits->next_ns > now_ns ? (int)((waits->next_ns - now_ns + 999999) / 1000000) : 0;
}

static bool waits_have_room(struct native_waits *waits)
{
	if (!waits->stack)
		waits->stack = malloc(LARGE_STACK_BYTES);
	if (!waits->walk)
		waits->walk = malloc(sizeof(*waits->walk));
	return waits->stack && waits->walk;
}

static uint64_t waits_cpu_ns(void)
{
	struct timespec now = { 0, 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void native_waits_look(struct native_waits *waits, const struct native_waits_with *with,
		       uint64_t now_ns)
{
	uint64_t began_ns = waits_cpu_ns(), cost_ns;
	bool changed = false, alive;

	if (now_ns < waits->next_ns || !waits_have_room(waits))
		return;
	if (!waits->began_ns)
		waits->began_ns = now_ns;
	if (!waits->listed_ns || now_ns - waits->listed_ns >= LIST_NS)
		list_processes(waits, with, now_ns);
	for (size_t i = waits->count; i-- > 0;) {
		changed |= look_at_thread(waits, with, &waits->threads[i], now_ns, &alive);
		if (alive)
			continue;
		write_wait(&waits->threads[i], with, now_ns);
		drop_wait_thread(waits, &waits->threads[i]);
	}
	waits->unchanged = changed ? 0 : waits->unchanged + 1;
	cost_ns = waits_cpu_ns() - began_ns;
	waits->cost_ns = waits->cost_ns ? (waits->cost_ns * 7 + cost_ns) / 8 : cost_ns;
	waits->next_ns = now_ns + native_waits_period(waits->unchanged, waits->cost_ns,
						      now_ns - waits->began_ns);
}

void native_waits_fini(struct native_waits *waits)
{
	for (size_t i = waits->count; i-- > 0;)
		drop_wait_thread(waits, &waits->threads[i]);
	free(waits->threads);
	free(waits->processes);
	free(waits->stack);
	free(waits->walk);
	memset(waits, 0, sizeof(*waits));
}
