/* A comparison for a terminal: 80 columns; a wider terminal has wider names. */
#include "views/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "views/term/format.h"

#define FIXED_COLUMNS 61 /* beside the name */
#define ROWS_MOST 20 /* without --all */

struct printed {
	const struct compare *compare;
	const struct text_style *style;
	FILE *out;
};

/* ---- head ----------------------------------------------------------------------------------- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void print_side(const struct printed *printed, char side, size_t first, size_t count)
{
	const struct compare_run *run = &printed->compare->runs[first];
	struct buf line = { 0 };
	size_t steps = 0, warmup = 0;

	for (size_t i = 0; i < count; i++) {
		steps += run[i].whole ? 0 : run[i].step_count;
		warmup += run[i].warmup;
	}
	buf_print(&line, "%c ", side);
	text_fit(&line, last_part(run->target), (size_t)printed->style->columns - 44, 0,
		 printed->style);
	if (count > 1)
		buf_print(&line, " and %zu more", count - 1);
	if (steps)
		buf_print(&line, "  %s step%s", format_count(steps).text, steps == 1 ? "" : "s");
	if (warmup)
		buf_print(&line, " after %zu warm-up step%s", warmup, warmup == 1 ? "" : "s");
	fprintf(printed->out, "%s\n", buf_get(&line));
	buf_fini(&line);
}

/* ---- rows ----------------------------------------------------------------------------------- */

void compare_print_heading(const struct compare_columns *columns, const struct text_style *style,
			   FILE *out)
{
	/* not foreign: constants */
	fprintf(out, "%s  %-*s%9s%9s%11s%7s  %-13s%s\n", text_paint(style, TEXT_BOLD),
		style->columns - FIXED_COLUMNS, columns->name, columns->a, columns->b,
		columns->change, "B/A", "95 % interval", text_plain(style));
}

static void print_heading(const struct printed *printed)
{
	const struct compare *compare = printed->compare;

	compare_print_heading(
		&(struct compare_columns){ compare->total ? "region" : "region, self", "A", "B",
					   compare->runs[0].whole ? "per run" : "per step" },
		printed->style, printed->out);
}

static const char *compare_text_word_of(const struct compare_item *item)
{
	if (!compare_differs(item))
		return isnan(item->stats.p) ? "?" : "";
	return item->stats.b > item->stats.a ? "slower" : "faster";
}

static void add_change(struct buf *line, const struct compare_item *item, bool utf8)
{
	double change = item->stats.b - item->stats.a;
	struct format_text text = format_duration(fabs(change), utf8);
	char sign[48];

	snprintf(sign, sizeof(sign), "%c%s", change < 0 ? '-' : '+', text.text);
	text_pad(line, sign, 11, 1);
}

/* Decimals of a ratio; from 100 on, decimals would run into the next column. */
static int decimals(double ratio)
{
	return ratio < 100 ? 3 : 0;
}

static void add_ratio(struct buf *line, const struct compare_item *item, bool utf8)
{
	const struct compare_stats *stats = &item->stats;
	char text[64] = "";

	if (!isfinite(stats->ratio))
		buf_print(line, "%7s", stats->b > 0 ? "new" : "?");
	else if (stats->b <= 0)
		buf_print(line, "%7s", "gone");
	else
		buf_print(line, "%7.*f", decimals(stats->ratio), stats->ratio);
	if (isfinite(stats->low) && isfinite(stats->high))
		snprintf(text, sizeof(text), "%.*f%s%.*f", decimals(stats->low), stats->low,
			 utf8 ? "–" : "-", decimals(stats->high), stats->high);
	else if (isfinite(stats->low) && isinf(stats->high))
		snprintf(text, sizeof(text), "%s%.*f", utf8 ? "≥ " : ">= ", decimals(stats->low),
			 stats->low);
	buf_text(line, "  ");
	text_pad(line, text, 13, -1);
}

void compare_print_item(const struct compare_item *item, const struct text_style *style, FILE *out)
{
	struct buf line = { 0 };
	const char *word = compare_text_word_of(item);
	enum text_paint paint = !compare_differs(item)		? TEXT_PLAIN
				: item->stats.b > item->stats.a ? TEXT_RED
								: TEXT_GREEN;

	buf_text(&line, "  ");
	text_fit(&line, item->name, (size_t)style->columns - FIXED_COLUMNS, -1, style);
	text_pad(&line, format_duration(item->stats.a, style->utf8).text, 9, 1);
	text_pad(&line, format_duration(item->stats.b, style->utf8).text, 9, 1);
	add_change(&line, item, style->utf8);
	add_ratio(&line, item, style->utf8);
	while (!word[0] && line.used && line.data[line.used - 1] == ' ')
		line.data[--line.used] = '\0';
	fputs(buf_get(&line), out);
	if (word[0])
		fprintf(out, "  %s%s%s", text_paint(style, paint), word,
			paint == TEXT_PLAIN ? "" : text_plain(style));
	fputc('\n', out);
	buf_fini(&line);
}

static void print_rest(const struct printed *printed, size_t told, size_t hidden, size_t noise)
{
	struct buf line = { 0 };

	if (hidden)
		buf_print(&line, "%zu more differ (--all). ", hidden);
	if (noise)
		buf_print(&line, "%zu %snot significant (--all). ", noise, told ? "more " : "");
	buf_print(&line, "%zu tests, Holm-corrected, weighted by time.",
		  printed->compare->item_count);
	text_paragraph(printed->out, buf_get(&line), 2, NULL, false, printed->style);
	buf_fini(&line);
}

static void print_items(const struct printed *printed, bool all)
{
	const struct compare_item **list = compare_ranked(printed->compare);
	size_t told = 0, noise = 0, hidden = 0;

	for (size_t i = 1; list && i < printed->compare->item_count; i++) {
		bool real = compare_differs(list[i]);

		if (!all && (!real || told == ROWS_MOST)) {
			noise += !real;
			hidden += real;
			continue;
		}
		if (!told++)
			print_heading(printed);
		compare_print_item(list[i], printed->style, printed->out);
	}
	free(list);
	print_rest(printed, told, hidden, noise);
}

/* ---- throughput, memory, notes -------------------------------------------------------------- */

static void print_figures(const struct printed *printed)
{
	struct compare_figures of = compare_figures(printed->compare);
	struct buf line = { 0 };

	if (of.steps_per_s[0] > 0 && of.steps_per_s[1] > 0)
		buf_print(&line, "throughput %.4g to %.4g steps/s, %.3f   ", of.steps_per_s[0],
			  of.steps_per_s[1], of.steps_per_s[1] / of.steps_per_s[0]);
	if (of.peak_bytes[0] > 0 && of.peak_bytes[1] > 0)
		buf_print(&line, "memory peak %s to %s, %.3f", format_bytes(of.peak_bytes[0]).text,
			  format_bytes(of.peak_bytes[1]).text, of.peak_bytes[1] / of.peak_bytes[0]);
	if (line.used)
		text_paragraph(printed->out, buf_get(&line), 2, NULL, false, printed->style);
	buf_fini(&line);
}

static void print_note(void *context, const char *text, bool loud)
{
	const struct printed *printed = context;

	text_paragraph(printed->out, text, 2, NULL, loud, printed->style);
}

static void print_bar(const struct printed *printed)
{
	const struct compare *compare = printed->compare;
	const struct compare_stats *step = &compare->items[0].stats;
	char text[256];

	if (compare->fail_above < 0)
		return;
	if (compare->failed)
		snprintf(
			text, sizeof(text),
			"--fail-above %.4g%%: failed (%s %.1f %%, at least %.1f %%), exit status 1",
			100 * compare->fail_above, compare->items[0].name, 100 * (step->ratio - 1),
			100 * (step->low - 1));
	else
		snprintf(text, sizeof(text), "--fail-above %.4g%%: passed",
			 100 * compare->fail_above);
	text_paragraph(printed->out, text, 2, NULL, compare->failed, printed->style);
}

void compare_print(const struct compare *compare, bool all, const struct text_style *style,
		   FILE *out)
{
	struct printed printed = { compare, style, out };

	print_side(&printed, 'A', 0, compare->a_count);
	print_side(&printed, 'B', compare->a_count, compare->b_count);
	fputc('\n', out);
	text_paragraph(out, compare->sentence, 2, NULL, true, style);
	fputc('\n', out);
	print_figures(&printed);
	print_items(&printed, all);
	compare_notes(compare, print_note, &printed);
	print_bar(&printed);
}
