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
	struct critical_table *table;
	size_t first, count; /* of the path's rows */
	uint8_t *has_name; /* by label: it has the name that is removed */
	int64_t *until_ns; /* by point: end of the longest path to it */
	CRITICAL_LIST(named, names);
	uint64_t visited;
};

static bool label_has_name(const struct critical_label *label, const struct named *named)
{
	return label->name == named->name && label->kind == named->kind &&
	       label->word == named->word;
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

/* The names of the path's labels, with the time of their rows. */
static bool collect_labels(struct wins *wins)
{
	int64_t *total_ns = calloc(wins->table->labels.count + 1, sizeof(*total_ns));
	bool ok = total_ns != NULL;

	wins->names.count = 0;
	for (size_t i = 0; ok && i < wins->count; i++) {
		const struct critical_span *row = &wins->table->rows.list[wins->first + i];

		total_ns[row->label] += row->duration_ns;
	}
	for (size_t i = 0; ok && i < wins->table->labels.count; i++) {
		const struct critical_label *label = &wins->table->labels.list[i];

		if (!total_ns[i])
			continue;
		ok = grow((void **)&wins->names.list, &wins->names.room, wins->names.count,
			  sizeof(*wins->names.list));
		if (ok)
			wins->names.list[wins->names.count++] = (struct named){
				label->name, label->kind, label->word, total_ns[i]
			};
	}
	free(total_ns);
	return ok;
}

/* The costliest names. */
static bool collect_names(struct wins *wins)
{
	struct named *list;
	size_t kept = 0;

	if (!collect_labels(wins))
		return false;
	list = wins->names.list;
	if (wins->names.count)
		qsort(list, wins->names.count, sizeof(*list), compare_names);
	for (size_t i = 0; i < wins->names.count; i++)
		if (kept && !compare_names(&list[kept - 1], &list[i]))
			list[kept - 1].total_ns += list[i].total_ns;
		else
			list[kept++] = list[i];
	if (kept)
		qsort(list, kept, sizeof(*list), compare_totals);
	wins->names.count = kept < NAMES_MOST ? kept : NAMES_MOST;
	return true;
}

/* The time that the rows with the name take of the edge that explains a point. Rows are in the
   order of points; *next is the first that may belong to this one. */
static int64_t removed_ns(const struct wins *wins, size_t point, size_t *next)
{
	const struct critical_span *rows = &wins->table->rows.list[wins->first];
	int64_t ns = 0;

	while (*next < wins->count && rows[*next].point < point)
		(*next)++;
	for (; *next < wins->count && rows[*next].point == point; (*next)++)
		if (wins->has_name[rows[*next].label])
			ns += rows[*next].duration_ns;
	return ns;
}

/* The end of the longest path to a point, by those before it. */
static int64_t until_of(const struct wins *wins, uint32_t point, int64_t removed)
{
	const struct critical_graph *graph = wins->graph;
	const uint32_t first = graph->first_edge[point];
	int64_t until = INT64_MIN;

	for (size_t i = first; i < graph->first_edge[point + 1]; i++) {
		const struct critical_edge *edge = &graph->edges[i];
		const int64_t ns = wins->until_ns[edge->from] +
				   critical_edge_ns(graph, edge, point) -
				   (i == first ? removed : 0);

		until = ns > until ? ns : until;
	}
	return until == INT64_MIN ? graph->ns[point] : until; /* no edge leads to it */
}

static int64_t end_without(struct wins *wins, const struct named *named, uint32_t end)
{
	size_t next = 0;

	for (size_t i = 0; i < wins->table->labels.count; i++)
		wins->has_name[i] = label_has_name(&wins->table->labels.list[i], named);
	for (uint32_t i = 0; i <= end; i++)
		wins->until_ns[i] = until_of(wins, i, removed_ns(wins, i, &next));
	wins->visited += wins->graph->first_edge[end + 1];
	return wins->until_ns[end];
}

static void find_wins_of_path(struct wins *wins)
{
	const struct critical_span *rows = &wins->table->rows.list[wins->first];
	struct critical_label *labels = wins->table->labels.list;
	const uint32_t end = rows[wins->count - 1].point, path = labels[rows[0].label].path;

	for (size_t k = 0; k < wins->names.count && wins->visited < EDGES_MOST; k++) {
		const int64_t won = wins->graph->ns[end] -
				    end_without(wins, &wins->names.list[k], end);

		for (size_t i = 0; i < wins->table->labels.count; i++)
			if (wins->has_name[i] && labels[i].path == path)
				labels[i].all_win_ns = won;
	}
}

/* The number of rows of the path that begins at the row. */
static size_t rows_of_path(const struct critical_table *table, size_t first)
{
	const uint32_t path = table->labels.list[table->rows.list[first].label].path;
	size_t count = 0;

	while (first + count < table->rows.count &&
	       table->labels.list[table->rows.list[first + count].label].path == path)
		count++;
	return count;
}

bool critical_find_wins(const struct critical_graph *graph, struct critical_table *table)
{
	struct wins wins = { .graph = graph, .table = table };
	bool ok;

	wins.until_ns = malloc((graph->count + 1) * sizeof(*wins.until_ns));
	wins.has_name = malloc(table->labels.count + 1);
	ok = wins.until_ns && wins.has_name;
	for (; ok && wins.first < table->rows.count; wins.first += wins.count) {
		wins.count = rows_of_path(table, wins.first);
		ok = collect_names(&wins);
		if (ok)
			find_wins_of_path(&wins);
	}
	free(wins.until_ns);
	free(wins.has_name);
	free(wins.names.list);
	return ok;
}
