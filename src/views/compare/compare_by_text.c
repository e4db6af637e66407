/* A comparison of ranks or attempts, for a terminal and as JSON. */
#include "views/compare/compare_by.h"

#include <stdlib.h>
#include <string.h>

#include "views/query/json.h"
#include "views/term/format.h"

#define ROWS_MOST 20 /* without --all */

static void print_job(const struct compare_by *by, size_t target, const struct text_style *style,
		      FILE *out)
{
	const char *slash = strrchr(by->names[target], '/');
	struct buf line = { 0 };

	if (by->target_count > 1)
		buf_print(&line, "%c ", "AB"[target]);
	text_fit(&line, slash && slash[1] ? slash + 1 : by->names[target],
		 (size_t)style->columns - 30, 0, style);
	buf_print(&line, "  %zu %s", by->part_count[target],
		  by->part == COMPARE_BY_RANK ? "ranks" : "attempts");
	fprintf(out, "%s\n", buf_get(&line));
	buf_fini(&line);
}

static struct compare_columns compare_by_columns(const struct compare_by *by)
{
	if (by->target_count == 2)
		return (struct compare_columns){ by->part == COMPARE_BY_RANK ? "rank, own time"
									     : "attempt",
						 "A", "B", "change" };
	if (by->part == COMPARE_BY_RANK)
		return (struct compare_columns){ "rank, own time", "median", "rank", "change" };
	return (struct compare_columns){ "attempt, step", "first", "attempt", "change" };
}

static void print_parts(const struct compare_by *by, bool all, const struct text_style *style,
			FILE *out)
{
	struct compare_columns columns = compare_by_columns(by);
	size_t shown = by->compare.item_count;

	if (!all && shown > ROWS_MOST)
		shown = ROWS_MOST;
	compare_print_heading(&columns, style, out);
	for (size_t i = 0; i < shown; i++)
		compare_print_item(&by->compare.items[i], style, out);
	if (shown < by->compare.item_count)
		fprintf(out, "  %zu more (--all).\n", by->compare.item_count - shown);
	fprintf(out, "  %zu tests, Holm-corrected.\n", by->compare.item_count);
}

void compare_by_print(const struct compare_by *by, bool all, const struct text_style *style,
		      FILE *out)
{
	for (size_t i = 0; i < by->target_count; i++)
		print_job(by, i, style, out);
	fputc('\n', out);
	text_paragraph(out, by->compare.sentence, 2, NULL, true, style);
	fputc('\n', out);
	print_parts(by, all, style, out);
	if (by->compared[0])
		text_paragraph(out, by->compared, 2, NULL, false, style);
}

void compare_by_json(const struct compare_by *by, struct buf *out)
{
	buf_text(out, COMPARE_JSON_MARK "true,\"by\":");
	buf_text(out, by->part == COMPARE_BY_RANK ? "\"rank\"" : "\"attempt\"");
	buf_text(out, ",\"sentence\":");
	json_text(out, by->compare.sentence, strlen(by->compare.sentence));
	buf_text(out, ",\"compared\":");
	json_text(out, by->compared, strlen(by->compared));
	buf_text(out, ",\"rows\":[");
	for (size_t i = 0; i < by->compare.item_count; i++) {
		buf_text(out, i ? ",\n" : "\n");
		compare_json_row(out, &by->compare.items[i],
				 by->part == COMPARE_BY_RANK ? "rank" : "attempt");
	}
	buf_text(out, "]}\n");
}
