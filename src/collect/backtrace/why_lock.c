/*
 * Finds the holder of a lock. A pthread mutex has its owner next to its futex, and a Python RLock
 * stores its owner. A plain Python lock does not, but a function inside `with lock:` has the lock's
 * __exit__ on its stack.
 *
 * Until 3.13 a Python lock points to the semaphore on which threads wait. Since 3.14 the lock is a
 * byte in the object, and each waiter waits on a semaphore on its own stack, which is preceded by
 * the address of that byte (parking_lot.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/native/process_memory.h"
#include "collect/backtrace/why.h"
#include "collect/wait/wait_futex.h"

#define LOCK_LOCK 16 /* in Python's lock and RLock: the C lock, or its byte since 3.14 */
#define PARKED_LOCK 8 /* before the semaphore of the waiter, 3.14 */
#define RLOCK_OWNER 24
#define METHOD_SELF 24 /* in a bound C method */
#define SLOTS_MOST 256

/* The lock to find, and where to search. */
struct search {
	const struct pystack *stack;
	const struct stacks *stacks;
	const struct stacks_thread *waiter;
	uint64_t futex;
	uint64_t byte; /* of the lock, since 3.14; else 0 */
};

static bool is_parking(const struct pystack *stack)
{
	return stack->memory.layout->minor >= 14;
}

static bool is_waited_for(const struct search *search, uint64_t lock)
{
	return search->byte ? lock + LOCK_LOCK == search->byte
			    : process_memory_pointer(search->stack->pid, lock + LOCK_LOCK) ==
				      search->futex;
}

/* If the object is the lock, or a bound method of it: its kind and address. */
static const char *lock_of(const struct search *search, uint64_t object, uint64_t *out_lock,
			   bool *out_method)
{
	const struct pymemory *memory = &search->stack->memory;
	char type[32];

	*out_method = false;
	if (!object || object % 8 || !pyobj_type(memory, object, type, sizeof(type)))
		return NULL;
	if (!strcmp(type, "builtin_function_or_method")) {
		*out_method = true;
		object = process_memory_pointer(memory->pid, object + METHOD_SELF);
		if (!object || !pyobj_type(memory, object, type, sizeof(type)))
			return NULL;
	}
	if (strcmp(type, "_thread.lock") != 0 && strcmp(type, "_thread.RLock") != 0)
		return NULL;
	if (!is_waited_for(search, object))
		return NULL;
	*out_lock = object;
	return type[8] == 'R' ? "a Python RLock" : "a Python lock";
}

/* The values of a frame: variables, then the evaluation stack. */
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
	return process_memory_read(memory->pid, frame->address + (uint64_t)layout->frame_localsplus,
				   out, count * 8)
		       ? 0
		       : count;
}

/* Since 3.14 a thread that waits for the same lock has __exit__ on its stack, too, before it calls
   __enter__. */
static bool waits_too(const struct search *search, uint64_t state)
{
	struct wait_call call;

	for (size_t i = 0; search->byte && i < search->stacks->thread_count; i++) {
		const struct stacks_thread *one = &search->stacks->threads[i];

		if (one->python_state == state)
			return !wait_call_read(one->pid, one->tid, &call) &&
			       call.number == SYS_futex &&
			       process_memory_pointer(one->pid, call.argument[0] - PARKED_LOCK) ==
				       search->byte;
	}
	return false;
}

/* Is slot `at` of the evaluation stack the lock of a `with` whose block is running? */
static bool is_exit(const struct search *search, const uint64_t *slots, size_t at, bool method)
{
	char type[32];

	if (!search->byte)
		return method; /* bound: lock.__exit__ */
	return at && pyobj_type(&search->stack->memory, slots[at - 1], type, sizeof(type)) &&
	       !strcmp(type, "method_descriptor"); /* __exit__, followed by its object */
}

static uint64_t why_lock_state_of(const struct pystack *stack, uint64_t ident)
{
	for (size_t i = 0; ident && i < stack->thread_count; i++)
		if (stack->threads[i].ident == ident)
			return stack->threads[i].state;
	return 0;
}

static void search_frame(const struct search *search, const struct pystack_thread *thread,
			 const struct pystack_frame *frame, struct why_lock *out)
{
	const struct pymemory *memory = &search->stack->memory;
	uint64_t slots[SLOTS_MOST], lock = 0;
	size_t locals = 0, count = read_slots(memory, frame, slots, &locals);
	bool method;

	for (size_t i = 0; i < count; i++)
		slots[i] = pyobj_reference(memory, slots[i]);
	for (size_t i = 0; i < count; i++) {
		const char *kind = lock_of(search, slots[i], &lock, &method);

		if (!kind)
			continue;
		out->kind = kind;
		if (kind[9] == 'R')
			out->holder_state = why_lock_state_of(
				search->stack,
				process_memory_pointer(memory->pid, lock + RLOCK_OWNER));
		/* On the stack of another thread, which is inside the block. */
		if (i >= locals && thread->state != search->waiter->python_state &&
		    is_exit(search, slots, i, method) && !waits_too(search, thread->state)) {
			out->holder_state = thread->state;
			snprintf(out->holder_at, sizeof(out->holder_at), "%s", frame->code->name);
		}
	}
}

static void search_python(const struct search *search, struct why_lock *out)
{
	for (size_t i = 0; i < search->stack->thread_count; i++) {
		const struct pystack_thread *thread = &search->stack->threads[i];

		for (size_t k = 0; k < thread->frame_count && k < 64; k++)
			search_frame(search, thread, &thread->frames[k], out);
	}
}

/* ---- joined threads -------------------------------------------------------------------------- */

static bool is_join(const struct pycode *code)
{
	static const char *const names[] = { "Thread.join", "Thread._wait_for_tstate_lock" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(code->name, names[i]) && strstr(code->file, "threading.py"))
			return true;
	return false;
}

/* The first variable of a method is self; threading.Thread has its ident. */
static uint64_t ident_of_self(const struct pymemory *memory, const struct pystack_frame *frame)
{
	uint64_t slots[SLOTS_MOST], ident;
	size_t locals = 0, count = read_slots(memory, frame, slots, &locals);
	struct buf number = { 0 };

	if (!count || !locals)
		return 0;
	ident = pyobj_attribute(memory, pyobj_reference(memory, slots[0]), "_ident");
	if (ident)
		pyobj_repr(memory, ident, &number, 32);
	ident = strtoull(buf_get(&number), NULL, 10);
	buf_fini(&number);
	return ident;
}

uint64_t why_find_joined(const struct pystack *stack, const struct stacks_thread *waiter)
{
	for (size_t i = 0; i < stack->thread_count; i++) {
		const struct pystack_thread *thread = &stack->threads[i];

		if (thread->state == waiter->python_state && thread->frame_count &&
		    is_join(thread->frames[0].code))
			return why_lock_state_of(stack,
						 ident_of_self(&stack->memory, &thread->frames[0]));
	}
	return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

void why_find_lock(const struct pystack *stack, const struct stacks *stacks,
		   const struct stacks_thread *waiter, uint64_t futex, struct why_lock *out)
{
	struct search search = { stack, stacks, waiter, futex, 0 };

	memset(out, 0, sizeof(*out));
	if (stack && stack->inside) {
		if (is_parking(stack))
			search.byte = process_memory_pointer(stack->pid, futex - PARKED_LOCK);
		search_python(&search, out);
	}
	if (out->kind)
		return;
	out->holder_tid = wait_futex_owner_at(waiter->pid, futex);
	if (out->holder_tid)
		out->kind = "a mutex";
}
