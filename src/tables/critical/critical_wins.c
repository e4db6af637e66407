/* What a run would win if all parts of its path with one name took no time: the longest path is
   computed again, with these parts removed from their edges. */
#include "tables/critical/critical.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define NAMES_MOST 16 /* of each path */
#define EDGES_MOST 400000000u /* visited in all; the names after that have no answer */

/* The pieces of a path that have one name. */
struct named {
	uint32_t name;
	uint8_t kind, word;
	int64_t total_ns;
};

struct wins {
	const struct critical_graph *graph;
	struct critical_pieces *pieces;
	size_t first, count; /* of the path's pieces */
	int64_t *until_ns; /* by point: end of the longest path to it */
	CRITICAL_LIST(named, names);
	uint64_t visited;
};

static bool has_name(const struct critical_piece *piece, const struct named *named)
{
	return piece->name == named->name && piece->kind == named->kind &&
	       piece->word == named->word;
}

static int compare_names(const void *left, const void *right)
{
	const struct named *a = left, *b = right;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return (a->kind << 8 | a->word) - (b->kind << 8 | b->word);
}

static int compare_totals(const void *left, const void *right)
{
	const struct named *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return compare_names(left, right);
}

static bool collect_names(struct wins *wins)
{
	struct named *list;
	size_t kept = 0;

	wins->names.count = 0;
	for (size_t i = 0; i < wins->count; i++) {
		const struct critical_piece *piece = &wins->pieces->rows.list[wins->first + i];

		if (!grow((void **)&wins->names.list, &wins->names.room, wins->names.count,
			  sizeof(*list)))
			return false;
		wins->names.list[wins->names.count++] = (struct named){ piece->name, piece->kind,
									piece->word,
									piece->duration_ns };
	}
	list = wins->names.list;
	qsort(list, wins->names.count, sizeof(*list), compare_names);
	for (size_t i = 0; i < wins->names.count; i++)
		if (kept && !compare_names(&list[kept - 1], &list[i]))
			list[kept - 1].total_ns += list[i].total_ns;
		else
			list[kept++] = list[i];
	qsort(list, kept, sizeof(*list), compare_totals);
	wins->names.count = kept < NAMES_MOST ? kept : NAMES_MOST;
	return true;
}

/* The time that the pieces with the name take of an edge. Pieces are in the order of edges; *next
   is the first that may belong to this one. */
static int64_t removed_ns(const struct wins *wins, const struct named *named, size_t edge,
			  size_t *next)
{
	const struct critical_piece *rows = &wins->pieces->rows.list[wins->first];
	int64_t ns = 0;

	while (*next < wins->count && rows[*next].edge < edge)
		(*next)++;
	for (; *next < wins->count && rows[*next].edge == edge; (*next)++)
		if (has_name(&rows[*next], named))
			ns += rows[*next].duration_ns;
	return ns;
}

static int64_t end_without(struct wins *wins, const struct named *named, uint32_t end)
{
	const struct critical_graph *graph = wins->graph;
	size_t next = 0;

	for (size_t i = 0; i <= end; i++)
		wins->until_ns[i] = INT64_MIN;
	for (size_t i = 0; i < graph->edge_count && graph->edges[i].to <= end; i++) {
		const struct critical_edge *edge = &graph->edges[i];
		int64_t *from = &wins->until_ns[edge->from], *to = &wins->until_ns[edge->to];
		const int64_t ns = edge->ns - removed_ns(wins, named, i, &next);

		if (*from == INT64_MIN)
			*from = graph->ns[edge->from]; /* no edge leads to it */
		*to = *from + ns > *to ? *from + ns : *to;
	}
	wins->visited += graph->edge_count;
	return wins->until_ns[end];
}

static void find_wins_of_path(struct wins *wins)
{
	struct critical_piece *rows = &wins->pieces->rows.list[wins->first];
	const uint32_t end = wins->graph->edges[rows[wins->count - 1].edge].to;

	for (size_t k = 0; k < wins->names.count && wins->visited < EDGES_MOST; k++) {
		const struct named *named = &wins->names.list[k];
		const int64_t won = wins->graph->ns[end] - end_without(wins, named, end);

		for (size_t i = 0; i < wins->count; i++)
			if (has_name(&rows[i], named))
				rows[i].all_win_ns = won;
	}
}

bool critical_find_wins(const struct critical_graph *graph, struct critical_pieces *pieces)
{
	struct wins wins = { .graph = graph, .pieces = pieces };
	bool ok = true;

	wins.until_ns = malloc((graph->count + 1) * sizeof(*wins.until_ns));
	if (!wins.until_ns)
		return false;
	for (; ok && wins.first < pieces->rows.count; wins.first += wins.count) {
		const uint32_t path = pieces->rows.list[wins.first].path;

		for (wins.count = 0; wins.first + wins.count < pieces->rows.count &&
				     pieces->rows.list[wins.first + wins.count].path == path;)
			wins.count++;
		ok = collect_names(&wins);
		if (ok)
			find_wins_of_path(&wins);
	}
	free(wins.until_ns);
	free(wins.names.list);
	return ok;
}
