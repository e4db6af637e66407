#include "collect/backtrace/why.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files/paths.h"
#include "collect/host/proc.h"
#include "collect/native/process_memory.h"
#include "collect/sample/slow_zones.h"

/* ---- calls ----------------------------------------------------------------------------------- */

enum what { WHAT_FD, WHAT_POLL, WHAT_EPOLL, WHAT_FUTEX, WHAT_TIME, WHAT_CHILD, WHAT_PLAIN };

/* System calls in which programs wait, and which detail to describe. */
static const struct {
	long number;
	const char *words;
	enum what what;
} calls[] = {
	{ SYS_read, "waits to read from", WHAT_FD },
	{ SYS_pread64, "waits to read from", WHAT_FD },
	{ SYS_readv, "waits to read from", WHAT_FD },
	{ SYS_write, "waits to write to", WHAT_FD },
	{ SYS_pwrite64, "waits to write to", WHAT_FD },
	{ SYS_writev, "waits to write to", WHAT_FD },
	{ SYS_recvfrom, "waits to receive from", WHAT_FD },
	{ SYS_recvmsg, "waits to receive from", WHAT_FD },
	{ SYS_sendto, "waits to send to", WHAT_FD },
	{ SYS_sendmsg, "waits to send to", WHAT_FD },
	{ SYS_accept, "waits for a connection on", WHAT_FD },
	{ SYS_accept4, "waits for a connection on", WHAT_FD },
	{ SYS_connect, "waits to connect", WHAT_FD },
	{ SYS_fsync, "waits for the disk to write", WHAT_FD },
	{ SYS_fdatasync, "waits for the disk to write", WHAT_FD },
	{ SYS_flock, "waits for the lock of", WHAT_FD },
	{ SYS_ppoll, "waits for", WHAT_POLL },
#ifdef SYS_poll
	{ SYS_poll, "waits for", WHAT_POLL },
	{ SYS_select, "waits in select for one of several descriptors", WHAT_PLAIN },
	{ SYS_epoll_wait, "waits for events of", WHAT_EPOLL },
#endif
	{ SYS_pselect6, "waits in select for one of several descriptors", WHAT_PLAIN },
	{ SYS_epoll_pwait, "waits for events of", WHAT_EPOLL },
	{ SYS_futex, "waits for", WHAT_FUTEX },
	{ SYS_nanosleep, "sleeping", WHAT_TIME },
	{ SYS_clock_nanosleep, "sleeping", WHAT_TIME },
	{ SYS_wait4, "waits for", WHAT_CHILD },
	{ SYS_waitid, "waits for a child process to end", WHAT_PLAIN },
	{ SYS_rt_sigtimedwait, "waits for a signal", WHAT_PLAIN },
	{ SYS_rt_sigsuspend, "waits for a signal", WHAT_PLAIN },
};

/* ---- one thread ------------------------------------------------------------------------------ */

struct thread {
	const struct stacks *stacks;
	struct stacks_thread *one;
	const struct pystack *stack;
	struct wait_call call;
	struct buf *out;
};

static void why_add_thread(struct buf *out, const struct stacks_thread *thread)
{
	buf_print(out, "thread %d \"%s\"", (int)thread->tid, thread->name);
	if (thread->frame_count)
		buf_print(out, " (in %s)", thread->frames[0].func ? thread->frames[0].func : "?");
}

static const struct stacks_thread *thread_of_state(const struct stacks *stacks, uint64_t state)
{
	for (size_t i = 0; state && i < stacks->thread_count; i++)
		if (stacks->threads[i].python_state == state)
			return &stacks->threads[i];
	return NULL;
}

static const struct stacks_thread *thread_of_tid(const struct stacks *stacks, pid_t tid)
{
	for (size_t i = 0; i < stacks->thread_count; i++)
		if (stacks->threads[i].tid == tid)
			return &stacks->threads[i];
	return NULL;
}

static const struct stacks_thread *gil_holder(const struct stacks *stacks)
{
	for (size_t i = 0; i < stacks->thread_count; i++)
		if (stacks->threads[i].gil)
			return &stacks->threads[i];
	return NULL;
}

/* Waits of Python's standard library, found by function, where the futex alone means little. */
static const char *python_wait(const struct stacks_thread *thread)
{
	static const struct {
		const char *func, *file, *words;
	} waits[] = {
		{ "Thread._wait_for_tstate_lock", "threading.py", "another thread to end (join)" },
		{ "Thread.join", "threading.py", "another thread to end (join)" },
		{ "Barrier._wait", "threading.py", "the other threads at a Barrier" },
		{ "Event.wait", "threading.py", "an Event that is not set" },
		{ "Queue.get", "queue.py", "an item in an empty queue" },
		{ "Queue.put", "queue.py", "room in a full queue" },
		{ "Semaphore.acquire", "threading.py", "a Semaphore" },
		{ "Future.result", "_base.py", "the result of a Future" },
		{ "Condition.wait_for", "threading.py", "a Condition" },
		{ "Condition.wait", "threading.py", "a Condition to be notified" },
	};
	const char *found = NULL;
	size_t best = sizeof(waits) / sizeof(waits[0]);

	for (size_t k = 0; k < thread->frame_count && k < 4; k++)
		for (size_t i = 0; i < best; i++)
			if (thread->frames[k].func && thread->frames[k].file &&
			    !strcmp(thread->frames[k].func, waits[i].func) &&
			    strstr(thread->frames[k].file, waits[i].file)) {
				found = waits[i].words;
				best = i;
			}
	return found;
}

static bool is_gil(const struct thread *thread)
{
	uint64_t futex = thread->call.argument[0];

	for (size_t i = 0; thread->stack && i < pystack_gil_count(thread->stack); i++) {
		uint64_t gil = pystack_gil(thread->stack, i);

		if (gil && futex >= gil &&
		    futex - gil < (uint64_t)thread->stack->python.layout.gil_size)
			return true;
	}
	return false;
}

static void add_holder(const struct thread *thread, const struct why_lock *lock)
{
	const struct stacks_thread *holder = lock->holder_state
						     ? thread_of_state(thread->stacks,
								       lock->holder_state)
						     : thread_of_tid(thread->stacks,
								     lock->holder_tid);

	if (!holder)
		return;
	thread->one->waits_for = holder->tid;
	if (holder == thread->one) {
		buf_text(thread->out, " that it holds itself");
		return;
	}
	buf_print(thread->out, " held by thread %d \"%s\"", (int)holder->tid, holder->name);
	if (lock->holder_at[0])
		buf_print(thread->out, " (in %s)", lock->holder_at);
}

/* pthread_join waits on the word that holds the tid of the joined thread until it ends. That futex
   is not private, because the kernel wakes it. A robust mutex holds a tid, too, but has an
   additional bit set while a thread waits. */
static const struct stacks_thread *joined(const struct thread *thread)
{
	const uint64_t *argument = thread->call.argument;
	int call = (int)argument[1] & ~FUTEX_CLOCK_REALTIME;
	int32_t tid;

	if (call != FUTEX_WAIT && call != FUTEX_WAIT_BITSET)
		return NULL;
	if (process_memory_read(thread->one->pid, argument[0], &tid, sizeof(tid)) ||
	    tid != (int32_t)argument[2])
		return NULL;
	return thread_of_tid(thread->stacks, tid);
}

static const struct stacks_thread *joined_of_python(const struct thread *thread)
{
	uint64_t state = why_find_joined(thread->stack, thread->one);
	const struct stacks_thread *ends = thread_of_state(thread->stacks, state);

	return ends ? ends : joined(thread);
}

/* A wait with a timeout ends by itself and is not part of a deadlock. */
static void add_joined(const struct thread *thread, const struct stacks_thread *ends)
{
	if (!thread->call.argument[3])
		thread->one->waits_for = ends->tid;
	buf_print(thread->out, "thread %d \"%s\" to end", (int)ends->tid, ends->name);
}

static void add_futex(const struct thread *thread)
{
	const struct stacks_thread *ends = thread->one->python_state ? joined_of_python(thread)
								     : joined(thread);
	const struct stacks_thread *holder = gil_holder(thread->stacks);
	const char *python = python_wait(thread->one);
	struct why_lock lock;

	if (is_gil(thread)) {
		buf_text(thread->out, "the GIL");
		if (holder && holder != thread->one) {
			buf_text(thread->out, ", held by ");
			why_add_thread(thread->out, holder);
		}
		return;
	}
	if (ends) {
		add_joined(thread, ends);
		return;
	}
	why_find_lock(thread->stack, thread->stacks, thread->one, thread->call.argument[0], &lock);
	if (lock.kind && !python) {
		buf_text(thread->out, lock.kind);
		add_holder(thread, &lock);
	} else if (python) {
		buf_text(thread->out, python);
	} else {
		buf_print(thread->out, "a lock or condition (futex 0x%" PRIx64 ")",
			  thread->call.argument[0]);
	}
}

static void add_poll(const struct thread *thread)
{
	uint64_t count = thread->call.argument[1];
	struct pollfd fds[8];

	if (!count) {
		buf_text(thread->out, "a timeout");
		return;
	}
	if (process_memory_read(thread->one->pid, thread->call.argument[0], fds,
				(count < 8 ? count : 8) * sizeof(fds[0]))) {
		buf_print(thread->out, "one of %" PRIu64 " descriptors", count);
		return;
	}
	for (uint64_t i = 0; i < count && i < 3; i++) {
		buf_text(thread->out, i ? ", or " : "");
		wait_fd_describe(thread->out, thread->one->pid, fds[i].fd);
	}
	if (count > 3)
		buf_print(thread->out, ", or %" PRIu64 " more", count - 3);
}

static void add_child(const struct thread *thread)
{
	pid_t child = (pid_t)(int32_t)thread->call.argument[0];
	struct proc_stat stat;

	if (child > 0 && !proc_stat(child, &stat))
		buf_print(thread->out, "child process %d (%s) to end", (int)child, stat.name);
	else
		buf_text(thread->out, "a child process to end");
}

static void add_call(const struct thread *thread)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].number != thread->call.number)
			continue;
		buf_print(thread->out, "%s%s", calls[i].words,
			  calls[i].what == WHAT_PLAIN ? "" : " ");
		switch (calls[i].what) {
		case WHAT_FD:
			wait_fd_describe(thread->out, thread->one->pid,
					 (long)thread->call.argument[0]);
			break;
		case WHAT_POLL: add_poll(thread); break;
		case WHAT_EPOLL: buf_text(thread->out, "its epoll descriptors"); break;
		case WHAT_FUTEX: add_futex(thread); break;
		case WHAT_CHILD: add_child(thread); break;
		case WHAT_TIME:
			buf_text(thread->out,
				 thread->one->python_state ? "(time.sleep)" : "(nanosleep)");
			break;
		default: break;
		}
		return;
	}
	if (thread->call.number < 0)
		buf_text(thread->out, "waits in the kernel outside of a system call");
	else
		buf_print(thread->out, "waits in system call %ld", thread->call.number);
}

/* ---- duration -------------------------------------------------------------------------------- */

/* The time at which the scheduler last ran a thread, in ms of its own clock; 0: unknown. */
static double last_ran_ms(const char *path)
{
	char text[2048];
	const char *at = proc_read(path, text, sizeof(text)) > 0 ? strstr(text, "se.exec_start")
								 : NULL;

	at = at ? strchr(at, ':') : NULL;
	return at ? strtod(at + 1, NULL) : 0;
}

static void why_add_duration(struct buf *out, double seconds)
{
	if (seconds < 1)
		buf_print(out, "%.0f ms", seconds * 1e3);
	else if (seconds < 120)
		buf_print(out, "%.1f s", seconds);
	else if (seconds < 7200)
		buf_print(out, "%.0f min", seconds / 60);
	else
		buf_print(out, "%.1f h", seconds / 3600);
}

/* A thread has waited at least since it last ran. It may have waited longer if a signal or --native
   woke it in between, which the kernel does not record. "about", because the clocks of two cores
   differ. */
static void add_since(const struct thread *thread)
{
	char path[64];
	double now = last_ran_ms("/proc/self/sched"), then;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/sched", (int)thread->one->pid,
		 (int)thread->one->tid);
	then = last_ran_ms(path);
	if (now <= 0 || then <= 0 || now < then)
		return;
	buf_text(thread->out, ", for about ");
	why_add_duration(thread->out, (now - then) / 1e3);
}

/* ---- zones ----------------------------------------------------------------------------------- */

static bool find_recording_in(const char *root, pid_t pid, uint64_t starttime,
			      struct slow_zones *out)
{
	char run[KYMO_PATH_BYTES + 256];
	struct dirent *entry;
	bool found = false;
	DIR *directory = opendir(root);

	while (directory && !found && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(run, sizeof(run), "%s/%s", root, entry->d_name);
		slow_zones_init(out, run, pid, starttime);
		found = !access(out->dir, X_OK);
	}
	if (directory)
		closedir(directory);
	return found;
}

/* Finds the directory of the process in a live recording. */
static bool why_find_recording(pid_t pid, uint64_t starttime, struct slow_zones *out)
{
	struct paths_roots roots;
	bool found = false;

	paths_roots(&roots, NULL);
	for (size_t i = 0; i < roots.count && !found; i++)
		found = find_recording_in(roots.path[i], pid, starttime, out);
	return found;
}

static void why_add_zone(const struct thread *thread, struct slow_zones *zones)
{
	char name[128];
	uint64_t age_ns;

	if (!slow_zones_open_zone(zones, thread->one->tid, name, sizeof(name), &age_ns))
		return;
	buf_print(thread->out, "; in zone \"%s\" for ", name);
	why_add_duration(thread->out, (double)age_ns / 1e9);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void explain(struct thread *thread)
{
	int rc = wait_call_read(thread->one->pid, thread->one->tid, &thread->call);

	if (thread->one->state == 'T' || thread->one->state == 't')
		buf_text(thread->out,
			 "is stopped by a signal or a debugger; kill -CONT continues it");
	else if (rc == 1 || thread->one->state == 'R')
		buf_text(thread->out, thread->one->python && !thread->one->gil
					      ? "runs without the GIL"
					      : "runs");
	else if (rc)
		buf_text(thread->out, "waits; the kernel does not show the reason");
	else
		add_call(thread);
	thread->one->reason_bytes = thread->out->used;
	if (rc != 1 && thread->one->state != 'R')
		add_since(thread);
}

/* Follows the waits from thread to thread. Returns `first` if they lead back to it, else NULL. */
static const struct stacks_thread *in_cycle(const struct stacks *stacks,
					    const struct stacks_thread *first)
{
	const struct stacks_thread *at = first;

	for (size_t i = 0; at && i < stacks->thread_count; i++) {
		at = at->waits_for ? thread_of_tid(stacks, at->waits_for) : NULL;
		if (at == first)
			return first;
	}
	return NULL;
}

static void find_deadlock(struct stacks *stacks)
{
	const struct stacks_thread *first = NULL, *at;
	struct buf text = { 0 };

	for (size_t i = 0; !first && i < stacks->thread_count && !process_memory_late(); i++)
		first = in_cycle(stacks, &stacks->threads[i]);
	if (!first)
		return;
	buf_text(&text, "deadlock: ");
	at = first;
	do {
		buf_print(&text, "thread %d \"%s\" waits for ", (int)at->tid, at->name);
		at = thread_of_tid(stacks, at->waits_for);
	} while (at != first);
	if (first->waits_for == first->tid)
		buf_text(&text, "a lock that it holds itself");
	else
		buf_print(&text, "thread %d \"%s\"", (int)first->tid, first->name);
	snprintf(stacks->deadlock, sizeof(stacks->deadlock), "%s", buf_get(&text));
	buf_fini(&text);
}

void why_explain(struct stacks *stacks, const struct pystack *stack)
{
	struct slow_zones zones = { .control_fd = -1 };
	bool recorded = why_find_recording(stacks->pid, paths_starttime(stacks->pid), &zones);

	for (size_t i = 0; i < stacks->thread_count && !process_memory_late(); i++) {
		struct buf text = { 0 };
		struct thread thread = { stacks, &stacks->threads[i], stack, { 0 }, &text };

		explain(&thread);
		why_add_loop(&text, thread.one);
		if (recorded)
			why_add_zone(&thread, &zones);
		thread.one->why = strdup(buf_get(&text));
		if (!thread.one->why)
			thread.one->reason_bytes = 0;
		buf_fini(&text);
	}
	find_deadlock(stacks);
	slow_zones_fini(&zones);
}
