/* The slowest steps: when, how much longer than usual, and what took longer in them. */
#include "views/report/report_sections.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "tables/sql_fill.h"
#include "views/term/format.h"
#include "views/query/rows.h"
#include "views_sql.h"

#define SLOWEST 5

struct slow_step {
	uint64_t step;
	int32_t pid;
	double start_ns, duration_ns;
	char inside[256];
	double inside_ns;
	const char *phase; /* with the largest excess over its median; NULL: not recorded */
	double phase_ns;
	bool by_place; /* inside is a function and its line, by samples */
};

struct slow_steps {
	struct slow_step steps[SLOWEST];
	size_t count;
	double median_ns;
};

static int slow_row(const struct rows *rows, void *context)
{
	static const char *const phases[] = { "data", "forward", "backward", "optimizer", "other" };
	struct slow_steps *slow = context;
	struct slow_step *step = &slow->steps[slow->count];

	if (slow->count == SLOWEST)
		return 1;
	step->step = rows_count(rows, 0);
	step->pid = (int32_t)rows_number(rows, 1, 0);
	step->start_ns = rows_number(rows, 2, 0);
	step->duration_ns = rows_number(rows, 3, 0);
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		if (rows_number(rows, 4 + i, 0) > step->phase_ns) {
			step->phase = phases[i];
			step->phase_ns = rows_number(rows, 4 + i, 0);
		}
	slow->count++;
	return 0;
}

static int inside_row(const struct rows *rows, void *context)
{
	struct slow_steps *slow = context;
	size_t i = (size_t)rows_count(rows, 0);

	if (i >= slow->count)
		return 0;
	rows_copy_text(rows, 1, slow->steps[i].inside, sizeof(slow->steps[i].inside));
	slow->steps[i].inside_ns = rows_number(rows, 2, 0);
	return 0;
}

/* Where no zone explains the step: the function that does, if it took half of the excess. */
static int slow_place_row(const struct rows *rows, void *context)
{
	struct slow_steps *slow = context;
	size_t i = (size_t)rows_count(rows, 0);
	struct slow_step *step = &slow->steps[i < SLOWEST ? i : 0];
	double ns = rows_number(rows, 2, 0), half_ns = (step->duration_ns - slow->median_ns) / 2;

	if (i >= slow->count || ns < half_ns)
		return 0;
	if (step->phase ? strcmp(step->phase, "other") != 0 : step->inside_ns >= half_ns)
		return 0;
	rows_copy_text(rows, 1, step->inside, sizeof(step->inside));
	step->inside_ns = ns;
	step->by_place = true;
	return 0;
}

static void add_cases(const struct slow_steps *slow, double median_ns, struct buf *which,
		      struct buf *excess)
{
	for (size_t i = 0; i < slow->count; i++) {
		const struct slow_step *step = &slow->steps[i];

		buf_print(which,
			  " WHEN pid = %d AND start_ns >= %.0f AND start_ns + duration_ns <= %.0f "
			  "THEN %zu",
			  step->pid, step->start_ns, step->start_ns + step->duration_ns, i);
		buf_print(excess, " WHEN %zu THEN %.0f", i, fmax(step->duration_ns - median_ns, 0));
	}
}

static int find_inside(struct report *report, struct slow_steps *slow)
{
	const struct facts_steps *steps = &report->facts.steps;
	struct buf sql = { 0 }, which = { 0 }, excess = { 0 };
	int rc;

	add_cases(slow, steps->median_ns, &which, &excess);
	sql_fill(&sql, sql_slow_inside,
		 (struct sql_value[]){ { "steps", .number = (int64_t)steps->count },
				       { "which", .text = buf_get(&which) },
				       { "excess", .text = buf_get(&excess) },
				       { NULL } });
	rc = rows_each(report->tables, buf_get(&sql), inside_row, slow, report->err);
	buf_reset(&sql);
	sql_fill(&sql, sql_slow_places,
		 (struct sql_value[]){ { "steps", .number = (int64_t)steps->count },
				       { "which", .text = buf_get(&which) },
				       { NULL } });
	if (rc >= 0)
		rc = rows_each(report->tables, buf_get(&sql), slow_place_row, slow, report->err);
	buf_fini(&sql);
	buf_fini(&which);
	buf_fini(&excess);
	return rc;
}

/* The zone repeats the phase, as in "backward +337 ms: backward 542 ms". */
static bool says_no_more(const struct slow_step *step)
{
	return step->phase && !strcmp(step->phase, step->inside);
}

/* "data +39.6 ms: ". */
static void add_unusual(struct buf *line, const struct slow_step *step, int *room,
			const struct text_style *style)
{
	struct format_text more = format_duration(step->phase_ns, style->utf8);

	buf_print(line, "%s +%s%s", step->phase, more.text,
		  step->inside[0] && !says_no_more(step) ? ": " : "");
	*room -= (int)strlen(step->phase) +
		 2; /* the duration takes the columns reserved for that of the zone */
}

static void print_slow(const struct report *report, const struct slow_step *step)
{
	const struct text_style *style = report->style;
	struct format_text at = format_duration(step->start_ns, style->utf8);
	struct format_text took = format_duration(step->duration_ns, style->utf8);
	int room = style->columns - 47 - 9;
	struct buf line = { 0 };

	buf_print(&line, "  %-12s", format_count(step->step).text);
	text_pad(&line, at.text, 9, 1);
	buf_text(&line, "  ");
	text_pad(&line, took.text, 9, 1);
	buf_print(&line, "  %9.1f  ",
		  report->facts.steps.median_ns > 0
			  ? step->duration_ns / report->facts.steps.median_ns
			  : 0.0);
	if (step->by_place)
		text_fit(&line, step->inside, (size_t)(room > 0 ? room + 9 : 9), 0, style);
	else if (step->phase)
		add_unusual(&line, step, &room, style);
	if (!step->by_place && step->inside[0] && room > 0 && !says_no_more(step)) {
		text_fit(&line, step->inside, (size_t)room, 0, style);
		/* With a phase the excess is printed already, so the name gets the room. */
		if (!step->phase || strlen(step->inside) + 9 <= (size_t)room)
			buf_print(&line, " %s", format_duration(step->inside_ns, style->utf8).text);
	}
	fprintf(report->out, "%s\n", buf_get(&line));
	buf_fini(&line);
}

int report_slowest(struct report *report)
{
	struct slow_steps slow = { .median_ns = report->facts.steps.median_ns };
	int rc;

	if (report->facts.steps.count < 3)
		return 0;
	rc = rows_each(report->tables, sql_slow_steps, slow_row, &slow, report->err);
	if (rc >= 0 && slow.count)
		rc = find_inside(report, &slow);
	if (rc < 0)
		return rc;
	/* The last headings are padded by hand: printf counts bytes. */
	fprintf(report->out, "\n%s%-14s%9s  %9s   %s  what took longer%s\n",
		text_paint(report->style, TEXT_BOLD), "Slowest steps", "at", "took",
		report->style->utf8 ? "× median" : "x median", text_plain(report->style));
	for (size_t i = 0; i < slow.count; i++)
		print_slow(report, &slow.steps[i]);
	return 0;
}
