/*
 * Sections are rows of one table. Each prints itself, or, if nothing of its kind was recorded, one
 * line with the option that records it.
 */
#include "views/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "views/report/allocations.h"
#include "views/report/devices.h"
#include "views/verdicts/facts.h"
#include "views/verdicts/findings.h"
#include "views/term/format.h"
#include "views/report/modules.h"
#include "views/report/summary_lines.h"
#include "views/report/report_sections.h"
#include "views/query/rows.h"
#include "views/verdicts/verdict.h"
#include "views_sql.h"

#define MODULES_MOST 15
#define THREADS_MOST 10
#define MODELS_MOST 20
#define QUEUES_MOST 20
#define PATH_MOST 8 /* names on the critical path */
#define PHASE_COLUMNS 50
#define REPORT_THREAD_COLUMNS 40 /* around the thread's name */

/* ---- head ----------------------------------------------------------------------------------- */

/* That a rank of another host may still run is no damage. */
static const char *problem_word(const struct recording *recording)
{
	for (size_t i = 0; i < recording->run_count; i++)
		if (recording->runs[i].elsewhere)
			return "Incomplete: ";
	return "Damaged: ";
}

static void print_problems(const struct report *report)
{
	const struct recording *recording = tables_recording(report->tables);
	struct buf text = { 0 };

	for (size_t i = 0; recording && i < recording->problem_count; i++) {
		buf_reset(&text);
		buf_text(&text, i ? "" : problem_word(recording));
		text_visible(&text, recording->problems[i], strlen(recording->problems[i]));
		text_paragraph(report->out, buf_get(&text), 2, NULL, !i, report->style);
	}
	buf_fini(&text);
}

static void print_session_problems(const struct report *report)
{
	const char *line = tables_problems(report->tables), *end;
	struct buf text = { 0 };

	for (; (end = strchr(line, '\n')); line = end + 1) {
		buf_reset(&text);
		text_visible(&text, line, (size_t)(end - line));
		text_paragraph(report->out, buf_get(&text), 12, "  problem   ", false,
			       report->style);
	}
	buf_fini(&text);
}

/* Times of a trace are those of the tool that wrote it: kymo's clock is not a fact of them. */
static void report_add_clock(struct buf *line, const struct facts *facts,
			     const struct text_style *style)
{
	buf_text(line, facts->clock[0] ? "  clock " : "");
	text_visible(line, facts->clock, strlen(facts->clock));
	if (facts->clock[0] && facts->clock_error_ns >= 0)
		buf_print(line, " %s%s", style->utf8 ? "±" : "+-",
			  format_duration(facts->clock_error_ns, style->utf8).text);
}

static void print_head(const struct report *report)
{
	const struct facts *facts = &report->facts;
	const struct text_style *style = report->style;
	bool several = facts->imported && facts->process_count > 1;
	struct buf line = { 0 };

	buf_text(&line, text_paint(style, TEXT_BOLD));
	text_visible(&line, facts->program, strlen(facts->program));
	buf_text(&line, text_plain(style));
	several = facts->imported && facts->process_count > 1;
	if (facts->rank >= 0 && !several)
		buf_print(&line, "  rank %d", facts->rank);
	if (facts->rank >= 0 && !several && facts->ranks > 0)
		buf_print(&line, " of %d", facts->ranks);
	buf_text(&line, "  ");
	text_visible(&line, facts->how, strlen(facts->how));
	buf_print(&line, "  %s", format_clock(facts->duration_ns, style->utf8).text);
	if (facts->steps.ever)
		buf_print(&line, "  %s step%s", format_count(facts->steps.ever).text,
			  facts->steps.ever == 1 ? "" : "s");
	if (facts->process_count > 1)
		buf_print(&line, "  %zu processes", facts->process_count);
	if (several && facts->rank >= 0 && facts->ranks > 0)
		buf_print(&line, " of %d ranks", facts->ranks);
	if (!facts->imported)
		report_add_clock(&line, facts, style);
	fprintf(report->out, "%s\n", buf_get(&line));
	buf_fini(&line);
}

static void print_one_verdict(const struct report *report, const struct verdict *verdict)
{
	char query[300];

	fputc('\n', report->out);
	text_paragraph(report->out, verdict->sentence, 2, NULL, true, report->style);
	findings_where(report->out, verdict, report->style);
	if (verdict->evidence[0])
		text_paragraph(report->out, verdict->evidence, 12, "  evidence  ", false,
			       report->style);
	if (verdict->query[0]) {
		snprintf(query, sizeof(query), "kymo query \"%s\"", verdict->query);
		text_paragraph(report->out, query, 12, "  numbers   ", false, report->style);
	}
	if (verdict->advice[0])
		text_paragraph(report->out, verdict->advice, 12, "  try       ", false,
			       report->style);
}

/* The same findings as in the summary of a run, with their evidence. */
static void print_verdicts(const struct report *report)
{
	struct verdict verdicts[VERDICT_MOST];
	size_t count = verdict_all(report->tables, &report->facts, report->style->utf8, verdicts,
				   VERDICT_MOST);

	for (size_t i = 0; i < count && i < FINDINGS_MOST; i++)
		print_one_verdict(report, &verdicts[i]);
	if (count > FINDINGS_MOST)
		fprintf(report->out, "\n  %zu more: kymo report -f json\n", count - FINDINGS_MOST);
	print_session_problems(report);
}

/* Sections begin with a blank line and their name. */
static void heading(const struct report *report, const char *text)
{
	/* not foreign: a constant */
	fprintf(report->out, "\n%s%s%s\n", text_paint(report->style, TEXT_BOLD), text,
		text_plain(report->style));
}

/* ---- open zones ----------------------------------------------------------------------------- */

struct open_zones {
	const struct report *report;
	struct buf line;
	uint64_t threads;
};

static void print_open(struct open_zones *open)
{
	if (open->line.used)
		text_paragraph(open->report->out, buf_get(&open->line), 4, "  ", false,
			       open->report->style);
	buf_reset(&open->line);
}

/* "rank 2, MainThread (tid 4711) was in " */
static void begin_open(struct open_zones *open, const struct rows *rows)
{
	const struct report *report = open->report;
	int32_t rank = (int32_t)rows_number(rows, 1, -1);
	char name[256];

	print_open(open);
	open->threads++;
	if (rank >= 0)
		buf_print(&open->line, "rank %d, ", rank);
	rows_copy_text(rows, 3, name, sizeof(name));
	text_fit(&open->line, name[0] ? name : "thread", 32, 0, report->style);
	buf_print(&open->line, " (tid %d) %s in ", (int)rows_number(rows, 2, 0),
		  report->facts.live ? "is" : "was");
}

/* In order of thread and depth: "MainThread (tid 4711) was in train_step for 41.2 ms > data.next
   39.7 ms". */
static int open_row(const struct rows *rows, void *context)
{
	struct open_zones *open = context;
	const struct report *report = open->report;
	bool first = (uint64_t)rows_number(rows, 0, 0) != open->threads;
	char name[256];

	if (open->threads > OPEN_THREADS_SHOWN || (first && open->threads == OPEN_THREADS_SHOWN)) {
		print_open(open);
		open->threads = OPEN_THREADS_SHOWN + 1;
		return 0;
	}
	if (first)
		begin_open(open, rows);
	else
		buf_text(&open->line, " > ");
	rows_copy_text(rows, 4, name, sizeof(name));
	text_fit(&open->line, name, 40, 0, report->style);
	/* Not known if the end of the program was not observed. */
	if (rows_number(rows, 5, -1) >= 0)
		buf_print(&open->line, "%s%s", first ? " for " : " ",
			  format_duration(rows_number(rows, 5, 0), report->style->utf8).text);
	return 0;
}

static int section_open_zones(struct report *report)
{
	struct open_zones open = { .report = report };
	int rc;

	if (tables_number(report->tables, "SELECT count(*) FROM trace.open_zones", 0) <= 0)
		return 0;
	heading(report, report->facts.live ? "Open now" : "Open at the end");
	rc = rows_each(report->tables, sql_report_open_zones, open_row, &open, report->err);
	print_open(&open);
	if (open.threads > OPEN_THREADS_SHOWN)
		fprintf(report->out, "  more: kymo query 'FROM trace.open_zones'\n");
	buf_fini(&open.line);
	return rc;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static int section_steps(struct report *report)
{
	const struct facts *facts = &report->facts;

	if (!facts->steps.ever) {
		fprintf(report->out,
			facts->imported
				? "\nSteps: none in the trace; torch.profiler writes them if the "
				  "loop calls its step()\n"
				: "\nSteps: none recorded; kymo_step(\"step\") or kymo.step() "
				  "marks them\n");
		return 0;
	}
	heading(report, "Steps");
	summary_lines_steps(report->out, facts, report->style);
	summary_lines_sparkline(report->out, facts, report->style);
	return 0;
}

struct phase {
	const char *name;
	double ns;
};

static int by_time(const void *a, const void *b)
{
	const struct phase *left = a, *right = b;

	return left->ns < right->ns ? 1 : left->ns > right->ns ? -1 : 0;
}

/*   backward   49.0 %  ████████████████████████▌                         4.98 ms  */
static void print_phase(const struct report *report, const struct phase *phase)
{
	const struct facts_steps *steps = &report->facts.steps;
	double share = steps->total_ns > 0 ? phase->ns / steps->total_ns : 0;
	double each_ns = steps->count ? phase->ns / (double)steps->count : 0;
	struct buf bar = { 0 }, line = { 0 };

	buf_print(&line, "  %-9s  %4.1f %%  ", phase->name, 100 * share);
	text_bar(&bar, share, PHASE_COLUMNS, report->style);
	text_pad(&line, buf_get(&bar), PHASE_COLUMNS, -1);
	text_pad(&line, format_duration(each_ns, report->style->utf8).text, 9, 1);
	fprintf(report->out, "%s\n", buf_get(&line));
	buf_fini(&bar);
	buf_fini(&line);
}

static int section_phases(struct report *report)
{
	const struct facts_steps *steps = &report->facts.steps;
	struct phase phases[] = {
		{ "data", steps->phase_ns[KYMO_PHASE_DATA] },
		{ "forward", steps->phase_ns[KYMO_PHASE_FORWARD] },
		{ "backward", steps->phase_ns[KYMO_PHASE_BACKWARD] },
		{ "optimizer", steps->phase_ns[KYMO_PHASE_OPTIMIZER] },
		{ "other", steps->total_ns },
	};
	double known_ns = 0;

	for (size_t i = 0; i < 4; i++)
		known_ns += phases[i].ns;
	if (!steps->count || known_ns <= 0)
		return 0;
	phases[4].ns = steps->total_ns > known_ns ? steps->total_ns - known_ns : 0;
	qsort(phases, 5, sizeof(phases[0]), by_time);
	heading(report, "Step time by phase");
	for (size_t i = 0; i < 5; i++)
		if (phases[i].ns > 0)
			print_phase(report, &phases[i]);
	return 0;
}

/* ---- regions, threads ----------------------------------------------------------------------- */

static int by_self_ns(const void *a, const void *b)
{
	const struct facts_region *x = a, *y = b;

	return (y->self_ns > x->self_ns) - (y->self_ns < x->self_ns);
}

/* Subtracts the whole cost of a zone from the zone itself. The part outside its two clock readings
   is in its parent's time, but the totals do not tell which parent. */
static void subtract_overhead(struct facts *facts)
{
	for (size_t i = 0; i < facts->region_count; i++) {
		struct facts_region *region = &facts->regions[i];
		double cost_ns = region->own_cost_ns;

		region->self_ns = region->self_ns > cost_ns ? region->self_ns - cost_ns : 0;
	}
	if (facts->region_count)
		qsort(facts->regions, facts->region_count, sizeof(facts->regions[0]), by_self_ns);
}

static void say_what_was_subtracted(const struct report *report)
{
	const struct facts *facts = &report->facts;
	double cost_ns = 0, count = 0;
	char line[256];

	for (size_t i = 0; i < facts->region_count; i++) {
		cost_ns += facts->regions[i].own_cost_ns;
		count += facts->regions[i].own_cost_ns > 0 ? (double)facts->regions[i].count : 0;
	}
	if (count > 0)
		snprintf(line, sizeof(line),
			 "Self times exclude the cost of recording: %.1f ns per zone, %s in total.",
			 cost_ns / count, format_duration(cost_ns, report->style->utf8).text);
	else
		snprintf(line, sizeof(line),
			 "Self times include the cost of recording, which was not measured.");
	text_paragraph(report->out, line, 2, NULL, false, report->style);
}

static void say_what_has_no_quantiles(const struct report *report)
{
	for (size_t i = 0; i < report->facts.region_count; i++)
		if (report->facts.regions[i].p50_ns < 0) {
			text_paragraph(report->out, FACTS_NO_QUANTILES, 2, NULL, false,
				       report->style);
			return;
		}
}

static const char *why_no_regions(const struct facts *facts)
{
	if (facts->imported && !facts_rows_of(facts, "trace.zones").kept)
		return "none in the trace";
	if (facts_rows_of(facts, "trace.zones").kept && !facts->gc_count)
		return "no totals in this file; kymo query 'FROM trace.zones' lists zones";
	if (facts->function_count)
		return "none recorded; kymo run --python records every call, kymo.region(\"name\") "
		       "a block";
	return "none recorded; mark them with KYMO_SCOPE(\"name\") or kymo.region(\"name\"), or "
	       "use kymo run --python";
}

static int section_regions(struct report *report)
{
	const struct facts *facts = &report->facts;

	if (!facts->region_count) {
		fprintf(report->out, "\nRegions: %s\n", why_no_regions(facts));
		summary_lines_collections(report->out, facts, report->style);
		return 0;
	}
	heading(report, "Regions");
	summary_lines_regions(report->out, facts, FACTS_REGIONS, report->style);
	if (facts->region_all > facts->region_count)
		fprintf(report->out,
			"  %s more: kymo query 'FROM trace.regions ORDER BY self_ns DESC'\n",
			format_count(facts->region_all - facts->region_count).text);
	summary_lines_collections(report->out, facts, report->style);
	say_what_has_no_quantiles(report);
	if (report->subtract_overhead)
		say_what_was_subtracted(report);
	return 0;
}

static int section_functions(struct report *report)
{
	if (!report->facts.function_count)
		return 0;
	heading(report, "Functions of the program's own code");
	summary_lines_functions(report->out, &report->facts, FACTS_FUNCTIONS, report->style);
	return 0;
}

static int report_thread_row(const struct rows *rows, void *context)
{
	const struct report *report = context;
	const struct text_style *style = report->style;
	double busy_ns = rows_number(rows, 2, 0), run_ns = report->facts.duration_ns;
	struct format_text busy = format_duration(busy_ns, style->utf8);
	struct buf line = { 0 };
	char name[64];

	rows_copy_text(rows, 0, name, sizeof(name));
	buf_text(&line, "  ");
	text_pad(&line, busy.text, 8, -1);
	buf_print(&line, "%5.1f  ", run_ns > 0 ? 100 * busy_ns / run_ns : 0.0);
	text_fit(&line, name[0] ? name : "?", (size_t)style->columns - REPORT_THREAD_COLUMNS, -1,
		 style);
	buf_print(&line, "  %8d  %9s", (int)rows_number(rows, 1, 0),
		  format_count_short(rows_count(rows, 3)).text);
	fprintf(report->out, "%s\n", buf_get(&line));
	buf_fini(&line);
	if (rows->number == THREADS_MOST - 1 && rows_count(rows, 4) > THREADS_MOST)
		fprintf(report->out, "  %s more: kymo query 'FROM kymo.threads'\n",
			format_count(rows_count(rows, 4) - THREADS_MOST).text);
	return 0;
}

static int section_threads(struct report *report)
{
	if (!facts_rows_of(&report->facts, "trace.zones").kept &&
	    tables_number(report->tables, "SELECT count(*) FROM trace.open_zones", 0) <= 0)
		return 0;
	heading(report, "Threads");
	fprintf(report->out, "%s  %-8s%5s  %-*s  %8s  %9s%s\n",
		text_paint(report->style, TEXT_BOLD), "busy", "% run",
		report->style->columns - REPORT_THREAD_COLUMNS, "thread", "tid", "zones",
		text_plain(report->style));
	return rows_each(report->tables, sql_report_threads, report_thread_row, report,
			 report->err);
}

static int section_modules(struct report *report)
{
	int printed;

	if (!facts_rows_of(&report->facts, "python.torch_trace").kept) {
		fprintf(report->out, "\nTorch modules: %s\n",
			report->facts.imported ? "none in the trace; torch.profiler writes them "
						 "with with_stack=True"
					       : "none recorded; kymo run --torch or KYMO_TORCH=on "
						 "records them");
		return 0;
	}
	heading(report, "Torch modules");
	printed = modules_print(report->tables, MODULES_MOST, report->out, report->style,
				report->err);
	if (printed == MODULES_MOST)
		fprintf(report->out, "  all: kymo query 'FROM python.torch_trace'\n");
	return printed < 0 ? printed : 0;
}

static int section_operators(struct report *report)
{
	int printed;

	if (!facts_rows_of(&report->facts, "torch.ops").kept)
		return 0;
	heading(report, "Operators");
	printed = modules_print_flops(report->tables, MODULES_MOST, report->out, report->style,
				      report->err);
	return printed < 0 ? printed : 0;
}

/* ---- devices -------------------------------------------------------------------------------- */

static int section_devices(struct report *report)
{
	int rc;

	if (!facts_rows_of(&report->facts, "device.ops").kept)
		return 0;
	heading(report, "Devices");
	rc = devices_print_queues(report->tables, QUEUES_MOST, report->out, report->style,
				  report->err);
	if (rc >= 0 && !report->models_said)
		rc = devices_print_models(report->tables, MODELS_MOST, report->out, report->style,
					  report->err);
	return rc < 0 ? rc : 0;
}

/* A packed file of an earlier version has no path. */
static int section_path(struct report *report)
{
	struct kymo_error ignored;

	if (facts_rows_of(&report->facts, "device.ops").kept ||
	    facts_rows_of(&report->facts, "dist.collectives").kept)
		devices_print_path(report->tables, PATH_MOST, report->out, report->style, &ignored);
	return 0;
}

/* A capture of models is opened for one thing: the time of each model. */
static int say_models_first(struct report *report)
{
	int rc;

	if (!facts_rows_of(&report->facts, "device.ops").kept || report->facts.steps.ever ||
	    !report->facts.saved)
		return 0;
	rc = devices_print_models(report->tables, MODELS_MOST, report->out, report->style,
				  report->err);
	report->models_said = rc > 0;
	if (rc > 0)
		fputc('\n', report->out);
	return rc < 0 ? rc : 0;
}

/* ---- memory, losses ------------------------------------------------------------------------- */

static const char *why_no_memory(const struct facts *facts)
{
	if (!facts->imported)
		return "not recorded; kymo run -- PROGRAM records it every second";
	if (facts_rows_of(facts, "device.memory").kept)
		return "kymo query 'FROM device.memory' lists the allocations of the trace";
	return "not in the trace; torch.profiler writes it with profile_memory=True";
}

static void resident_memory(struct report *report)
{
	const struct facts_memory *memory = &report->facts.memory;
	double grown = memory->last_bytes - memory->early_bytes;

	if (memory->peak_bytes <= 0) {
		/* not foreign: one of three literals */
		fprintf(report->out, "\nMemory: %s\n", why_no_memory(&report->facts));
		return;
	}
	heading(report, "Memory");
	summary_lines_memory(report->out, &report->facts, report->style);
	if (memory->samples < 10 || memory->early_bytes <= 0)
		return;
	fprintf(report->out, "  %s by %s since %s\n", grown < 0 ? "shrank" : "grew",
		format_bytes(grown < 0 ? -grown : grown).text,
		format_clock(memory->early_at_ns, report->style->utf8).text);
}

static int section_memory(struct report *report)
{
	resident_memory(report);
	return allocations_print(report->tables, report->style, report->out, report->err);
}

static int report_loss_row(const struct rows *rows, void *context)
{
	const struct report *report = context;
	char table[64];

	rows_copy_text(rows, 0, table, sizeof(table));
	text_line(report->out, "  %-24s %14s %14s %11s %11s", table,
		  format_count(rows_count(rows, 1)).text, format_count(rows_count(rows, 2)).text,
		  format_count(rows_count(rows, 3)).text, format_count(rows_count(rows, 4)).text);
	return 0;
}

static int section_losses(struct report *report)
{
	const struct facts_rows *total = &report->facts.total;

	heading(report, "Losses and overhead");
	summary_lines_losses(report->out, &report->facts, report->style);
	if (!total->overwritten && !total->dropped)
		return 0;
	fprintf(report->out, "%s  %-24s %14s %14s %11s %11s%s\n",
		text_paint(report->style, TEXT_BOLD), "table", "emitted", "kept", "overwritten",
		"dropped", text_plain(report->style));
	return rows_each(report->tables, sql_report_losses, report_loss_row, report, report->err);
}

/* In the order of printing. 0, or a negative errno that ends the report. */
static int (*const sections[])(struct report *report) = {
	section_open_zones, section_steps,     section_phases,	report_slowest,	 section_path,
	section_regions,    section_functions, section_threads, section_modules, section_operators,
	section_devices,    section_memory,    section_losses,
};

int report_print(struct tables *tables, bool subtract, const struct text_style *style, FILE *out,
		 struct kymo_error *err)
{
	struct report report = { .tables = tables,
				 .style = style,
				 .out = out,
				 .subtract_overhead = subtract,
				 .err = err };
	int rc = facts_gather(tables, &report.facts, err);

	if (!rc && subtract)
		subtract_overhead(&report.facts);
	if (!rc)
		rc = say_models_first(&report);
	if (!rc) {
		print_problems(&report);
		print_head(&report);
		print_verdicts(&report);
	}
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]) && rc >= 0; i++)
		rc = sections[i](&report);
	facts_fini(&report.facts);
	return rc < 0 ? rc : 0;
}
