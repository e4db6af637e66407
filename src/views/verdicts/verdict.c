#include "views/verdicts/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tables/sql_fill.h"
#include "views/term/format.h"
#include "views/query/rows.h"
#include "views/verdicts/rules.h"
#include "views/verdicts/verdict_end.h"
#include "views/term/text.h"
#include "views_sql.h"

#define NAME_COLUMNS 40
#define SHORT_NS 1e9
#define SHORT_SHARE 0.2 /* of a short run: a region that takes more is judged */
#define LOSS_LEAST 0.01 /* of a table's rows; smaller losses are not mentioned */

/* The row that a verdict's query returns, in this order; NULL is 0. */
struct finding {
	double won_ns; /* could be saved at most */
	double whole_ns; /* of this */
	char name[128];
	uint64_t count;
	double a, b; /* evidence: times or bytes, see each rule */
	char which[128]; /* a second name, in queries of seven columns */
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
		{ "a", format_duration(finding->a, utf8) },
		{ "b", format_duration(finding->b, utf8) },
		{ "a_bytes", format_bytes(finding->a) },
		{ "b_bytes", format_bytes(finding->b) },
	};

	if (bytes == 4 && !strncmp(word, "name", 4))
		text_fit(out, finding->name, NAME_COLUMNS, 0, &(struct text_style){ .utf8 = utf8 });
	else if (bytes == 5 && !strncmp(word, "which", 5))
		text_fit(out, finding->which, NAME_COLUMNS, 0,
			 &(struct text_style){ .utf8 = utf8 });
	else if (bytes == 3 && !strncmp(word, "pid", 3))
		buf_print(out, "%.0f", finding->b);
	else if (bytes == 1 && *word == 's' && finding->count != 1)
		buf_char(out, 's');
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strlen(numbers[i].word) == bytes && !strncmp(numbers[i].word, word, bytes))
			buf_text(out, numbers[i].text.text);
}

static void verdict_fill(struct buf *out, const char *text, const struct finding *finding,
			 bool utf8)
{
	const char *open, *close;

	for (; (open = strchr(text, '{')) && (close = strchr(open, '}')); text = close + 1) {
		buf_add(out, text, (size_t)(open - text));
		fill_word(out, open + 1, (size_t)(close - open - 1), finding, utf8);
	}
	buf_text(out, text);
}

/* Removes the brackets, and the text in them if there is no name. */
static void settle_brackets(const char *text, bool named, char *out, size_t room)
{
	bool inside = false;
	size_t used = 0;

	for (; *text && used + 1 < room; text++) {
		if (*text == '[' || *text == ']')
			inside = *text == '[';
		else if (!inside || named)
			out[used++] = *text;
	}
	out[used] = '\0';
}

static void fill_into(char *out, size_t out_bytes, const char *text, const struct finding *finding,
		      bool utf8)
{
	struct buf buf = { 0 };
	char settled[512];

	settle_brackets(text, finding->name[0], settled, sizeof(settled));
	verdict_fill(&buf, settled, finding, utf8);
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
	out->a = rows_number(rows, 4, 0);
	out->b = rows_number(rows, 5, 0);
	if (tables_column_count(rows->result) > 6)
		rows_copy_text(rows, 6, out->which, sizeof(out->which));
	return 1;
}

/* A query that fails is not fatal: the report goes on without this verdict, and tells so. */
static void add_rule_problem(struct tables *tables, const struct rules_row *rule,
			     const struct kymo_error *err)
{
	char sentence[sizeof(err->text) + 128];

	snprintf(sentence, sizeof(sentence),
		 "The verdict \"%s\" could not be evaluated: %s. This is a fault of kymo: please "
		 "report it.",
		 rule->name, err->text);
	/* Several views of one report evaluate all rules. */
	if (!strstr(tables_problems(tables), sentence))
		tables_add_problem(tables, sentence);
}

static bool verdict_look(struct tables *tables, const struct rules_row *rule, double run_ns,
			 struct finding *out)
{
	struct kymo_error err = { 0 };
	struct buf sql = { 0 };
	char run[40];
	int rc;

	*out = (struct finding){ 0 };
	if (run_ns < rule->least_s * 1e9)
		return false;
	/* A DOUBLE: products of ns and bytes exceed 64 bits within minutes. */
	snprintf(run, sizeof(run), "%.17e", run_ns);
	sql_fill(&sql, rule->sql, (struct sql_value[]){ { "run_ns", .text = run }, { NULL } });
	rc = rows_each(tables, buf_get(&sql), finding_row, out, &err);
	buf_fini(&sql);
	if (rc < 0)
		add_rule_problem(tables, rule, &err);
	return rc > 0 && out->whole_ns > 0 && out->won_ns / out->whole_ns >= rule->threshold;
}

/* ---- lost rows ------------------------------------------------------------------------------ */

static void add_loss(char *sentence, size_t room, const struct facts_rows *rows, bool exact)
{
	uint64_t overwritten = exact ? 0 : rows->overwritten; /* totals include overwritten rows */
	size_t used = strlen(sentence);

	if (!rows->emitted ||
	    (double)(overwritten + rows->dropped) < LOSS_LEAST * (double)rows->emitted)
		return;
	snprintf(sentence + used, room - used, " Based on %s of %s rows of %s; the others were %s.",
		 format_count(rows->emitted - overwritten - rows->dropped).text,
		 format_count(rows->emitted).text, rows->table,
		 !overwritten	 ? "dropped"
		 : rows->dropped ? "overwritten or dropped"
				 : "overwritten");
}

/* For each table that the query names. */
static void say_losses(const struct rules_row *rule, const struct facts *facts, char *sentence,
		       size_t room)
{
	for (size_t i = 0; i < facts->table_count; i++) {
		const struct facts_rows *rows = &facts->tables[i];

		if (strstr(rule->sql, rows->table))
			add_loss(sentence, room, rows, false);
		else if (!strcmp(rows->table, "trace.zones") && strstr(rule->sql, "trace.regions"))
			add_loss(sentence, room, rows, true);
	}
}

static void verdict_say(const struct rules_row *rule, const struct finding *finding,
			const struct facts *facts, bool utf8, struct verdict *out)
{
	snprintf(out->name, sizeof(out->name), "%s", rule->name);
	out->gain = finding->won_ns / finding->whole_ns;
	fill_into(out->sentence, sizeof(out->sentence), rule->sentence, finding, utf8);
	say_losses(rule, facts, out->sentence, sizeof(out->sentence));
	fill_into(out->evidence, sizeof(out->evidence), rule->evidence, finding, utf8);
	fill_into(out->advice, sizeof(out->advice), rule->advice, finding, utf8);
	/* The search is for the function: "work (" finds "work (/home/a.py:8)". */
	snprintf(out->find, sizeof(out->find), "%s", finding->name);
	if (strstr(rule->tab, "of=samples") && strchr(out->find, '('))
		strchr(out->find, '(')[1] = '\0';
	out->view = rule->tab;
	out->query = rule->query;
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* The costliest region that is not Python's import machinery; NULL: none. */
static const struct facts_region *top_region(const struct facts *facts)
{
	for (size_t i = 0; i < facts->region_count; i++)
		if (!facts->regions[i].import)
			return &facts->regions[i];
	return NULL;
}

/* Without SQL: the one verdict that needs only the totals. */
static bool look_at_facts(const struct facts *facts, const struct rules_row *rule,
			  struct finding *out)
{
	const struct facts_region *top = top_region(facts);

	if (strcmp(rule->name, "region") || !top || facts->duration_ns <= 0)
		return false;
	*out = (struct finding){ .won_ns = top->self_ns,
				 .whole_ns = top->self_ns > facts->duration_ns ? top->self_ns
									       : facts->duration_ns,
				 .count = top->count,
				 .a = top->p50_ns,
				 .b = top->p99_ns };
	snprintf(out->name, sizeof(out->name), "%s", top->name);
	return out->won_ns / out->whole_ns >= rule->threshold;
}

static void say_short(const struct facts *facts, bool utf8, struct verdict *out)
{
	snprintf(out->sentence, sizeof(out->sentence),
		 "Too short to judge: the program ran for %s.",
		 format_clock(facts->duration_ns, utf8).text);
	snprintf(out->advice, sizeof(out->advice),
		 "run it longer, or mark regions: kymo.region(\"name\") in Python, "
		 "KYMO_SCOPE(\"name\") in C");
}

/* Mostly start-up: advice to import less would not help a program of a few lines. */
static bool is_too_short(const struct facts *facts)
{
	const struct facts_region *top = top_region(facts);
	bool imports = false;

	for (size_t i = 0; i < facts->region_count; i++)
		imports |= facts->regions[i].import;
	return facts->duration_ns < SHORT_NS && imports && !facts->steps.count &&
	       (!top || !strcmp(top->name, "<module>") ||
		top->self_ns < SHORT_SHARE * facts->duration_ns);
}

/* No zone has ended, and some are open. */
static bool verdict_say_open(struct tables *tables, const struct facts *facts, struct verdict *out)
{
	char where[400] = "";

	if (tables)
		verdict_end_say_where(tables, sql_verdict_open_zones, where, sizeof(where));
	if (!where[0])
		return false;
	snprintf(out->sentence, sizeof(out->sentence), "%s, and no zone has ended.", where);
	if (facts->live)
		snprintf(out->advice, sizeof(out->advice),
			 "kymo backtrace --why %d shows what it waits for", facts->pid);
	else
		snprintf(out->advice, sizeof(out->advice), "kymo backtrace shows the last stacks");
	out->view = "timeline";
	out->query = "FROM trace.open_zones";
	return true;
}

/* With SQL, verdict_say_open() has reported open zones already. */
static const char *no_regions_sentence(const struct facts *facts)
{
	bool sampled = facts_rows_of(facts, "python.samples").kept > 0;

	if (facts_rows_of(facts, "device.ops").kept)
		return "No device queue stands out, and no zone has ended.";
	if (facts->gc_count)
		return sampled ? "No zones recorded except garbage collections; see the stack "
				 "samples."
			       : "No zones recorded except garbage collections.";
	if (facts->open_zones)
		return "No zone has ended.";
	return sampled ? "No zones recorded; see the stack samples." : "No zones recorded.";
}

/* "No zones recorded. 131 stack samples: normalise_text (prep.py:3) 96 %." */
static void say_functions(const struct facts *facts, struct verdict *out)
{
	const struct facts_function *top = &facts->functions[0];
	struct buf name = { 0 };

	text_visible(&name, top->name, strlen(top->name));
	snprintf(out->sentence, sizeof(out->sentence),
		 "No zones recorded%s. %s stack sample%s: %.200s %s.",
		 facts->gc_count ? " except garbage collections" : "",
		 format_count(facts->function_samples).text,
		 facts->function_samples == 1 ? "" : "s", buf_get(&name),
		 format_percent(facts->function_time > 0 ? top->time / facts->function_time : 0)
			 .text);
	snprintf(out->advice, sizeof(out->advice), "kymo run --python records every call");
	out->view = "flame?of=samples";
	out->query = "SELECT place, count(*) FROM python.samples GROUP BY 1 ORDER BY 2 DESC";
	buf_fini(&name);
}

/* Captures of devices have operations, and zones without totals if any. */
static void say_no_regions(const struct facts *facts, struct verdict *out)
{
	if (!facts->region_count && !facts->gc_count && facts_rows_of(facts, "trace.zones").kept) {
		snprintf(out->sentence, sizeof(out->sentence),
			 "Zones were recorded without totals, as in captures of models.");
		out->query =
			"SELECT name, count(*), sum(duration_ns) FROM trace.zones GROUP BY ALL";
		return;
	}
	if (facts->function_count && !facts_rows_of(facts, "device.ops").kept) {
		say_functions(facts, out);
		return;
	}
	snprintf(out->sentence, sizeof(out->sentence), "%s", no_regions_sentence(facts));
	if (facts_rows_of(facts, "python.samples").kept &&
	    !facts_rows_of(facts, "device.ops").kept) {
		out->view = "flame?of=samples";
		out->query = "SELECT stack[1], count(*) FROM python.samples GROUP BY 1 "
			     "ORDER BY 2 DESC";
	}
	snprintf(out->advice, sizeof(out->advice), "%s",
		 facts_rows_of(facts, "python.samples").kept ||
				 !strncmp(facts->program, "python", 6)
			 ? "mark zones with kymo.region(\"name\"); kymo run --python records every "
			   "call"
			 : "mark zones with KYMO_SCOPE(\"name\") in C or kymo.region(\"name\") in "
			   "Python");
}

/* Nothing stands out, or nothing was recorded. */
static void say_none(struct tables *tables, const struct facts *facts, bool utf8,
		     struct verdict *out)
{
	const struct facts_region *top = top_region(facts);
	struct finding finding = { .whole_ns = facts->duration_ns };

	if (is_too_short(facts)) {
		say_short(facts, utf8, out);
		return;
	}
	if (!top) {
		if (!verdict_say_open(tables, facts, out))
			say_no_regions(facts, out);
		return;
	}
	finding.won_ns = top->self_ns;
	finding.count = top->count;
	snprintf(finding.name, sizeof(finding.name), "%s", top->name);
	fill_into(out->sentence, sizeof(out->sentence),
		  "No single bottleneck stands out: the costliest region, {name}, is {share} of "
		  "the run ({won}).",
		  &finding, utf8);
	snprintf(out->evidence, sizeof(out->evidence), "%s region%s measured",
		 format_count(facts->region_all).text, facts->region_all == 1 ? " was" : "s were");
	out->view = "flame";
	out->query = "FROM trace.regions ORDER BY self_ns DESC";
}

static const struct verdict nothing_said = { .view = "", .query = "" };

struct candidate {
	const struct rules_row *rule;
	struct finding finding;
	double rank;
};

static double rank_of(const struct candidate *candidate, const struct facts *facts)
{
	const struct rules_row *rule = candidate->rule;
	double weight = facts->steps.count && rule->weight_with_steps > 0 ? rule->weight_with_steps
									  : rule->weight;

	return candidate->finding.won_ns * weight;
}

static int by_gain(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->rank < y->rank   ? 1
	       : x->rank > y->rank ? -1
	       : x->rule < y->rule ? -1
				   : x->rule > y->rule;
}

/* Verdicts on devices have costly queries, and most programs use no device. */
static bool can_hold(const struct rules_row *rule, const struct facts *facts)
{
	return strcmp(rule->tab, "devices") || facts_rows_of(facts, "device.ops").kept;
}

size_t verdict_all(struct tables *tables, const struct facts *facts, bool utf8, struct verdict *out,
		   size_t room)
{
	struct candidate *found = calloc(rules_count, sizeof(*found));
	size_t count = 0, said = room ? verdict_end_say(tables, facts, utf8, &out[0]) : 0;

	for (size_t i = 0; found && i < rules_count && !is_too_short(facts); i++) {
		if (!can_hold(&rules[i], facts))
			continue;
		found[count].rule = &rules[i];
		count += tables ? verdict_look(tables, &rules[i], facts->duration_ns,
					       &found[count].finding)
				: look_at_facts(facts, &rules[i], &found[count].finding);
	}
	for (size_t i = 0; i < count; i++)
		found[i].rank = rank_of(&found[i], facts);
	if (count)
		qsort(found, count, sizeof(found[0]), by_gain);
	for (size_t i = 0; i < count && said < room; i++, said++) {
		out[said] = nothing_said;
		verdict_say(found[i].rule, &found[i].finding, facts, utf8, &out[said]);
	}
	free(found);
	if (said || !room)
		return said;
	out[0] = nothing_said;
	say_none(tables, facts, utf8, &out[0]);
	return 1;
}
