/*
 * The critical path of a graph, and what the run would win without each part of it.
 *
 * Without an edge of the path, or a part of one, the end comes earlier by that part, but not before
 * the longest path that avoids the edge. Points are in topological order, so that every such path
 * crosses the cut behind the edge's first point by exactly one other edge (u, v), and is as long as
 * the longest path to u, the edge and the longest path from v. The longest path to u is its time,
 * since every point has an edge that explains it; those from v are computed once, backwards. An
 * edge crosses the cuts of the edges of the path that begin in [u, v): a range of them, of which a
 * tree keeps the largest time.
 */
#include "tables/critical/critical.h"

#include <kymo/device.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define UNREACHED INT64_MIN
#define LATE_NS 1000000

/* The path of a group of processes, from its first point to its last. Its edge number i begins at
   points[i] and ends at points[i + 1]. */
struct path {
	uint32_t *points;
	uint32_t edges;
	int64_t *around_ns; /* a tree over the edges: the end of the longest path around each */
};

struct finder {
	struct critical_graph *graph;
	const struct critical_input *input;
	struct critical_result *out;
	uint32_t *group_of; /* process -> the least process that collectives connect it with */
	uint32_t *last; /* by process: the point at which its path would end */
	uint32_t *end; /* by group: the last of these */
	struct path *paths; /* by group */
	int64_t *rest_ns; /* by point: the longest path to the end of its group */
	bool *on_path; /* by point: an edge of a path leads to it */
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
	for (size_t to = 0; to < graph->count; to++)
		for (size_t i = graph->first_edge[to]; i < graph->first_edge[to + 1]; i++) {
			uint32_t a, b;

			if (graph->edges[i].kind != CRITICAL_MEET)
				continue;
			a = group_find(finder->group_of, graph->process[graph->edges[i].from]);
			b = group_find(finder->group_of, graph->process[to]);
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
	for (uint32_t to = (uint32_t)graph->count; to-- > 0;) {
		if (finder->rest_ns[to] == UNREACHED)
			continue;
		for (size_t i = graph->first_edge[to]; i < graph->first_edge[to + 1]; i++) {
			const struct critical_edge *edge = &graph->edges[i];
			const int64_t ns = finder->rest_ns[to] + critical_edge_ns(graph, edge, to);

			if (ns > finder->rest_ns[edge->from])
				finder->rest_ns[edge->from] = ns;
		}
	}
}

/* ---- paths --------------------------------------------------------------------------------- */

static uint32_t point_before(const struct critical_graph *graph, uint32_t point)
{
	return graph->edges[graph->first_edge[point]].from;
}

/* Backwards from the end of the group, by the edges that explain. */
static bool trace_path(struct finder *finder, uint32_t group)
{
	const struct critical_graph *graph = finder->graph;
	struct path *path = &finder->paths[group];
	const uint32_t end = finder->end[group];
	uint32_t at = end, left;

	for (; critical_has_edge(graph, at); at = point_before(graph, at))
		path->edges++;
	path->points = malloc(((size_t)path->edges + 1) * sizeof(*path->points));
	path->around_ns = malloc(((size_t)path->edges * 2 + 1) * sizeof(*path->around_ns));
	if (!path->points || !path->around_ns)
		return false;
	for (size_t i = 0; i <= (size_t)path->edges * 2; i++)
		path->around_ns[i] = UNREACHED;
	at = end;
	for (left = path->edges; left; at = point_before(graph, at)) {
		path->points[left--] = at;
		finder->on_path[at] = true;
	}
	path->points[0] = at;
	return true;
}

/* The first edge of the path that begins at the point or after it. */
static uint32_t edge_from(const struct path *path, uint32_t point)
{
	uint32_t low = 0, high = path->edges;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (path->points[middle] < point)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void raise_to(int64_t *ns, int64_t to_ns)
{
	*ns = to_ns > *ns ? to_ns : *ns;
}

/* A way that ends at until_ns goes around the edges [from, to) of the path. Leaves of the tree are
   its second half; a node holds for all leaves below it. */
static void go_around(struct path *path, uint32_t from, uint32_t to, int64_t until_ns)
{
	size_t low = (size_t)from + path->edges, high = (size_t)to + path->edges;

	for (; low < high; low /= 2, high /= 2) {
		if (low & 1)
			raise_to(&path->around_ns[low++], until_ns);
		if (high & 1)
			raise_to(&path->around_ns[--high], until_ns);
	}
}

static int64_t longest_around(const struct path *path, uint32_t edge)
{
	int64_t ns = UNREACHED;

	for (size_t at = (size_t)edge + path->edges; at; at /= 2)
		raise_to(&ns, path->around_ns[at]);
	return ns;
}

/* The edges to a point that are not on the path. The first point of a process stays where it is:
   it bounds every cut before it. */
static void go_around_point(struct finder *finder, struct path *path, uint32_t to)
{
	const struct critical_graph *graph = finder->graph;
	const uint32_t until = edge_from(path, to);

	if (!critical_has_edge(graph, to))
		go_around(path, 0, until, graph->ns[to] + finder->rest_ns[to]);
	for (size_t i = graph->first_edge[to]; i < graph->first_edge[to + 1]; i++) {
		const struct critical_edge *edge = &graph->edges[i];

		if (i != graph->first_edge[to] || !finder->on_path[to])
			go_around(path, edge_from(path, edge->from), until,
				  graph->ns[edge->from] + critical_edge_ns(graph, edge, to) +
					  finder->rest_ns[to]);
	}
}

static bool find_paths(struct finder *finder)
{
	const struct critical_graph *graph = finder->graph;

	for (uint32_t i = 0; i < finder->input->recording->process_count; i++)
		if (finder->end[i] != CRITICAL_NONE && !trace_path(finder, i))
			return false;
	for (uint32_t to = 0; to < graph->count; to++)
		if (finder->rest_ns[to] != UNREACHED)
			go_around_point(finder,
					&finder->paths[finder->group_of[graph->process[to]]], to);
	return true;
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
	struct critical_result *out = finder->out;

	if (!grow((void **)&out->pieces.list, &out->pieces.room, out->pieces.count, sizeof(*piece)))
		finder->failed = true;
	else
		out->pieces.list[out->pieces.count++] = *piece;
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

static void add_piece(struct finder *finder, uint32_t to, int64_t win_ns, uint32_t group)
{
	const struct critical_graph *graph = finder->graph;
	const struct critical_edge *edge = &graph->edges[graph->first_edge[to]];
	struct critical_piece piece = { .start_ns = graph->ns[edge->from],
					.duration_ns = critical_edge_ns(graph, edge, to),
					.win_ns = win_ns,
					.process = graph->process[to],
					.thread = CRITICAL_NONE,
					.asked_ns = INT64_MIN,
					.path = group,
					.point = to };

	describe_edge(finder->input, edge, &piece);
	if (!piece.duration_ns || !find_step(finder->input, &piece))
		return;
	if (edge->kind == CRITICAL_LAUNCH)
		split_launch(finder, &finder->input->ops.list[edge->ref], &piece);
	append_piece(finder, &piece);
}

static int64_t win_of(const struct path *path, uint32_t edge, int64_t edge_ns, int64_t end_ns)
{
	const int64_t around = longest_around(path, edge);

	if (around == UNREACHED || end_ns - around > edge_ns)
		return edge_ns;
	return end_ns > around ? end_ns - around : 0;
}

static void add_path_pieces(struct finder *finder, uint32_t group)
{
	const struct critical_graph *graph = finder->graph;
	const struct path *path = &finder->paths[group];

	for (uint32_t i = 0; i < path->edges && !finder->failed; i++) {
		const uint32_t from = path->points[i], to = path->points[i + 1];
		const int64_t ns = graph->ns[to] - graph->ns[from];

		add_piece(finder, to, win_of(path, i, ns, graph->ns[finder->end[group]]), group);
	}
}

/* ---- all of it ----------------------------------------------------------------------------- */

static bool finder_init(struct finder *finder)
{
	const size_t processes = finder->input->recording->process_count + 1;
	const size_t points = finder->graph->count + processes;

	finder->group_of = calloc(processes, sizeof(*finder->group_of));
	finder->last = malloc(processes * sizeof(*finder->last));
	finder->end = malloc(processes * sizeof(*finder->end));
	finder->paths = calloc(processes, sizeof(*finder->paths));
	finder->rest_ns = malloc(points * sizeof(*finder->rest_ns));
	finder->on_path = calloc(points, sizeof(*finder->on_path));
	if (!finder->group_of || !finder->last || !finder->end || !finder->paths ||
	    !finder->rest_ns || !finder->on_path)
		return false;
	memset(finder->last, 0xff, processes * sizeof(*finder->last));
	memset(finder->end, 0xff, processes * sizeof(*finder->end));
	return true;
}

static void finder_fini(struct finder *finder)
{
	for (size_t i = 0; finder->paths && i < finder->input->recording->process_count; i++) {
		free(finder->paths[i].points);
		free(finder->paths[i].around_ns);
	}
	free(finder->group_of);
	free(finder->last);
	free(finder->end);
	free(finder->paths);
	free(finder->rest_ns);
	free(finder->on_path);
}

bool critical_find_path(struct critical_graph *graph, const struct critical_input *input,
			struct critical_result *out)
{
	struct finder finder = { .graph = graph, .input = input, .out = out };

	finder.failed = !finder_init(&finder);
	if (!finder.failed) {
		join_groups(&finder);
		find_ends(&finder);
		find_rests(&finder);
		finder.failed = !find_paths(&finder);
	}
	for (uint32_t i = 0; i < input->recording->process_count && !finder.failed; i++)
		if (finder.end[i] != CRITICAL_NONE)
			add_path_pieces(&finder, i);
	finder_fini(&finder);
	return !finder.failed;
}
