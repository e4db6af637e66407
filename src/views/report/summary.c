#include "views/report/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "store/store.h"
#include "tables/tables.h"
#include "views/report/devices.h"
#include "views/verdicts/facts.h"
#include "views/term/format.h"
#include "views/report/modules.h"
#include "views/report/summary_lines.h"
#include "views/term/text.h"
#include "views/verdicts/verdict.h"

#define LINES_MOST 13
#define VACCEL_OFF \
	"vaccel_prof regions, not enabled" /* a name that compat/ records, without rows */
#define FUNCTIONS_MOST 5
#define REGIONS_MOST 5
#define SAMPLES_LEAST 40 /* about 40 ms of a Python program: enough to name a function */
#define SMALL_ROWS 1000 /* summed up by the store in less time than DuckDB takes to start */

static struct text_style style_of(const struct summary_options *options, FILE *out)
{
	struct text_style style = text_style_of(out);

	style.colour = options && options->colour;
	if (options && options->columns > 0)
		style.columns = options->columns;
	return style;
}

/* The first sentences: a failure if there was one, and the first verdict on the time. */
struct headline {
	struct verdict verdicts[2];
	size_t count;
};

static bool has_failed(const struct headline *headline)
{
	return !strcmp(headline->verdicts[0].name, VERDICT_ENDED);
}

static void find_headline(struct tables *tables, const struct facts *facts, bool utf8,
			  struct headline *out)
{
	out->count = verdict_all(tables, facts, utf8, out->verdicts, 2);
	if (!has_failed(out))
		out->count = 1;
}

static void add_sentence(char *out, size_t out_bytes, const char *sentence, const char *advice)
{
	size_t used = strlen(out);

	if (sentence[0])
		snprintf(out + used, out_bytes - used, "%s%s%s%s%s", used ? " " : "", sentence,
			 advice[0] ? " Try: " : "", advice, advice[0] ? "." : "");
}

/* The open zones of a failed program belong to its failure; otherwise they come last. */
static void join(const struct headline *headline, const char *open, char *out, size_t out_bytes)
{
	const struct verdict *first = &headline->verdicts[0], *second = &headline->verdicts[1];

	out[0] = '\0';
	if (has_failed(headline)) {
		add_sentence(out, out_bytes, first->sentence, "");
		add_sentence(out, out_bytes, open, headline->count > 1 ? "" : first->advice);
		if (!open[0] && headline->count == 1)
			snprintf(out + strlen(out), out_bytes - strlen(out), " Try: %s.",
				 first->advice);
		if (headline->count > 1)
			add_sentence(out, out_bytes, second->sentence, second->advice);
		return;
	}
	add_sentence(out, out_bytes, first->sentence, first->advice);
	add_sentence(out, out_bytes, open, "");
}

/* With steps, the lines are needed for steps and phases; costly collections have a verdict. */
static bool says_collections(const struct facts *facts)
{
	return summary_lines_has_collections(facts) && !facts->steps.ever;
}

/* Lines that are always printed; the regions get the rest. */
static int lines_beside_regions(const char *sentence, const char *note, const struct facts *facts,
				const struct text_style *style)
{
	int lines = text_paragraph_lines(sentence, 2, style) + 1; /* and a blank one */

	lines += note ? text_paragraph_lines(note, 2, style) : 0;
	lines += facts->steps.ever > 0;
	lines += facts->steps.count >= FACTS_SPARK_LEAST;
	lines += summary_lines_has_phases(facts);
	lines += facts->sampler_pct >= 0;
	lines += facts->memory.peak_bytes > 0;
	lines += says_collections(facts);
	return lines + 4; /* recorded, losses, more, the header of the regions */
}

static void summary_add_open(struct buf *out, const struct recording *recording,
			     const struct store_stream *stream, bool utf8)
{
	const struct store_process *process = &recording->processes[stream->process];

	const char *verb = process->state == STORE_LIVE ? "is" : "ended";

	if (process->pid == recording->run.target_pid)
		buf_print(out, "It %s inside ", verb);
	else
		buf_print(out, "Process %d %s inside ", process->pid, verb);
	for (size_t i = 0; i < stream->open_count; i++) {
		const struct store_open_zone *zone = &stream->open_zones[i];
		double age_ns = (double)(process->ended_ns - zone->start_ns);

		buf_print(out, "%s%.80s", i ? " > " : "", recording->names[zone->name].text);
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

/* Torch modules are zones too, but their own table has more detail. */
static void print_costliest(struct tables *tables, const struct facts *facts, size_t rows,
			    FILE *out, const struct text_style *style)
{
	if (tables && facts_rows_of(facts, "python.torch_trace").kept &&
	    !is_about_functions(facts) && modules_print(tables, rows, out, style, NULL) > 0)
		return;
	if (facts->region_count)
		summary_lines_regions(out, facts, rows, style);
	else
		summary_lines_functions(out, facts, rows < FUNCTIONS_MOST ? rows : FUNCTIONS_MOST,
					style);
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

/* tables: NULL without SQL. */
static void report_summary_print(struct tables *tables, const struct facts *facts,
				 const struct headline *headline, const char *open,
				 const char *note, FILE *out, const struct text_style *style)
{
	char *devices = take_devices(tables, facts, style);
	char sentence[2000];
	bool tight; /* the blank line makes room for a region */
	int room;

	join(headline, open, sentence, sizeof(sentence));
	if (open[0] && !facts->region_count && !has_failed(headline))
		snprintf(sentence, sizeof(sentence), "%s", open);
	room = LINES_MOST - lines_beside_regions(sentence, note, facts, style) - lines_of(devices);
	tight = room < 1;
	room = tight ? 1 : room > REGIONS_MOST ? REGIONS_MOST : room;
	text_paragraph(out, sentence, 2, NULL, true, style);
	if (!tight)
		fputc('\n', out);
	summary_lines_steps(out, facts, style);
	summary_lines_phases(out, facts);
	if (facts->steps.count)
		summary_lines_sparkline(out, facts, style);
	print_costliest(tables, facts, (size_t)room, out, style);
	if (says_collections(facts))
		summary_lines_collections(out, facts, style);
	fputs(devices ? devices : "", out); /* not foreign: devices_print_lines() escapes */
	free(devices);
	summary_lines_memory(out, facts, style);
	summary_lines_recorded(out, facts, style);
	summary_lines_losses(out, facts, style);
	if (note)
		text_paragraph(out, note, 2, NULL, false, style);
	fprintf(out, "  more: kymo report | kymo query 'FROM %s'\n",
		facts->region_count || !facts->function_count ? "trace.regions" : "python.samples");
}

/* A small recording without steps needs no SQL: this saves the start of DuckDB. */
static bool is_small(const struct recording *recording)
{
	uint64_t rows = 0;

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
		if (strncmp(stream->table, "host.", 5) != 0)
			rows += stream->emitted;
	}
	return rows <= SMALL_ROWS;
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

static int print_from_store(const struct recording *recording, const char *open, const char *note,
			    FILE *out, const struct text_style *style, struct kymo_error *err)
{
	struct headline headline;
	struct facts facts;
	int rc = facts_from_store(recording, &facts, err);

	if (!rc) {
		find_headline(NULL, &facts, style->utf8, &headline);
		report_summary_print(NULL, &facts, &headline, open, note, out, style);
	}
	facts_fini(&facts);
	return rc;
}

static int print_from_tables(const char *path, const char *open, const char *note, FILE *out,
			     const struct text_style *style, struct kymo_error *err)
{
	struct tables_options options = { .memory_limit_bytes = tables_own_memory() };
	struct tables *tables = NULL;
	struct headline headline;
	struct facts facts = { 0 };
	int rc = tables_open(path, &options, &tables, err);

	if (!rc)
		rc = facts_gather(tables, &facts, err);
	if (!rc) {
		find_headline(tables, &facts, style->utf8, &headline);
		report_summary_print(tables, &facts, &headline, open, note, out, style);
	}
	facts_fini(&facts);
	tables_close(tables);
	return rc;
}

int summary_print(const char *path, const struct summary_options *options, FILE *out,
		  struct kymo_error *err)
{
	struct text_style style = style_of(options, out);
	struct kymo_error why = { 0 };
	struct recording *recording = NULL;
	const char *hint;
	char open[1000];
	int rc = store_open(path, &recording, err);

	if (rc)
		return rc;
	summary_say_open(recording, style.utf8, open, sizeof(open));
	hint = hint_of(recording);
	if (is_small(recording))
		rc = print_from_store(recording, open, hint, out, &style, err);
	else if (print_from_tables(path, open, hint, out, &style, &why))
		rc = print_from_store(recording, open, why.text, out, &style, err);
	store_close(recording);
	return rc;
}
