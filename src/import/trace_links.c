/* Forward operators and the backward operators that belong to them, by the sequence number of
   autograd. */
#include <errno.h>
#include <stdlib.h>

#include "import/trace_out.h"

#define LINKED (TRACE_ZONE_FORWARD | TRACE_ZONE_BACKWARD)

/* By sequence number: zones + 1; 0: none. */
struct link_pair {
	uint32_t forward; /* the last that began: it made the node of the graph */
	uint32_t backward; /* the first that began: the others are inside it */
};

/* The smallest and the largest number of a trace; false: there are none. */
static bool links_range(const struct trace *trace, uint32_t *first, uint32_t *last)
{
	bool any = false;

	for (size_t i = 0; i < trace->zones.count; i++) {
		const struct trace_zone *zone = &trace->zones.list[i];

		if (!(zone->flags & LINKED) || !zone->link)
			continue;
		*first = any && *first < zone->link ? *first : zone->link;
		*last = any && *last > zone->link ? *last : zone->link;
		any = true;
	}
	return any;
}

static void links_pair(const struct trace *trace, struct link_pair *pairs, uint32_t first)
{
	const struct trace_zone *zones = trace->zones.list;

	for (uint32_t i = 0; i < trace->zones.count; i++) {
		const struct trace_zone *zone = &zones[i];
		struct link_pair *pair;

		if (!(zone->flags & LINKED) || !zone->link)
			continue;
		pair = &pairs[zone->link - first];
		if ((zone->flags & TRACE_ZONE_FORWARD) &&
		    (!pair->forward || zones[pair->forward - 1].start_ns <= zone->start_ns))
			pair->forward = i + 1;
		if ((zone->flags & TRACE_ZONE_BACKWARD) &&
		    (!pair->backward || zones[pair->backward - 1].start_ns > zone->start_ns))
			pair->backward = i + 1;
	}
}

static void write_link(struct trace_out *out, const struct link_pair *pair, uint64_t sequence)
{
	const struct trace *trace = out->trace;
	const struct trace_zone *from = &trace->zones.list[pair->forward - 1];
	const struct trace_zone *to = &trace->zones.list[pair->backward - 1];
	const uint32_t from_lane = trace_out_lane(out, from->track, 0),
		       lane = trace_out_lane(out, to->track, 0);
	struct schema_link_row *row;

	if (!from_lane || !lane || from->start_ns > to->start_ns ||
	    out->target[trace->tracks.list[from->track].process] !=
		    out->target[trace->tracks.list[to->track].process])
		return;
	row = writer_process_row(trace_out_process(out, to->track), SCHEMA_LINKS);
	row->from_ticks = trace_out_ticks(out, from->start_ns);
	row->to_ticks = trace_out_ticks(out, to->start_ns);
	row->sequence = sequence;
	row->from_name = from->name;
	row->to_name = to->name;
	row->from_tid = out->lanes.list[from_lane].tid;
	row->thread = out->lane_index[lane];
}

int trace_out_links(struct trace_out *out)
{
	const struct trace *trace = out->trace;
	struct link_pair *pairs;
	uint32_t first = 0, last = 0;

	/* Sequence numbers are dense. A file that claims others gets no links, not more memory. */
	if (!trace->any_backward || !links_range(trace, &first, &last) ||
	    last - first > trace->zones.count * 4 + 1024)
		return 0;
	pairs = calloc((size_t)(last - first) + 1, sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	links_pair(trace, pairs, first);
	for (uint32_t i = 0; i <= last - first; i++)
		if (pairs[i].forward && pairs[i].backward)
			write_link(out, &pairs[i], first + i - 1); /* link is the number + 1 */
	free(pairs);
	return 0;
}
