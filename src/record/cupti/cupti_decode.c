/* Activity records as rows. The buffer is CUPTI's output: each record is copied, and only fields
   within the valid bytes are read. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <kymo/atomic.h>

#include "record/adapter.h"
#include "record/cupti/cupti.h"

/* ---- executions: the launches of graphs ------------------------------------------------------ */

/* The nodes of one graph launch have one correlation and arrive in one or two buffers. */
struct execution {
	uint32_t correlation; /* 0: free */
	uint32_t graph;
	uint64_t buffer; /* that touched it last */
	struct kymo_device_op op;
};

#define EXECUTIONS 64u
static struct execution executions[EXECUTIONS];
static uint64_t buffer_count;
static uint32_t decoding; /* 1: a thread decodes; atomic */

static uint32_t graph_model(uint32_t graph)
{
	char name[32];

	snprintf(name, sizeof(name), "graph %u", graph);
	return kymo_device_model_add(name);
}

static void execution_write(struct execution *execution)
{
	struct kymo_device_op *op = &execution->op;

	op->kind = KYMO_DEVICE_EXECUTION;
	op->model = graph_model(execution->graph);
	op->name = kymo_name_full(kymo_device_model_name(op->model),
				  strlen(kymo_device_model_name(op->model)), NULL, 0, 0,
				  KYMO_SOURCE_DEVICE, 0);
	op->moved_bytes = 0;
	op->queued = op->submit = KYMO_DEVICE_NO_TIME;
	op->execution = execution->correlation;
	kymo_device_op(op);
	execution->correlation = 0;
}

static struct execution *execution_of(uint32_t correlation)
{
	struct execution *oldest = &executions[0];

	for (uint32_t i = 0; i < EXECUTIONS; i++) {
		if (executions[i].correlation == correlation)
			return &executions[i];
		if (!executions[i].correlation ||
		    (oldest->correlation && executions[i].buffer < oldest->buffer))
			oldest = &executions[i];
	}
	if (oldest->correlation)
		execution_write(oldest);
	return oldest;
}

static void execution_add(const struct kymo_device_op *op, uint32_t graph)
{
	struct execution *execution = execution_of((uint32_t)op->correlation);

	if (!execution->correlation) {
		execution->op = *op;
		execution->graph = graph;
		execution->correlation = (uint32_t)op->correlation;
	} else {
		if (op->start < execution->op.start)
			execution->op.start = op->start;
		if (op->end > execution->op.end)
			execution->op.end = op->end;
	}
	execution->buffer = buffer_count;
}

static void executions_write(uint64_t before_buffer)
{
	for (uint32_t i = 0; i < EXECUTIONS; i++)
		if (executions[i].correlation && executions[i].buffer < before_buffer)
			execution_write(&executions[i]);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void decode_launch(struct kymo_device_op *op, uint32_t correlation)
{
	struct cupti_launch launch;

	op->correlation = correlation;
	if (!cupti_launch_find(correlation, &launch))
		return;
	op->launch = launch.launch;
	op->flags |= launch.flags;
	op->call = launch.call;
	op->call_ticks = launch.call_ticks;
	if (!op->name && op->kind == KYMO_DEVICE_KERNEL)
		op->name = launch.name;
}

/* The first operation of a stream after cudaStreamWaitEvent() waited for the event. */
static void decode_depends(struct cupti_queue *queue, struct kymo_device_op *op)
{
	uint32_t after = kymo__load_relaxed(&queue->depends_after);

	if (!after || (int32_t)((uint32_t)op->correlation - after) <= 0)
		return;
	op->flags |= KYMO_DEVICE_DEPENDS;
	kymo__store_relaxed(&queue->depends_after, 0);
}

/* The call that copies waited for its end: CUPTI has no record of that. If the call has not
   returned yet, it is about to. */
static void decode_blocking(const struct kymo_device_op *copy)
{
	struct kymo_device_op op = *copy;

	op.kind = KYMO_DEVICE_WAIT;
	op.name = copy->call;
	op.moved_bytes = 0;
	op.flags = KYMO_DEVICE_HOST_TICKS;
	op.queued = op.submit = KYMO_DEVICE_NO_TIME;
	op.start = copy->launch.ticks;
	op.end = op.call_ticks ? op.start + op.call_ticks : copy->end;
	if (op.end > op.start && op.end != KYMO_DEVICE_NO_TIME)
		kymo_device_op(&op);
}

static void decode_write(struct kymo_device_op *op, struct cupti_queue *queue, uint32_t correlation,
			 uint32_t graph)
{
	if (!queue || !queue->id)
		return;
	op->bytes = sizeof(*op);
	op->queue = queue->id;
	decode_launch(op, correlation);
	decode_depends(queue, op);
	if (op->start != KYMO_DEVICE_NO_TIME)
		cupti_clock_check(op);
	if (graph && op->start != KYMO_DEVICE_NO_TIME && op->end != KYMO_DEVICE_NO_TIME) {
		op->execution = correlation;
		execution_add(op, graph);
	}
	kymo_device_op(op);
	if ((op->flags & KYMO_DEVICE_BLOCKING) && (op->flags & KYMO_DEVICE_HOST_TICKS))
		decode_blocking(op);
}

static void decode_kernel(const struct cupti_kernel *record)
{
	struct kymo_device_op op = { .kind = KYMO_DEVICE_KERNEL };

	op.name = cupti_kernel_name(record->name);
	cupti_clock_set(&op, 0, record->submitted, record->start, record->end);
	decode_write(&op, cupti_queue(record->device, record->context, record->stream),
		     record->correlation, record->graph_node ? record->graph : 0);
}

static const char *decode_memory_word(uint8_t kind)
{
	static const char *const words[] = { "Unknown",	      "Pageable",      "Pinned",
					     "Device",	      "Array",	       "Managed",
					     "Device Static", "Managed Static" };

	return kind < sizeof(words) / sizeof(words[0]) ? words[kind] : words[0];
}

/* As torch.profiler names them. */
static uint32_t decode_copy_name(uint8_t copy, uint8_t from, uint8_t to)
{
	static const char *const words[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					     "AtoD",	"DtoA", "DtoD", "HtoH", "PtoP" };
	static uint32_t ids[16][8][8]; /* atomic */
	uint32_t *id = &ids[copy & 15][from & 7][to & 7];
	char text[80];

	if (KYMO__LIKELY(kymo__load_relaxed(id) != 0))
		return kymo__load_relaxed(id);
	snprintf(text, sizeof(text), "Memcpy %s (%s -> %s)",
		 copy < sizeof(words) / sizeof(words[0]) ? words[copy] : words[0],
		 decode_memory_word(from), decode_memory_word(to));
	kymo__store_relaxed(id,
			    kymo_name_full(text, strlen(text), NULL, 0, 0, KYMO_SOURCE_DEVICE, 0));
	return kymo__load_relaxed(id);
}

static enum kymo_device_kind copy_kind(uint8_t copy)
{
	switch (copy) {
	case 1: /* to the device, its arrays */
	case 3: return KYMO_DEVICE_WRITE;
	case 2:
	case 4: return KYMO_DEVICE_READ;
	default: return KYMO_DEVICE_COPY;
	}
}

static void decode_memcpy(const struct cupti_memcpy *record)
{
	struct kymo_device_op op = { .kind = copy_kind(record->copy),
				     .moved_bytes = record->bytes };

	op.name = decode_copy_name(record->copy, record->from, record->to);
	cupti_clock_set(&op, 0, 0, record->start, record->end);
	decode_write(&op, cupti_queue(record->device, record->context, record->stream),
		     record->correlation, record->graph_node ? record->graph : 0);
}

static void decode_peer(const struct cupti_memcpy_peer *record)
{
	struct kymo_device_op op = { .kind = KYMO_DEVICE_COPY, .moved_bytes = record->bytes };

	op.name = decode_copy_name(record->copy, record->from, record->to);
	cupti_clock_set(&op, 0, 0, record->start, record->end);
	decode_write(&op, cupti_queue(record->device, record->context, record->stream),
		     record->correlation, record->graph_node ? record->graph : 0);
}

static void decode_memset(const struct cupti_memset *record)
{
	struct kymo_device_op op = { .kind = KYMO_DEVICE_FILL, .moved_bytes = record->bytes };
	char text[48];

	snprintf(text, sizeof(text), "Memset (%s)",
		 decode_memory_word((uint8_t)(record->memory & 7)));
	op.name = kymo_name_full(text, strlen(text), NULL, 0, 0, KYMO_SOURCE_DEVICE, 0);
	cupti_clock_set(&op, 0, 0, record->start, record->end);
	decode_write(&op, cupti_queue(record->device, record->context, record->stream),
		     record->correlation, record->graph_node ? record->graph : 0);
}

/* A whole graph, where CUPTI does not record its nodes. */
static void decode_graph(const struct cupti_graph *record)
{
	struct kymo_device_op op = { .kind = KYMO_DEVICE_EXECUTION };

	op.model = graph_model(record->graph);
	cupti_clock_set(&op, 0, 0, record->start, record->end);
	op.execution = record->correlation;
	decode_write(&op, cupti_queue(record->device, record->context, record->stream),
		     record->correlation, 0);
}

/* ---- waits, memory --------------------------------------------------------------------------- */

static void decode_wait(const struct cupti_synchronization *record)
{
	struct cupti_queue *queue = cupti_queue_of_context(record->context, record->stream);
	struct kymo_device_op op = { .kind = KYMO_DEVICE_WAIT };

	if (!queue)
		return; /* nothing has run on the device */
	if (record->type == CUPTI_STREAM_WAITS) {
		/* The stream may be new; its context has a device. */
		queue = cupti_queue(queue->number, record->context, record->stream);
		if (queue)
			kymo__store_relaxed(&queue->depends_after, record->correlation);
		return;
	}
	cupti_clock_set(&op, 0, 0, record->start, record->end);
	decode_write(&op, queue, record->correlation, 0);
}

static void decode_memory(const struct cupti_memory *record)
{
	static const char *const kinds[] = { "unknown",	      "pageable",      "pinned",
					     "device",	      "array",	       "managed",
					     "device static", "managed static" };
	int64_t bytes = record->bytes < INT64_MAX ? (int64_t)record->bytes : 0;

	if (record->memory == 1 || record->memory == 2)
		return; /* of the host */
	if (record->operation == 1 || record->operation == 2)
		kymo_device_memory_at(cupti_device(record->device), kinds[record->memory & 7],
				      record->operation == 1 ? bytes : -bytes,
				      cupti_clock_ticks(record->timestamp));
}

/* ---- buffers --------------------------------------------------------------------------------- */

#define PAUSE_NS 100000
#define PAUSES 20000 /* 2 s, and what the kernel adds */

static uint64_t decoded_records, decoded_ticks; /* of the thread that decodes */

#define DECODE(type, function) \
	do { \
		struct type record; \
\
		if (room < sizeof(record)) \
			return; \
		memcpy(&record, at, sizeof(record)); \
		function(&record); \
	} while (0)

static void decode_record(const uint8_t *at, size_t room)
{
	uint32_t kind;

	if (room < sizeof(kind))
		return;
	memcpy(&kind, at, sizeof(kind));
	switch (kind) {
	case CUPTI_KERNEL:
	case CUPTI_CONCURRENT_KERNEL: DECODE(cupti_kernel, decode_kernel); break;
	case CUPTI_MEMCPY: DECODE(cupti_memcpy, decode_memcpy); break;
	case CUPTI_MEMCPY_PEER: DECODE(cupti_memcpy_peer, decode_peer); break;
	case CUPTI_MEMSET: DECODE(cupti_memset, decode_memset); break;
	case CUPTI_SYNCHRONIZATION: DECODE(cupti_synchronization, decode_wait); break;
	case CUPTI_MEMORY: DECODE(cupti_memory, decode_memory); break;
	case CUPTI_GRAPH_TRACE: DECODE(cupti_graph, decode_graph); break;
	default: return; /* another kind, or a later version's */
	}
	decoded_records++;
}

static int decode_next(uint8_t *buffer, size_t valid_bytes, uint8_t **record)
{
	if (cupti_several)
		return cupti_api.cuptiActivityGetNextRecord_v2(cupti_subscriber, buffer,
							       valid_bytes, record);
	return cupti_api.cuptiActivityGetNextRecord(buffer, valid_bytes, record);
}

static void decode_records(uint8_t *buffer, size_t valid_bytes)
{
	uint8_t *record = NULL;

	while (!decode_next(buffer, valid_bytes, &record) && record >= buffer &&
	       (size_t)(record - buffer) < valid_bytes)
		decode_record(record, valid_bytes - (size_t)(record - buffer));
}

/* CUPTI's worker and a thread that flushes may return buffers at the same time: the second waits,
   for at most the time that a buffer takes on a busy machine. */
static bool decode_claim(void)
{
	const struct timespec pause = { 0, PAUSE_NS };

	for (uint32_t i = 0; i < PAUSES; i++) {
		uint32_t idle = 0;

		if (kymo__cas_acquire(&decoding, &idle, 1))
			return true;
		nanosleep(&pause, NULL);
	}
	cupti_gap("a buffer of CUPTI was not read", kymo_ticks(), kymo_ticks(), 0);
	return false;
}

void cupti_decode(uint8_t *buffer, size_t valid_bytes)
{
	uint64_t begun = kymo_ticks();

	if (!decode_claim())
		return;
	buffer_count++;
	decode_records(buffer, valid_bytes);
	executions_write(buffer_count);
	decoded_ticks += kymo_ticks() - begun;
	if (decoded_records)
		kymo__source_cost(KYMO_SOURCE_DEVICE,
				  decoded_ticks / decoded_records + cupti_launch_cost());
	kymo__store_release(&decoding, 0);
}

void cupti_decode_end(void)
{
	if (!decode_claim())
		return;
	executions_write(UINT64_MAX);
	kymo__store_release(&decoding, 0);
}
