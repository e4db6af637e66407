/* Operations of devices: with the call that launched each, what was around it, and the execution of
   a graph that contains it. */
#include <kymo/device.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "import/trace_out.h"

/* ---- launches ------------------------------------------------------------------------------ */

static size_t launch_slot(const struct trace_out *out, uint32_t correlation)
{
	const size_t mask = out->launch_slot_count - 1;
	size_t at = (size_t)intern_hash_number(out->trace->seed, correlation) & mask;

	while (out->launch_slots[at] &&
	       out->launches[out->launch_slots[at] - 1].correlation != correlation)
		at = (at + 1) & mask;
	return at;
}

struct trace_launch *trace_out_launch(const struct trace_out *out, uint32_t correlation)
{
	uint32_t found = out->launch_slot_count ? out->launch_slots[launch_slot(out, correlation)]
						: 0;

	return found ? &out->launches[found - 1] : NULL;
}

int trace_out_add_launches(struct trace_out *out)
{
	const struct trace *trace = out->trace;
	size_t slots = 64;

	while (slots < trace->ops.count * 2)
		slots *= 2;
	out->launch_slots = calloc(slots, sizeof(*out->launch_slots));
	out->launches = malloc((trace->ops.count + 1) * sizeof(*out->launches));
	if (!out->launch_slots || !out->launches)
		return -ENOMEM;
	out->launch_slot_count = slots;
	for (size_t i = 0; i < trace->ops.count; i++) {
		const uint32_t correlation = trace->ops.list[i].correlation;
		size_t at = launch_slot(out, correlation);

		if (!correlation || out->launch_slots[at])
			continue;
		out->launches[out->launch_count] = (struct trace_launch){
			.correlation = correlation, .zone = TRACE_NONE, .around = TRACE_NONE
		};
		out->launch_slots[at] = (uint32_t)++out->launch_count;
	}
	return 0;
}

/* ---- operations ---------------------------------------------------------------------------- */

/* The process that launched it, or the one with most zones. */
static struct writer_process *ops_process_of(struct trace_out *out, const struct trace_op *op,
					     const struct trace_launch *launch)
{
	if (launch && launch->zone != TRACE_NONE)
		return trace_out_process(out, out->trace->zones.list[launch->zone].track);
	return &out->processes[op->process == TRACE_NONE ? out->main : out->target[op->process]];
}

static void fill_launch(struct trace_out *out, const struct trace_launch *launch,
			struct schema_device_op_row *row)
{
	const struct trace_zone *zones = out->trace->zones.list;
	const struct trace_zone *call = &zones[launch->zone];

	row->queued_ticks = trace_out_ticks(out, call->start_ns);
	row->flags |= SCHEMA_DEVICE_QUEUED;
	row->call_ticks = call->dur_ns;
	row->call = call->name;
	row->thread = out->lane_index[launch->thread];
	row->module = launch->module;
	row->step = trace_out_step(out, call->start_ns);
	if (launch->around != TRACE_NONE) {
		row->zone = zones[launch->around].name;
		row->zone_start_ticks = trace_out_ticks(out, zones[launch->around].start_ns);
	}
}

static void fill_op(struct trace_out *out, const struct trace_op *op,
		    const struct trace_launch *launch, struct schema_device_op_row *row)
{
	const struct trace_queue *queue = &out->trace->queues.list[op->queue];

	row->start_ticks = trace_out_ticks(out, op->start_ns);
	row->end_ticks = trace_out_ticks(out, op->start_ns + (int64_t)op->dur_ns);
	row->bytes = op->bytes;
	row->correlation = op->correlation;
	row->device = queue->device_name;
	row->queue = queue->name;
	row->core = queue->stream >= 0 && queue->stream < INT32_MAX ? (int32_t)queue->stream : -1;
	row->name = op->name;
	row->kind = op->kind;
	row->flags = SCHEMA_DEVICE_START | SCHEMA_DEVICE_END | op->flags;
	row->step = trace_out_step(out, op->start_ns);
	if (launch && launch->zone != TRACE_NONE)
		fill_launch(out, launch, row);
}

/* ---- graphs -------------------------------------------------------------------------------- */

static bool is_graph(const struct trace_out *out, const struct trace_launch *launch,
		     const struct trace_op *op)
{
	const struct trace_zone *call;

	if (op->graph)
		return true;
	if (!launch || launch->zone == TRACE_NONE)
		return false;
	call = &out->trace->zones.list[launch->zone];
	return out->trace->names.list[call->name].flags & TRACE_NAME_GRAPH;
}

static void add_to_execution(struct trace_out *out, struct trace_launch *launch,
			     const struct trace_op *op)
{
	const int64_t end_ns = op->start_ns + (int64_t)op->dur_ns;

	if (!launch->execution) {
		launch->execution = ++out->executions;
		launch->first_ns = op->start_ns;
		launch->last_ns = end_ns;
	}
	if (op->start_ns < launch->first_ns)
		launch->first_ns = op->start_ns;
	if (end_ns > launch->last_ns)
		launch->last_ns = end_ns;
}

/* The row of the whole graph, after the last of its operations. */
static void write_execution(struct trace_out *out, const struct trace_op *op,
			    const struct trace_launch *launch)
{
	struct schema_device_op_row *row = writer_process_row(ops_process_of(out, op, launch),
							      SCHEMA_DEVICE_OPS);
	char text[48] = "graph";
	struct trace_op whole = *op;

	whole.start_ns = launch->first_ns;
	whole.dur_ns = (uint64_t)(launch->last_ns - launch->first_ns);
	whole.bytes = 0;
	whole.flags = 0;
	whole.kind = KYMO_DEVICE_EXECUTION;
	if (op->graph)
		snprintf(text, sizeof(text), "graph %d", (int)op->graph);
	whole.name = trace_name_text(out->trace, KYMO_SOURCE_DEVICE, text);
	fill_op(out, &whole, launch, row);
	row->model = whole.name;
	row->execution = launch->execution;
}

static void write_executions(struct trace_out *out)
{
	for (size_t i = 0; i < out->trace->ops.count; i++) {
		const struct trace_op *op = &out->trace->ops.list[i];
		struct trace_launch *launch = trace_out_launch(out, op->correlation);

		if (!launch || !launch->execution)
			continue;
		write_execution(out, op, launch);
		launch->execution = 0; /* once */
	}
}

/* Rows of an export of kymo. */
static void write_own_ops(struct trace_out *out)
{
	for (size_t i = 0; i < out->trace->own_ops.count; i++) {
		const struct trace_own_op *own = &out->trace->own_ops.list[i];
		struct schema_device_op_row *row = writer_process_row(
			trace_out_process(out, own->track), SCHEMA_DEVICE_OPS);
		const bool is_thread = out->trace->tracks.list[own->track].tid.value;
		const uint32_t lane = is_thread ? trace_out_lane(out, own->track, 0) : 0;

		*row = own->row;
		row->thread = lane ? out->lane_index[lane] : 0;
		row->queued_ticks = trace_out_ticks(out, (int64_t)own->row.queued_ticks);
		row->submit_ticks = trace_out_ticks(out, (int64_t)own->row.submit_ticks);
		row->start_ticks = trace_out_ticks(out, (int64_t)own->row.start_ticks);
		row->end_ticks = trace_out_ticks(out, (int64_t)own->row.end_ticks);
		row->zone_start_ticks = trace_out_ticks(out, (int64_t)own->row.zone_start_ticks);
	}
}

void trace_out_ops(struct trace_out *out)
{
	for (size_t i = 0; i < out->trace->ops.count; i++) {
		const struct trace_op *op = &out->trace->ops.list[i];
		struct trace_launch *launch = op->correlation
						      ? trace_out_launch(out, op->correlation)
						      : NULL;
		struct schema_device_op_row *row;

		if (launch && op->kind != KYMO_DEVICE_MODULE && is_graph(out, launch, op))
			add_to_execution(out, launch, op);
		row = writer_process_row(ops_process_of(out, op, launch), SCHEMA_DEVICE_OPS);
		fill_op(out, op, launch, row);
		if (launch && launch->execution)
			row->execution = launch->execution;
	}
	write_executions(out);
	write_own_ops(out);
}

/* ---- waits --------------------------------------------------------------------------------- */

/* The queue that the call with this correlation waited for; else one of the only device. */
static const struct trace_queue *waited_for(const struct trace_out *out, uint32_t correlation,
					    bool *exact)
{
	struct trace *trace = out->trace;
	const struct trace_sync *sync = trace_sync_find(trace, correlation);

	if (sync) {
		*exact = true;
		return &trace->queues.list[sync->queue];
	}
	*exact = false;
	return trace->queues.count ? &trace->queues.list[0] : NULL;
}

void trace_out_wait(struct trace_out *out, const struct trace_zone *zone, uint32_t lane,
		    uint32_t around_name, int64_t around_ns)
{
	struct schema_device_op_row *row;
	bool exact;
	const struct trace_queue *queue = waited_for(out, zone->link, &exact);

	row = writer_process_row(trace_out_process(out, zone->track), SCHEMA_DEVICE_OPS);
	row->kind = KYMO_DEVICE_WAIT;
	row->queued_ticks = row->start_ticks = trace_out_ticks(out, zone->start_ns);
	row->end_ticks = row->start_ticks + zone->dur_ns;
	row->flags = SCHEMA_DEVICE_QUEUED | SCHEMA_DEVICE_START | SCHEMA_DEVICE_END;
	row->name = zone->name;
	row->correlation = zone->link;
	row->thread = out->lane_index[lane];
	row->step = trace_out_step(out, zone->start_ns);
	row->device = queue ? queue->device_name : 0;
	row->queue = exact ? queue->name : 0;
	row->core = exact && queue->stream >= 0 ? (int32_t)queue->stream : -1;
	row->zone = around_name;
	row->zone_start_ticks = around_name ? trace_out_ticks(out, around_ns) : 0;
}
