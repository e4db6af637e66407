#include "calls.h"

#include <pthread.h>
#include <stdlib.h>

#include "../core/text.h"

#define FIRST_CAPACITY 256u
#define MOST (4u << 20) /* deeper recursion is a gap */
#define NAME_ATTEMPTS 64

__thread struct calls *calls_mine __attribute__((tls_model("initial-exec")));
uint32_t calls_generation;
static pthread_key_t at_thread_end;

/* At the end of a thread, without the GIL. */
static void calls_thread_ends(void *pointer)
{
	struct calls *calls = pointer;

	calls_mine = NULL;
	free(calls->items);
	free(calls);
}

/* Open zones began in the parent process; the child's rows are its own. */
static void calls_in_child(void)
{
	struct calls *calls = calls_mine;

	if (calls) {
		calls->count = 0;
		calls->lane = NULL;
		calls->generation = calls_generation - 1; /* makes the first call get a lane */
		calls->name_attempts = NAME_ATTEMPTS;
	}
	tasks_forget();
}

int calls_init(void)
{
	static bool done;

	if (done)
		return 0;
	if (pthread_key_create(&at_thread_end, calls_thread_ends) ||
	    pthread_atfork(NULL, NULL, calls_in_child))
		return -1;
	done = true;
	return 0;
}

struct calls *calls_make(void)
{
	struct calls *calls = calloc(1, sizeof(*calls));

	if (!calls)
		return NULL;
	if (pthread_setspecific(at_thread_end, calls)) {
		free(calls);
		return NULL;
	}
	calls->name_attempts = NAME_ATTEMPTS;
	calls->floor = (char *)UINTPTR_MAX;
	calls_mine = calls;
	return calls;
}

bool calls_grow(struct calls *calls)
{
	uint32_t capacity = calls->capacity ? calls->capacity * 2 : FIRST_CAPACITY;
	struct call *items = NULL;

	if (capacity <= MOST)
		items = realloc(calls->items, capacity * sizeof(*items));
	if (!items) {
		gaps_add(capacity > MOST ? GAP_DEEP : GAP_MEMORY, kymo_ticks());
		return false;
	}
	calls->items = items;
	calls->capacity = capacity;
	return true;
}

/* Drops calls left open by an earlier start() or by the parent of a fork. */
void calls_renew(struct calls *calls)
{
	struct kymo__lane *lane = kymo__lane ? kymo__lane : kymo__lane_get();

	if (calls->count && lane && lane == calls->lane) {
		kymo__zone_leave(lane, calls->items[0].depth);
		for (uint32_t i = calls->count; i-- > 0;)
			if (calls->items[i].kind & CALL_SWAPPED)
				lane->thread = calls->items[i].other_thread;
	}
	calls->count = 0;
	calls->lane = lane;
	calls->generation = calls_generation;
}

void calls_name_thread(struct calls *calls)
{
	struct error_kept kept;

	if (calls->busy || !kymo_enabled())
		return;
	kept = error_keep();
	calls->busy = 1;
	calls->name_attempts = text_introduce_thread() ? 0 : calls->name_attempts - 1;
	calls->busy = 0;
	error_back(kept);
}

bool calls_swap(struct calls *calls, struct kymo__lane *lane, uint32_t *out_other)
{
	uint32_t task;

	calls->busy = 1;
	task = tasks_current();
	calls->busy = 0;
	if (!task || lane->thread == task)
		return false;
	*out_other = lane->thread;
	lane->thread = task;
	return true;
}

void calls_end_slow(struct calls *calls, const void *key)
{
	uint32_t at = calls->count;

	while (at && (calls->items[at - 1].key != key || calls->items[at - 1].kind & CALL_LINE))
		at--;
	if (!at) /* a line of a function that was already running */
		for (at = calls->count; at && calls->items[at - 1].key != key;)
			at--;
	while (at && calls->count >= at)
		calls_close(calls);
}

void calls_end_all(void)
{
	struct calls *calls = calls_mine;

	while (calls && calls->count)
		calls_close(calls);
}

/* Regions of the program that are above a call stay open, above a hole (base/format.h). */
static void calls_drop(struct kymo__lane *lane, uint32_t depth)
{
	struct kymo_open_stack *open = lane->open;

	if (open->depth == depth + 1) {
		open->depth = depth;
	} else if (open->depth > depth && depth < KYMO_OPEN_MAX) {
		open->entries[depth].name = 0;
		open->entries[depth].flags = KYMO_OPEN_REGION;
	}
}

void calls_drop_all(void)
{
	struct calls *calls = calls_mine;

	while (calls && calls->count) {
		const struct call *call = &calls->items[--calls->count];

		if (!calls->lane || calls->lane != kymo__lane)
			continue;
		calls_drop(calls->lane, call->depth);
		if (call->kind & CALL_SWAPPED)
			calls->lane->thread = call->other_thread;
	}
}

void calls_line(struct calls *calls, const void *key, PyCodeObject *code, int line)
{
	const struct call *top = calls->count ? &calls->items[calls->count - 1] : NULL;

	tag_t tag;

	if (calls->busy || !kymo__is_on(KYMO_ON_ZONES))
		return;
	tag = codes_tag(code);
	if (tag & TAG_OURS)
		return;
	if (top && top->kind & CALL_LINE && top->key == key)
		calls_close(calls);
	calls_open(calls, key, codes_line(code, line),
		   CALL_LINE | (tag & TAG_COROUTINE ? CALL_COROUTINE : 0));
}

void calls_begin_c(struct calls *calls, const void *key, PyObject *callable)
{
	uint32_t name;

	if (calls->busy || !kymo__is_on(KYMO_ON_ZONES))
		return;
	name = codes_c_function(callable);
	if (name)
		calls_open(calls, key, name, CALL_C);
}

void calls_end_c(struct calls *calls, const void *key)
{
	if (calls->count && calls->items[calls->count - 1].kind & CALL_C)
		calls_end(calls, key);
}
