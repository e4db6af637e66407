/* The slowest steps: when, how much longer than usual, and what was different inside. */
#include "views/report/report_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "views/term/format.h"
#include "views/query/rows.h"

#define SLOWEST 5

struct slow_step {
	uint64_t step;
	int32_t pid;
	double start_ns, duration_ns;
	char inside[256];
	double inside_ns;
	const char *phase; /* that took longer than usual by most; NULL: phases are not known */
	double phase_ns;
};

struct slow_steps {
	struct slow_step steps[SLOWEST];
	size_t count;
};

/* What each phase took above its median, as FACTS_STEPS_SQL has it; all NULL where none are
   known. */
#define UNUSUAL(column) "CASE WHEN known THEN " column " - median(" column ") OVER () END"
#define SLOW_SQL \
	"SELECT step, pid, start_ns, duration_ns, " UNUSUAL("d") ", " UNUSUAL( \
		"f") ", " UNUSUAL("b") ", " UNUSUAL("o") ", " UNUSUAL("duration_ns - d - f - b - " \
								      "o") " FROM (SELECT *, " \
									   "coalesce(data_ns, 0) " \
									   "AS d, " \
									   "coalesce(forward_ns, " \
									   "0) AS f, " \
									   "coalesce(backward_ns," \
									   " 0) AS b, " \
									   "coalesce(optimizer_" \
									   "ns, 0) AS o, " \
									   "max(d + f + b + o) " \
									   "OVER () > 0 AS known " \
									   "FROM " FACTS_STEPS_SQL \
									   ") ORDER BY " \
									   "duration_ns DESC, " \
									   "step LIMIT 5"

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

/* Zones, and modules in backward, which have none. What is in few steps usually takes 0. */
#define SEEN_SQL \
	"seen AS (SELECT name, depth, duration_ns, start_ns, pid, 0 AS kind FROM trace.zones " \
	"UNION ALL SELECT module, " \
	"1000 + depth, duration * 1e9, ts_ns, pid, 1 FROM python.torch_trace WHERE stage = " \
	"'backward' AND " \
	"module <> 'backward'), usual AS (SELECT name, 0 AS kind, max(CASE WHEN 2 * count >= " \
	"%" PRIu64 " THEN p50_ns ELSE 0 END) AS usual_ns FROM trace.regions GROUP BY name UNION " \
		   "ALL SELECT module, 1, " \
	"median(duration) * 1e9 FROM python.torch_trace WHERE stage = 'backward' GROUP BY module)"

/*
 * What was different: of all that took longer than usual by half of what the step did, the
 * innermost; else what took longer by most. One scan for all steps. Zones as long as the step
 * itself are its own.
 */
static int find_inside(struct report *report, struct slow_steps *slow)
{
	struct buf sql = { 0 };
	int rc;

	buf_print(&sql, "WITH " SEEN_SQL, report->facts.steps.count);
	buf_text(&sql,
		 " SELECT i, arg_max(name, weight), arg_max(duration_ns, weight) FROM (SELECT *, "
		 "CASE WHEN more >= "
		 "excess / 2 THEN 1e18 + depth * 1e15 ELSE more END AS weight FROM (SELECT *, "
		 "duration_ns - "
		 "coalesce(usual_ns, 0) AS more FROM (SELECT name, kind, depth, duration_ns, CASE");
	for (size_t i = 0; i < slow->count; i++)
		buf_print(&sql,
			  " WHEN pid = %d AND start_ns >= %.0f AND start_ns + duration_ns <= %.0f "
			  "THEN %zu",
			  slow->steps[i].pid, slow->steps[i].start_ns,
			  slow->steps[i].start_ns + slow->steps[i].duration_ns, i);
	buf_text(&sql, " END AS i, CASE i");
	for (size_t i = 0; i < slow->count; i++)
		buf_print(&sql, " WHEN %zu THEN %.0f", i,
			  fmax(slow->steps[i].duration_ns - report->facts.steps.median_ns, 0));
	buf_text(&sql, " END AS excess FROM seen WHERE i IS NOT NULL) LEFT JOIN usual USING (name, "
		       "kind))) GROUP BY i");
	rc = rows_each(report->tables, buf_get(&sql), inside_row, slow, report->err);
	buf_fini(&sql);
	return rc;
}

/* As "backward +337 ms: backward 542 ms" does after its colon. */
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
	*room -= (int)strlen(step->phase) + 2; /* its duration has the columns of the other one */
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
	if (step->phase)
		add_unusual(&line, step, &room, style);
	if (step->inside[0] && room > 0 && !says_no_more(step)) {
		text_fit(&line, step->inside, (size_t)room, 0, style);
		/* Where a phase is named, it is told already how much longer: the name goes
		   first. */
		if (!step->phase || strlen(step->inside) + 9 <= (size_t)room)
			buf_print(&line, " %s", format_duration(step->inside_ns, style->utf8).text);
	}
	fprintf(report->out, "%s\n", buf_get(&line));
	buf_fini(&line);
}

int report_slowest(struct report *report)
{
	struct slow_steps slow = { .count = 0 };
	int rc;

	if (report->facts.steps.count < 3)
		return 0;
	rc = rows_each(report->tables, SLOW_SQL, slow_row, &slow, report->err);
	if (rc >= 0 && slow.count)
		rc = find_inside(report, &slow);
	if (rc < 0)
		return rc;
	/* Its last headings are blank-padded by hand: printf counts bytes. */
	fprintf(report->out, "\n%s%-14s%9s  %9s   %s  what took longer%s\n",
		text_paint(report->style, TEXT_BOLD), "Slowest steps", "at", "took",
		report->style->utf8 ? "× median" : "x median", text_plain(report->style));
	for (size_t i = 0; i < slow.count; i++)
		print_slow(report, &slow.steps[i]);
	return 0;
}
