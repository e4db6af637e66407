/* Native frames of every thread, merged with those of Python. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "collect/native/ptrace_stop.h"
#include "collect/backtrace/stacks.h"
#include "collect/native/unwind.h"

/* What was copied of a thread while it was held. */
struct copied {
	struct ptrace_stop hold;
	int rc;
	struct stacks_frame *python; /* moved from the thread */
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

/* Python's frames again, now that the thread is held: both kinds are of one moment. */
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

	copied->rc = ptrace_stop_begin(&copied->hold, thread->pid, thread->tid);
	if (!copied->rc && stack && thread->python_state && !pystack_read(stack, NULL)) {
		from = stacks_native_find(stack, thread->python_state);
		if (from && from->read)
			copy_python(copied, from, &stack->memory, options);
	}
	ptrace_stop_end(&copied->hold);
}

struct errand {
	struct copied *copied;
	const struct stacks_thread *thread;
	struct pystack *stack;
	const struct stacks_options *options;
};

static void *run_errand(void *context)
{
	const struct errand *errand = context;

	copy_thread(errand->copied, errand->thread, errand->stack, errand->options);
	return NULL;
}

/* In a thread that ends with it: one that would stop only after we have lost patience is let go by
   the kernel then. */
static void copy_apart(struct copied *copied, const struct stacks_thread *thread,
		       struct pystack *stack, const struct stacks_options *options)
{
	struct errand errand = { copied, thread, stack, options };
	pthread_t apart;

	copied->rc = -EAGAIN;
	if (!pthread_create(&apart, NULL, run_errand, &errand))
		pthread_join(apart, NULL);
}

/* ---- merging --------------------------------------------------------------------------------- */

struct merged {
	struct stacks_frame *frames;
	size_t count;
	size_t python; /* the next of Python's */
};

/* One run of the interpreter's loop runs Python functions up to the one that C has called. */
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
	/* The stack could not be followed to its end, or the loop has no symbol. */
	while (merged.python < copied->python_count)
		add_python_run(&merged, copied);
	stacks_free_frames(thread->frames, thread->frame_count);
	thread->frames = merged.frames;
	thread->frame_count = merged.count;
	thread->missed = false;
}

static void unwind_one(struct unwind *unwind, struct stacks_thread *thread, struct copied *copied)
{
	struct unwind_frame *native = calloc(UNWIND_DEEPEST, sizeof(*native));
	size_t count = 0;

	if (native && !copied->rc)
		count = unwind_frames(unwind, &copied->hold, native, UNWIND_DEEPEST);
	if (count)
		stacks_native_merge(thread, copied, native, count);
	free(native);
}

int stacks_add_native(struct stacks *stacks, struct pystack *stack,
		      const struct stacks_options *options, struct kymo_error *err)
{
	struct copied *copied = calloc(stacks->thread_count + 1, sizeof(*copied));
	struct unwind *unwind;
	int rc = unwind_open(stacks->pid, &unwind, err);

	if (rc || !copied) {
		free(copied);
		return rc ? rc : -ENOMEM;
	}
	for (size_t i = 0; i < stacks->thread_count; i++) {
		copy_apart(&copied[i], &stacks->threads[i], stack, options);
		stacks->threads[i].held_ns = copied[i].hold.took_ns;
		if (copied[i].hold.took_ns > stacks->held_ns)
			stacks->held_ns = copied[i].hold.took_ns;
		if (copied[i].rc == -EPERM)
			rc = -EPERM;
	}
	for (size_t i = 0; i < stacks->thread_count; i++) {
		unwind_one(unwind, &stacks->threads[i], &copied[i]);
		ptrace_stop_free(&copied[i].hold);
		free(copied[i].python);
		free(copied[i].entry);
	}
	unwind_close(unwind);
	free(copied);
	return rc ? error_set(err, EPERM,
			      "no native frames of process %d: a debugger or strace has it "
			      "already, or ptrace is not allowed (sudo kymo backtrace --native %d)",
			      (int)stacks->pid, (int)stacks->pid)
		  : 0;
}
