/* Rows of dist.collectives from the entries of a flight recorder. */
#include <stdlib.h>

#include "import/trace_out.h"

static bool is_group(const void *owner, uint32_t number, const void *key)
{
	return ((const struct trace *)owner)->groups.list[number].name == *(const uint32_t *)key;
}

/* The group of that name; a gloo dump calls its only one "". NULL: not in the dump. */
static const struct trace_group *flight_find_group(const struct trace *trace, uint32_t name)
{
	const uint32_t number = intern_find(&trace->indexes[TRACE_INDEX_GROUPS],
					    intern_hash_number(trace->seed + 6, name), is_group,
					    trace, &name);

	if (number != INTERN_NONE)
		return &trace->groups.list[number];
	return trace->groups.count == 1 ? &trace->groups.list[0] : NULL;
}

/* The global rank of a rank of the group: the n-th of "4,5,6,7"; -1: not known. */
static int32_t global_rank(const struct trace *trace, const struct trace_group *group, int32_t rank)
{
	const char *at = group && group->members ? trace->names.list[group->members].name.text
						 : NULL;

	for (; at && rank > 0; rank--) {
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return at && rank == 0 ? (int32_t)strtol(at, NULL, 10) : -1;
}

static void write_flight(struct trace_out *out, const struct trace_flight *flight, uint64_t call)
{
	struct schema_collective_row *row = writer_process_row(
		trace_out_process(out, flight->track), SCHEMA_COLLECTIVES);
	const struct trace_group *group = flight_find_group(out->trace, flight->group);
	const uint32_t lane = trace_out_lane(out, flight->track, 0);

	row->enqueue_ticks = trace_out_ticks(out, flight->created_ns);
	row->start_ticks = trace_out_ticks(out, flight->started_ns);
	row->end_ticks = trace_out_ticks(out, flight->ended_ns);
	row->seq = flight->seq;
	row->call = call;
	row->bytes = flight->bytes;
	row->group = flight->group;
	row->op = flight->op;
	row->dtype = flight->dtype;
	row->zone = flight->zone;
	row->thread = lane ? out->lane_index[lane] : 0;
	row->rank = -1;
	row->peer = flight->peer >= 0 ? global_rank(out->trace, group, flight->peer) : -1;
	row->flags = flight->flags;
	row->members = group ? group->members : 0;
	row->group_size = group ? group->size : 0;
}

void trace_out_flights(struct trace_out *out)
{
	for (size_t i = 0; i < out->trace->flights.count; i++)
		write_flight(out, &out->trace->flights.list[i], i + 1);
}
