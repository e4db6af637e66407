#include "views/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "views/format.h"
#include "views/rows.h"
#include "views/text.h"

#define NAME_COLUMNS 40

/* What a verdict's query answers, one row in this order. */
struct finding {
	double won_ns; /* could be won at most */
	double whole_ns; /* of this */
	char name[128];
	uint64_t count;
	double a_ns, b_ns; /* evidence: see each row */
};

/*
 * {share} {won} {whole} {name} {count} {a} {b} are filled from the finding; {run_ns} in a query is the run's length.
 * gain: the part of won_ns that changing the program usually brings; ranks verdicts against each other.
 */
struct rule {
	const char *name;
	double threshold; /* least won_ns / whole_ns */
	double gain;
	const char *sql;
	const char *sentence, *evidence, *advice;
};

static const struct rule rules[] = {
	{ "data", 0.10, 1.0,
	  "SELECT sum(data_ns), sum(duration_ns), '', count(*), median(data_ns), "
	  "avg(data_ns) FILTER (duration_ns >= slow) FROM (SELECT *, quantile_cont(duration_ns, 0.98) OVER () AS slow "
	  "FROM " FACTS_STEPS_SQL ")",
	  "Data loading holds up training: it takes {share} of step time ({won} of {whole}).",
	  "the wait is {a} of a typical step, {b} of the slowest 2 %",
	  "more loader workers, or decode ahead; at most {share} to gain" },
	{ "spread", 0.15, 0.5,
	  "SELECT sum(greatest(duration_ns - usual, 0)), sum(duration_ns), '', count(*) FILTER (duration_ns > 2 * usual), "
	  "any_value(usual), max(duration_ns) FROM (SELECT *, median(duration_ns) OVER () AS usual FROM " FACTS_STEPS_SQL
	  ") HAVING count(*) >= 20 AND count(*) FILTER (duration_ns > 2 * usual) > 0",
	  "Some steps take much longer than others: what is above the median adds up to {share} of step time ({won} of "
	  "{whole}).",
	  "{count} steps take more than twice the median of {a}, the slowest {b}",
	  "look at what the slowest steps have in common: kymo report lists them" },
	{ "region", 0.20, 0.25,
	  "SELECT sum(self_ns) AS self, {run_ns}, name, sum(count), arg_max(p50_ns, count), arg_max(p99_ns, count) "
	  "FROM trace.regions GROUP BY name ORDER BY self DESC LIMIT 1",
	  "The costliest region is {name}: {won} of its own, {share} of the run, in {count} calls.",
	  "a call takes {a} at the median, {b} at the 99th percentile",
	  "make it cheaper, or call it less often" },
	{ "waiting", 0.60, 0.2,
	  "SELECT {run_ns} * (1 - avg(cpu_pct) / 100), {run_ns}, '', count(*), avg(cpu_pct) * {run_ns} / 100, 0 "
	  "FROM host.process GROUP BY pid HAVING count(*) >= 3 ORDER BY max(rss_bytes) DESC LIMIT 1",
	  "The program mostly waits: for {share} of the run it used no processor.",
	  "{a} of processor time in {whole}",
	  "look at what it waits for: I/O, a lock, a device, or a processor that others hold" },
	{ "coverage", 0.90, 0.02,
	  "SELECT {run_ns} - sum(self_ns), {run_ns}, '', sum(count), sum(self_ns), 0 FROM trace.regions "
	  "HAVING sum(count) > 0",
	  "Zones explain little of this run: they cover {a} of {whole}.",
	  "{count} zones were recorded", "mark the outermost loops and calls, too" },
	{ "overhead", 0.05, 1.0,
	  "SELECT sum(total_ns), {run_ns}, '', sum(events), 0, 0 FROM kymo.overhead WHERE source NOT IN ('collector', 'sampler')",
	  "Recording itself is costly: it takes {share} of the run ({won} of {whole}).",
	  "{count} rows were recorded", "mark fewer or larger zones" },
};

/* ---- templates ------------------------------------------------------------------------------ */

static void fill_word(struct buf *out, const char *word, size_t bytes,
		      const struct finding *finding, bool utf8)
{
	const struct {
		const char *word;
		struct format_text text;
	} numbers[] = {
		{ "share", format_percent(finding->won_ns / finding->whole_ns) },
		{ "won", format_duration(finding->won_ns, utf8) },
		{ "whole", format_duration(finding->whole_ns, utf8) },
		{ "count", format_count(finding->count) },
		{ "a", format_duration(finding->a_ns, utf8) },
		{ "b", format_duration(finding->b_ns, utf8) },
	};

	if (bytes == 4 && !strncmp(word, "name", 4))
		text_fit(out, finding->name, NAME_COLUMNS, 0, &(struct text_style){ .utf8 = utf8 });
	else if (bytes == 6 && !strncmp(word, "run_ns", 6))
		buf_print(out, "%.0f", finding->whole_ns);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strlen(numbers[i].word) == bytes && !strncmp(numbers[i].word, word, bytes))
			buf_text(out, numbers[i].text.text);
}

static void fill(struct buf *out, const char *text, const struct finding *finding, bool utf8)
{
	const char *open, *close;

	for (; (open = strchr(text, '{')) && (close = strchr(open, '}')); text = close + 1) {
		buf_add(out, text, (size_t)(open - text));
		fill_word(out, open + 1, (size_t)(close - open - 1), finding, utf8);
	}
	buf_text(out, text);
}

static void fill_into(char *out, size_t out_bytes, const char *text, const struct finding *finding,
		      bool utf8)
{
	struct buf buf = { 0 };

	fill(&buf, text, finding, utf8);
	snprintf(out, out_bytes, "%s", buf_get(&buf));
	buf_fini(&buf);
}

/* ---- finding -------------------------------------------------------------------------------- */

static int finding_row(const struct rows *rows, void *context)
{
	struct finding *out = context;

	out->won_ns = rows_number(rows, 0, 0);
	out->whole_ns = rows_number(rows, 1, 0);
	rows_copy_text(rows, 2, out->name, sizeof(out->name));
	out->count = rows_count(rows, 3);
	out->a_ns = rows_number(rows, 4, 0);
	out->b_ns = rows_number(rows, 5, 0);
	return 1;
}

static bool look(struct tables *tables, const struct rule *rule, double run_ns, struct finding *out)
{
	struct finding run = { .whole_ns = run_ns };
	struct buf sql = { 0 };
	int rc;

	fill(&sql, rule->sql, &run, false);
	*out = (struct finding){ 0 };
	/* A verdict that cannot be looked for is none: the report goes on. */
	rc = rows_each(tables, buf_get(&sql), finding_row, out, NULL);
	buf_fini(&sql);
	return rc > 0 && out->whole_ns > 0 && out->won_ns / out->whole_ns >= rule->threshold;
}

static void say(const struct rule *rule, const struct finding *finding, bool utf8,
		struct verdict *out)
{
	fill_into(out->sentence, sizeof(out->sentence), rule->sentence, finding, utf8);
	fill_into(out->evidence, sizeof(out->evidence), rule->evidence, finding, utf8);
	fill_into(out->advice, sizeof(out->advice), rule->advice, finding, utf8);
}

/* Without SQL, the one verdict that the exact totals alone can give. */
static bool look_at_facts(const struct facts *facts, const struct rule *rule, struct finding *out)
{
	const struct facts_region *top = &facts->regions[0];

	if (strcmp(rule->name, "region") || !facts->region_count || facts->duration_ns <= 0)
		return false;
	*out = (struct finding){ .won_ns = top->self_ns,
				 .whole_ns = facts->duration_ns,
				 .count = top->count,
				 .a_ns = top->p50_ns,
				 .b_ns = top->p99_ns };
	snprintf(out->name, sizeof(out->name), "%s", top->name);
	return out->won_ns / out->whole_ns >= rule->threshold;
}

/* Nothing stands out, or nothing was recorded. */
static void say_none(const struct facts *facts, bool utf8, struct verdict *out)
{
	const struct facts_region *top = &facts->regions[0];
	struct finding finding = { .won_ns = top->self_ns,
				   .whole_ns = facts->duration_ns,
				   .count = top->count };

	if (!facts->region_count) {
		snprintf(out->sentence, sizeof(out->sentence),
			 "No zone has ended: nothing in the program says what it is doing.");
		snprintf(
			out->advice, sizeof(out->advice),
			"mark zones with KYMO_SCOPE(\"name\") in C or kymo.region(\"name\") in Python");
		return;
	}
	snprintf(finding.name, sizeof(finding.name), "%s", top->name);
	fill_into(
		out->sentence, sizeof(out->sentence),
		"No single bottleneck stands out: the costliest region, {name}, is {share} of the run ({won}).",
		&finding, utf8);
	snprintf(out->evidence, sizeof(out->evidence), "%s regions were measured",
		 format_count(facts->region_all).text);
}

void verdict_find(struct tables *tables, const struct facts *facts, bool utf8, struct verdict *out)
{
	const struct rule *best = NULL;
	struct finding best_finding = { 0 }, finding;

	*out = (struct verdict){ "", "", "" };
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (tables ? !look(tables, &rules[i], facts->duration_ns, &finding)
			   : !look_at_facts(facts, &rules[i], &finding))
			continue;
		if (best && finding.won_ns * rules[i].gain <= best_finding.won_ns * best->gain)
			continue;
		best = &rules[i];
		best_finding = finding;
	}
	if (best)
		say(best, &best_finding, utf8, out);
	else
		say_none(facts, utf8, out);
}
