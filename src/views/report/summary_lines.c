#include "views/report/summary_lines.h"

#include <math.h>
#include <string.h>

#include "views/term/format.h"

/* Columns beside the name of a region; the name gets the rest of the line. */
#define REGION_COLUMNS 53
#define REGION_NAME_LEAST 12
#define FUNCTION_COLUMNS 34 /* before the name of a function */
#define COLLECTIONS_LEAST 0.01 /* of the run; less gets no line */

static void print_line(FILE *out, struct buf *line)
{
	size_t used = line->used;

	while (used && line->data[used - 1] == ' ')
		used--;
	if (used)
		fwrite(line->data, 1, used, out); /* not foreign: a buffer, as checked */
	fputc('\n', out);
	buf_fini(line);
}

void summary_lines_steps(FILE *out, const struct facts *facts, const struct text_style *style)
{
	const struct facts_steps *steps = &facts->steps;
	double span_ns = steps->last_ns - steps->first_ns;
	char batch[128] = "";

	if (!steps->ever && !steps->count)
		return;
	fprintf(out, "  ");
	if (steps->count && steps->count < steps->ever)
		fprintf(out, "last %s of ", format_count(steps->count).text);
	fprintf(out, "%s step%s", format_count(steps->ever).text, steps->ever == 1 ? "" : "s");
	if (steps->count)
		fprintf(out, "   median %s   p99 %s",
			format_duration(steps->median_ns, style->utf8).text,
			format_duration(steps->p99_ns, style->utf8).text);
	if (steps->count > 1 && span_ns > 0) {
		double rate = (double)steps->count / (span_ns / 1e9);

		if (rate >= 1000)
			fprintf(out, "   %s steps/s", format_count((uint64_t)rate).text);
		else
			fprintf(out, "   %.3g steps/s", rate);
		if (steps->batch > 0)
			snprintf(batch, sizeof(batch), "   %s %s/s",
				 format_count((uint64_t)(rate * steps->batch + 0.5)).text,
				 steps->batch_unit);
	}
	text_line(out, "%s", batch);
}

static const char *phase_word(size_t phase)
{
	static const char *const words[KYMO_PHASE_COUNT] = { [KYMO_PHASE_DATA] = "data",
							     [KYMO_PHASE_FORWARD] = "forward",
							     [KYMO_PHASE_BACKWARD] = "backward",
							     [KYMO_PHASE_OPTIMIZER] = "optimizer" };

	return words[phase];
}

bool summary_lines_has_phases(const struct facts *facts)
{
	for (size_t i = 0; facts->steps.total_ns > 0 && i < KYMO_PHASE_COUNT; i++)
		if (phase_word(i) && facts->steps.phase_ns[i] > 0)
			return true;
	return false;
}

void summary_lines_phases(FILE *out, const struct facts *facts)
{
	const struct facts_steps *steps = &facts->steps;
	double rest_ns = steps->total_ns;

	if (!summary_lines_has_phases(facts))
		return;
	fprintf(out, "  phases: ");
	for (size_t i = 0; i < KYMO_PHASE_COUNT; i++) {
		if (!phase_word(i) || steps->phase_ns[i] <= 0)
			continue;
		fprintf(out, "%s %.0f %%, ", phase_word(i),
			100 * steps->phase_ns[i] / steps->total_ns);
		rest_ns -= steps->phase_ns[i];
	}
	fprintf(out, "other %.0f %%\n", rest_ns > 0 ? 100 * rest_ns / steps->total_ns : 0);
}

bool summary_lines_sparkline(FILE *out, const struct facts *facts, const struct text_style *style)
{
	const double *values = facts->steps.spark_ns;
	struct buf line = { 0 };

	if (facts->steps.most_ns <= 0)
		return false;
	buf_text(&line, "  step time  ");
	text_sparkline(&line, values, FACTS_SPARK, style);
	buf_print(&line, "  %s", format_duration(facts->steps.least_ns, style->utf8).text);
	buf_print(&line, " to %s", format_duration(facts->steps.most_ns, style->utf8).text);
	print_line(out, &line);
	return true;
}

static const char *known_duration(struct format_text *text, double ns, bool utf8)
{
	if (ns < 0)
		return "-";
	*text = format_duration(ns, utf8);
	return text->text;
}

/*   85.7 s   31.3  aten::mm                    c        997,776  84.9 µs   112 µs  */
static void print_region(FILE *out, const struct facts_region *region, double run_ns,
			 size_t name_columns, const struct text_style *style)
{
	struct format_text text;
	struct buf line = { 0 };
	char percent[16];

	snprintf(percent, sizeof(percent), "%.1f",
		 run_ns > 0 ? 100 * region->self_ns / run_ns : 0.0);
	buf_text(&line, "  ");
	text_pad(&line, format_duration(region->self_ns, style->utf8).text, 8, -1);
	text_pad(&line, percent, 5, 1);
	buf_text(&line, "  ");
	text_fit(&line, region->name, name_columns, -1, style);
	buf_text(&line, "  ");
	buf_text(&line, text_paint(style, text_source_paint(region->source)));
	text_pad(&line, region->source, 6, -1);
	buf_text(&line, text_plain(style));
	buf_char(&line, ' ');
	text_pad(&line, format_count_short(region->count).text, 9, 1);
	buf_char(&line, ' ');
	text_pad(&line, known_duration(&text, region->p50_ns, style->utf8), 8, 1);
	buf_char(&line, ' ');
	text_pad(&line, known_duration(&text, region->p99_ns, style->utf8), 8, 1);
	print_line(out, &line);
}

void summary_lines_regions(FILE *out, const struct facts *facts, size_t rows,
			   const struct text_style *style)
{
	size_t name_columns = REGION_NAME_LEAST;

	if (style->columns > REGION_COLUMNS + REGION_NAME_LEAST)
		name_columns = (size_t)style->columns - REGION_COLUMNS - 1;
	if (!facts->region_count)
		return;
	fprintf(out, "%s  %-8s%5s  %-*s  %-6s %9s %8s %8s%s\n", text_paint(style, TEXT_BOLD),
		"self", "% run", (int)name_columns, "region", "source", "count", "p50", "p99",
		text_plain(style));
	for (size_t i = 0; i < rows && i < facts->region_count; i++)
		print_region(out, &facts->regions[i], facts->duration_ns, name_columns, style);
}

/*   1.58 s   47.0  1.62 s     100 %  normalise (prep.py:5)  */
static void print_function(FILE *out, const struct facts *facts,
			   const struct facts_function *function, bool sources,
			   const struct text_style *style)
{
	size_t before = FUNCTION_COLUMNS + (sources ? 8 : 0);
	size_t columns = (size_t)style->columns > before + REGION_NAME_LEAST
				 ? (size_t)style->columns - before
				 : REGION_NAME_LEAST;
	bool timed = function->total >= 0; /* else the samples have no weights */
	double whole = timed ? facts->duration_ns : facts->function_time, percent;
	struct format_text text;
	struct buf line = { 0 };

	buf_text(&line, "  ");
	text_pad(&line, known_duration(&text, timed ? function->time : -1, style->utf8), 8, -1);
	percent = whole > 0 ? 100 * function->time / whole : 0;
	buf_print(&line, percent < 1000 ? "%5.1f  " : "%5.0f  ", percent);
	text_pad(&line, known_duration(&text, function->total, style->utf8), 8, -1);
	buf_print(&line, "%5.0f %%  ",
		  timed && function->time > 0 ? 100 * function->running / function->time : 0);
	if (sources) {
		text_pad(&line, function->source, 6, -1); /* not foreign: a word of a view */
		buf_text(&line, "  ");
	}
	text_fit(&line, function->name, columns, 0, style);
	print_line(out, &line);
}

static bool has_several_sources(const struct facts *facts)
{
	for (size_t i = 1; i < facts->function_count; i++)
		if (strcmp(facts->functions[i].source, facts->functions[0].source) != 0)
			return true;
	return false;
}

void summary_lines_functions(FILE *out, const struct facts *facts, size_t rows,
			     const struct text_style *style)
{
	bool sources = has_several_sources(facts);

	if (!facts->function_count)
		return;
	fprintf(out, "%s  %-8s%5s  %-8s%7s  %sfunction, by %s stack sample%s%s\n",
		text_paint(style, TEXT_BOLD), "self", "% run", "total", "running",
		sources ? "source  " : "", format_count(facts->function_samples).text,
		facts->function_samples == 1 ? "" : "s", text_plain(style));
	for (size_t i = 0; i < rows && i < facts->function_count; i++)
		print_function(out, facts, &facts->functions[i], sources, style);
}

bool summary_lines_has_collections(const struct facts *facts)
{
	return facts->gc_count && facts->gc_ns >= COLLECTIONS_LEAST * facts->duration_ns;
}

void summary_lines_collections(FILE *out, const struct facts *facts, const struct text_style *style)
{
	if (summary_lines_has_collections(facts))
		fprintf(out, "  garbage collection: %s in %s collection%s, %s of the run\n",
			format_duration(facts->gc_ns, style->utf8).text,
			format_count(facts->gc_count).text, facts->gc_count == 1 ? "" : "s",
			format_percent(fmin(1, facts->gc_ns / facts->duration_ns)).text);
}

void summary_lines_losses(FILE *out, const struct facts *facts, const struct text_style *style)
{
	const struct facts_rows *total = &facts->total;
	bool lost = total->overwritten || total->dropped;

	if (!lost)
		fprintf(out, "  losses: none of %s rows", format_count(total->emitted).text);
	else
		fprintf(out, "  %slosses: %s of %s rows overwritten, %s dropped%s",
			text_paint(style, TEXT_YELLOW), format_count(total->overwritten).text,
			format_count(total->emitted).text, format_count(total->dropped).text,
			text_plain(style));
	if (facts->overhead_pct >= 0)
		fprintf(out, "; overhead %s", format_percent(facts->overhead_pct / 100).text);
	if (facts->sampler_pct >= 0) /* both are wider than a line */
		fputs("\n  CPU usage:", out);
	if (facts->collector_pct >= 0)
		fprintf(out, "%s collector %s", facts->sampler_pct >= 0 ? "" : ",",
			format_percent(facts->collector_pct / 100).text);
	if (facts->sampler_pct >= 0)
		fprintf(out, "%s sampler %s", facts->collector_pct >= 0 ? "," : "",
			format_percent(facts->sampler_pct / 100).text);
	if (facts->collector_pct >= 0 || facts->sampler_pct >= 0)
		fputs(" of a core", out);
	fputc('\n', out);
}

void summary_lines_cost(FILE *out, const struct facts *facts, const struct text_style *style)
{
	const struct facts_rows *total = &facts->total;
	double kymo_pct = (facts->collector_pct > 0 ? facts->collector_pct : 0) +
			  (facts->sampler_pct > 0 ? facts->sampler_pct : 0);
	struct buf line = { 0 };

	buf_text(&line, "losses: ");
	if (total->overwritten)
		buf_print(&line, "%s of ", format_count(total->overwritten).text);
	else if (total->dropped)
		buf_print(&line, "%s of ", format_count(total->dropped).text);
	else
		buf_text(&line, "none of ");
	buf_print(&line, "%s rows", format_count(total->emitted).text);
	if (total->overwritten && total->dropped)
		buf_print(&line, " overwritten, %s dropped", format_count(total->dropped).text);
	else if (total->overwritten || total->dropped)
		buf_print(&line, " %s", total->overwritten ? "overwritten" : "dropped");
	if (facts->overhead_pct >= 0)
		buf_print(&line, "; overhead %s", format_percent(facts->overhead_pct / 100).text);
	if (facts->collector_pct >= 0 || facts->sampler_pct >= 0)
		buf_print(&line, "; kymo used %s of a core", format_percent(kymo_pct / 100).text);
	fputs(text_paint(style, total->overwritten || total->dropped ? TEXT_YELLOW : TEXT_PLAIN),
	      out);
	text_paragraph(out, buf_get(&line), 2, NULL, false, style);
	fputs(total->overwritten || total->dropped ? text_plain(style) : "", out);
	buf_fini(&line);
}

/* at_ns: the time of the peak; below 0: left out. */
static void memory_line(struct buf *line, const struct facts *facts, double at_ns, bool utf8)
{
	const struct facts_memory *memory = &facts->memory;

	buf_print(line, "  memory: peak %s", format_bytes(memory->peak_bytes).text);
	if (at_ns >= 0)
		buf_print(line, " at %s", format_clock(at_ns, utf8).text);
	/* The last row repeats the one before: a run of a second or two has no value of its end. */
	if (memory->samples > 3 && memory->last_bytes > 0)
		buf_print(line, ", %s %s", format_bytes(memory->last_bytes).text,
			  facts->live ? "now" : "at the end");
	if (memory->samples > 2 && memory->cpu_pct >= 0)
		buf_print(line, "; CPU %s of a core", format_percent(memory->cpu_pct / 100).text);
	if (memory->processes > 1)
		buf_print(line, "; %s processes", format_count(memory->processes).text);
}

void summary_lines_memory(FILE *out, const struct facts *facts, const struct text_style *style)
{
	/* The last values are read just after the end of the program. */
	double at_ns = fmin(facts->memory.peak_at_ns, facts->duration_ns);
	struct buf line = { 0 };

	if (facts->memory.peak_bytes <= 0)
		return;
	memory_line(&line, facts, at_ns, style->utf8);
	if (text_width(buf_get(&line), line.used) > (size_t)style->columns) {
		buf_reset(&line);
		memory_line(&line, facts, -1, style->utf8);
	}
	print_line(out, &line);
}

static bool is_own(const char *table)
{
	static const char *const schemas[] = { "trace.",  "host.",  "kymo.",  "python.",
					       "device.", "alloc.", "native." };

	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++)
		if (!strncmp(table, schemas[i], strlen(schemas[i])))
			return true;
	return false;
}

/* As many of the user's tables as fit. */
static void summary_lines_add_user_tables(struct buf *line, const struct facts *facts,
					  size_t columns)
{
	struct buf piece = { 0 };

	for (size_t i = 0; i < facts->table_count; i++) {
		const struct facts_rows *rows = &facts->tables[i];

		if (is_own(rows->table) || !rows->emitted)
			continue;
		buf_reset(&piece);
		buf_print(&piece, "%s%s in ",
			  line->used ? ", " : "  recorded: ", format_count(rows->emitted).text);
		text_visible(&piece, rows->table, strlen(rows->table));
		if (line->used + piece.used <= columns)
			buf_text(line, buf_get(&piece));
	}
	buf_fini(&piece);
}

void summary_lines_recorded(FILE *out, const struct facts *facts, const struct text_style *style)
{
	static const struct {
		const char *table, *one, *many;
	} words[] = {
		{ "trace.zones", "zone", "zones" },
		{ "trace.steps", "step", "steps" },
		{ "trace.marks", "mark", "marks" },
		{ "trace.counters", "counter value", "counter values" },
		{ "python.samples", "sample", "samples" },
		{ "native.samples", "native sample", "native samples" },
		{ "python.torch_trace", "torch row", "torch rows" },
	};
	struct buf line = { 0 };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct facts_rows rows = facts_rows_of(facts, words[i].table);
		size_t used;

		/* The program's own tables come before what kymo sampled. */
		if (!strcmp(words[i].table, "python.samples"))
			summary_lines_add_user_tables(&line, facts, (size_t)style->columns);
		used = line.used;
		if (rows.emitted)
			buf_print(&line, "%s%s %s", line.used ? ", " : "  recorded: ",
				  format_count(rows.emitted).text,
				  rows.emitted == 1 ? words[i].one : words[i].many);
		if (line.used > (size_t)style->columns)
			line.data[line.used = used] = '\0';
	}
	if (line.used)
		print_line(out, &line);
}
