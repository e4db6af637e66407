/* Points and edges of the critical path's graph. */
#include "tables/critical/critical.h"

#include <kymo/device.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* A launch explains a start up to this long after the queue's usual delay; later starts waited for
   an operation of another queue, if one has just ended. */
#define LAUNCH_SLACK_NS 20000
#define JUST_ENDED_NS 50000

enum what {
	OP_START,
	OP_END,
	OP_LAUNCH,
	OP_RETURN,
	WAIT_START,
	WAIT_END,
	STEP_EDGE,
	CALL_START,
	CALL_END,
	HAND_FROM,
	HAND_TO,
	MEETING, /* the last rank has arrived */
};

/* Points of one moment are in this order: ends, threads that waited for them, beginnings. */
enum order { ENDED, HANDED_BACK, RETURNED, PLAIN, HANDED_ON, BEGUN, MET, ENDED_AT_ONCE };

struct point {
	int64_t ns;
	uint32_t serial, thread, ref;
	uint8_t what, order;
};

struct points {
	struct point *list;
	size_t count, room;
	bool failed;
};

/* ---- points -------------------------------------------------------------------------------- */

static uint32_t add_point(struct points *points, int64_t ns, enum what what, enum order order,
			  uint32_t thread, size_t ref)
{
	if (points->failed ||
	    !grow((void **)&points->list, &points->room, points->count, sizeof(*points->list))) {
		points->failed = true;
		return 0;
	}
	points->list[points->count] = (struct point){ .ns = ns,
						      .serial = (uint32_t)points->count,
						      .thread = thread,
						      .ref = (uint32_t)ref,
						      .what = (uint8_t)what,
						      .order = (uint8_t)order };
	return (uint32_t)points->count++;
}

static bool has_launch(const struct critical_op *op)
{
	return op->thread != CRITICAL_NONE && op->queued_ns != INT64_MIN &&
	       op->queued_ns <= op->start_ns;
}

/* A call that copies and ends after the copy has waited for it. A kernel may be shorter than the
   call that launches it. */
static bool has_return(const struct critical_op *op)
{
	return has_launch(op) && op->kind >= KYMO_DEVICE_READ && op->kind <= KYMO_DEVICE_MIGRATE &&
	       op->call_ns && op->queued_ns + op->call_ns >= op->end_ns;
}

static void add_op_points(struct points *points, struct critical_input *input)
{
	for (size_t i = 0; i < input->ops.count; i++) {
		struct critical_op *op = &input->ops.list[i];

		op->point = add_point(points, op->start_ns, OP_START, BEGUN, CRITICAL_NONE, i);
		add_point(points, op->end_ns, OP_END,
			  op->end_ns > op->start_ns ? ENDED : ENDED_AT_ONCE, CRITICAL_NONE, i);
		if (has_launch(op))
			add_point(points, op->queued_ns, OP_LAUNCH, PLAIN, op->thread, i);
		if (has_return(op))
			add_point(points, op->queued_ns + op->call_ns, OP_RETURN, RETURNED,
				  op->thread, i);
	}
}

/* Parts [from, to) are one collective. A rank that ends before the last one arrives shows that the
   clocks differ: then they are not paired. */
static void add_meeting(struct points *points, struct critical_input *input, size_t from, size_t to)
{
	struct critical_part *parts = input->parts.list;
	size_t last = from;
	uint32_t point;

	for (size_t i = from; i < to; i++)
		if (parts[i].start_ns > parts[last].start_ns)
			last = i;
	for (size_t i = from; i < to; i++)
		if (parts[i].end_ns < parts[last].start_ns)
			return;
	if (to - from < 2)
		return;
	point = add_point(points, parts[last].start_ns, MEETING, MET, CRITICAL_NONE, from);
	for (size_t i = from; i < to; i++)
		parts[i].meeting = point;
}

static void add_parts(struct points *points, struct critical_input *input)
{
	struct critical_part *parts = input->parts.list;
	size_t from = 0;

	for (size_t i = 0; i < input->parts.count; i++) {
		if (parts[i].op != CRITICAL_NONE) {
			parts[i].point = input->ops.list[parts[i].op].point;
			continue;
		}
		parts[i].point = add_point(points, parts[i].start_ns, CALL_START, BEGUN,
					   parts[i].thread, i);
		add_point(points, parts[i].end_ns, CALL_END, ENDED, parts[i].thread, i);
	}
	for (size_t i = 1; i <= input->parts.count; i++)
		if (i == input->parts.count || parts[i].group != parts[from].group ||
		    parts[i].seq != parts[from].seq) {
			add_meeting(points, input, from, i);
			from = i;
		}
}

static void add_host_points(struct points *points, struct critical_input *input)
{
	for (size_t i = 0; i < input->waits.count; i++) {
		struct critical_wait *wait = &input->waits.list[i];

		wait->point = add_point(points, wait->start_ns, WAIT_START, PLAIN, wait->thread, i);
		add_point(points, wait->end_ns, WAIT_END, RETURNED, wait->thread, i);
	}
	for (size_t i = 0; i < input->steps.count; i++) {
		struct critical_step *step = &input->steps.list[i];

		step->point = add_point(points, step->start_ns, STEP_EDGE, PLAIN, step->thread, i);
		add_point(points, step->end_ns, STEP_EDGE, PLAIN, step->thread, i);
	}
	for (size_t i = 0; i < input->handovers.count; i++) {
		struct critical_handover *hand = &input->handovers.list[i];

		hand->point = add_point(points, hand->ns, HAND_FROM,
					hand->waited ? HANDED_BACK : PLAIN, hand->from, i);
		add_point(points, hand->ns, HAND_TO, hand->waited ? RETURNED : HANDED_ON, hand->to,
			  i);
	}
}

static int compare_points(const void *left, const void *right)
{
	const struct point *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static uint32_t critical_process_of(const struct critical_input *input, const struct point *point)
{
	if (point->thread != CRITICAL_NONE)
		return input->threads.list[point->thread].process;
	if (point->what == MEETING)
		return input->parts.list[point->ref].process;
	return input->queues.list[input->ops.list[point->ref].queue].process;
}

static bool place_points(struct critical_graph *graph, struct critical_input *input,
			 struct points *points)
{
	add_op_points(points, input);
	add_host_points(points, input);
	add_parts(points, input);
	graph->count = points->count;
	graph->ns = malloc((points->count + 1) * sizeof(*graph->ns));
	graph->process = malloc((points->count + 1) * sizeof(*graph->process));
	graph->position = malloc((points->count + 1) * sizeof(*graph->position));
	if (points->failed || !graph->ns || !graph->process || !graph->position)
		return false;
	if (points->count)
		qsort(points->list, points->count, sizeof(*points->list), compare_points);
	for (size_t i = 0; i < points->count; i++) {
		graph->ns[i] = points->list[i].ns;
		graph->process[i] = critical_process_of(input, &points->list[i]);
		graph->position[points->list[i].serial] = (uint32_t)i;
	}
	return true;
}

/* ---- edges --------------------------------------------------------------------------------- */

/* While points are visited in their order. */
struct sweep {
	struct critical_graph *graph;
	const struct critical_input *input;
	uint32_t *last_on_thread; /* point */
	uint32_t *last_of_queue; /* the operation that ended last */
	uint32_t *first_queue, *next_queue; /* of a process; after a queue */
	uint32_t *last_of_process; /* the same */
	uint32_t *last_point; /* of a process */
	uint32_t at; /* the point */
	size_t first_edge; /* of the point */
};

static void add_edge(struct sweep *sweep, uint32_t from, bool whole, enum critical_edge_kind kind,
		     size_t ref)
{
	struct critical_graph *graph = sweep->graph;

	if (from == CRITICAL_NONE || from >= sweep->at || graph->failed)
		return;
	if (graph->edge_count >= UINT32_MAX || ref >= CRITICAL_REF_MOST ||
	    !grow((void **)&graph->edges, &graph->edge_room, graph->edge_count,
		  sizeof(*graph->edges))) {
		graph->failed = true;
		return;
	}
	graph->edges[graph->edge_count++] = (struct critical_edge){
		.from = from, .ref = (uint32_t)ref & 0x7ffffff, .kind = kind & 15, .whole = whole
	};
}

static uint32_t end_of(const struct sweep *sweep, uint32_t op)
{
	return op == CRITICAL_NONE ? CRITICAL_NONE
				   : sweep->graph->position[sweep->input->ops.list[op].point + 1];
}

/* An operation of another queue that has just ended, if neither the launch nor the queue explains
   the start. */
static uint32_t ended_elsewhere(const struct sweep *sweep, const struct critical_op *op)
{
	const struct critical_input *input = sweep->input;
	const struct critical_queue *queue = &input->queues.list[op->queue];
	const uint32_t other = sweep->last_of_process[queue->process];
	const struct critical_op *before;

	if (other == CRITICAL_NONE || input->ops.list[other].queue == op->queue)
		return CRITICAL_NONE;
	before = &input->ops.list[other];
	if (op->start_ns - before->end_ns > JUST_ENDED_NS ||
	    (has_launch(op) && op->start_ns - op->queued_ns <=
				       sweep->graph->latency_ns[queue->process] + LAUNCH_SLACK_NS))
		return CRITICAL_NONE;
	return other;
}

static void edges_of_start(struct sweep *sweep, uint32_t index)
{
	const struct critical_op *op = &sweep->input->ops.list[index];

	if (has_launch(op))
		add_edge(sweep, sweep->graph->position[op->point + 2], false, CRITICAL_LAUNCH,
			 index);
	add_edge(sweep, end_of(sweep, sweep->last_of_queue[op->queue]), false, CRITICAL_ORDER,
		 index);
	add_edge(sweep, end_of(sweep, ended_elsewhere(sweep, op)), false, CRITICAL_DEPEND, index);
}

static bool is_paired(const struct sweep *sweep, uint32_t part)
{
	return part != CRITICAL_NONE && sweep->input->parts.list[part].meeting != CRITICAL_NONE;
}

/* To the end of a collective, from the arrival of the last rank, or else its own. */
static void edge_of_part(struct sweep *sweep, uint32_t index)
{
	const struct critical_part *part = &sweep->input->parts.list[index];
	const uint32_t from =
		sweep->graph->position[is_paired(sweep, index) ? part->meeting : part->point];

	add_edge(sweep, from, true, CRITICAL_MEET, index);
}

static bool same_collective(const struct critical_part *a, const struct critical_part *b)
{
	return a->group == b->group && a->seq == b->seq;
}

/* All ranks have arrived when the last one has. */
static void edges_of_meeting(struct sweep *sweep, uint32_t first)
{
	const struct critical_part *parts = sweep->input->parts.list;

	for (size_t i = first;
	     i < sweep->input->parts.count && same_collective(&parts[i], &parts[first]); i++)
		add_edge(sweep, sweep->graph->position[parts[i].point], false, CRITICAL_MEET, i);
}

static void edges_of_end(struct sweep *sweep, uint32_t index)
{
	const struct critical_op *op = &sweep->input->ops.list[index];
	const bool meets = is_paired(sweep, op->collective);

	add_edge(sweep, sweep->graph->position[op->point], !meets, CRITICAL_RUN, index);
	if (meets)
		edge_of_part(sweep, op->collective);
	sweep->last_of_queue[op->queue] = index;
	sweep->last_of_process[sweep->input->queues.list[op->queue].process] = index;
}

/* The last operations of the queues that the wait was for, which ended during it. */
static void edges_of_wait(struct sweep *sweep, uint32_t index)
{
	const struct critical_input *input = sweep->input;
	const struct critical_wait *wait = &input->waits.list[index];
	const uint32_t process = input->threads.list[wait->thread].process;

	for (uint32_t i = sweep->first_queue[process]; i != CRITICAL_NONE;
	     i = sweep->next_queue[i]) {
		uint32_t last = sweep->last_of_queue[i];

		if (last == CRITICAL_NONE || (wait->queue != CRITICAL_NONE && wait->queue != i) ||
		    input->ops.list[last].end_ns <= wait->start_ns)
			continue;
		add_edge(sweep, end_of(sweep, last), false, CRITICAL_SYNC, index);
	}
}

/* Whether the thread did nothing of its own since its last point. */
static bool is_idle_before(const struct sweep *sweep, const struct point *point)
{
	const struct critical_handover *hand;

	if (point->what == HAND_TO) {
		hand = &sweep->input->handovers.list[point->ref];
		return hand->from != hand->to;
	}
	return point->what == WAIT_END || point->what == OP_RETURN || point->what == CALL_END;
}

static void edge_of_thread(struct sweep *sweep, const struct point *point)
{
	uint32_t before = sweep->last_on_thread[point->thread];

	if (before != CRITICAL_NONE)
		add_edge(sweep, before, !is_idle_before(sweep, point), CRITICAL_HOST,
			 point->thread);
	sweep->last_on_thread[point->thread] = sweep->at;
}

static void edges_of_point(struct sweep *sweep, const struct point *point)
{
	const struct critical_input *input = sweep->input;

	switch ((enum what)point->what) {
	case OP_START: edges_of_start(sweep, point->ref); break;
	case OP_END: edges_of_end(sweep, point->ref); break;
	case OP_RETURN:
		add_edge(sweep, end_of(sweep, point->ref), false, CRITICAL_RETURN, point->ref);
		break;
	case WAIT_END: edges_of_wait(sweep, point->ref); break;
	case CALL_END: edge_of_part(sweep, point->ref); break;
	case MEETING: edges_of_meeting(sweep, point->ref); break;
	case HAND_TO:
		add_edge(sweep, sweep->graph->position[input->handovers.list[point->ref].point],
			 false, CRITICAL_HANDOVER, point->thread);
		break;
	case OP_LAUNCH:
	case WAIT_START:
	case STEP_EDGE:
	case CALL_START:
	case HAND_FROM: break;
	}
	if (point->thread != CRITICAL_NONE)
		edge_of_thread(sweep, point);
}

/* A point that nothing explains follows the last one of its process: a thread that was started, or
   an operation whose launch is not known. */
static void edge_of_unknown(struct sweep *sweep, const struct point *point)
{
	const uint32_t process = sweep->graph->process[sweep->at];
	const uint32_t before = sweep->last_point[process];

	if (sweep->graph->edge_count == sweep->first_edge && before != CRITICAL_NONE) {
		if (point->thread != CRITICAL_NONE)
			add_edge(sweep, before, false, CRITICAL_HOST, point->thread);
		else if (point->what != MEETING)
			add_edge(sweep, before, false, CRITICAL_ORDER, point->ref);
	}
	sweep->last_point[process] = sweep->at;
}

static int64_t explained_ns(const struct sweep *sweep, size_t edge)
{
	const struct critical_graph *graph = sweep->graph;

	return graph->ns[graph->edges[edge].from] +
	       critical_edge_ns(graph, &graph->edges[edge], sweep->at);
}

/* The edge that could not have come later takes all of the time. */
static void bind_point(struct sweep *sweep)
{
	struct critical_graph *graph = sweep->graph;
	size_t best = sweep->first_edge;

	if (best == graph->edge_count)
		return;
	for (size_t i = best + 1; i < graph->edge_count; i++)
		if (explained_ns(sweep, i) > explained_ns(sweep, best))
			best = i;
	graph->edges[best].whole = 1;
	if (best != sweep->first_edge) { /* the first edge of a point is the one that explains it */
		struct critical_edge other = graph->edges[sweep->first_edge];

		graph->edges[sweep->first_edge] = graph->edges[best];
		graph->edges[best] = other;
	}
}

/* ---- launches ------------------------------------------------------------------------------ */

/* The shortest time of a process from a call to the start of its operation. */
static void find_latencies(struct sweep *sweep)
{
	const struct critical_input *input = sweep->input;

	for (size_t i = 0; i < input->recording->process_count; i++)
		sweep->graph->latency_ns[i] = INT64_MAX;
	for (size_t i = 0; i < input->ops.count; i++) {
		const struct critical_op *op = &input->ops.list[i];
		int64_t *latency = &sweep->graph->latency_ns[input->queues.list[op->queue].process];

		if (has_launch(op) && op->start_ns - op->queued_ns < *latency)
			*latency = op->start_ns - op->queued_ns;
	}
}

/* ---- the graph ----------------------------------------------------------------------------- */

static uint32_t *make_nones(size_t count)
{
	uint32_t *list = malloc((count + 1) * sizeof(*list));

	if (list)
		memset(list, 0xff, (count + 1) * sizeof(*list));
	return list;
}

static bool sweep_init(struct sweep *sweep, struct critical_graph *graph,
		       const struct critical_input *input)
{
	*sweep = (struct sweep){
		.graph = graph,
		.input = input,
		.last_on_thread = make_nones(input->threads.count),
		.last_of_queue = make_nones(input->queues.count),
		.first_queue = make_nones(input->recording->process_count),
		.next_queue = make_nones(input->queues.count),
		.last_of_process = make_nones(input->recording->process_count),
		.last_point = make_nones(input->recording->process_count),
	};
	graph->latency_ns = malloc((input->recording->process_count + 1) *
				   sizeof(*graph->latency_ns));
	graph->first_edge = malloc((graph->count + 1) * sizeof(*graph->first_edge));
	return sweep->last_on_thread && sweep->last_of_queue && sweep->first_queue &&
	       sweep->next_queue && sweep->last_of_process && sweep->last_point &&
	       graph->latency_ns && graph->first_edge;
}

static void list_queues(struct sweep *sweep)
{
	for (size_t i = sweep->input->queues.count; i-- > 0;) {
		uint32_t *first = &sweep->first_queue[sweep->input->queues.list[i].process];

		sweep->next_queue[i] = *first;
		*first = (uint32_t)i;
	}
}

static void sweep_fini(struct sweep *sweep)
{
	free(sweep->last_on_thread);
	free(sweep->last_of_queue);
	free(sweep->first_queue);
	free(sweep->next_queue);
	free(sweep->last_of_process);
	free(sweep->last_point);
}

bool critical_make_graph(struct critical_graph *graph, struct critical_input *input)
{
	struct points points = { 0 };
	struct sweep sweep = { 0 };
	bool ok = critical_find_handovers(input) && place_points(graph, input, &points) &&
		  sweep_init(&sweep, graph, input);

	if (ok) {
		list_queues(&sweep);
		find_latencies(&sweep);
	}
	for (size_t i = 0; ok && i < points.count; i++) {
		sweep.at = (uint32_t)i;
		sweep.first_edge = graph->edge_count;
		graph->first_edge[i] = (uint32_t)graph->edge_count;
		edges_of_point(&sweep, &points.list[i]);
		edge_of_unknown(&sweep, &points.list[i]);
		bind_point(&sweep);
		ok = !graph->failed;
	}
	if (ok)
		graph->first_edge[graph->count] = (uint32_t)graph->edge_count;
	free(points.list);
	sweep_fini(&sweep);
	return ok;
}

void critical_graph_free(struct critical_graph *graph)
{
	free(graph->ns);
	free(graph->process);
	free(graph->position);
	free(graph->edges);
	free(graph->first_edge);
	free(graph->latency_ns);
}
