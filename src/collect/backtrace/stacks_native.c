/* Native frames of every thread, merged with Python frames. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "collect/native/process_memory.h"
#include "collect/native/ptrace_stop.h"
#include "collect/backtrace/stacks.h"
#include "collect/native/unwind.h"

#define THREADS_MOST 1024 /* whose stacks, of up to 512 KB, are copied */

/* Data copied from a thread while it was stopped. */
struct copied {
	struct ptrace_stop stop;
	int rc;
	struct stacks_frame *python; /* copied while the thread was stopped */
	bool *entry;
	size_t python_count;
};

static const struct pystack_thread *stacks_native_find(const struct pystack *stack, uint64_t state)
{
	for (size_t i = 0; stack && i < stack->thread_count; i++)
		if (stack->threads[i].state == state)
			return &stack->threads[i];
	return NULL;
}

/* Reads the Python frames again while the thread is stopped, so that both kinds are consistent. */
static void copy_python(struct copied *copied, const struct pystack_thread *from,
			const struct pymemory *memory, const struct stacks_options *options)
{
	copied->python = calloc(from->frame_count + 1, sizeof(*copied->python));
	copied->entry = calloc(from->frame_count + 1, sizeof(*copied->entry));
	if (!copied->python || !copied->entry)
		return;
	copied->python_count = from->frame_count;
	for (size_t i = 0; i < from->frame_count; i++) {
		stacks_copy_frame(&copied->python[i], &from->frames[i], memory, options);
		copied->entry[i] = from->frames[i].entry;
	}
}

static void copy_thread(struct copied *copied, const struct stacks_thread *thread,
			struct pystack *stack, const struct stacks_options *options)
{
	const struct pystack_thread *from;

	copied->rc = ptrace_stop_begin(&copied->stop, thread->pid, thread->tid);
	if (!copied->rc && stack && thread->python_state && !pystack_read(stack, NULL)) {
		from = stacks_native_find(stack, thread->python_state);
		if (from && from->read)
			copy_python(copied, from, &stack->memory, options);
	}
	ptrace_stop_end(&copied->stop);
}

struct copy_job {
	struct copied *copied;
	const struct stacks_thread *thread;
	struct pystack *stack;
	const struct stacks_options *options;
	uint64_t deadline_ns;
};

static void *run_copy_job(void *context)
{
	const struct copy_job *copy_job = context;

	process_memory_set_deadline(copy_job->deadline_ns);
	copy_thread(copy_job->copied, copy_job->thread, copy_job->stack, copy_job->options);
	return NULL;
}

/* Runs in a thread that ends afterwards: the kernel then releases a target that stops only after
   the timeout. */
static void copy_in_thread(struct copied *copied, const struct stacks_thread *thread,
			   struct pystack *stack, const struct stacks_options *options)
{
	struct copy_job copy_job = { copied, thread, stack, options, process_memory_deadline() };
	pthread_t helper;

	copied->rc = -EAGAIN;
	if (!pthread_create(&helper, NULL, run_copy_job, &copy_job))
		pthread_join(helper, NULL);
}

/* ---- merging --------------------------------------------------------------------------------- */

struct merged {
	struct stacks_frame *frames;
	size_t count;
	size_t python; /* index of the next Python frame */
};

/* One native frame of the interpreter loop runs the Python frames up to the next entry frame. */
static void add_python_run(struct merged *merged, const struct copied *copied)
{
	bool entry = false;

	while (merged->python < copied->python_count && !entry) {
		entry = copied->entry[merged->python];
		merged->frames[merged->count++] = copied->python[merged->python++];
	}
}

static void add_native(struct merged *merged, struct unwind_frame *frame)
{
	merged->frames[merged->count++] = (struct stacks_frame){
		.func = frame->func, .file = frame->file, .line = frame->line, .native = true
	};
}

static void stacks_native_merge(struct stacks_thread *thread, const struct copied *copied,
				struct unwind_frame *native, size_t native_count)
{
	struct merged merged = { .frames = calloc(native_count + copied->python_count + 1,
						  sizeof(*merged.frames)) };

	if (!merged.frames)
		return;
	for (size_t i = 0; i < native_count; i++) {
		if (!native[i].eval || merged.python >= copied->python_count) {
			add_native(&merged, &native[i]);
			continue;
		}
		add_python_run(&merged, copied);
		free(native[i].func);
		free(native[i].file);
	}
	/* The stack could not be unwound to its end, or the interpreter loop has no symbol. */
	while (merged.python < copied->python_count)
		add_python_run(&merged, copied);
	stacks_free_frames(thread->frames, thread->frame_count);
	thread->frames = merged.frames;
	thread->frame_count = merged.count;
	thread->missed = false;
}

static void free_copied(struct copied *copied)
{
	ptrace_stop_free(&copied->stop);
	free(copied->python);
	free(copied->entry);
}

/* Stops one thread after another. -EPERM if one may not be stopped. */
static int copy_all(struct stacks *stacks, struct copied *copied, size_t count,
		    struct pystack *stack, const struct stacks_options *options)
{
	int rc = 0;

	for (size_t i = 0; i < count; i++) {
		copied[i].rc = -ETIMEDOUT;
		if (process_memory_late())
			continue;
		copy_in_thread(&copied[i], &stacks->threads[i], stack, options);
		stacks->threads[i].held_ns = copied[i].stop.took_ns;
		if (copied[i].stop.took_ns > stacks->held_ns)
			stacks->held_ns = copied[i].stop.took_ns;
		if (copied[i].rc == -EPERM)
			rc = -EPERM;
	}
	return rc;
}

static int unwind_copied(struct unwind *unwind, struct stacks *stacks, struct copied *copied,
			 size_t count, struct kymo_error *err)
{
	struct unwind_job *jobs = calloc(count + 1, sizeof(*jobs));
	int rc;

	for (size_t i = 0; jobs && i < count; i++)
		jobs[i].stop = copied[i].rc ? NULL : &copied[i].stop;
	rc = jobs ? unwind_all(unwind, jobs, count, err) : -ENOMEM;
	for (size_t i = 0; jobs && i < count; i++) {
		if (jobs[i].count)
			stacks_native_merge(&stacks->threads[i], &copied[i], jobs[i].frames,
					    jobs[i].count);
		free(jobs[i].frames);
	}
	free(jobs);
	return rc;
}

int stacks_add_native(struct stacks *stacks, struct pystack *stack,
		      const struct stacks_options *options, struct kymo_error *err)
{
	size_t count = stacks->thread_count < THREADS_MOST ? stacks->thread_count : THREADS_MOST;
	struct copied *copied = calloc(count + 1, sizeof(*copied));
	struct unwind *unwind;
	int rc = unwind_open(stacks->pid, &unwind, err), denied;

	if (rc || !copied) {
		free(copied);
		return rc ? rc : -ENOMEM;
	}
	denied = copy_all(stacks, copied, count, stack, options);
	rc = unwind_copied(unwind, stacks, copied, count, err);
	for (size_t i = 0; i < count; i++)
		free_copied(&copied[i]);
	unwind_close(unwind);
	free(copied);
	if (denied)
		return error_set(err, EPERM,
				 "cannot read native frames of process %d: another debugger or "
				 "strace is attached, or ptrace is not allowed; use sudo kymo "
				 "backtrace --native %d",
				 (int)stacks->pid, (int)stacks->pid);
	if (!rc && count < stacks->thread_count)
		return error_set(err, E2BIG, "native frames are shown of the first %zu threads",
				 count);
	return rc;
}
