/* Captures: rows of operations kept in memory beside the recording, and written into files of their own. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/pages.h"
#include "record/device.h"
#include "record/snapshot.h"

#define CAPTURES_MAX 32
#define MOST_OPS 1000000u
#define LEAST_OPS 64u
#define BUSY UINT64_MAX
#define AWAIT_TURNS 100000

/* number is the row's, from 1, once it is whole; BUSY while it is written. */
struct slot {
	uint64_t number;
	struct schema_device_op_row row;
	uint32_t model, queue;
};

struct kymo_device_capture {
	uint32_t state; /* 0 free, 1 being set up or ended, 2 runs; atomic */
	uint32_t users; /* threads at work in it; atomic */
	struct slot *slots;
	uint64_t cap;
	uint64_t head; /* rows ever; atomic */
	uint64_t crowded; /* rows that found their slot taken; atomic */
	uint64_t kinds;
	uint32_t model, queue;
	size_t core_words;
	uint64_t cores[64];
};

static struct kymo_device_capture captures[CAPTURES_MAX];
uint32_t kymo__capture_count;
static uint32_t turned_on; /* 1: recording of devices is on for a capture's sake; atomic */

/* ---- taking rows --------------------------------------------------------------------------- */

static bool wants(const struct kymo_device_capture *capture, const struct schema_device_op_row *row,
		  uint32_t model, uint32_t queue)
{
	uint32_t core = (uint32_t)row->core;

	if (capture->model && capture->model != model)
		return false;
	if (capture->queue && capture->queue != queue)
		return false;
	if (!(capture->kinds >> row->kind & 1))
		return false;
	return !capture->core_words ||
	       (core / 64 < capture->core_words && (capture->cores[core / 64] >> core % 64 & 1));
}

/* Slots are taken by their number; one that is still being written when the ring comes round is left alone. */
static void put(struct kymo_device_capture *capture, const struct schema_device_op_row *row,
		uint32_t model, uint32_t queue)
{
	uint64_t number = __atomic_add_fetch(&capture->head, 1, __ATOMIC_RELAXED);
	struct slot *slot = &capture->slots[(number - 1) % capture->cap];
	uint64_t before = __atomic_load_n(&slot->number, __ATOMIC_RELAXED);
	const uint64_t *from = (const uint64_t *)(const void *)row;

	if (before == BUSY || before > number ||
	    !__atomic_compare_exchange_n(&slot->number, &before, BUSY, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&capture->crowded, 1, __ATOMIC_RELAXED);
		return;
	}
	for (size_t i = 0; i < sizeof(*row) / 8; i++)
		__atomic_store_n((uint64_t *)(void *)&slot->row + i, from[i], __ATOMIC_RELAXED);
	__atomic_store_n(&slot->model, model, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->queue, queue, __ATOMIC_RELAXED);
	/* Pairs with the acquire in read_slot(). */
	__atomic_store_n(&slot->number, number, __ATOMIC_RELEASE);
}

static bool use(struct kymo_device_capture *capture)
{
	__atomic_fetch_add(&capture->users, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&capture->state, __ATOMIC_SEQ_CST) == 2)
		return true;
	__atomic_fetch_sub(&capture->users, 1, __ATOMIC_RELEASE);
	return false;
}

static void leave(struct kymo_device_capture *capture)
{
	__atomic_fetch_sub(&capture->users, 1, __ATOMIC_RELEASE);
}

void kymo__captures_take(const struct schema_device_op_row *row, uint32_t model, uint32_t queue)
{
	for (uint32_t i = 0; i < CAPTURES_MAX; i++) {
		if (__atomic_load_n(&captures[i].state, __ATOMIC_RELAXED) != 2 ||
		    !use(&captures[i]))
			continue;
		if (wants(&captures[i], row, model, queue))
			put(&captures[i], row, model, queue);
		leave(&captures[i]);
	}
}

/* False: it is being written, or was overwritten. */
static bool read_slot(const struct kymo_device_capture *capture, uint64_t number, struct slot *out)
{
	const struct slot *slot = &capture->slots[(number - 1) % capture->cap];
	uint64_t *to = (uint64_t *)(void *)&out->row;

	if (__atomic_load_n(&slot->number, __ATOMIC_ACQUIRE) != number)
		return false;
	for (size_t i = 0; i < sizeof(out->row) / 8; i++)
		to[i] = __atomic_load_n((const uint64_t *)(const void *)&slot->row + i,
					__ATOMIC_RELAXED);
	out->model = __atomic_load_n(&slot->model, __ATOMIC_RELAXED);
	out->queue = __atomic_load_n(&slot->queue, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&slot->number, __ATOMIC_RELAXED) == number;
}

/* ---- beginning and ending ------------------------------------------------------------------- */

static struct kymo_device_capture *claim(void)
{
	for (uint32_t i = 0; i < CAPTURES_MAX; i++) {
		uint32_t idle = 0;

		if (__atomic_compare_exchange_n(&captures[i].state, &idle, 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return &captures[i];
	}
	return NULL;
}

static int turn_on(struct kymo_error *err)
{
	bool was_on = kymo_device_enabled();
	int rc = was_on ? 0 : kymo_device_enable(err);

	if (!rc && !was_on)
		__atomic_store_n(&turned_on, 1, __ATOMIC_RELAXED);
	return rc;
}

static void set_up(struct kymo_device_capture *capture,
		   const struct kymo_device_capture_options *options)
{
	capture->head = 0;
	capture->crowded = 0;
	capture->kinds = options && options->kinds ? options->kinds : UINT64_MAX;
	capture->model = options ? options->model : 0;
	capture->queue = options ? options->queue : 0;
	capture->core_words = options && options->cores ? options->core_words : 0;
	if (capture->core_words)
		memcpy(capture->cores, options->cores, capture->core_words * sizeof(uint64_t));
}

int kymo_device_capture_start(const struct kymo_device_capture_options *options,
			      struct kymo_device_capture **out, struct kymo_error *err)
{
	struct kymo_device_capture *capture;
	uint64_t cap = options && options->most_ops ? options->most_ops : MOST_OPS;
	int rc;

	if (!out || (options && (options->bytes < sizeof(*options) ||
				 (options->cores && options->core_words > 64))))
		return error_set(err, EINVAL, "cannot begin a capture: its options are not whole");
	*out = NULL;
	cap = cap < LEAST_OPS ? LEAST_OPS : cap;
	capture = claim();
	if (!capture)
		return error_set(err, ENOSPC, "cannot begin a capture: %d run already; end one",
				 CAPTURES_MAX);
	rc = turn_on(err);
	if (!rc) {
		capture->slots = cap < SIZE_MAX / sizeof(struct slot)
					 ? pages_take((size_t)cap * sizeof(struct slot))
					 : NULL;
		if (!capture->slots)
			rc = error_set(err, ENOMEM,
				       "cannot begin a capture of %llu operations: no memory",
				       (unsigned long long)cap);
	}
	capture->cap = cap;
	if (!rc)
		set_up(capture, options);
	else {
		__atomic_store_n(&capture->state, 0, __ATOMIC_RELEASE);
		return rc;
	}
	__atomic_fetch_add(&kymo__capture_count, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&capture->state, 2, __ATOMIC_SEQ_CST);
	*out = capture;
	return 0;
}

void kymo_device_capture_stop(struct kymo_device_capture *capture)
{
	uint32_t running = 2;
	int turns = 0;

	if (!capture || !__atomic_compare_exchange_n(&capture->state, &running, 1, false,
						     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return;
	if (__atomic_sub_fetch(&kymo__capture_count, 1, __ATOMIC_RELEASE) == 0 &&
	    __atomic_exchange_n(&turned_on, 0, __ATOMIC_RELAXED))
		kymo_device_disable();
	while (__atomic_load_n(&capture->users, __ATOMIC_ACQUIRE) && turns++ < AWAIT_TURNS)
		sched_yield();
	if (__atomic_load_n(&capture->users, __ATOMIC_ACQUIRE))
		return; /* a thread was stopped in it, or was lost by a fork: its memory and place stay */
	pages_give(capture->slots, (size_t)capture->cap * sizeof(struct slot));
	capture->slots = NULL;
	__atomic_store_n(&capture->state, 0, __ATOMIC_RELEASE);
}

/* ---- what is held ---------------------------------------------------------------------------- */

static uint64_t first_kept(const struct kymo_device_capture *capture, uint64_t head)
{
	return head > capture->cap ? head - capture->cap + 1 : 1;
}

int kymo_device_capture_counts(struct kymo_device_capture *capture,
			       struct kymo_device_capture_count *out)
{
	if (!capture || !out || out->bytes < sizeof(*out))
		return -EINVAL;
	out->seen = __atomic_load_n(&capture->head, __ATOMIC_RELAXED);
	out->kept = out->seen - first_kept(capture, out->seen) + 1;
	return 0;
}

uint32_t kymo_device_capture_last_model(struct kymo_device_capture *capture, uint32_t core)
{
	struct slot slot;
	uint64_t head;
	uint32_t model = 0;

	if (!capture || !use(capture))
		return 0;
	head = __atomic_load_n(&capture->head, __ATOMIC_ACQUIRE);
	for (uint64_t i = head; i >= first_kept(capture, head) && i && !model; i--)
		if (read_slot(capture, i, &slot) && (uint32_t)slot.row.core == core)
			model = slot.model;
	leave(capture);
	return model;
}

/* ---- into a file ----------------------------------------------------------------------------- */

struct saving {
	struct kymo_device_capture *capture;
	uint32_t model, core;
	uint64_t next, head;
};

/* For the snapshot's writer: the next row that is wanted, or false at the end. */
static bool next_row(void *context, void *out)
{
	struct saving *saving = context;
	struct slot slot;

	while (saving->next <= saving->head) {
		if (!read_slot(saving->capture, saving->next++, &slot))
			continue;
		if (saving->model && slot.model != saving->model)
			continue;
		if (saving->core != UINT32_MAX && (uint32_t)slot.row.core != saving->core)
			continue;
		memcpy(out, &slot.row, sizeof(slot.row));
		return true;
	}
	return false;
}

static bool holds_any(struct saving saving)
{
	struct schema_device_op_row row;

	return next_row(&saving, &row);
}

int kymo_device_capture_save(struct kymo_device_capture *capture, uint32_t model, uint32_t core,
			     bool none_is_fine, const char *path, struct kymo_error *err)
{
	struct saving saving = { .capture = capture, .model = model, .core = core };
	int rc;

	if (!capture || !path || !*path)
		return error_set(err, EINVAL, "cannot save a capture: which, and where to?");
	kymo_device_flush();
	if (!use(capture))
		return error_set(err, EINVAL, "cannot save a capture that has ended");
	saving.head = __atomic_load_n(&capture->head, __ATOMIC_ACQUIRE);
	saving.next = first_kept(capture, saving.head);
	if (!none_is_fine && !holds_any(saving))
		rc = error_set(err, ENOENT,
			       "cannot save %s: nothing of that model or core was captured", path);
	else
		rc = kymo__snapshot_rows(SCHEMA_DEVICE_OPS, next_row, &saving, path, err);
	leave(capture);
	return rc;
}
