/*
 * Zones of a trace. They are neither sorted nor nested in the file: those of a thread are sorted by
 * their start, and each goes on the stack of open zones if the innermost one contains it. One that
 * overlaps goes to the next lane, a thread of its own with the same tid, where the same is done
 * with all that were left over. A zone is written when it leaves the stack, so that its children
 * are before it, as the totals need.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"
#include "import/trace_out.h"

#define LANES_MOST 256u
#define DEPTH_MOST 1024u

struct frame {
	int64_t end_ns;
	uint32_t zone;
	uint32_t operator; /* innermost at or around it; TRACE_NONE: none */
	uint32_t module, model; /* names of the innermost and the outermost; 0: none */
	uint32_t sequence; /* of the innermost backward operator; 0: none */
	uint32_t comm;
	uint16_t module_depth; /* number of modules at or around it */
	uint64_t module_child_ns; /* of modules directly inside */
};

struct sweep {
	struct trace_out *out;
	struct writer_process *process;
	uint32_t lane;
	bool writes; /* false: only learns the modules of sequence numbers */
	struct frame frames[DEPTH_MOST];
	uint32_t depth;
	uint32_t sequence_of_step, step;
};

/* ---- order --------------------------------------------------------------------------------- */

static inline bool goes_before(const struct trace_zone *zones, uint32_t a, uint32_t b)
{
	if (zones[a].start_ns != zones[b].start_ns)
		return zones[a].start_ns < zones[b].start_ns;
	return zones[a].dur_ns > zones[b].dur_ns;
}

static bool is_sorted(const struct trace_zone *zones, const uint32_t *list, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (goes_before(zones, list[i], list[i - 1]))
			return false;
	return true;
}

/* Merges two sorted halves; stable. */
static void merge(const struct trace_zone *zones, uint32_t *list, size_t middle, size_t count,
		  uint32_t *scratch)
{
	size_t left = 0, right = middle, to = 0;

	if (!goes_before(zones, list[middle], list[middle - 1]))
		return;
	memcpy(scratch, list, middle * sizeof(*list));
	while (left < middle && right < count)
		if (goes_before(zones, list[right], scratch[left]))
			list[to++] = list[right++];
		else
			list[to++] = scratch[left++];
	memcpy(list + to, scratch + left, (middle - left) * sizeof(*list));
}

static void sort_zones(const struct trace_zone *zones, uint32_t *list, size_t count,
		       uint32_t *scratch)
{
	if (count < 2 || is_sorted(zones, list, count))
		return;
	sort_zones(zones, list, count / 2, scratch);
	sort_zones(zones, list + count / 2, count - count / 2, scratch);
	merge(zones, list, count / 2, count, scratch);
}

/* Zones by track, then by start. */
static int order_zones(struct trace_out *out)
{
	struct trace *trace = out->trace;
	uint32_t *scratch = malloc((trace->zones.count / 2 + 1) * sizeof(*scratch));
	uint32_t first = 0;

	out->order = malloc((trace->zones.count + 1) * sizeof(*out->order));
	if (!out->order || !scratch) {
		free(scratch);
		return -ENOMEM;
	}
	for (size_t i = 0; i < trace->tracks.count; i++) {
		trace->tracks.list[i].first = first;
		first += (uint32_t)trace->tracks.list[i].zones;
		trace->tracks.list[i].zones = 0;
	}
	for (uint32_t i = 0; i < trace->zones.count; i++) {
		struct trace_track *track = &trace->tracks.list[trace->zones.list[i].track];

		out->order[track->first + track->zones++] = i;
	}
	for (size_t i = 0; i < trace->tracks.count; i++)
		sort_zones(trace->zones.list, out->order + trace->tracks.list[i].first,
			   (size_t)trace->tracks.list[i].zones, scratch);
	free(scratch);
	return 0;
}

/* ---- what a zone tells about others ---------------------------------------------------------- */

static void learn_module(struct sweep *sweep, const struct frame *frame, uint32_t sequence)
{
	struct trace_out *out = sweep->out;

	if (frame->module && sequence && sequence <= (1u << 28) &&
	    grow_zeroed((void **)&out->modules, &out->module_count,
			sequence < out->module_count ? out->module_count : (size_t)sequence * 2,
			sizeof(uint32_t)))
		out->modules[sequence] = frame->module;
}

static uint32_t sweep_module_of(const struct sweep *sweep, const struct frame *frame)
{
	if (frame->module || !frame->sequence || frame->sequence >= sweep->out->module_count)
		return frame->module;
	return sweep->out->modules[frame->sequence];
}

static void note_launch(struct sweep *sweep, const struct trace_zone *zone,
			const struct frame *frame)
{
	struct trace_launch *launch = trace_out_launch(sweep->out, zone->link);

	if (!launch || launch->zone != TRACE_NONE)
		return;
	launch->zone = frame->zone;
	launch->around = frame->operator;
	if (launch->around == TRACE_NONE && sweep->depth > 1)
		launch->around = sweep->frames[sweep->depth - 2].zone;
	launch->module = sweep_module_of(sweep, frame);
	launch->thread = sweep->lane;
	launch->comm = frame->comm;
}

static void note_wait(struct sweep *sweep, const struct trace_zone *zone)
{
	const struct frame *around = sweep->depth > 1 ? &sweep->frames[sweep->depth - 2] : NULL;
	const struct trace_zone *zones = sweep->out->trace->zones.list;
	const struct trace_zone *other = around ? &zones[around->zone] : NULL;

	trace_out_wait(sweep->out, zone, sweep->lane, other ? other->name : 0,
		       other ? other->start_ns : 0);
}

/* ---- the stack ------------------------------------------------------------------------------ */

static void sweep_push(struct sweep *sweep, uint32_t number)
{
	const struct trace_zone *zone = &sweep->out->trace->zones.list[number];
	static const struct frame none = { .operator= TRACE_NONE };
	struct frame *frame = &sweep->frames[sweep->depth];

	*frame = sweep->depth ? frame[-1] : none;
	sweep->depth++;
	frame->end_ns = zone->start_ns + (int64_t)zone->dur_ns;
	frame->zone = number;
	frame->module_child_ns = 0;
	if (zone->flags & TRACE_ZONE_OPERATOR)
		frame->operator= number;
	if (zone->flags & TRACE_ZONE_MODULE) {
		frame->module = zone->name;
		frame->model = frame->model ? frame->model : zone->name;
		frame->module_depth++;
	}
	if (zone->flags & TRACE_ZONE_COMM)
		frame->comm = zone->link + 1;
	if (zone->flags & TRACE_ZONE_BACKWARD)
		frame->sequence = zone->link;
	if (!sweep->writes && (zone->flags & TRACE_ZONE_FORWARD))
		learn_module(sweep, frame, zone->link);
	if (sweep->writes && (zone->flags & TRACE_ZONE_LAUNCH))
		note_launch(sweep, zone, frame);
	if (sweep->writes && (zone->flags & TRACE_ZONE_SYNC))
		note_wait(sweep, zone);
}

static void write_module(struct sweep *sweep, const struct frame *frame,
			 const struct trace_zone *zone, uint32_t step)
{
	struct schema_torch_row *row = writer_process_row(sweep->process, SCHEMA_TORCH);

	row->start_ticks = trace_out_ticks(sweep->out, zone->start_ns);
	row->duration_ticks = zone->dur_ns;
	row->child_ticks = frame->module_child_ns;
	row->module = zone->name;
	row->model = frame->model;
	row->thread = sweep->out->lane_index[sweep->lane];
	row->step = step;
	row->sequence = sweep->sequence_of_step++;
	row->stage = SCHEMA_TORCH_FORWARD;
	row->depth = (uint16_t)(frame->module_depth - 1);
	row->device = -1;
}

static void sweep_pop(struct sweep *sweep)
{
	const struct frame *frame = &sweep->frames[--sweep->depth];
	const struct trace_zone *zone = &sweep->out->trace->zones.list[frame->zone];
	struct kymo_zone_row *row;
	uint32_t step;

	if ((zone->flags & TRACE_ZONE_MODULE) && sweep->depth)
		sweep->frames[sweep->depth - 1].module_child_ns += zone->dur_ns;
	else if (sweep->depth)
		sweep->frames[sweep->depth - 1].module_child_ns += frame->module_child_ns;
	if (!sweep->writes)
		return;
	step = zone->step ? zone->step - 1 : trace_out_step(sweep->out, zone->start_ns);
	if (step != sweep->step)
		sweep->sequence_of_step = 0;
	sweep->step = step;
	row = writer_process_row(sweep->process, SCHEMA_ZONES);
	row->start_ticks = trace_out_ticks(sweep->out, zone->start_ns);
	row->duration_ticks = zone->dur_ns + (zone->flags & TRACE_ZONE_CUT ? zone->external : 0);
	row->name = zone->name;
	row->thread = sweep->out->lane_index[sweep->lane];
	row->depth = (uint16_t)sweep->depth;
	row->step = step;
	if (zone->flags & TRACE_ZONE_MODULE)
		write_module(sweep, frame, zone, step);
}

/* False: it overlaps the innermost open zone. */
static bool sweep_fits(struct sweep *sweep, const struct trace_zone *zone)
{
	const int64_t end_ns = zone->start_ns + (int64_t)zone->dur_ns;

	while (sweep->depth && sweep->frames[sweep->depth - 1].end_ns <= zone->start_ns) {
		const struct frame *top = &sweep->frames[sweep->depth - 1];
		const struct trace_zone *open = &sweep->out->trace->zones.list[top->zone];

		/* Two of no length at one moment: the second is inside the first. */
		if (!zone->dur_ns && !open->dur_ns && open->start_ns == zone->start_ns)
			break;
		sweep_pop(sweep);
	}
	return sweep->depth < DEPTH_MOST &&
	       (!sweep->depth || sweep->frames[sweep->depth - 1].end_ns >= end_ns);
}

/* One lane of a list; returns the number of zones that did not fit, at the list's beginning. */
static size_t sweep_lane(struct sweep *sweep, uint32_t *list, size_t count)
{
	const struct trace_zone *zones = sweep->out->trace->zones.list;
	size_t left = 0;

	sweep->depth = 0;
	for (size_t i = 0; i < count; i++)
		if (sweep_fits(sweep, &zones[list[i]]))
			sweep_push(sweep, list[i]);
		else
			list[left++] = list[i];
	while (sweep->depth)
		sweep_pop(sweep);
	return left;
}

static void drop_overlapping(struct trace_out *out, const uint32_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint32_t flags = out->trace->zones.list[list[i]].flags;

		trace_recount(out->trace, flags >> TRACE_ZONE_CATEGORY_SHIFT,
			      flags & TRACE_ZONE_BEGUN	 ? 'B'
			      : flags & TRACE_ZONE_ASYNC ? 'b'
							 : 'X',
			      TRACE_ZONE, TRACE_OVERLAP);
	}
}

static void sweep_track(struct sweep *sweep, uint32_t number)
{
	struct trace_out *out = sweep->out;
	const struct trace_track *track = &out->trace->tracks.list[number];
	uint32_t *list = out->order + track->first;
	size_t left = (size_t)track->zones;

	sweep->process = trace_out_process(out, number);
	for (uint32_t lane = 0; left && lane < LANES_MOST; lane++) {
		sweep->lane = sweep->writes ? trace_out_lane(out, number, lane) : 0;
		if (sweep->writes && !sweep->lane)
			break; /* no more threads */
		left = sweep_lane(sweep, list, left);
		if (!sweep->writes)
			return; /* forward operators nest; the list is sorted again below */
	}
	drop_overlapping(out, list, left);
}

/* A call on a thread of its own has its operator by the external id, if that was open then. */
static void find_by_external(struct trace_out *out)
{
	const struct trace_zone *zones = out->trace->zones.list;
	uint32_t *by_external = NULL;
	size_t count = 0;

	for (size_t i = 0; i < out->launch_count; i++) {
		struct trace_launch *launch = &out->launches[i];
		const struct trace_zone *call = launch->zone == TRACE_NONE ? NULL
									   : &zones[launch->zone];

		if (!call || launch->around != TRACE_NONE || !call->external ||
		    call->external > (1u << 28))
			continue;
		grow_zeroed((void **)&by_external, &count, (size_t)call->external + 1,
			    sizeof(*by_external));
	}
	for (uint32_t i = 0; count && i < out->trace->zones.count; i++)
		if ((zones[i].flags & TRACE_ZONE_OPERATOR) && zones[i].external &&
		    zones[i].external < count)
			by_external[zones[i].external] = i + 1;
	for (size_t i = 0; count && i < out->launch_count; i++) {
		struct trace_launch *launch = &out->launches[i];
		const struct trace_zone *call, *operator;

		if (launch->zone == TRACE_NONE || launch->around != TRACE_NONE)
			continue;
		call = &zones[launch->zone];
		if (call->external >= count || !by_external[call->external])
			continue;
		operator= & zones[by_external[call->external] - 1];
		if (operator->start_ns <= call->start_ns && call->start_ns <=
		    operator->start_ns +(int64_t)
		    operator->dur_ns) {
			launch->around = by_external[call->external] - 1;
			launch->thread = trace_out_lane(out, operator->track, 0);
		}
	}
	free(by_external);
}

int trace_out_zones(struct trace_out *out)
{
	struct sweep *sweep = calloc(1, sizeof(*sweep));
	const bool learned = out->trace->any_module && out->trace->any_backward;
	int rc = sweep ? order_zones(out) : -ENOMEM;

	if (!rc)
		sweep->out = out;
	for (int pass = learned ? 0 : 1; !rc && pass < 2; pass++) {
		sweep->writes = pass == 1;
		if (sweep->writes && learned) {
			/* The first pass has moved those that did not fit. */
			free(out->order);
			out->order = NULL;
			rc = order_zones(out);
		}
		for (uint32_t i = 0; !rc && i < out->trace->tracks.count; i++)
			if (out->trace->tracks.list[i].zones)
				sweep_track(sweep, i);
	}
	if (!rc)
		find_by_external(out);
	free(sweep);
	return rc;
}
