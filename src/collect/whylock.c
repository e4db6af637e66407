/*
 * Who holds a lock. A pthread mutex says it: its owner is next to its futex. A Python RLock says it too. A plain Python
 * lock does not; but a function that is inside of `with lock:` has the lock's __exit__ on its stack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/remote.h"
#include "collect/why.h"

#define MUTEX_OWNER 8 /* in pthread_mutex_t, after the futex and a count */
#define LOCK_LOCK 16 /* in Python's lock and RLock: the C lock */
#define RLOCK_OWNER 24
#define METHOD_SELF 24 /* in a bound method of C */
#define SLOTS_MOST 256

/* A Python lock whose C lock is at `futex`: its kind and address, through a bound method if need be. */
static const char *lock_behind(const struct pymemory *memory, uint64_t object, uint64_t futex,
			       uint64_t *out_lock, bool *out_method)
{
	char type[32];

	*out_method = false;
	if (!object || object % 8 || !pyobj_type(memory, object, type, sizeof(type)))
		return NULL;
	if (!strcmp(type, "builtin_function_or_method")) {
		*out_method = true;
		object = remote_pointer(memory->pid, object + METHOD_SELF);
		if (!object || !pyobj_type(memory, object, type, sizeof(type)))
			return NULL;
	}
	if (strcmp(type, "_thread.lock") != 0 && strcmp(type, "_thread.RLock") != 0)
		return NULL;
	if (remote_pointer(memory->pid, object + LOCK_LOCK) != futex)
		return NULL;
	*out_lock = object;
	return type[8] == 'R' ? "a Python RLock" : "a Python lock";
}

/* The values of a frame: variables, then the stack of its evaluation. */
static size_t read_slots(const struct pymemory *memory, const struct pystack_frame *frame,
			 uint64_t *out, size_t *out_locals)
{
	const struct pylayout *layout = memory->layout;
	int32_t locals, stack;
	size_t count;

	memcpy(&locals, frame->code->head + layout->code_nlocalsplus, 4);
	memcpy(&stack, frame->code->head + layout->code_stacksize, 4);
	if (locals < 0 || stack < 0 || locals > SLOTS_MOST || stack > SLOTS_MOST)
		return 0;
	count = (size_t)locals + (size_t)stack;
	if (count > SLOTS_MOST)
		count = SLOTS_MOST;
	*out_locals = (size_t)locals;
	return remote_read(memory->pid, frame->address + (uint64_t)layout->frame_localsplus, out,
			   count * 8)
		       ? 0
		       : count;
}

static void look_at_frame(const struct pystack *stack, const struct pystack_thread *thread,
			  const struct pystack_frame *frame, uint64_t futex, uint64_t waiter,
			  struct why_lock *out)
{
	uint64_t slots[SLOTS_MOST], lock = 0;
	size_t locals = 0, count = read_slots(&stack->memory, frame, slots, &locals);
	bool method;

	for (size_t i = 0; i < count; i++) {
		const char *kind = lock_behind(&stack->memory, slots[i], futex, &lock, &method);

		if (!kind)
			continue;
		out->kind = kind;
		if (kind[9] == 'R')
			for (size_t k = 0; k < stack->thread_count; k++)
				if (stack->threads[k].ident ==
				    remote_pointer(stack->pid, lock + RLOCK_OWNER))
					out->holder_state = stack->threads[k].state;
		/* __exit__ on another thread's stack: it is inside of the block. */
		if (method && i >= locals && thread->state != waiter) {
			out->holder_state = thread->state;
			snprintf(out->holder_at, sizeof(out->holder_at), "%s", frame->code->name);
		}
	}
}

static void look_at_python(const struct pystack *stack, uint64_t futex, uint64_t waiter,
			   struct why_lock *out)
{
	for (size_t i = 0; i < stack->thread_count; i++) {
		const struct pystack_thread *thread = &stack->threads[i];

		for (size_t k = 0; k < thread->frame_count && k < 64; k++)
			look_at_frame(stack, thread, &thread->frames[k], futex, waiter, out);
	}
}

static bool is_thread_of(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
	return tid > 0 && !access(path, F_OK);
}

void why_find_lock(const struct pystack *stack, pid_t pid, uint64_t futex, uint64_t waiter_state,
		   struct why_lock *out)
{
	int32_t words[4]; /* futex, count, owner, users */

	memset(out, 0, sizeof(*out));
	if (stack && stack->inside)
		look_at_python(stack, futex, waiter_state, out);
	if (out->kind || remote_read(pid, futex, words, sizeof(words)))
		return;
	if (words[0] == 2 && is_thread_of(pid, words[MUTEX_OWNER / 4])) {
		out->kind = "a mutex";
		out->holder_tid = words[MUTEX_OWNER / 4];
	}
}
