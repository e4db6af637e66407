/*
 * Collectives: kernels that communicate, with the arguments of the kernel or of the
 * record_param_comms around its launch; and calls on the host (gloo), whose work is a zone of a
 * thread of its own.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"
#include "import/trace_out.h"

/* ---- words --------------------------------------------------------------------------------- */

/* The longest first: a name may contain a shorter one. Letters only, in lower case. */
static const char *const operations[][2] = {
	{ "reducescatter", "reduce_scatter" },
	{ "allgather", "all_gather" },
	{ "allreduce", "all_reduce" },
	{ "alltoall", "all_to_all" },
	{ "broadcast", "broadcast" },
	{ "barrier", "barrier" },
	{ "sendrecv", "send_recv" },
	{ "scatter", "scatter" },
	{ "gather", "gather" },
	{ "reduce", "reduce" },
	{ "send", "send" },
	{ "recv", "recv" },
};

static const struct {
	const char *from, *to;
	uint32_t bytes;
} types[] = {
	{ "Float", "float32", 4 },
	{ "Half", "float16", 2 },
	{ "BFloat16", "bfloat16", 2 },
	{ "Double", "float64", 8 },
	{ "Long", "int64", 8 },
	{ "Int", "int32", 4 },
	{ "Short", "int16", 2 },
	{ "Char", "int8", 1 },
	{ "Byte", "uint8", 1 },
	{ "Bool", "bool", 1 },
	{ "ComplexFloat", "complex64", 8 },
	{ "Float8_e4m3fn", "float8_e4m3fn", 1 },
	{ "Float8_e5m2", "float8_e5m2", 1 },
};

/* "ncclDevKernel_AllGather_RING_LL(…)", "_allgather_base", "gloo:all_gather": all_gather. NULL: it
   is not known. */
const char *trace_comm_operation(const char *text)
{
	char letters[128];
	size_t used = 0;

	for (; *text && used + 1 < sizeof(letters); text++)
		if (isalpha((unsigned char)*text))
			letters[used++] = (char)tolower((unsigned char)*text);
	letters[used] = '\0';
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strstr(letters, operations[i][0]))
			return operations[i][1];
	return NULL;
}

static const char *comm_name_of(const struct trace_out *out, uint32_t name)
{
	return name ? out->trace->names.list[name].name.text : "";
}

static uint32_t comm_operation(struct trace_out *out, const struct trace_collective *comm,
			       uint32_t kernel)
{
	const char *word = comm && comm->op ? trace_comm_operation(comm_name_of(out, comm->op))
					    : NULL;

	if (!word && kernel)
		word = trace_comm_operation(comm_name_of(out, kernel));
	return word		  ? trace_name_text(out->trace, KYMO_SOURCE_DEVICE, word)
	       : comm && comm->op ? comm->op
				  : kernel;
}

const char *trace_comm_type(const char *text, uint32_t *bytes)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(text, types[i].from)) {
			*bytes = types[i].bytes;
			return types[i].to;
		}
	return NULL;
}

static void fill_type(struct trace_out *out, const struct trace_collective *comm,
		      struct schema_collective_row *row)
{
	int64_t elements = comm->in_elements > 0 ? comm->in_elements : comm->out_elements;
	uint32_t bytes = 0;
	const char *word = trace_comm_type(comm_name_of(out, comm->dtype), &bytes);

	row->dtype = word ? trace_name_text(out->trace, KYMO_SOURCE_DEVICE, word) : comm->dtype;
	if (word && elements > 0 && elements < INT64_C(1) << 58)
		row->bytes = (uint64_t)elements * bytes;
}

/* ---- rows ---------------------------------------------------------------------------------- */

struct call { /* one row, before it is numbered */
	int64_t enqueue_ns, start_ns, end_ns;
	uint32_t has; /* SCHEMA_COLLECTIVE_* */
	uint32_t comm; /* number + 1; 0: none */
	uint32_t kernel; /* name; 0: on the host */
	uint32_t correlation, zone, thread, process;
};

struct calls {
	struct call *list;
	size_t count, room;
	/* by the name of a group: the number of its calls so far */
	struct {
		uint32_t name, calls;
	} * groups;
	size_t group_count, group_room;
	struct intern group_index;
};

static bool same_group(const void *owner, uint32_t number, const void *key)
{
	return ((const struct calls *)owner)->groups[number].name == *(const uint32_t *)key;
}

static uint64_t next_of_group(struct calls *calls, uint32_t group)
{
	const uint64_t hash = intern_hash_number(1, group);
	uint32_t number = intern_find(&calls->group_index, hash, same_group, calls, &group);

	if (number != INTERN_NONE)
		return ++calls->groups[number].calls;
	if (!grow((void **)&calls->groups, &calls->group_room, calls->group_count,
		  sizeof(*calls->groups)) ||
	    intern_add(&calls->group_index, hash) == INTERN_NONE)
		return 1;
	calls->groups[calls->group_count].name = group;
	calls->groups[calls->group_count++].calls = 1;
	return 1;
}

static void trace_comm_write_call(struct trace_out *out, struct calls *calls,
				  const struct call *call)
{
	const struct trace_collective *comm =
		call->comm ? &out->trace->collectives.list[call->comm - 1] : NULL;
	struct schema_collective_row *row = writer_process_row(&out->processes[call->process],
							       SCHEMA_COLLECTIVES);
	uint64_t number;

	row->enqueue_ticks = trace_out_ticks(out, call->enqueue_ns);
	row->start_ticks = trace_out_ticks(out, call->start_ns);
	row->end_ticks = trace_out_ticks(out, call->end_ns);
	row->correlation = call->correlation;
	row->call = (uint64_t)(call - calls->list) + 1;
	row->zone = call->zone;
	row->thread = call->thread;
	row->step = trace_out_step(out, call->start_ns);
	row->rank = row->peer = -1;
	row->flags = call->has;
	row->op = comm_operation(out, comm, call->kernel);
	row->group = comm && comm->group ? comm->group
					 : trace_name_text(out->trace, KYMO_SOURCE_DEVICE, "");
	if (comm) {
		row->members = comm->members;
		row->group_size = comm->group_size > 0 ? (uint32_t)comm->group_size : 0;
		fill_type(out, comm, row);
	}
	if (!strcmp(comm_name_of(out, row->op), "send") ||
	    !strcmp(comm_name_of(out, row->op), "recv") ||
	    !strcmp(comm_name_of(out, row->op), "send_recv"))
		row->flags |= SCHEMA_COLLECTIVE_P2P;
	number = next_of_group(calls, row->group);
	row->seq = comm && comm->sequence >= 0 ? (uint64_t)comm->sequence : number;
	if ((comm && comm->sequence >= 0) || out->knows_pairs)
		row->flags |= SCHEMA_COLLECTIVE_SEQ;
}

static struct call *comm_add_call(struct calls *calls)
{
	if (!grow((void **)&calls->list, &calls->room, calls->count, sizeof(*calls->list)))
		return NULL;
	return memset(&calls->list[calls->count++], 0, sizeof(*calls->list));
}

/* ---- on devices ---------------------------------------------------------------------------- */

static void fill_enqueue(struct trace_out *out, const struct trace_launch *launch,
			 struct call *call)
{
	const struct trace_zone *zones = out->trace->zones.list;
	struct trace_collective *comm = call->comm ? &out->trace->collectives.list[call->comm - 1]
						   : NULL;

	call->process = out->target[out->trace->tracks.list[zones[launch->zone].track].process];
	call->thread = out->lane_index[launch->thread];
	call->enqueue_ns = zones[launch->zone].start_ns;
	call->zone = launch->around == TRACE_NONE ? 0 : zones[launch->around].name;
	call->has |= SCHEMA_COLLECTIVE_ENQUEUE;
	if (launch->comm) /* the record_param_comms of this call has its row */
		out->trace->collectives.list[launch->comm - 1].done = true;
	if (comm && comm->zone != TRACE_NONE)
		call->enqueue_ns = zones[comm->zone].start_ns;
}

static int add_kernels(struct trace_out *out, struct calls *calls)
{
	for (size_t i = 0; i < out->trace->ops.count; i++) {
		const struct trace_op *op = &out->trace->ops.list[i];
		const struct trace_launch *launch;
		struct call *call;

		if (!(op->flags & SCHEMA_DEVICE_COMM))
			continue;
		call = comm_add_call(calls);
		if (!call)
			return -ENOMEM;
		launch = op->correlation ? trace_out_launch(out, op->correlation) : NULL;
		call->start_ns = op->start_ns;
		call->end_ns = op->start_ns + (int64_t)op->dur_ns;
		call->has = SCHEMA_COLLECTIVE_START | SCHEMA_COLLECTIVE_END |
			    SCHEMA_COLLECTIVE_ASYNC;
		call->kernel = op->name;
		call->correlation = op->correlation;
		call->process = op->process == TRACE_NONE ? out->main : out->target[op->process];
		call->comm = op->comm ? op->comm : launch ? launch->comm : 0;
		if (launch && launch->zone != TRACE_NONE)
			fill_enqueue(out, launch, call);
	}
	return 0;
}

/* ---- on the host --------------------------------------------------------------------------- */

static bool is_host_zone(const struct trace_out *out, const struct trace_collective *comm)
{
	const struct trace_zone *zone = &out->trace->zones.list[comm->zone];

	return out->trace->names.list[zone->name].flags & TRACE_NAME_HOST_COMM;
}

static int add_host_call(struct trace_out *out, struct calls *calls, uint32_t work, uint32_t asked)
{
	struct trace_collective *collectives = out->trace->collectives.list;
	const struct trace_zone *zone = &out->trace->zones.list[collectives[work].zone];
	struct call *call = comm_add_call(calls);

	if (!call)
		return -ENOMEM;
	call->start_ns = zone->start_ns;
	call->end_ns = zone->start_ns + (int64_t)zone->dur_ns;
	call->has = SCHEMA_COLLECTIVE_START | SCHEMA_COLLECTIVE_END;
	call->process = out->target[out->trace->tracks.list[zone->track].process];
	call->comm = asked + 1;
	call->kernel = zone->name;
	if (asked != work) {
		zone = &out->trace->zones.list[collectives[asked].zone];
		call->enqueue_ns = zone->start_ns;
		call->has |= SCHEMA_COLLECTIVE_ENQUEUE;
		collectives[asked].done = true;
	}
	call->thread = out->lane_index[trace_out_lane(out, zone->track, 0)];
	return 0;
}

static const struct trace_zone *compared_zones;
static const struct trace_collective *compared_collectives;

static int compare_hosts(const void *left, const void *right)
{
	int64_t a = compared_zones[compared_collectives[*(const uint32_t *)left].zone].start_ns;
	int64_t b = compared_zones[compared_collectives[*(const uint32_t *)right].zone].start_ns;

	return a < b ? -1 : a > b;
}

/* The n-th call has the n-th piece of work, if there are as many of both. */
static int add_host(struct trace_out *out, struct calls *calls)
{
	const size_t most = out->trace->collectives.count;
	uint32_t *work = malloc((most + 1) * sizeof(*work)), *asked = malloc((most + 1) * 4);
	size_t work_count = 0, asked_count = 0;
	int rc = work && asked ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < most; i++) {
		const struct trace_collective *comm = &out->trace->collectives.list[i];

		if (comm->zone == TRACE_NONE || comm->done)
			continue;
		if (is_host_zone(out, comm))
			work[work_count++] = i;
		else
			asked[asked_count++] = i;
	}
	compared_zones = out->trace->zones.list;
	compared_collectives = out->trace->collectives.list;
	if (!rc && work_count)
		qsort(work, work_count, sizeof(*work), compare_hosts);
	if (!rc && asked_count)
		qsort(asked, asked_count, sizeof(*asked), compare_hosts);
	for (size_t i = 0; !rc && i < work_count; i++)
		rc = add_host_call(out, calls, work[i],
				   work_count == asked_count ? asked[i] : work[i]);
	free(work);
	free(asked);
	return rc;
}

static int compare_calls(const void *left, const void *right)
{
	const struct call *a = left, *b = right;

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

int trace_out_collectives(struct trace_out *out)
{
	struct calls calls = { 0 };
	int rc = add_kernels(out, &calls);

	if (!rc)
		rc = add_host(out, &calls);
	if (calls.count)
		qsort(calls.list, calls.count, sizeof(*calls.list), compare_calls);
	for (size_t i = 0; !rc && i < calls.count; i++)
		trace_comm_write_call(out, &calls, &calls.list[i]);
	free(calls.list);
	free(calls.groups);
	intern_fini(&calls.group_index);
	return rc;
}
