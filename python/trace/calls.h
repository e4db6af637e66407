/*
 * The open calls of a thread, for mechanisms with one event per call and return. An entry is
 * identified by its frame or code. An end that does not match the top closes the calls above its
 * begin; an end without a begin is ignored.
 */
#ifndef KYMO_PYTHON_TRACE_CALLS_H
#define KYMO_PYTHON_TRACE_CALLS_H

#include "trace.h"

#define CALL_COROUTINE 1u
/* Its rows carry the task's index; other_thread is the one to restore. */
#define CALL_SWAPPED 2u
#define CALL_LINE 4u
#define CALL_C 8u

struct call {
	const void *key; /* a frame or a code object; never dereferenced */
	uint64_t start_ticks;
	uint32_t name;
	uint32_t depth;
	uint32_t kind;
	uint32_t other_thread;
};

/* Per-thread state of the tracer. */
struct calls {
	struct call *items;
	uint32_t count, capacity;
	struct kymo__lane *lane; /* on which they were opened; changes after fork */
	uint32_t generation; /* of start(): entries of an earlier one are dropped */
	uint8_t busy; /* our own code runs: its calls are not the program's */
	uint8_t name_attempts; /* left: threading has a name only after the thread has begun */
	char *floor; /* frame.c: the frame hook stops below it */
	/* frame.c: value of floor once the thread is named; NULL: no hooked frame runs */
	char *limit;
	char *stack_base; /* lowest address; NULL: not determined yet */
	size_t stack_bytes;
};

extern HIDDEN __thread struct calls *calls_mine __attribute__((tls_model("initial-exec")));
extern HIDDEN uint32_t calls_generation; /* incremented by each start */

HIDDEN int calls_init(void);
HIDDEN struct calls *calls_make(void); /* NULL: no memory */
HIDDEN bool calls_grow(struct calls *calls);
HIDDEN void calls_renew(struct calls *calls); /* after a new lane or start */
HIDDEN void calls_name_thread(struct calls *calls);
HIDDEN void calls_end_slow(struct calls *calls, const void *key);
HIDDEN void calls_end_all(void); /* of the calling thread */
HIDDEN void calls_drop_all(void); /* without rows: they have not ended */
/* Switches the lane's thread index while the task of this coroutine runs; sets *out_other. False:
   no task, or the same. */
HIDDEN bool calls_swap(struct calls *calls, struct kymo__lane *lane, uint32_t *out_other);

static inline struct calls *calls_get(void)
{
	struct calls *calls = calls_mine;

	return KYMO__LIKELY(calls != NULL) ? calls : calls_make();
}

static inline void calls_open(struct calls *calls, const void *key, uint32_t name, uint32_t kind)
{
	struct kymo_zone zone;
	struct call *call;

	if (KYMO__UNLIKELY(kymo__lane != calls->lane || calls->generation != calls_generation))
		calls_renew(calls);
	if (KYMO__UNLIKELY(calls->name_attempts))
		calls_name_thread(calls);
	if (KYMO__UNLIKELY(calls->count == calls->capacity) && !calls_grow(calls))
		return;
	call = &calls->items[calls->count];
	if (KYMO__UNLIKELY(kind & CALL_COROUTINE) && calls->lane &&
	    !(calls->count && call[-1].kind & CALL_COROUTINE) &&
	    calls_swap(calls, calls->lane, &call->other_thread))
		kind |= CALL_SWAPPED;
	zone = kymo__zone_open(name);
	if (KYMO__UNLIKELY(zone.lane != calls->lane || !zone.lane)) {
		/* there is room again, from the next call on */
		if (zone.lane)
			kymo__zone_leave(zone.lane, zone.depth);
		return;
	}
	calls->count++;
	call->key = key;
	call->start_ticks = zone.start_ticks;
	call->name = name;
	call->depth = zone.depth;
	call->kind = kind;
}

/* Ends the innermost. */
static inline void calls_close(struct calls *calls)
{
	const struct call *call = &calls->items[calls->count - 1];
	struct kymo_zone zone = { calls->lane, call->start_ticks, call->name, call->depth };

	if (KYMO__LIKELY(kymo__lane == calls->lane && calls->lane))
		kymo__zone_close(&zone);
	calls->count--;
	if (KYMO__UNLIKELY(call->kind & CALL_SWAPPED) && calls->lane == kymo__lane && calls->lane)
		calls->lane->thread = call->other_thread;
}

static inline void calls_end(struct calls *calls, const void *key)
{
	const struct call *top = calls->count ? &calls->items[calls->count - 1] : NULL;

	if (KYMO__LIKELY(top && top->key == key && !(top->kind & CALL_LINE)))
		calls_close(calls);
	else if (top)
		calls_end_slow(calls, key);
}

static inline void calls_begin_code(struct calls *calls, const void *key, PyCodeObject *code)
{
	tag_t tag;

	if (KYMO__UNLIKELY(calls->busy || !kymo__is_on(KYMO_ON_ZONES)))
		return;
	tag = codes_tag(code);
	if (KYMO__UNLIKELY(tag & TAG_OURS))
		return;
	calls_open(calls, key, TAG_NAME(tag), tag & TAG_COROUTINE ? CALL_COROUTINE : 0);
}

HIDDEN void calls_line(struct calls *calls, const void *key, PyCodeObject *code, int line);
HIDDEN void calls_begin_c(struct calls *calls, const void *key, PyObject *callable);
HIDDEN void calls_end_c(struct calls *calls, const void *key);

#endif
