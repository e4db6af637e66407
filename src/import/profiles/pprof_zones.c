/*
 * Zones of kymo export -f pprof, which has their number and self time by stack. A stack of n zones
 * becomes n zones, one after another, of equal self time; the last one holds those that it called.
 * Counts, total and self times are then those of the recording; when each zone began is not known.
 */
#include <stdlib.h>

#include "import/profiles/pprof_state.h"

#define TIME_MOST (INT64_C(1) << 62)

static const struct json_text zones_category = { .at = "pprof", .bytes = 5 };

/* By node of the stacks. */
struct zone_node {
	int64_t count, self_ns;
	int64_t total_ns; /* with all below it */
	int64_t next_ns; /* when the next one that it calls begins */
	bool has_zones; /* it, or one below it */
};

static bool add_ns(int64_t *sum, int64_t ns)
{
	return ns >= 0 && !__builtin_add_overflow(*sum, ns, sum) && *sum < TIME_MOST;
}

/* False: out of range. */
static bool sum_nodes(const struct pprof *own, struct zone_node *nodes)
{
	bool good = true;

	for (size_t i = 0; i < own->samples.count; i++) {
		const struct pprof_sample *sample = &own->samples.list[i];
		struct zone_node *node = &nodes[sample->node];

		if (sample->value_count < 2 || !own->values.list[sample->value].number)
			continue;
		good = good && add_ns(&node->count, own->values.list[sample->value].number) &&
		       add_ns(&node->self_ns, own->values.list[sample->value + 1].number);
		node->has_zones = true;
	}
	for (size_t i = own->stacks.nodes.count; i-- > 1;) { /* callers come first */
		struct zone_node *caller = &nodes[own->stacks.nodes.list[i].parent];

		good = good && add_ns(&nodes[i].total_ns, nodes[i].self_ns) &&
		       add_ns(&caller->total_ns, nodes[i].total_ns);
		caller->has_zones = caller->has_zones || nodes[i].has_zones;
	}
	return good;
}

static void zone_event(struct pprof *own, uint32_t location, struct trace_event *event)
{
	struct profile_frame frame;

	trace_event_clear(event);
	event->ph = 'X';
	event->has = TRACE_EVENT_TS | TRACE_EVENT_DUR;
	event->pid = event->tid = (struct json_number){ .value = 1, .is_number = true };
	event->cat = zones_category;
	if (!pprof_frame(own, location, 0, &frame))
		return;
	event->name = frame.name;
	if (!frame.file.bytes)
		return;
	event->cat = profile_frame_is_python(&frame)
			     ? (struct json_text){ .at = "python", .bytes = 6 }
			     : (struct json_text){ .at = "c", .bytes = 1 };
	event->file = frame.file;
	event->line = frame.line;
}

static void add_zones(struct pprof *own, struct zone_node *node, uint32_t location)
{
	const int64_t most = (int64_t)(PROFILE_ROWS_MOST - own->rows);
	const int64_t count = node->count < 1 || node->count > most ? 1 : node->count;
	const int64_t each = node->self_ns / count;
	struct trace_event event;

	own->rows += count <= most ? (uint64_t)count : 0;
	zone_event(own, location, &event);
	event.ts_ns = node->next_ns;
	event.dur_ns = each;
	for (int64_t i = 1; i < count; i++, event.ts_ns += each)
		trace_take(own->trace, &event);
	event.dur_ns = node->total_ns - (count - 1) * each;
	node->next_ns = event.ts_ns;
	trace_take(own->trace, &event);
}

void pprof_zones(struct pprof *own)
{
	const size_t count = own->stacks.nodes.count;
	struct zone_node *nodes = calloc(count ? count : 1, sizeof(*nodes));

	if (!nodes || !sum_nodes(own, nodes)) {
		trace_count(own->trace, &zones_category, 'X',
			    nodes ? TRACE_BAD_TIME : TRACE_NO_MEMORY, 1);
		free(nodes);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		struct zone_node *caller = &nodes[own->stacks.nodes.list[i].parent];

		if (!nodes[i].has_zones)
			continue;
		nodes[i].next_ns = caller->next_ns;
		caller->next_ns += nodes[i].total_ns;
		add_zones(own, &nodes[i], own->stacks.nodes.list[i].frame);
	}
	free(nodes);
}
