/*
 * Operations from the call that enqueues them until the device is done. Each holds a reference to
 * its event, the program's own if it asked for one. Nothing waits for them: they are checked when
 * the program calls OpenCL, and after a while without calls, by a callback of the runtime.
 */
#include <string.h>
#include <time.h>

#include <kymo/atomic.h>
#include <kymo/pool.h>

#include "record/adapter.h"
#include "record/opencl/layer.h"

#define NODES 65536u /* operations in flight, of all queues */
#define LOOK_AT 32u /* with this many pending, the next call that enqueues checks them */
#define LOOK_MOST 512u /* per check, so that no call takes long */
#define CALLBACK_MS 20
#define LET_TURNS 200 /* at most 10 ms and what the kernel adds */
#define LET_PAUSE_NS 50000

struct node {
	struct node *next; /* in a queue's list */
	uint32_t next_free;
	uint32_t used; /* atomic */
	cl_event event;
	uint64_t after_ticks; /* end of the call */
	struct kymo_device_op op;
};

static struct node nodes[NODES];
static uint32_t nodes_made; /* atomic */
static uint64_t free_nodes; /* a pool */
static uint64_t crowded; /* operations without a node; atomic */

/* ---- nodes --------------------------------------------------------------------------------- */

static uint32_t *node_next_free(uint32_t index)
{
	return &nodes[index].next_free;
}

/* Records a gap each time the number has doubled. */
static void count_crowded(void)
{
	uint64_t count = kymo__add_fetch_relaxed(&crowded, 1);
	static const char cause[] = "too many device operations in flight";
	struct schema_gap_row row = { .start_ticks = kymo_ticks(), .events = count };

	if (count & (count - 1))
		return;
	row.cause = kymo_name_full(cause, sizeof(cause) - 1, NULL, 0, 0, KYMO_SOURCE_DEVICE, 0);
	kymo__append(SCHEMA_GAPS, &row);
}

static struct node *node_take(void)
{
	uint32_t index;

	if (kymo__pool_pop(&free_nodes, node_next_free, &index))
		return &nodes[index];
	index = kymo__load_relaxed(&nodes_made);
	do {
		if (index >= NODES) {
			count_crowded();
			return NULL;
		}
	} while (!kymo__cas_relaxed(&nodes_made, &index, index + 1));
	return &nodes[index];
}

static void node_give(struct node *node)
{
	kymo__store_relaxed(&node->event, NULL);
	kymo__pool_push(&free_nodes, (uint32_t)(node - nodes), node_next_free);
}

uint32_t pending_refs(cl_event event)
{
	uint32_t made = kymo__load_relaxed(&nodes_made), refs = 0;

	for (uint32_t i = 0; i < made && i < NODES; i++)
		refs += kymo__load_relaxed(&nodes[i].event) == event;
	return refs;
}

/* ---- checking for finished operations -------------------------------------------------------- */

static uint64_t time_of(cl_event event, cl_profiling_info what)
{
	cl_ulong ns = 0;

	if (next.clGetEventProfilingInfo(event, what, sizeof(ns), &ns, NULL))
		return KYMO_DEVICE_NO_TIME;
	return ns;
}

static void pending_tell(const struct layer_queue *queue, struct node *node, cl_int status)
{
	struct kymo_device_op *op = &node->op;

	op->queued = op->submit = op->start = op->end = KYMO_DEVICE_NO_TIME;
	op->status = status < 0 ? status : 0;
	if (queue->timed) {
		op->queued = time_of(node->event, CL_PROFILING_COMMAND_QUEUED);
		op->submit = time_of(node->event, CL_PROFILING_COMMAND_SUBMIT);
		op->start = time_of(node->event, CL_PROFILING_COMMAND_START);
		op->end = time_of(node->event, CL_PROFILING_COMMAND_END);
	}
	if (op->queued != KYMO_DEVICE_NO_TIME)
		clock_settle(queue->device, op->queued, op->launch.ticks, node->after_ticks);
	kymo_device_op(op);
}

/* True: it has ended, successfully or not, and is recorded. */
static bool pending_finish(struct layer_queue *queue, struct node *node)
{
	cl_int status = CL_QUEUED;

	if (next.clGetEventInfo(node->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				&status, NULL))
		status = -1;
	if (status > CL_COMPLETE)
		return false;
	pending_tell(queue, node, status);
	next.clReleaseEvent(node->event);
	node_give(node);
	kymo__fetch_sub_release(&queue->pending, 1);
	return true;
}

/* Appends newly pushed operations; oldest first. */
static void pending_gather(struct layer_queue *queue)
{
	struct node *node = kymo__exchange_acquire(&queue->fresh, NULL);
	struct node *newest = node, *oldest = NULL;

	while (node) {
		struct node *before = node->next;

		node->next = oldest;
		oldest = node;
		node = before;
	}
	if (!oldest)
		return;
	if (queue->last)
		queue->last->next = oldest;
	else
		queue->first = oldest;
	queue->last = newest;
}

static void walk(struct layer_queue *queue)
{
	struct node **link = &queue->first, *kept = NULL;

	for (uint32_t i = 0; *link && i < LOOK_MOST; i++) {
		struct node *node = *link, *after = node->next;

		if (pending_finish(queue, node)) {
			*link = after;
			if (queue->last == node)
				queue->last = kept;
		} else if (queue->ordered) {
			break;
		} else {
			kept = node;
			link = &node->next;
		}
	}
}

/* The checking thread: one of the program, or one of the runtime in a callback. */
enum looker { LOOKER_NONE, LOOKER_CALLER, LOOKER_RUNTIME };

static void opencl_pending_look(struct layer_queue *queue, enum looker looker)
{
	uint64_t begun, now;
	uint32_t none = LOOKER_NONE;

	if (!kymo__load_acquire(&queue->pending) || !kymo__cas_acquire(&queue->busy, &none, looker))
		return; /* another thread is checking */
	begun = kymo_ticks();
	pending_gather(queue);
	walk(queue);
	now = kymo_ticks();
	kymo__store_relaxed(&queue->looked_ticks, now);
	kymo__store_release(&queue->busy, LOOKER_NONE);
	cost_look(now - begun);
}

void pending_look(struct layer_queue *queue)
{
	opencl_pending_look(queue, LOOKER_CALLER);
}

void pending_look_all(void)
{
	struct layer_queue *queue;

	for (uint32_t i = 0; (queue = queue_at(i)); i++)
		for (uint32_t turns = 0, before = UINT32_MAX, left; turns < NODES / LOOK_MOST;
		     turns++, before = left) {
			pending_look(queue);
			left = kymo__load_relaxed(&queue->pending);
			if (!left || left == before)
				break;
		}
}

void pending_flush(void *context)
{
	(void)context;
	pending_look_all();
}

/* ---- calls ----------------------------------------------------------------------------------- */

void call_begin(struct call *call, cl_command_queue handle, enum kymo_device_kind kind,
		uint64_t bytes, bool depends)
{
	struct node *node;

	call->node = NULL;
	call->waits = false;
	if (!kymo_device_enabled())
		return;
	call->begun = cost_begin();
	call->queue = queue_of(handle);
	if (!call->queue)
		return;
	node = node_take();
	if (!node)
		return;
	call->node = node;
	call->own = NULL;
	memset(&node->op, 0, sizeof(node->op));
	node->op.bytes = sizeof(node->op);
	node->op.queue = call->queue->id;
	node->op.kind = kind;
	node->op.moved_bytes = bytes;
	node->op.flags = depends ? KYMO_DEVICE_DEPENDS : 0;
	kymo_device_launch(&node->op.launch);
}

void call_kernel(struct call *call, cl_kernel kernel)
{
	struct layer_kernel known;

	if (!call->node)
		return;
	known = kernel_of(kernel);
	call->node->op.name = known.name;
	call->node->op.model = known.model;
	call->node->op.launch.ticks = kymo_ticks();
}

/* By the address of the text, which is static: looked up once. */
static uint32_t wait_name(const char *name)
{
	static struct {
		const char *text; /* atomic; stored last */
		uint32_t id; /* atomic: a thread that loses a slot still reads it */
	} known[32];
	uint32_t id, none = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *text = kymo__load_acquire(&known[i].text);

		if (text == name)
			return kymo__load_relaxed(&known[i].id);
		if (text)
			continue;
		id = kymo_name_full(name, strlen(name), NULL, 0, 0, KYMO_SOURCE_DEVICE, 0);
		if (id && kymo__cas_relaxed(&known[i].id, &none, id))
			kymo__store_release(&known[i].text, name);
		return id;
	}
	return 0;
}

void call_waits(struct call *call, cl_bool blocking, const char *name)
{
	if (!call->node || !blocking)
		return;
	call->waits = true;
	call->node->op.flags |= KYMO_DEVICE_BLOCKING;
	call->zone = kymo_zone_begin_id(wait_name(name));
	call->wait_ticks = call->node->op.launch.ticks = kymo_ticks();
	kymo__store_release(&call->queue->waiting_ticks, call->wait_ticks);
}

cl_event *call_event(struct call *call, cl_event *event)
{
	return event || !call->node ? event : &call->own;
}

static void tell_wait(const struct layer_queue *queue, const struct kymo_device_launch *launch,
		      uint64_t start_ticks)
{
	struct kymo_device_op op = { .bytes = sizeof(op),
				     .queue = queue->id,
				     .kind = KYMO_DEVICE_WAIT,
				     .queued = KYMO_DEVICE_NO_TIME,
				     .submit = KYMO_DEVICE_NO_TIME,
				     .start = start_ticks,
				     .end = kymo_ticks(),
				     .launch = *launch,
				     .flags = KYMO_DEVICE_HOST_TICKS };

	kymo_device_op(&op);
}

static uint64_t callback_ticks(void)
{
	static uint64_t known; /* atomic; the tick rate never changes */
	uint64_t ticks = kymo__load_relaxed(&known), ns;

	if (KYMO__LIKELY(ticks != 0))
		return ticks;
	ns = kymo_ticks_ns(1000000);
	ticks = ns ? CALLBACK_MS * 1000000ull * 1000000 / ns : UINT64_MAX;
	kymo__store_relaxed(&known, ns ? ticks : 0);
	return ticks;
}

/* A thread that waits for the queue checks by itself afterwards, and the program may exit right
   after: rows that a thread of the runtime had begun to write would be lost. During a long wait,
   the runtime's thread writes them. */
static bool waiter_looks(const struct layer_queue *queue)
{
	uint64_t since = kymo__load_acquire(&queue->waiting_ticks);

	return since && kymo_ticks() - since < callback_ticks();
}

static void CL_CALLBACK done(cl_event event, cl_int status, void *context)
{
	struct layer_queue *queue = context;

	(void)event;
	(void)status;
	if (!waiter_looks(queue))
		opencl_pending_look(queue, LOOKER_RUNTIME);
}

/* A thread of the runtime that began before the wait may still be checking; its first row opens a
   stream. Threads of the program are not waited for: they share queues, and each is quick. */
static void let_runtime_look(const struct layer_queue *queue)
{
	const struct timespec pause = { 0, LET_PAUSE_NS };

	for (int i = 0; i < LET_TURNS && kymo__load_acquire(&queue->busy) == LOOKER_RUNTIME; i++)
		nanosleep(&pause, NULL);
}

static void look_after_wait(struct layer_queue *queue)
{
	let_runtime_look(queue);
	pending_look(queue);
	kymo__store_release(&queue->waiting_ticks, 0);
}

/* If there was no check for a while, the runtime calls back when this operation is done; not by an
   event of the program, because a callback adds a reference to it. True: it has an extra reference,
   because any checking thread may release a pushed one. */
static bool hold_to_be_told(struct layer_queue *queue, cl_event own, uint64_t now)
{
	uint64_t looked = kymo__load_relaxed(&queue->looked_ticks);

	if (!next.clSetEventCallback || looked >= now || now - looked <= callback_ticks() ||
	    next.clRetainEvent(own))
		return false;
	kymo__store_relaxed(&queue->looked_ticks, now);
	return true;
}

static void be_told(struct layer_queue *queue, cl_event held)
{
	next.clSetEventCallback(held, CL_COMPLETE, done, queue);
	next.clReleaseEvent(held);
}

static void pending_push(struct layer_queue *queue, struct node *node)
{
	struct node *old = kymo__load_relaxed(&queue->fresh);

	do
		node->next = old;
	while (!kymo__cas_weak_release(&queue->fresh, &old, node));
}

cl_int call_end(struct call *call, cl_int rc, const cl_event *event)
{
	struct node *node = call->node;
	uint64_t after, before;
	cl_event mine;
	bool full, held;

	if (!node)
		return rc;
	after = node->after_ticks = kymo_ticks();
	before = node->op.launch.ticks - call->begun;
	if (call->waits) {
		kymo_zone_end(&call->zone);
		tell_wait(call->queue, &node->op.launch, call->wait_ticks);
	}
	mine = event ? *event : call->own;
	if (rc != CL_SUCCESS || !mine || (event && next.clRetainEvent(mine))) {
		node_give(node);
		if (call->waits)
			look_after_wait(call->queue);
		return rc;
	}
	kymo__store_relaxed(&node->event, mine);
	full = kymo__add_fetch_relaxed(&call->queue->pending, 1) % LOOK_AT == 0;
	held = !call->waits && !full && !event && hold_to_be_told(call->queue, mine, after);
	pending_push(call->queue, node); /* from here on another thread may own it */
	if (call->begun)
		cost_call(before + kymo_ticks() - after);
	if (call->waits)
		look_after_wait(call->queue);
	else if (full)
		pending_look(call->queue);
	else if (held)
		be_told(call->queue, mine);
	return rc;
}

void wait_begin(struct waiting *waiting, struct layer_queue *queue, const char *name)
{
	waiting->on = queue && kymo_device_enabled();
	if (!waiting->on)
		return;
	cost_begin(); /* counted; it costs less than a call that enqueues */
	waiting->queue = queue;
	kymo_device_launch(&waiting->op.launch);
	waiting->zone = kymo_zone_begin_id(wait_name(name));
	kymo__store_release(&queue->waiting_ticks, waiting->op.launch.ticks);
}

void wait_end(struct waiting *waiting)
{
	if (!waiting->on)
		return;
	kymo_zone_end(&waiting->zone);
	tell_wait(waiting->queue, &waiting->op.launch, waiting->op.launch.ticks);
	look_after_wait(waiting->queue);
}
