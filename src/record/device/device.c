/* Devices, their queues and models; rows of operations and memory. Nothing is ever removed, so ids
   stay valid. */
#include "record/device/device.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <kymo/atomic.h>

struct queue {
	uint32_t state; /* as in struct kymo__device */
	uint32_t name_id;
	uint32_t device;
	uint32_t core;
	char name[KYMO__DEVICE_NAME_BYTES];
};

struct model {
	uint32_t state;
	uint32_t name_id;
	char name[KYMO__DEVICE_NAME_BYTES];
};

/* Untouched pages cost nothing. */
static struct kymo__device devices[KYMO_DEVICES_MAX];
static struct queue queues[KYMO_DEVICE_QUEUES_MAX];
static struct model models[KYMO_DEVICE_MODELS_MAX];
static uint32_t queues_made; /* atomic */
static kymo_device_watcher *watching; /* atomic */

/* ---- slots --------------------------------------------------------------------------------- */

enum { SLOT_FREE, SLOT_FILLING, SLOT_READY };

static bool slot_claim(uint32_t *state)
{
	uint32_t expected = SLOT_FREE;

	return kymo__cas_acq_rel_acquire(state, &expected, SLOT_FILLING);
}

/* Another thread is filling it, which is quick; or was, when this child was forked. */
static void slot_await(const uint32_t *state)
{
	for (int i = 0; i < 10000 && kymo__load_acquire(state) == SLOT_FILLING; i++)
		sched_yield();
}

static bool slot_ready(const uint32_t *state)
{
	return kymo__load_acquire(state) == SLOT_READY;
}

static void slot_publish(uint32_t *state)
{
	kymo__store_release(state, SLOT_READY);
}

static void copy_name(char out[KYMO__DEVICE_NAME_BYTES], const char *name)
{
	size_t bytes = kymo__utf8_cut(name, strlen(name), KYMO__DEVICE_NAME_BYTES - 1);

	memcpy(out, name, bytes);
	out[bytes] = '\0';
}

static uint32_t device_name_id(uint32_t *id, const char *name)
{
	uint32_t known = kymo__load_relaxed(id);

	if (KYMO__LIKELY(known != 0) || !kymo__process_ready())
		return known;
	known = kymo__intern(name, strlen(name), NULL, 0, 0, KYMO_SOURCE_DEVICE, 0);
	kymo__store_relaxed(id, known);
	return known;
}

/* ---- devices ------------------------------------------------------------------------------- */

struct kymo__device *kymo__device_get(uint32_t device)
{
	if (device - 1u >= KYMO_DEVICES_MAX || !slot_ready(&devices[device - 1].state))
		return NULL;
	return &devices[device - 1];
}

uint32_t kymo__device_name_id(struct kymo__device *device)
{
	return device_name_id(&device->name_id, device->name);
}

/* Two devices of one name are numbered: the second becomes "card #2". */
static void name_device(struct kymo__device *device, const char *name)
{
	char stem[KYMO__DEVICE_NAME_BYTES];
	uint32_t same = 1;

	copy_name(stem, name);
	stem[kymo__utf8_cut(stem, strlen(stem), sizeof(stem) - 12)] = '\0';
	copy_name(device->name, stem);
	for (uint32_t i = 0; i < KYMO_DEVICES_MAX && slot_ready(&devices[i].state); i++)
		if (!strcmp(devices[i].name, device->name))
			snprintf(device->name, sizeof(device->name), "%.107s #%u", stem, ++same);
}

uint32_t kymo_device_add(const struct kymo_device_adapter *adapter, uint32_t local,
			 const char *name)
{
	if (!adapter || adapter->bytes < offsetof(struct kymo_device_adapter, now) || !name)
		return 0;
	for (uint32_t i = 0; i < KYMO_DEVICES_MAX; i++) {
		if (!slot_claim(&devices[i].state)) {
			slot_await(&devices[i].state);
			continue;
		}
		devices[i].adapter = adapter;
		devices[i].local = local;
		name_device(&devices[i], name);
		slot_publish(&devices[i].state);
		if (kymo_device_enabled())
			kymo_device_sync(i + 1);
		return i + 1;
	}
	return 0;
}

void kymo_device_flush(void)
{
	for (uint32_t i = 0; i < KYMO_DEVICES_MAX && slot_ready(&devices[i].state); i++) {
		const struct kymo_device_adapter *adapter = devices[i].adapter;
		bool first = true; /* an adapter with several devices is called once */

		for (uint32_t k = 0; k < i; k++)
			first = first && devices[k].adapter != adapter;
		if (first && adapter->bytes >= sizeof(*adapter) && adapter->flush)
			adapter->flush(adapter->context);
	}
}

/* ---- queues, models ------------------------------------------------------------------------ */

static struct queue *queue_get(uint32_t queue)
{
	return queue - 1u < KYMO_DEVICE_QUEUES_MAX && slot_ready(&queues[queue - 1].state)
		       ? &queues[queue - 1]
		       : NULL;
}

uint32_t kymo_device_queue_add(uint32_t device, const char *name, uint32_t core)
{
	uint32_t index;

	if (!kymo__device_get(device))
		return 0;
	index = kymo__fetch_add_relaxed(&queues_made, 1);
	if (index >= KYMO_DEVICE_QUEUES_MAX)
		return 0;
	queues[index].device = device;
	queues[index].core = core == KYMO_DEVICE_NEXT_CORE ? index : core;
	if (name)
		copy_name(queues[index].name, name);
	else
		snprintf(queues[index].name, sizeof(queues[index].name), "queue %u",
			 queues[index].core);
	slot_publish(&queues[index].state);
	return index + 1;
}

uint32_t kymo_device_queue_core(uint32_t queue)
{
	const struct queue *at = queue_get(queue);

	return at ? at->core : UINT32_MAX;
}

const char *kymo_device_queue_name(uint32_t queue)
{
	const struct queue *at = queue_get(queue);

	return at ? at->name : "";
}

const char *kymo_device_queue_device(uint32_t queue)
{
	const struct queue *at = queue_get(queue);

	return at ? devices[at->device - 1].name : "";
}

uint32_t kymo_device_model_add(const char *name)
{
	char kept[KYMO__DEVICE_NAME_BYTES];

	if (!name || !*name)
		return 0;
	copy_name(kept, name);
	for (uint32_t i = 0; i < KYMO_DEVICE_MODELS_MAX; i++) {
		if (slot_claim(&models[i].state)) {
			memcpy(models[i].name, kept, sizeof(kept));
			slot_publish(&models[i].state);
			return i + 1;
		}
		slot_await(&models[i].state);
		if (!strcmp(models[i].name, kept))
			return i + 1;
	}
	return 0;
}

static struct model *model_get(uint32_t model)
{
	return model - 1u < KYMO_DEVICE_MODELS_MAX && slot_ready(&models[model - 1].state)
		       ? &models[model - 1]
		       : NULL;
}

const char *kymo_device_model_name(uint32_t model)
{
	const struct model *at = model_get(model);

	return at ? at->name : "";
}

/* ---- on and off ---------------------------------------------------------------------------- */

int kymo_device_enable(struct kymo_error *err)
{
	int rc = kymo_enable(err);

	if (!rc && kymo__process_ready())
		kymo__fetch_or_release(&kymo__process.control->on, KYMO_ON_DEVICE);
	return rc;
}

void kymo_device_disable(void)
{
	if (kymo__process_ready())
		kymo__fetch_and_release(&kymo__process.control->on, ~(uint32_t)KYMO_ON_DEVICE);
}

/* ---- rows ---------------------------------------------------------------------------------- */

void kymo_device_launch(struct kymo_device_launch *out)
{
	const struct kymo__lane *lane = kymo__lane;
	uint32_t depth;

	if (!out)
		return;
	memset(out, 0, sizeof(*out));
	out->ticks = kymo__ticks();
	if (!kymo_device_enabled())
		return;
	if (!lane)
		lane = kymo__lane_get();
	if (!lane)
		return;
	out->thread = lane->thread;
	out->step = kymo__load_relaxed(lane->step);
	depth = lane->open->depth < KYMO_OPEN_MAX ? lane->open->depth : KYMO_OPEN_MAX;
	while (depth && !lane->open->entries[depth - 1].name)
		depth--; /* a hole: it ended before those above it */
	if (!depth)
		return;
	out->zone = lane->open->entries[depth - 1].name;
	out->zone_start_ticks = lane->open->entries[depth - 1].start_ticks;
}

/* Fields that were added later than the rest. */
#define HAS(op, field) ((op)->bytes >= offsetof(struct kymo_device_op, field) + sizeof((op)->field))

/* Stores one of the four times as ticks, and marks it as known. */
static void set_time(struct kymo__device *device, const struct kymo_device_op *op,
		     uint64_t device_time, uint32_t known, uint64_t *out,
		     struct schema_device_op_row *row)
{
	uint64_t error_ns = 0;

	if (device_time == KYMO_DEVICE_NO_TIME)
		return;
	if (op->flags & KYMO_DEVICE_HOST_TICKS)
		*out = device_time;
	else if (kymo__device_when(device, device_time, out, &error_ns))
		return;
	error_ns += HAS(op, error_ns) ? op->error_ns : 0;
	if (error_ns > row->error_ns)
		row->error_ns = error_ns < UINT32_MAX ? (uint32_t)error_ns : UINT32_MAX;
	row->flags |= known;
}

static void device_set_times(struct kymo__device *device, const struct kymo_device_op *op,
			     struct schema_device_op_row *row)
{
	set_time(device, op, op->start, SCHEMA_DEVICE_START, &row->start_ticks, row);
	set_time(device, op, op->end, SCHEMA_DEVICE_END, &row->end_ticks, row);
	set_time(device, op, op->submit, SCHEMA_DEVICE_SUBMIT, &row->submit_ticks, row);
	set_time(device, op, op->queued, SCHEMA_DEVICE_QUEUED, &row->queued_ticks, row);
	if (!(row->flags & SCHEMA_DEVICE_QUEUED) && op->launch.ticks) {
		row->queued_ticks = op->launch.ticks;
		row->flags |= SCHEMA_DEVICE_QUEUED;
	}
}

static uint32_t kind_name(enum kymo_device_kind kind)
{
	static const char *const words[] = {
#define X(upper, word) word,
		KYMO_DEVICE_KINDS(X)
#undef X
	};
	static uint32_t ids[KYMO_DEVICE_KIND_COUNT];

	return device_name_id(&ids[kind], words[kind]);
}

static void fill_row(const struct kymo_device_op *op, struct queue *queue,
		     struct kymo__device *device, struct schema_device_op_row *row)
{
	struct model *model = model_get(op->model);

	row->bytes = op->moved_bytes;
	row->correlation = op->correlation;
	row->zone_start_ticks = op->launch.zone_start_ticks;
	row->execution = op->execution;
	row->device = kymo__device_name_id(device);
	row->queue = device_name_id(&queue->name_id, queue->name);
	row->model = model ? device_name_id(&model->name_id, model->name) : 0;
	row->name = op->name ? op->name : kind_name(op->kind);
	row->zone = op->launch.zone;
	row->thread = op->launch.thread;
	row->step = op->launch.step;
	row->core = (int32_t)queue->core;
	row->status = op->status;
	row->flags = op->flags & (0xffu | KYMO_DEVICE_DEPTH(0xff));
	row->kind = (uint16_t)op->kind;
	if (HAS(op, call)) {
		row->call = op->call;
		row->call_ticks = op->call_ticks;
	}
	device_set_times(device, op, row);
}

void kymo_device_watch(kymo_device_watcher *watcher)
{
	kymo__store_release(&watching, watcher);
}

static void tell_watcher(const struct kymo_device_op *op, const struct schema_device_op_row *row)
{
	kymo_device_watcher *watcher = kymo__load_acquire(&watching);
	uint32_t both = SCHEMA_DEVICE_START | SCHEMA_DEVICE_END;

	if (KYMO__UNLIKELY(watcher != NULL) && (row->flags & both) == both)
		watcher(op->queue, op->kind, row->start_ticks, row->end_ticks);
}

int kymo_device_op(const struct kymo_device_op *op)
{
	struct schema_device_op_row row = { 0 };
	struct queue *queue;

	if (!op || op->bytes < offsetof(struct kymo_device_op, error_ns) ||
	    (unsigned)op->kind >= KYMO_DEVICE_KIND_COUNT)
		return -EINVAL;
	if (!kymo_device_enabled() || !kymo__process_ready())
		return 0;
	queue = queue_get(op->queue);
	if (!queue)
		return -EINVAL;
	if (!(op->flags & KYMO_DEVICE_HOST_TICKS))
		kymo__device_sync_if_due(&devices[queue->device - 1]);
	fill_row(op, queue, &devices[queue->device - 1], &row);
	tell_watcher(op, &row);
	return kymo__append(SCHEMA_DEVICE_OPS, &row);
}

int kymo_device_memory(uint32_t device, const char *kind, int64_t bytes)
{
	return kymo_device_memory_at(device, kind, bytes, 0);
}

int kymo_device_memory_at(uint32_t device, const char *kind, int64_t bytes, uint64_t at_ticks)
{
	struct kymo__device *at = kymo__device_get(device);
	struct schema_device_memory_row row = { .bytes = bytes };

	if (!at || !kind)
		return -EINVAL;
	/* Counted while recording is off, too, so that it is correct when recording is turned
	   on. */
	row.live_bytes = kymo__add_fetch_relaxed(&at->live_bytes, bytes);
	if (!kymo_device_enabled() || !kymo__process_ready())
		return 0;
	row.ts_ticks = at_ticks ? at_ticks : kymo__ticks();
	row.device = kymo__device_name_id(at);
	row.kind = kymo__intern(kind, strlen(kind), NULL, 0, 0, KYMO_SOURCE_DEVICE, 0);
	row.step = kymo__process.control->step;
	return kymo__append(SCHEMA_DEVICE_MEMORY, &row);
}
