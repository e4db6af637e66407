#include "views/report/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "store/store.h"
#include "tables/tables.h"
#include "views/report/devices.h"
#include "views/verdicts/facts.h"
#include "views/verdicts/findings.h"
#include "views/term/format.h"
#include "views/report/modules.h"
#include "views/report/summary_lines.h"
#include "views/term/text.h"
#include "views/verdicts/verdict.h"

#define LINES_MOST 22 /* below the line on the end, with room for one on children */
#define FIRST_LINES 6 /* of the first finding */
#define FINDING_LINES 4 /* of another one */
#define FINDING_LINES_LEAST 2
#define OPEN_LINES 2
#define OPEN_NAME_BYTES 80
#define ROOMY 7 /* lines that a whole table and the line on rows take; more: a blank one */
#define SECOND_TABLE_LEAST 3 /* lines that are left for it */
#define VACCEL_OFF \
	"vaccel_prof regions, not enabled" /* a name that compat/ records, without rows */
#define PLACES_MOST 5
#define REGIONS_MOST 5
#define SAMPLES_LEAST 40 /* about 40 ms of a Python program: enough to name a function */
#define SMALL_NS 1000000000 /* a longer run can wait for DuckDB, and may have other findings */
#define SMALL_ROWS 1000 /* summed up by the store in less time than DuckDB takes to start */

static struct text_style style_of(const struct summary_options *options, FILE *out)
{
	struct text_style style = text_style_of(out);

	style.colour = options && options->colour;
	if (options && options->columns > 0)
		style.columns = options->columns;
	return style;
}

static void summary_add_open(struct buf *out, const struct recording *recording,
			     const struct store_stream *stream, bool utf8)
{
	const struct store_process *process = &recording->processes[stream->process];

	if (process->pid == recording->run.target_pid)
		buf_text(out, "It ");
	else
		buf_print(out, "Process %d ", process->pid);
	buf_text(out, process->state == STORE_LIVE ? "is inside " : "ended inside ");
	for (size_t i = 0; i < stream->open_count; i++) {
		const struct store_open_zone *zone = &stream->open_zones[i];
		const char *name = recording->names[zone->name].text;
		double age_ns = (double)(process->ended_ns - zone->start_ns);

		buf_text(out, i ? " > " : "");
		text_visible(out, name, strnlen(name, OPEN_NAME_BYTES));
		if (process->state != STORE_LOST && age_ns > 0)
			buf_print(out, " for %s", format_duration(age_ns, utf8).text);
	}
	buf_text(out, ".");
}

/* A program that ended by itself has not ended because of a collection of garbage. */
static bool is_said(const struct recording *recording, const struct store_stream *stream)
{
	const struct store_process *process = &recording->processes[stream->process];
	bool by_itself = process->state == STORE_ENDED &&
			 (!process->wstatus_known || !process->wstatus);
	uint32_t outermost = stream->open_count ? stream->open_zones[0].name : 0;

	return stream->open_count && !(by_itself && !strncmp(recording->names[outermost].text,
							     FACTS_GC, strlen(FACTS_GC)));
}

/* "It ended inside train_step for 41.2 ms > data.next for 39.7 ms." Empty if no zone was open. */
static void summary_say_open(const struct recording *recording, bool utf8, char *out,
			     size_t out_bytes)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < recording->stream_count && !text.used; i++)
		if (is_said(recording, &recording->streams[i]))
			summary_add_open(&text, recording, &recording->streams[i], utf8);
	snprintf(out, out_bytes, "%s", text.used ? buf_get(&text) : "");
	buf_fini(&text);
}

/* Python functions were recorded, and there is no loop with steps: a test or a script. */
static bool is_about_functions(const struct facts *facts)
{
	for (size_t i = 0; !facts->steps.count && i < facts->region_count; i++) {
		const struct facts_region *region = &facts->regions[i];

		if (!strcmp(region->source, "python") && !region->import)
			return true;
	}
	return false;
}

/* The lines on devices, to count them before they are printed. The caller frees the text; NULL:
   none. */
static char *take_devices(struct tables *tables, const struct facts *facts,
			  const struct text_style *style)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = tables && facts_rows_of(facts, "device.ops").kept
			    ? open_memstream(&text, &bytes)
			    : NULL;

	if (!out)
		return NULL;
	/* With steps, the model is part of them. */
	devices_print_lines(tables, !facts->steps.ever, out, style);
	fclose(out);
	return text;
}

static int lines_of(const char *text)
{
	int lines = 0;

	while (text && (text = strchr(text, '\n'))) {
		text++;
		lines++;
	}
	return lines;
}

/* ---- the screen ----------------------------------------------------------------------------- */

struct screen {
	struct tables *tables; /* NULL: without SQL */
	const struct facts *facts;
	const struct text_style *style;
	FILE *out;
	struct verdict findings[FINDINGS_MOST];
	size_t finding_count;
	int lines[FINDINGS_MOST]; /* of each finding, at most */
	char open[1000]; /* the open zones, as a sentence; "": none */
	const char *note; /* NULL: none */
	bool stack_said; /* the last stack is printed above */
	char *devices; /* lines on devices; NULL: none */
	int left; /* lines */
};

static int first_lines(const char *text, const struct text_style *style)
{
	return text && text[0] ? text_paragraph_lines(text, 2, style) : 0;
}

/* The stack of a program that was killed belongs to its sentence, unless zones tell more. */
static void join_evidence(struct screen *screen)
{
	struct verdict *first = &screen->findings[0];
	size_t used = strlen(first->sentence);

	if (!strcmp(first->name, VERDICT_ENDED) && first->evidence[0] && !screen->open[0] &&
	    !screen->stack_said)
		snprintf(first->sentence + used, sizeof(first->sentence) - used, " %s.",
			 first->evidence);
}

static void find_findings(struct screen *screen)
{
	screen->finding_count = verdict_all(screen->tables, screen->facts, screen->style->utf8,
					    screen->findings, FINDINGS_MOST);
	join_evidence(screen);
	/* Of a program without an ended zone, the open ones say more than that there is none. */
	if (screen->open[0] && !screen->findings[0].name[0] && !screen->facts->region_count &&
	    !screen->facts->function_count)
		screen->finding_count = 0;
}

/* With steps, the lines are needed for steps and phases; costly collections have a verdict. */
static bool says_collections(const struct facts *facts)
{
	return summary_lines_has_collections(facts) && !facts->steps.ever;
}

/* Lines that are always printed. */
static int fixed_lines(const struct screen *screen)
{
	const struct facts *facts = screen->facts;
	int lines = first_lines(screen->note, screen->style) +
		    first_lines(screen->open, screen->style) + lines_of(screen->devices);

	lines += facts->steps.ever > 0;
	lines += facts->steps.count >= FACTS_SPARK_LEAST;
	lines += summary_lines_has_phases(facts);
	lines += facts->memory.peak_bytes > 0;
	lines += says_collections(facts);
	return lines + 2; /* losses, next */
}

static int sum_of_lines(const struct screen *screen)
{
	int sum = 0;

	for (size_t i = 0; i < screen->finding_count; i++)
		sum += screen->lines[i];
	return sum;
}

/* Gives each finding the lines that it needs, and takes from the last ones what does not fit. */
static void allot_findings(struct screen *screen, int most)
{
	for (size_t i = 0; i < screen->finding_count; i++)
		screen->lines[i] = findings_lines(&screen->findings[i],
						  i ? FINDING_LINES : FIRST_LINES, screen->style);
	while (screen->finding_count > 1 && sum_of_lines(screen) > most) {
		int *last = &screen->lines[screen->finding_count - 1];

		if (*last > FINDING_LINES_LEAST)
			--*last;
		else
			screen->finding_count--;
	}
}

static void print_findings(struct screen *screen)
{
	for (size_t i = 0; i < screen->finding_count; i++)
		screen->left -= findings_print(screen->out, &screen->findings[i], screen->lines[i],
					       screen->style);
	if (screen->open[0])
		text_paragraph(screen->out, screen->open, 2, NULL, !screen->finding_count,
			       screen->style);
}

/* ---- tables --------------------------------------------------------------------------------- */

/* Rows of a table with a header, at most `most`; 0: no room for it. */
static size_t table_rows(const struct screen *screen, size_t most, size_t count)
{
	size_t room = screen->left > 1 ? (size_t)screen->left - 1 : 0;

	count = count < most ? count : most;
	return room < count ? room : count;
}

static void print_places(struct screen *screen)
{
	size_t rows = table_rows(screen, PLACES_MOST, screen->facts->function_count);

	if (!rows)
		return;
	summary_lines_functions(screen->out, screen->facts, rows, screen->style);
	screen->left -= (int)rows + 1;
}

/* Torch modules are zones too, but their own table has more detail. */
static void print_regions(struct screen *screen)
{
	const struct facts *facts = screen->facts;
	size_t rows = table_rows(screen, REGIONS_MOST, REGIONS_MOST);
	int printed;

	if (screen->tables && rows && facts_rows_of(facts, "python.torch_trace").kept &&
	    !is_about_functions(facts)) {
		printed = modules_print(screen->tables, rows, screen->out, screen->style, NULL);
		screen->left -= printed > 0 ? printed + 1 : 0;
		if (printed > 0)
			return;
	}
	rows = table_rows(screen, REGIONS_MOST, facts->region_count);
	if (!rows)
		return;
	summary_lines_regions(screen->out, facts, rows, screen->style);
	screen->left -= (int)rows + 1;
}

/* Where calls are recorded, regions are the functions, with exact times. */
static void print_costliest(struct screen *screen)
{
	const struct facts *facts = screen->facts;

	/* Zones tell more than few samples, and than native samples of a program without Python. */
	bool weak = facts->function_samples < SAMPLES_LEAST || is_about_functions(facts) ||
		    (facts->function_count && strcmp(facts->functions[0].source, "python") != 0);

	if (!facts->function_count || (facts->region_count && weak)) {
		print_regions(screen);
		return;
	}
	print_places(screen);
	if (screen->left > SECOND_TABLE_LEAST)
		print_regions(screen);
}

/* ---- what to type next ---------------------------------------------------------------------- */

/* Adds a command if the line has room for it. */
static void add_next(struct buf *line, const char *command, const struct text_style *style)
{
	const char *before = line->used ? " | " : "  next: ";

	if (line->used + strlen(before) + strlen(command) <= (size_t)style->columns)
		buf_print(line, "%s%s", before, command); /* not foreign: a constant and a pid */
}

static void print_next(const struct screen *screen)
{
	const struct facts *facts = screen->facts;
	bool failed = false;
	struct buf line = { 0 };
	char top[32];

	for (size_t i = 0; i < screen->finding_count && i < 2; i++)
		failed |= !strcmp(screen->findings[i].name, VERDICT_ENDED);
	snprintf(top, sizeof(top), "kymo top %d", facts->pid);
	if (facts->live)
		add_next(&line, top, screen->style);
	else if (failed && facts_rows_of(facts, "python.samples").kept)
		add_next(&line, "kymo backtrace", screen->style);
	add_next(&line, "kymo report --open", screen->style);
	if (facts->function_count)
		add_next(&line, "kymo flame", screen->style);
	add_next(&line,
		 facts->region_count	 ? "kymo query 'FROM trace.regions'"
		 : facts->function_count ? "kymo query 'FROM trace.places'"
		 : facts->steps.ever	 ? "kymo query 'FROM trace.steps'"
					 : "kymo query 'FROM host.process'",
		 screen->style);
	fprintf(screen->out, "%s\n", buf_get(&line));
	buf_fini(&line);
}

static void report_summary_print(struct screen *screen)
{
	const struct facts *facts = screen->facts;
	const struct text_style *style = screen->style;
	FILE *out = screen->out;
	size_t rows = facts->function_count ? facts->function_count : facts->region_count;
	int table = rows > PLACES_MOST ? PLACES_MOST + 1 : rows ? (int)rows + 1 : 0;

	screen->devices = take_devices(screen->tables, facts, style);
	screen->left -= fixed_lines(screen);
	allot_findings(screen, screen->left - table);
	print_findings(screen);
	if (screen->left > ROOMY) {
		fputc('\n', out);
		screen->left--;
	}
	summary_lines_steps(out, facts, style);
	summary_lines_phases(out, facts);
	if (facts->steps.count)
		summary_lines_sparkline(out, facts, style);
	print_costliest(screen);
	if (says_collections(facts))
		summary_lines_collections(out, facts, style);
	fputs(screen->devices ? screen->devices : "", out); /* not foreign: escaped already */
	free(screen->devices);
	summary_lines_memory(out, facts, style);
	if (screen->left > 0)
		summary_lines_recorded(out, facts, style);
	summary_lines_cost(out, facts, style);
	if (screen->note)
		text_paragraph(out, screen->note, 2, NULL, false, style);
	print_next(screen);
}

/* A small recording without steps needs no SQL: this saves the start of DuckDB. */
static bool is_small(const struct recording *recording)
{
	uint64_t rows = 0, native = 0;
	bool python = false;

	if (recording->duration_ns > SMALL_NS)
		return false;
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		if (!strcmp(stream->table, "trace.steps") && stream->emitted)
			return false;
		/* So do the queues and models of devices. */
		if (!strcmp(stream->table, "device.ops") && stream->emitted)
			return false;
		/* And the mark with the exception of a failed program. */
		if (!strcmp(stream->table, "trace.marks") && stream->emitted &&
		    recording->run.target_wstatus)
			return false;
		/* Enough stack samples for a verdict. */
		if (!strcmp(stream->table, "python.samples") && stream->emitted >= SAMPLES_LEAST)
			return false;
		python |= !strcmp(stream->table, "python.samples") && stream->emitted;
		if (!strcmp(stream->table, "native.samples"))
			native += stream->emitted;
		if (strncmp(stream->table, "host.", 5) != 0 &&
		    strncmp(stream->table, "native.", 7) != 0)
			rows += stream->emitted;
	}
	/* The native samples of a short Python program are those of its start. */
	return rows <= SMALL_ROWS && (python || native < SAMPLES_LEAST);
}

/* A note on regions of the program that were not recorded; NULL: none. */
static const char *hint_of(const struct recording *recording)
{
	for (size_t i = 0; i < recording->name_count; i++)
		if (!strcmp(recording->names[i].text, VACCEL_OFF))
			return "The program uses regions of vaccel_prof.h, which are disabled: "
			       "VACCEL_PROF_ENABLED=enabled records them.";
	return NULL;
}

static int print_from_store(const struct recording *recording, struct screen *screen,
			    struct kymo_error *err)
{
	struct facts facts;
	int rc = facts_from_store(recording, &facts, err);

	screen->facts = &facts;
	screen->tables = NULL;
	if (!rc) {
		find_findings(screen);
		report_summary_print(screen);
	}
	screen->facts = NULL;
	facts_fini(&facts);
	return rc;
}

static int print_from_tables(const char *path, struct screen *screen, struct kymo_error *err)
{
	struct tables_options options = { .memory_limit_bytes = tables_own_memory() };
	struct facts facts = { 0 };
	int rc = tables_open(path, &options, &screen->tables, err);

	screen->facts = &facts;
	if (!rc)
		rc = facts_gather(screen->tables, &facts, err);
	if (!rc) {
		find_findings(screen);
		report_summary_print(screen);
	}
	screen->facts = NULL;
	facts_fini(&facts);
	tables_close(screen->tables);
	return rc;
}

int summary_print(const char *path, const struct summary_options *options, FILE *out,
		  struct kymo_error *err)
{
	struct text_style style = style_of(options, out);
	struct screen screen = { .style = &style,
				 .out = out,
				 .left = LINES_MOST - (options ? options->lines_above : 0) };
	struct kymo_error why = { 0 };
	struct recording *recording = NULL;
	int rc = store_open(path, &recording, err);

	if (rc)
		return rc;
	summary_say_open(recording, style.utf8, screen.open, sizeof(screen.open));
	text_shorten(screen.open, sizeof(screen.open), 2, OPEN_LINES, &style);
	screen.note = hint_of(recording);
	screen.stack_said = options && options->stack_said;
	if (is_small(recording)) {
		rc = print_from_store(recording, &screen, err);
	} else if (print_from_tables(path, &screen, &why)) {
		screen.note = why.text;
		rc = print_from_store(recording, &screen, err);
	}
	store_close(recording);
	return rc;
}
