#include "collect/backtrace/stacks.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/grow.h"
#include "collect/host/proc.h"
#include "collect/native/process_memory.h"
#include "collect/backtrace/why.h"

#define LOCAL_BYTES 80
#define FRAMES_MOST 1000000 /* of all threads; further ones are left out */
#define SETTLE_TRIES 20 /* for threads that change during every read */

/* ---- threads of the kernel ------------------------------------------------------------------- */

static int compare_threads(const void *a, const void *b)
{
	const struct stacks_thread *one = a, *other = b;

	return one->tid < other->tid ? -1 : one->tid > other->tid;
}

static void take_task(struct stacks_thread *thread, pid_t pid, pid_t tid)
{
	char path[64], text[1024];
	struct proc_stat stat;

	memset(thread, 0, sizeof(*thread));
	thread->pid = pid;
	thread->tid = tid;
	thread->taken_ns = clock_monotonic_ns();
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (proc_read(path, text, sizeof(text)) > 0 && !proc_parse_stat(text, &stat)) {
		thread->state = stat.state;
		snprintf(thread->name, sizeof(thread->name), "%s", stat.name);
	}
}

static int list_tasks(pid_t pid, struct stacks *out)
{
	char path[48];
	struct dirent *entry;
	size_t room = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (!grow((void **)&out->threads, &room, out->thread_count, sizeof(*out->threads)))
			break;
		take_task(&out->threads[out->thread_count++], pid,
			  (pid_t)strtol(entry->d_name, NULL, 10));
	}
	if (tasks)
		closedir(tasks);
	if (out->thread_count)
		qsort(out->threads, out->thread_count, sizeof(*out->threads), compare_threads);
	return out->thread_count ? 0 : -ESRCH;
}

/* ---- Python's threads ------------------------------------------------------------------------ */

/* The tid in the thread's own pid namespace, which is the one in Python's state. */
static pid_t inner_tid(pid_t pid, pid_t tid)
{
	char path[64], text[4096];
	const char *at, *end, *last;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return tid;
	at = strstr(text, "\nNSpid:");
	end = at ? strchr(at + 1, '\n') : NULL;
	if (!end)
		return tid;
	for (last = end; last > at && *last != '\t' && *last != ' ';)
		last--;
	return (pid_t)strtol(last, NULL, 10);
}

static struct stacks_thread *find_thread(struct stacks *out, pid_t inner, bool foreign)
{
	for (size_t i = 0; i < out->thread_count; i++) {
		struct stacks_thread *thread = &out->threads[i];

		/* Read once: there may be thousands of threads. */
		if (foreign && !thread->inner_tid)
			thread->inner_tid = inner_tid(out->pid, thread->tid);
		if ((foreign ? thread->inner_tid : thread->tid) == inner)
			return thread;
	}
	return NULL;
}

void stacks_copy_frame(struct stacks_frame *frame, const struct pystack_frame *from,
		       const struct pymemory *memory, const struct stacks_options *options)
{
	frame->func = strdup(from->code->name);
	frame->file = strdup(from->code->file);
	frame->line = from->line;
	if (options->locals)
		stacks_read_locals(memory, from, frame,
				   options->local_bytes ? options->local_bytes : LOCAL_BYTES);
}

/* *room: frames that may still be copied. */
static void stacks_take_frames(struct stacks_thread *thread, const struct pystack_thread *from,
			       const struct pymemory *memory, const struct stacks_options *options,
			       size_t *room)
{
	size_t count = from->frame_count < *room ? from->frame_count : *room;

	*room -= count;
	thread->python = true;
	thread->python_state = from->state;
	thread->gil = from->gil;
	thread->missed = !from->read;
	if (from->name[0])
		snprintf(thread->name, sizeof(thread->name), "%s", from->name);
	else if (thread->tid == thread->pid)
		snprintf(thread->name, sizeof(thread->name),
			 "MainThread"); /* threading is not imported */
	thread->frames = calloc(count + 1, sizeof(*thread->frames));
	if (!thread->frames)
		return;
	if (from->partial)
		thread->frames[thread->frame_count++].func = strdup(PYSTACK_CHANGING);
	for (size_t i = 0; i < count; i++)
		stacks_copy_frame(&thread->frames[thread->frame_count++], &from->frames[i], memory,
				  options);
}

static bool all_whole(const struct pystack *stack)
{
	for (size_t i = 0; i < stack->thread_count; i++)
		if (!stack->threads[i].read || stack->threads[i].partial)
			return false;
	return true;
}

/* Pauses between attempts, in which a fast changing stack may settle. */
static int read_with_retries(struct pystack *stack, struct kymo_error *err)
{
	struct timespec pause = { 0, 1000000 };
	int rc = pystack_read(stack, err);

	for (int i = 0; i < SETTLE_TRIES && !rc && !all_whole(stack) && !process_memory_late();
	     i++) {
		nanosleep(&pause, NULL);
		rc = pystack_read(stack, err);
	}
	return rc;
}

static void stacks_take_python(struct stacks *out, struct pystack *stack,
			       const struct stacks_options *options)
{
	bool foreign = inner_tid(out->pid, out->pid) != out->pid;
	size_t room = FRAMES_MOST;

	out->python_version = stack->python.version;
	pystack_name_threads(stack);
	for (size_t i = 0; i < stack->thread_count; i++) {
		struct stacks_thread *thread = find_thread(out, stack->threads[i].tid, foreign);

		/* After a fork outside of Python, the child's state still has the tid of its
		   parent. */
		if (!thread && stack->thread_count == 1)
			thread = &out->threads[0];
		if (thread && !thread->python)
			stacks_take_frames(thread, &stack->threads[i], &stack->memory, options,
					   &room);
	}
	if (stack->cut)
		snprintf(out->unfinished, sizeof(out->unfinished),
			 "not all Python threads are shown: their list is damaged or too long");
}

static bool is_refusal(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -ESRCH || rc == -ENOSYS;
}

/* True if the deadline has passed; the first time, notes what is missing from here on. */
static bool stacks_is_late(struct stacks *out, const char *missing)
{
	if (!process_memory_late())
		return false;
	if (!out->unfinished[0])
		snprintf(out->unfinished, sizeof(out->unfinished),
			 "reading process %d took longer than %llu s; missing or incomplete: %s",
			 (int)out->pid, PROCESS_MEMORY_WITHIN_NS / 1000000000, missing);
	return true;
}

static void stacks_take_native(struct stacks *out, struct pystack *stack,
			       const struct stacks_options *options)
{
	struct kymo_error native = { 0 };

	stacks_add_native(out, stack, options, &native);
	snprintf(out->without_native, sizeof(out->without_native), "%.255s", native.text);
}

static int take_parts(struct stacks *out, struct pystack *stack,
		      const struct stacks_options *options, struct kymo_error *why)
{
	int rc = pystack_open(stack, out->pid, why);

	if (!rc)
		rc = read_with_retries(stack, why);
	if (!rc)
		stacks_take_python(out, stack, options);
	if (!stacks_is_late(out, "Python frames and all that follows") && !rc)
		stacks_add_tasks(out, stack, options);
	if (!stacks_is_late(out, "tasks of asyncio") && options->why && !is_refusal(rc))
		why_explain(out, rc ? NULL : stack);
	if (!stacks_is_late(out, "reasons of waits and native frames") && options->native &&
	    !is_refusal(rc))
		stacks_take_native(out, rc ? NULL : stack, options);
	stacks_is_late(out, "native frames");
	return rc;
}

static int stacks_take_within(pid_t pid, const struct stacks_options *options, struct stacks *out,
			      struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	struct pystack stack;
	struct proc_stat stat;
	int rc;

	memset(out, 0, sizeof(*out));
	out->pid = pid;
	if (pid <= 0 || proc_stat(pid, &stat))
		return process_memory_refused(err, pid, ESRCH);
	out->state = stat.state;
	snprintf(out->program, sizeof(out->program), "%s", stat.name);
	if (stat.state == 'Z' || stat.state == 'X')
		return error_set(err, ESRCH, "process %d (%s) is a zombie; it has no stack",
				 (int)pid, stat.name);
	rc = list_tasks(pid, out);
	if (rc)
		return process_memory_refused(err, pid, -rc);
	rc = take_parts(out, &stack, options, &why);
	pystack_close(&stack);
	if (is_refusal(rc)) {
		stacks_free(out);
		*err = why;
		return rc;
	}
	snprintf(out->without_python, sizeof(out->without_python), "%.255s", rc ? why.text : "");
	return 0;
}

int stacks_take(pid_t pid, const struct stacks_options *options, struct stacks *out,
		struct kymo_error *err)
{
	bool mine = process_memory_begin(PROCESS_MEMORY_WITHIN_NS);
	int rc = stacks_take_within(pid, options, out, err);

	if (mine)
		process_memory_set_deadline(0);
	return rc;
}

void stacks_free_frames(struct stacks_frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct stacks_frame *frame = &frames[i];

		free(frame->func);
		free(frame->file);
		for (size_t k = 0; k < frame->local_count; k++) {
			free(frame->locals[k].name);
			free(frame->locals[k].value);
		}
		free(frame->locals);
	}
	free(frames);
}

void stacks_free(struct stacks *stacks)
{
	for (size_t i = 0; i < stacks->thread_count; i++) {
		stacks_free_frames(stacks->threads[i].frames, stacks->threads[i].frame_count);
		stacks_free_tasks(&stacks->threads[i]);
		free(stacks->threads[i].why);
	}
	free(stacks->threads);
	memset(stacks, 0, sizeof(*stacks));
}
