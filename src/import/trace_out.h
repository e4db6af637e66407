/* What trace_write() and its parts share: the processes, threads and links of one trace. */
#ifndef KYMO_IMPORT_TRACE_OUT_H
#define KYMO_IMPORT_TRACE_OUT_H

#include "import/trace.h"

/* A call of the runtime and what was around it: found by the correlation of an operation. */
struct trace_launch {
	uint32_t correlation;
	uint32_t zone; /* of the call; TRACE_NONE: not in the trace */
	uint32_t around; /* innermost operator, else the innermost other zone; TRACE_NONE: none */
	uint32_t module; /* name; 0: none */
	uint32_t thread; /* lane of `around`, else of the call */
	uint32_t comm; /* number of `collectives` + 1 of a call around it; 0: none */
	uint32_t execution; /* of a graph: its number; else 0 */
	int64_t first_ns, last_ns; /* of a graph: of its operations */
};

struct trace_lane {
	uint32_t process; /* of trace_out.processes */
	int32_t tid;
	char name[40];
	int64_t first_ns;
};

struct trace_out {
	struct trace *trace;
	struct recording_writer *writer;
	struct writer_process *processes; /* process_count of them */
	uint32_t *from; /* their numbers in trace->processes */
	uint32_t *lane_counts; /* of each */
	size_t process_count;
	uint32_t *target; /* by number of trace->processes: which of them has its rows */
	uint32_t main; /* of them, the one with most zones */
	uint32_t *order; /* zones by track and start */
	TRACE_LIST(trace_lane, lanes); /* of all processes, entry 0 is not used */
	uint32_t *lane_index; /* index of a lane in its process */
	size_t lane_index_room;
	struct trace_launch *launches;
	uint32_t *launch_slots; /* launch + 1, by hash of the correlation */
	size_t launch_count, launch_slot_count;
	uint32_t *modules; /* by sequence number: the module of its forward operator */
	size_t module_count;
	uint32_t executions;
	bool knows_pairs; /* all ranks are imported: the order of collectives numbers them */
};

static inline int64_t trace_out_ns(const struct trace_out *out, int64_t ns)
{
	return ns + out->trace->base_ns;
}
static inline uint64_t trace_out_ticks(const struct trace_out *out, int64_t ns)
{
	return writer_ticks(trace_out_ns(out, ns));
}
/* The number of the last step that had begun; 0: none. */
uint32_t trace_out_step(const struct trace_out *out, int64_t ns);
/* A lane of the track's process; 0: no memory. */
uint32_t trace_out_lane(struct trace_out *out, uint32_t track, uint32_t number);
struct writer_process *trace_out_process(struct trace_out *out, uint32_t track);
struct trace_launch *trace_out_launch(const struct trace_out *out, uint32_t correlation);
/* Call it for all correlations before the zones. */
int trace_out_add_launches(struct trace_out *out);

/* trace_zones.c: sorts zones, finds their depths and writes them. */
int trace_out_zones(struct trace_out *out);
/* trace_ops.c: operations, executions, waits that have no call. */
void trace_out_ops(struct trace_out *out);
/* A call that waits for the device. */
void trace_out_wait(struct trace_out *out, const struct trace_zone *zone, uint32_t lane,
		    uint32_t around_name, int64_t around_ns);
/* trace_comm.c */
int trace_out_collectives(struct trace_out *out);

/* trace_links.c: -ENOMEM, or 0. Call it after the zones. */
int trace_out_links(struct trace_out *out);
/* trace_samples.c: -1: no memory. */
int trace_out_samples(struct trace_out *out);

/* flight/flight_write.c */
void trace_out_flights(struct trace_out *out);

/* trace_take.c */
void trace_name_queues(struct trace *trace);
void trace_close_open(struct trace *trace);

#endif
