/*
 * Collectives under way. The caller and the worker meet in a small table by the address of the
 * work: the later of the two writes the row of the whole call. It has a lock, which a forked child
 * may find taken: it is tried a limited number of times, and then the row is given up.
 */
#include "collectives.h"

#include <string.h>

#ifdef __x86_64__

#define CALLS_MOST 1024 /* under way at once; a power of two */
#define SPINS 2000

struct call {
	const void *work; /* NULL: free */
	uint64_t start_ticks, end_ticks; /* of the worker; 0: not yet */
	bool known; /* row is set, by the caller */
	struct schema_collective_row row;
};

static struct call calls[CALLS_MOST];
static uint32_t calls_lock;

static bool lock_calls(void)
{
	for (int i = 0; i < SPINS; i++) {
		uint32_t free_word = 0;

		if (kymo__cas_acquire(&calls_lock, &free_word, 1))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

static void unlock_calls(void)
{
	kymo__store_release(&calls_lock, 0);
}

/* Its place, or a free one if it has none; NULL: none is free near it. */
static struct call *find_call(const void *work)
{
	size_t at = ((uintptr_t)work >> 4) * 0x9e3779b97f4a7c15u >> 40;
	struct call *free_one = NULL;

	for (size_t i = 0; i < 16; i++) {
		struct call *call = &calls[(at + i) & (CALLS_MOST - 1)];

		if (call->work == work)
			return call;
		if (!call->work && !free_one)
			free_one = call;
	}
	if (free_one)
		memset(free_one, 0, sizeof(*free_one));
	return free_one;
}

static void write_call(struct call *call)
{
	struct schema_collective_row *row = &call->row;

	row->start_ticks = call->start_ticks;
	row->end_ticks = call->end_ticks;
	row->flags |= SCHEMA_COLLECTIVE_END | (call->start_ticks ? SCHEMA_COLLECTIVE_START : 0);
	kymo__append(SCHEMA_COLLECTIVES, row);
}

void collective_calls_begin(const void *work, uint64_t ticks)
{
	struct call *call;

	if (!lock_calls())
		return;
	call = find_call(work);
	if (call && call->start_ticks)
		memset(call, 0, sizeof(*call)); /* of a call that has failed at this address */
	if (call) {
		call->work = work;
		call->start_ticks = ticks;
	}
	unlock_calls();
}

void collective_calls_end(const void *work, uint64_t ticks)
{
	struct call *call, done = { 0 };

	if (!lock_calls())
		return;
	call = find_call(work);
	if (call && call->work && call->known) {
		call->end_ticks = ticks;
		done = *call;
		call->work = NULL;
	} else if (call && call->work) {
		call->end_ticks = ticks;
	}
	unlock_calls();
	if (done.known)
		write_call(&done);
}

void collective_calls_enqueued(const void *work, const struct schema_collective_row *row)
{
	struct call *call = NULL, done = { 0 };

	if (work && lock_calls()) {
		call = find_call(work);
		if (call && call->work && call->known)
			memset(call, 0, sizeof(*call));
		if (call) {
			call->work = work;
			call->known = true;
			call->row = *row;
		}
		if (call && call->end_ticks) {
			done = *call;
			call->work = NULL;
		}
		unlock_calls();
	}
	if (done.known)
		write_call(&done);
	else
		kymo__append(SCHEMA_COLLECTIVES, row);
}

void collective_calls_forget(void)
{
	memset(calls, 0, sizeof(calls));
	calls_lock = 0;
}

#endif
