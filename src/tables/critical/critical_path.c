/*
 * The critical path of a graph, and what the run would win without each part of it.
 *
 * Without an edge of the path, or a part of one, the end comes earlier by that part, but not before
 * the longest path that avoids the edge. Points are in topological order, so that every such path
 * crosses the cut behind the edge's first point by exactly one other edge (u, v), and is as long as
 * the longest path to u, the edge and the longest path from v. The longest path to u is its time,
 * since every point has an edge that explains it; those from v are computed once, backwards. Cuts
 * are visited from the last to the first, with the edges across each in a heap.
 */
#include "tables/critical/critical.h"

#include <kymo/device.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define UNREACHED INT64_MIN
#define LATE_NS 1000000

struct crossing {
	int64_t until_ns; /* end of the longest path over it */
	uint32_t from;
};

struct finder {
	struct critical_graph *graph;
	const struct critical_input *input;
	struct critical_pieces *out;
	uint32_t *group_of; /* process -> the least process that collectives connect it with */
	uint32_t *last; /* by process: the point at which its path would end */
	uint32_t *end; /* by group: the last of these */
	int64_t *rest_ns; /* by point: the longest path to the end of its group */
	size_t *first_edge; /* by point: the edge that explains it; SIZE_MAX: none */
	bool *on_path; /* by point */
	uint32_t *order; /* edges by group */
	size_t *group_edges; /* by group: its first in `order` */
	CRITICAL_LIST(crossing, heap);
	bool failed;
};

/* ---- groups of processes ------------------------------------------------------------------- */

static uint32_t group_find(uint32_t *group_of, uint32_t process)
{
	while (group_of[process] != process)
		process = group_of[process] = group_of[group_of[process]];
	return process;
}

static void join_groups(struct finder *finder)
{
	const struct critical_graph *graph = finder->graph;

	for (size_t i = 0; i < finder->input->recording->process_count; i++)
		finder->group_of[i] = (uint32_t)i;
	for (size_t i = 0; i < graph->edge_count; i++) {
		uint32_t a, b;

		if (graph->edges[i].kind != CRITICAL_MEET)
			continue;
		a = group_find(finder->group_of, graph->process[graph->edges[i].from]);
		b = group_find(finder->group_of, graph->process[graph->edges[i].to]);
		finder->group_of[a > b ? a : b] = a > b ? b : a;
	}
	for (size_t i = 0; i < finder->input->recording->process_count; i++)
		finder->group_of[i] = group_find(finder->group_of, (uint32_t)i);
}

/* Where a process has steps, its path ends with the last of them and with what they launched. */
static void find_ends(struct finder *finder)
{
	const struct critical_input *input = finder->input;
	const struct critical_graph *graph = finder->graph;

	for (size_t i = 0; i < input->recording->process_count; i++) {
		int64_t from_ns, to_ns = INT64_MAX;

		critical_steps_of(input, (uint32_t)i, &from_ns, &to_ns);
		finder->rest_ns[i] = to_ns; /* for the moment */
	}
	for (size_t i = 0; i < graph->count; i++)
		if (graph->ns[i] <= finder->rest_ns[graph->process[i]])
			finder->last[graph->process[i]] = (uint32_t)i;
	for (size_t i = 0; i < input->ops.count; i++) {
		const uint32_t process = input->queues.list[input->ops.list[i].queue].process;
		const uint32_t end = graph->position[input->ops.list[i].point + 1];
		uint32_t *last = &finder->last[process], step;

		if ((*last == CRITICAL_NONE || end > *last) &&
		    critical_step_at(input, process, input->ops.list[i].queued_ns, &step))
			*last = end;
	}
	for (size_t i = 0; i < input->recording->process_count; i++) {
		uint32_t *end = &finder->end[finder->group_of[i]];

		if (finder->last[i] != CRITICAL_NONE &&
		    (*end == CRITICAL_NONE || finder->last[i] > *end))
			*end = finder->last[i];
	}
}

static void find_rests(struct finder *finder)
{
	const struct critical_graph *graph = finder->graph;

	for (size_t i = 0; i < graph->count; i++)
		finder->rest_ns[i] = UNREACHED;
	for (size_t i = 0; i < finder->input->recording->process_count; i++)
		if (finder->end[i] != CRITICAL_NONE)
			finder->rest_ns[finder->end[i]] = 0;
	for (size_t i = graph->edge_count; i-- > 0;) {
		const struct critical_edge *edge = &graph->edges[i];
		int64_t *rest = &finder->rest_ns[edge->from];

		finder->first_edge[edge->to] = i;
		if (finder->rest_ns[edge->to] != UNREACHED &&
		    finder->rest_ns[edge->to] + edge->ns > *rest)
			*rest = finder->rest_ns[edge->to] + edge->ns;
	}
}

/* ---- wins ---------------------------------------------------------------------------------- */

static void heap_push(struct finder *finder, struct crossing one)
{
	size_t at = finder->heap.count, up;

	if (!grow((void **)&finder->heap.list, &finder->heap.room, at, sizeof(one))) {
		finder->failed = true;
		return;
	}
	finder->heap.count++;
	for (; at; at = up) {
		up = (at - 1) / 2;
		if (finder->heap.list[up].until_ns >= one.until_ns)
			break;
		finder->heap.list[at] = finder->heap.list[up];
	}
	finder->heap.list[at] = one;
}

static void heap_pop(struct finder *finder)
{
	struct crossing *list = finder->heap.list, last = list[--finder->heap.count];
	size_t at = 0, down;

	for (; (down = at * 2 + 1) < finder->heap.count; at = down) {
		if (down + 1 < finder->heap.count && list[down + 1].until_ns > list[down].until_ns)
			down++;
		if (list[down].until_ns <= last.until_ns)
			break;
		list[at] = list[down];
	}
	list[at] = last;
}

/* The end of the longest path that crosses the cut behind `from` elsewhere. */
static int64_t longest_around(struct finder *finder, uint32_t from)
{
	while (finder->heap.count && finder->heap.list[0].from > from)
		heap_pop(finder);
	return finder->heap.count ? finder->heap.list[0].until_ns : INT64_MIN;
}

static bool is_on_path(const struct finder *finder, size_t edge)
{
	const uint32_t to = finder->graph->edges[edge].to;

	return finder->on_path[to] && finder->first_edge[to] == edge;
}

/* Edges of a group, and the points without one, that lie behind a cut and have not been taken. */
struct behind {
	size_t edge, point; /* all from there on are taken */
	const uint32_t *order; /* of edges */
	size_t first; /* of the group in `order` */
};

static void push_edges(struct finder *finder, struct behind *behind, uint32_t from)
{
	const struct critical_graph *graph = finder->graph;

	for (; behind->edge > behind->first; behind->edge--) {
		const uint32_t index = behind->order[behind->edge - 1];
		const struct critical_edge *edge = &graph->edges[index];

		if (edge->to <= from)
			break;
		if (finder->rest_ns[edge->to] == UNREACHED || is_on_path(finder, index))
			continue;
		heap_push(finder, (struct crossing){ graph->ns[edge->from] + edge->ns +
							     finder->rest_ns[edge->to],
						     edge->from });
	}
}

/* The first point of a process stays where it is: it bounds every cut before it. */
static void push_firsts(struct finder *finder, struct behind *behind, uint32_t from, uint32_t group)
{
	const struct critical_graph *graph = finder->graph;

	for (; behind->point && behind->point - 1 > from; behind->point--) {
		const size_t point = behind->point - 1;

		if (finder->first_edge[point] == SIZE_MAX && finder->rest_ns[point] != UNREACHED &&
		    finder->group_of[graph->process[point]] == group)
			heap_push(finder, (struct crossing){
						  graph->ns[point] + finder->rest_ns[point], 0 });
	}
}

/* ---- pieces -------------------------------------------------------------------------------- */

static enum critical_kind critical_kind_of(const struct critical_op *op)
{
	if (op->flags & CRITICAL_COMM)
		return CRITICAL_KIND_COLLECTIVE;
	return op->kind >= KYMO_DEVICE_READ && op->kind <= KYMO_DEVICE_MIGRATE
		       ? CRITICAL_KIND_COPY
		       : CRITICAL_KIND_KERNEL;
}

static void describe_op(const struct critical_input *input, const struct critical_op *op,
			struct critical_piece *piece)
{
	piece->name = op->name;
	piece->zone = op->zone;
	piece->module = op->module;
	piece->queue = input->queues.list[op->queue].name;
	piece->thread = op->thread;
	piece->asked_ns = op->queued_ns;
}

static void describe_wait(const struct critical_wait *wait, struct critical_piece *piece)
{
	piece->kind = CRITICAL_KIND_WAIT;
	piece->name = wait->name;
	piece->thread = wait->thread;
	piece->asked_ns = wait->start_ns;
}

static void describe_part(const struct critical_input *input, const struct critical_part *part,
			  struct critical_piece *piece)
{
	if (part->op != CRITICAL_NONE) {
		describe_op(input, &input->ops.list[part->op], piece);
	} else {
		piece->name = part->name;
		piece->thread = part->thread;
		piece->asked_ns = part->start_ns;
	}
	piece->kind = CRITICAL_KIND_COLLECTIVE;
	piece->process = part->process;
}

static void describe_edge(const struct critical_input *input, const struct critical_edge *edge,
			  struct critical_piece *piece)
{
	const struct critical_op *op = NULL;

	if (edge->kind >= CRITICAL_LAUNCH && edge->kind <= CRITICAL_RETURN)
		op = &input->ops.list[edge->ref];
	if (op)
		describe_op(input, op, piece);
	switch ((enum critical_edge_kind)edge->kind) {
	case CRITICAL_HOST:
	case CRITICAL_HANDOVER:
		piece->kind = CRITICAL_KIND_HOST;
		piece->thread = edge->ref;
		break;
	case CRITICAL_RUN: piece->kind = (uint8_t)critical_kind_of(op); break;
	case CRITICAL_LAUNCH:
		piece->kind = CRITICAL_KIND_LAUNCH;
		piece->name = op->call ? op->call : op->name;
		break;
	case CRITICAL_ORDER:
		piece->kind = CRITICAL_KIND_WAIT;
		piece->word = CRITICAL_GAP;
		break;
	case CRITICAL_DEPEND:
		piece->kind = CRITICAL_KIND_WAIT;
		piece->word = CRITICAL_STREAMS;
		break;
	case CRITICAL_RETURN:
		piece->kind = CRITICAL_KIND_WAIT;
		piece->name = op->call ? op->call : op->name;
		break;
	case CRITICAL_SYNC: describe_wait(&input->waits.list[edge->ref], piece); break;
	case CRITICAL_MEET: describe_part(input, &input->parts.list[edge->ref], piece); break;
	}
}

/* The step of what it launched or did; false: before the first step, or between two. */
static bool find_step(const struct critical_input *input, struct critical_piece *piece)
{
	const int64_t ns = piece->asked_ns != INT64_MIN ? piece->asked_ns : piece->start_ns;
	int64_t from_ns, to_ns;

	return critical_step_at(input, piece->process, ns, &piece->step) ||
	       !critical_steps_of(input, piece->process, &from_ns, &to_ns);
}

static void append_piece(struct finder *finder, const struct critical_piece *piece)
{
	struct critical_pieces *out = finder->out;

	if (!grow((void **)&out->rows.list, &out->rows.room, out->rows.count, sizeof(*piece)))
		finder->failed = true;
	else
		out->rows.list[out->rows.count++] = *piece;
}

static int64_t at_most(int64_t ns, int64_t most)
{
	return ns < most ? ns : most;
}

/* An operation that starts long after its call has ended waited for something that is not
   recorded: that is no time of the launch. */
static void split_launch(struct finder *finder, const struct critical_op *op,
			 struct critical_piece *piece)
{
	struct critical_piece late = *piece;

	if (!op->call_ns || piece->duration_ns < (int64_t)op->call_ns + LATE_NS)
		return;
	late.start_ns += op->call_ns;
	late.duration_ns -= op->call_ns;
	late.win_ns = at_most(piece->win_ns, late.duration_ns);
	late.kind = CRITICAL_KIND_WAIT;
	late.word = CRITICAL_LATE;
	append_piece(finder, &late);
	piece->duration_ns = op->call_ns;
	piece->win_ns = at_most(piece->win_ns, op->call_ns);
}

static void add_piece(struct finder *finder, const struct critical_edge *edge, int64_t win_ns,
		      uint32_t group)
{
	const struct critical_graph *graph = finder->graph;
	struct critical_piece piece = { .start_ns = graph->ns[edge->from],
					.duration_ns = edge->ns,
					.win_ns = win_ns,
					.all_win_ns = -1,
					.process = graph->process[edge->to],
					.thread = CRITICAL_NONE,
					.asked_ns = INT64_MIN,
					.path = group,
					.edge = (uint32_t)(edge - graph->edges) };

	describe_edge(finder->input, edge, &piece);
	if (!piece.duration_ns || !find_step(finder->input, &piece))
		return;
	if (edge->kind == CRITICAL_LAUNCH)
		split_launch(finder, &finder->input->ops.list[edge->ref], &piece);
	append_piece(finder, &piece);
}

static void mark_path(struct finder *finder, uint32_t end)
{
	for (uint32_t at = end; finder->first_edge[at] != SIZE_MAX;
	     at = finder->graph->edges[finder->first_edge[at]].from)
		finder->on_path[at] = true;
}

static int64_t win_of(struct finder *finder, const struct critical_edge *edge, int64_t end_ns)
{
	const int64_t around = longest_around(finder, edge->from);

	if (around == INT64_MIN || end_ns - around > edge->ns)
		return edge->ns;
	return end_ns > around ? end_ns - around : 0;
}

/* From the end to the first point of the group. */
static void follow_group(struct finder *finder, uint32_t group)
{
	const struct critical_graph *graph = finder->graph;
	const uint32_t end = finder->end[group];
	struct behind behind = { finder->group_edges[group + 1], graph->count, finder->order,
				 finder->group_edges[group] };

	mark_path(finder, end);
	finder->heap.count = 0;
	for (uint32_t at = end; finder->first_edge[at] != SIZE_MAX && !finder->failed;) {
		const struct critical_edge *edge = &graph->edges[finder->first_edge[at]];

		push_edges(finder, &behind, edge->from);
		push_firsts(finder, &behind, edge->from, group);
		add_piece(finder, edge, win_of(finder, edge, graph->ns[end]), group);
		at = edge->from;
	}
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Edges by group; within one they stay in the order of their last points. */
static void sort_by_group(struct finder *finder)
{
	const struct critical_graph *graph = finder->graph;
	const size_t groups = finder->input->recording->process_count;
	size_t *start = finder->group_edges;

	for (size_t i = 0; i < graph->edge_count; i++)
		start[finder->group_of[graph->process[graph->edges[i].to]] + 1]++;
	for (size_t i = 0; i < groups; i++)
		start[i + 1] += start[i];
	for (size_t i = 0; i < graph->edge_count; i++)
		finder->order[start[finder->group_of[graph->process[graph->edges[i].to]]]++] =
			(uint32_t)i;
	for (size_t i = groups; i > 0; i--)
		start[i] = start[i - 1];
	start[0] = 0;
}

static bool finder_init(struct finder *finder)
{
	const size_t processes = finder->input->recording->process_count + 1;
	const size_t points = finder->graph->count + processes;

	finder->group_of = calloc(processes, sizeof(*finder->group_of));
	finder->last = malloc(processes * sizeof(*finder->last));
	finder->end = malloc(processes * sizeof(*finder->end));
	finder->group_edges = calloc(processes + 1, sizeof(*finder->group_edges));
	finder->rest_ns = malloc(points * sizeof(*finder->rest_ns));
	finder->first_edge = malloc(points * sizeof(*finder->first_edge));
	finder->on_path = calloc(points, sizeof(*finder->on_path));
	finder->order = malloc((finder->graph->edge_count + 1) * sizeof(*finder->order));
	if (!finder->group_of || !finder->last || !finder->end || !finder->group_edges ||
	    !finder->rest_ns || !finder->first_edge || !finder->on_path || !finder->order)
		return false;
	memset(finder->last, 0xff, processes * sizeof(*finder->last));
	memset(finder->end, 0xff, processes * sizeof(*finder->end));
	memset(finder->first_edge, 0xff, points * sizeof(*finder->first_edge));
	return true;
}

static void finder_fini(struct finder *finder)
{
	free(finder->group_of);
	free(finder->last);
	free(finder->end);
	free(finder->group_edges);
	free(finder->rest_ns);
	free(finder->first_edge);
	free(finder->on_path);
	free(finder->order);
	free(finder->heap.list);
}

static int compare_pieces(const void *left, const void *right)
{
	const struct critical_piece *a = left, *b = right;

	if (a->path != b->path)
		return a->path < b->path ? -1 : 1;
	return a->edge < b->edge ? -1 : a->edge > b->edge;
}

bool critical_find_path(struct critical_graph *graph, const struct critical_input *input,
			struct critical_pieces *out)
{
	struct finder finder = { .graph = graph, .input = input, .out = out };

	finder.failed = !finder_init(&finder);
	if (!finder.failed) {
		join_groups(&finder);
		find_ends(&finder);
		find_rests(&finder);
		sort_by_group(&finder);
	}
	for (uint32_t i = 0; i < input->recording->process_count && !finder.failed; i++)
		if (finder.end[i] != CRITICAL_NONE)
			follow_group(&finder, i);
	finder_fini(&finder);
	if (out->rows.count)
		qsort(out->rows.list, out->rows.count, sizeof(*out->rows.list), compare_pieces);
	return !finder.failed;
}
