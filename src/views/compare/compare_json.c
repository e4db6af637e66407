/*
 * A comparison as JSON, and the differential flame graph with it, as columns: for each node its
 * name and source, its parent (-1: none) and the time per step of A and B, in ns. Nodes below
 * 0.02 % on both sides are left out; their time stays in the totals of their parents.
 */
#include "views/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "views/term/format.h"
#include "views/query/json.h"

#define FLAME_SHARE 0.0002
#define FLAME_NODES 20000
#define FLAME_COLUMNS 7

static void compare_json_add_number(struct buf *out, const char *key, double value)
{
	buf_print(out, ",\"%s\":%s", key, isfinite(value) ? format_double(value).text : "null");
}

static void compare_json_add_text(struct buf *out, const char *key, const char *text)
{
	buf_print(out, "\"%s\":", key);
	json_text(out, text, strlen(text));
}

/* ---- rows ----------------------------------------------------------------------------------- */

void compare_json_row(struct buf *out, const struct compare_item *item, const char *kind)
{
	const struct compare_stats *stats = &item->stats;

	buf_print(out, "{\"kind\":\"%s\",", kind);
	compare_json_add_text(out, "name", item->name);
	buf_char(out, ',');
	compare_json_add_text(out, "source", item->source);
	compare_json_add_number(out, "a", stats->a);
	compare_json_add_number(out, "b", stats->b);
	compare_json_add_number(out, "ratio", stats->ratio);
	compare_json_add_number(out, "lo", stats->low);
	compare_json_add_number(out, "hi", stats->high);
	compare_json_add_number(out, "p", stats->p);
	compare_json_add_number(out, "p_corrected", stats->p_corrected);
	compare_json_add_number(out, "could_see", stats->could_see);
	buf_print(out, ",\"significant\":%s,\"apart\":%s}", stats->significant ? "true" : "false",
		  item->apart ? "true" : "false");
}

static void compare_json_add_rows(struct buf *out, const struct compare *compare)
{
	static const char *const kinds[] = { "step", "region", "module" };
	const struct compare_item **list = compare_ranked(compare);

	buf_text(out, ",\n\"rows\":[");
	for (size_t i = 0; list && i < compare->item_count; i++) {
		buf_text(out, i ? ",\n" : "\n");
		compare_json_row(out, list[i], kinds[list[i]->kind]);
	}
	buf_text(out, "]");
	out->failed |= !list;
	free(list);
}

static void add_runs(struct buf *out, const struct compare *compare)
{
	buf_text(out, ",\n\"runs\":[");
	for (size_t i = 0; i < compare->a_count + compare->b_count; i++) {
		const struct compare_run *run = &compare->runs[i];

		buf_print(out, "%s\n{\"side\":\"%s\",", i ? "," : "",
			  i < compare->a_count ? "a" : "b");
		compare_json_add_text(out, "path", run->path);
		buf_char(out, ',');
		compare_json_add_text(out, "program", run->program);
		buf_char(out, ',');
		compare_json_add_text(out, "command", run->command);
		buf_print(out, ",\"steps\":%zu,\"warmup\":%zu", run->whole ? 0 : run->step_count,
			  run->warmup);
		compare_json_add_number(out, "peak_bytes",
					run->peak_bytes >= 0 ? run->peak_bytes : NAN);
		compare_json_add_number(out, "steps_per_s", run->whole ? NAN : run->steps_per_s);
		buf_print(out, ",\"ranks\":%zu", run->ranks);
		compare_json_add_number(out, "zones", run->zones);
		compare_json_add_number(out, "zones_lost", run->zones_lost);
		buf_char(out, '}');
	}
	buf_text(out, "]");
}

static void compare_json_add_pair(struct buf *out, const char *key, double a, double b)
{
	buf_print(out, ",\n\"%s\":{\"a\":%s,\"b\":%s", key,
		  isfinite(a) ? format_double(a).text : "null",
		  isfinite(b) ? format_double(b).text : "null");
	compare_json_add_number(out, "ratio", a > 0 ? b / a : NAN);
	buf_char(out, '}');
}

static void add_figures(struct buf *out, const struct compare *compare)
{
	struct compare_figures of = compare_figures(compare);

	compare_json_add_pair(out, "memory", of.peak_bytes[0], of.peak_bytes[1]);
	compare_json_add_pair(out, "throughput", of.steps_per_s[0], of.steps_per_s[1]);
}

static void add_note(void *context, const char *text, bool loud)
{
	struct buf *out = context;

	(void)loud;
	buf_text(out, out->data[out->used - 1] == '[' ? "" : ",");
	json_text(out, text, strlen(text));
}

static void add_words(struct buf *out, const struct compare *compare)
{
	struct buf because = { 0 };

	buf_text(out, ",\n");
	compare_json_add_text(out, "sentence", compare->sentence);
	compare_because(compare, &because);
	buf_text(out, ",\n");
	compare_json_add_text(out, "because", buf_get(&because));
	out->failed |= because.failed;
	buf_fini(&because);
	buf_text(out, ",\n\"notes\":[");
	compare_notes(compare, add_note, out);
	buf_text(out, "]");
}

/* ---- flame ---------------------------------------------------------------------------------- */

struct flame {
	const struct call_tree *tree;
	double *totals; /* [node][side] */
	int32_t *numbers; /* of the nodes that are written; -1: left out */
	size_t count;
	double least;
};

/* Parents come before their children in the list. */
static void compare_json_sum_up(struct flame *flame)
{
	const struct call_tree *tree = flame->tree;

	for (size_t i = tree->count - 1; i > 0; i--)
		for (int side = 0; side < 2; side++) {
			flame->totals[2 * i + side] += tree->nodes[i].values[side];
			flame->totals[2 * tree->nodes[i].parent + side] +=
				flame->totals[2 * i + side];
		}
	flame->least = FLAME_SHARE *
		       (flame->totals[0] > flame->totals[1] ? flame->totals[0] : flame->totals[1]);
}

static void number(struct flame *flame)
{
	flame->numbers[0] = -1;
	for (size_t i = 1; i < flame->tree->count; i++) {
		uint32_t parent = flame->tree->nodes[i].parent;
		bool large = flame->totals[2 * i] >= flame->least ||
			     flame->totals[2 * i + 1] >= flame->least;
		bool rooted = !parent || flame->numbers[parent] >= 0;

		flame->numbers[i] = large && rooted && flame->count < FLAME_NODES
					    ? (int32_t)flame->count++
					    : -1;
	}
}

static void add_value(struct buf *out, const struct compare *compare, const struct flame *flame,
		      int column, size_t node)
{
	const struct call_tree_node *one = &flame->tree->nodes[node];
	const struct compare_item *item = &compare->items[one->frame];

	if (column < 2)
		json_text(out, column ? item->source : item->name,
			  strlen(column ? item->source : item->name));
	else if (column == 2)
		buf_print(out, "%d", one->parent ? flame->numbers[one->parent] : -1);
	else if (column < 5)
		buf_print(out, "%.0f", one->values[column - 3]);
	else
		buf_print(out, "%.0f", flame->totals[2 * node + (size_t)column - 5]);
}

static void compare_json_add_column(struct buf *out, const struct compare *compare,
				    const struct flame *flame, int column)
{
	static const char *const keys[] = { "name",   "source",	 "parent", "a_self",
					    "b_self", "a_total", "b_total" };
	bool first = true;

	buf_print(out, "%s\"%s\":[", column ? ",\n" : "", keys[column]);
	for (size_t i = 1; i < flame->tree->count; i++) {
		if (flame->numbers[i] < 0)
			continue;
		buf_text(out, first ? "" : ",");
		first = false;
		add_value(out, compare, flame, column, i);
	}
	buf_char(out, ']');
}

static void compare_json_add_flame(struct buf *out, const struct compare *compare)
{
	struct flame flame = { .tree = &compare->flame };

	flame.totals = calloc(2 * compare->flame.count, sizeof(flame.totals[0]));
	flame.numbers = calloc(compare->flame.count, sizeof(flame.numbers[0]));
	if (flame.totals && flame.numbers) {
		compare_json_sum_up(&flame);
		number(&flame);
		buf_text(out, ",\n\"flame\":{");
		for (int i = 0; i < FLAME_COLUMNS; i++)
			compare_json_add_column(out, compare, &flame, i);
		buf_char(out, '}');
	}
	out->failed |= !flame.totals || !flame.numbers;
	free(flame.totals);
	free(flame.numbers);
}

void compare_json(const struct compare *compare, struct buf *out)
{
	bool judged = compare->sentence[0];

	buf_print(out, COMPARE_JSON_MARK "%s,", compare->why[0] ? "false" : "true");
	if (compare->why[0])
		compare_json_add_text(out, "why", compare->why);
	else
		buf_text(out, "\"why\":null");
	if (judged) {
		add_words(out, compare);
		compare_json_add_number(out, "could_see", compare->items[0].stats.could_see);
		buf_print(out, ",\"time\":\"%s\"", compare->total ? "total" : "self");
		buf_print(out, ",\"unit\":\"%s\"",
			  compare->a_count + compare->b_count > 3 ? "run" : "step");
		if (compare->fail_above >= 0)
			buf_print(out, ",\"failed\":%s", compare->failed ? "true" : "false");
	}
	add_runs(out, compare);
	if (judged) {
		compare_json_add_rows(out, compare);
		add_figures(out, compare);
		compare_json_add_flame(out, compare);
	}
	buf_text(out, "}\n");
}
