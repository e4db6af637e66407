#include "views/verdicts/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tables/sql_fill.h"
#include "views/term/format.h"
#include "views/query/rows.h"
#include "views/verdicts/rules.h"
#include "views/verdicts/verdict_end.h"
#include "views/verdicts/verdict_rank.h"
#include "views/verdicts/where.h"
#include "views/term/text.h"
#include "views_sql.h"

#define NAME_COLUMNS 56
#define WHICH_COLUMNS 100 /* a second name may be a clause */
#define SHORT_NS 1e9
#define SHORT_SHARE 0.2 /* of a short run: a region that takes more is judged */
#define SAMPLES_FEW 10 /* of a short run: too few for a share */
#define STANDS_OUT 0.3 /* share of the samples of a function that is worth a sentence */
#define KEPT_OPS_LEAST 10000
#define MANY_ZONES 1000000 /* a scan takes longer than the question whether it is needed */
#define LOSS_LEAST 0.01 /* of a table's rows; smaller losses are not mentioned */

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
		text_fit(out, finding->which, WHICH_COLUMNS, 0,
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

/* Columns after the sixth have names, except that the seventh may be a second name. */
static void finding_more(const struct rows *rows, struct finding *out)
{
	size_t count = tables_column_count(rows->result);

	out->place_share = -1;
	for (size_t i = 6; i < count; i++) {
		const char *name = tables_column_name(rows->result, i);

		if (!strcmp(name, "place"))
			rows_copy_text(rows, i, out->place, sizeof(out->place));
		else if (!strcmp(name, "place_share"))
			out->place_share = rows_number(rows, i, -1);
		else if (!strcmp(name, "weight"))
			out->weight = rows_number(rows, i, 0);
		else if (!strcmp(name, "advice"))
			rows_copy_text(rows, i, out->advice, sizeof(out->advice));
		else if (i == 6)
			rows_copy_text(rows, i, out->which, sizeof(out->which));
	}
}

static int finding_row(const struct rows *rows, void *context)
{
	struct finding *out = context;

	out->won_ns = rows_number(rows, 0, 0);
	out->whole_ns = rows_number(rows, 1, 0);
	rows_copy_text(rows, 2, out->name, sizeof(out->name));
	out->count = rows_count(rows, 3);
	out->a = rows_number(rows, 4, 0);
	out->b = rows_number(rows, 5, 0);
	finding_more(rows, out);
	return 1;
}

/* A query that fails is not fatal: the report goes on without this verdict, and tells so. */
static void add_rule_problem(struct tables *tables, const struct rules_row *rule,
			     const struct kymo_error *err)
{
	char sentence[sizeof(err->text) + 128];

	bool limit = err->code == ENOMEM || err->code == ETIMEDOUT;

	snprintf(sentence, sizeof(sentence), "The verdict \"%s\" could not be evaluated: %s.%s",
		 rule->name, err->text, limit ? "" : " This is a fault of kymo: please report it.");
	/* Several views of one report evaluate all rules. */
	if (!strstr(tables_problems(tables), sentence))
		tables_add_problem(tables, sentence);
}

/* A scan of 100 million zones takes a second of a core, and several verdicts make one. */
static bool needs_zones(struct tables *tables, const struct rules_row *rule,
			const struct facts *facts, const char *run)
{
	struct buf sql = { 0 };
	bool needs;

	if (!rule->zones_if || facts_rows_of(facts, "trace.zones").kept < MANY_ZONES)
		return true;
	sql_fill(&sql, rule->zones_if, (struct sql_value[]){ { "run_ns", .text = run }, { NULL } });
	needs = sql.failed || tables_number(tables, buf_get(&sql), 1) != 0;
	buf_fini(&sql);
	return needs;
}

static bool verdict_look(struct tables *tables, const struct rules_row *rule,
			 const struct facts *facts, struct finding *out)
{
	struct kymo_error err = { 0 };
	struct buf sql = { 0 };
	const char *zones;
	char run[40];
	int rc;

	*out = (struct finding){ 0 };
	if (facts->duration_ns < rule->least_s * 1e9)
		return false;
	/* A DOUBLE: products of ns and bytes exceed 64 bits within minutes. */
	snprintf(run, sizeof(run), "%.17e", facts->duration_ns);
	zones = needs_zones(tables, rule, facts, run) ? "trace.zones"
						      : "(FROM trace.zones LIMIT 0)";
	sql_fill(&sql, rule->sql,
		 (struct sql_value[]){
			 { "run_ns", .text = run }, { "zones", .text = zones }, { NULL } });
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

/* For each table that the query of the numbers names: those that only the place comes from do not
   change the sentence. */
static void say_losses(const struct rules_row *rule, const struct facts *facts, char *sentence,
		       size_t room)
{
	for (size_t i = 0; i < facts->table_count; i++) {
		const struct facts_rows *rows = &facts->tables[i];

		if (strstr(rule->query, rows->table))
			add_loss(sentence, room, rows, false);
		else if (!strcmp(rows->table, "trace.zones") &&
			 strstr(rule->query, "trace.regions"))
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
	if (finding->advice[0])
		snprintf(out->advice, sizeof(out->advice), "%s", finding->advice);
	else
		fill_into(out->advice, sizeof(out->advice), rule->advice, finding, utf8);
	/* The search is for the function: "work (" finds "work (/home/a.py:8)". */
	snprintf(out->find, sizeof(out->find), "%s", finding->name);
	if (strstr(rule->tab, "of=samples") && strchr(out->find, '('))
		strchr(out->find, '(')[1] = '\0';
	out->view = rule->tab;
	out->query = rule->query;
	where_set(out, finding->place, finding->place_share);
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* The costliest region that is not Python's import machinery; NULL: none. */
/* A step of torch.profiler contains everything, and says nothing. */
static bool is_profiler_step(const char *name)
{
	static const char step[] = "ProfilerStep#";

	return !strncmp(name, step, sizeof(step) - 1);
}

static const struct facts_region *top_region(const struct facts *facts)
{
	for (size_t i = 0; i < facts->region_count; i++)
		if (!facts->regions[i].import && !is_profiler_step(facts->regions[i].name))
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
	snprintf(out->place, sizeof(out->place), "%s", top->place);
	out->place_share = -1;
	return out->won_ns / out->whole_ns >= rule->threshold;
}

/* Advice fits the language, as far as it is known. */
static bool is_python_program(const struct facts *facts)
{
	size_t bytes = strlen(facts->program);

	return facts_rows_of(facts, "python.samples").kept ||
	       !strncmp(facts->program, "python", 6) ||
	       (bytes > 3 && !strcmp(facts->program + bytes - 3, ".py"));
}

/* Of Python stacks, or of native ones in a program without Python. */
static uint64_t stack_samples(const struct facts *facts)
{
	uint64_t python = facts_rows_of(facts, "python.samples").kept;

	return python ? python : facts_rows_of(facts, "native.samples").kept;
}

/* What most of a short run was, if anything of it was recorded: ", mostly in build (a.py:3)". */
static void name_costliest(const struct facts *facts, bool utf8, struct buf *out,
			   struct verdict *verdict)
{
	const struct facts_function *function = &facts->functions[0];
	const struct facts_region *region = top_region(facts);

	if (facts->import_samples > facts->function_samples) {
		buf_text(out, ", mostly in imports");
	} else if (facts->function_count && facts->function_time > 0) {
		buf_text(out, ", mostly in ");
		text_visible(out, function->name, strlen(function->name));
		where_set(verdict, function->name, function->time / facts->function_time);
	} else if (region && strcmp(region->name, "<module>") != 0) {
		buf_text(out, "; the costliest region is ");
		text_visible(out, region->name, strlen(region->name));
		buf_print(out, " with %s", format_duration(region->self_ns, utf8).text);
		where_set(verdict, region->place, -1);
	}
}

static void say_short(const struct facts *facts, bool utf8, struct verdict *out)
{
	uint64_t samples = facts->function_count ? facts->function_samples + facts->import_samples
						 : stack_samples(facts);
	struct buf more = { 0 };

	if (samples)
		buf_print(&more, ", with %s stack sample%s", format_count(samples).text,
			  samples == 1 ? "" : "s");
	name_costliest(facts, utf8, &more, out);
	snprintf(out->sentence, sizeof(out->sentence),
		 "Too short to judge: the program ran for %s%.300s.",
		 format_clock(facts->duration_ns, utf8).text, buf_get(&more));
	snprintf(out->advice, sizeof(out->advice), "%s",
		 is_python_program(facts)
			 ? "run it longer, or record every call: kymo run --python"
			 : "run it longer, or mark regions: KYMO_SCOPE(\"name\") in C");
	buf_fini(&more);
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
	bool sampled = stack_samples(facts) > 0;

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

/* "The costliest function is normalise_text (prep.py:3): 96 % of 131 stack samples." */
static void say_functions(const struct facts *facts, struct verdict *out)
{
	const struct facts_function *top = &facts->functions[0];
	double share = facts->function_time > 0 ? top->time / facts->function_time : 0;
	struct buf name = { 0 };

	text_visible(&name, top->name, strlen(top->name));
	snprintf(out->sentence, sizeof(out->sentence), "%s %.200s: %s of %s stack sample%s.",
		 share < STANDS_OUT ? "No single function stands out; the costliest is"
		 : top->total >= 0 && top->running < top->time / 2 ? "The program mostly waits in"
								   : "The costliest function is",
		 buf_get(&name), format_percent(share).text,
		 format_count(facts->function_samples).text,
		 facts->function_samples == 1 ? "" : "s");
	where_set(out, top->name, facts->function_time > 0 ? share : -1);
	snprintf(out->advice, sizeof(out->advice), "%s",
		 strcmp(top->source, "python") ? "kymo flame shows the stacks"
					       : "kymo flame shows the stacks; kymo run --python "
						 "records every call");
	out->view = "flame?of=samples";
	out->query = strcmp(top->source, "python")
			     ? "SELECT place, sum(weight_ns) FROM native.samples GROUP BY 1 "
			       "ORDER BY 2 DESC"
			     : "SELECT place, count(*) FROM python.samples GROUP BY 1 "
			       "ORDER BY 2 DESC";
	buf_fini(&name);
}

/* A program that ended before its own code was sampled. */
static bool was_barely_sampled(const struct facts *facts)
{
	return facts->duration_ns < SHORT_NS && !facts->gc_count && !facts->open_zones &&
	       stack_samples(facts) && !facts_rows_of(facts, "device.ops").kept;
}

/* Captures of devices have operations, and zones without totals if any. */
static void say_no_regions(const struct facts *facts, bool utf8, struct verdict *out)
{
	if (!facts->region_count && !facts->gc_count && facts_rows_of(facts, "trace.zones").kept) {
		snprintf(out->sentence, sizeof(out->sentence),
			 "Zones were recorded without totals, as in captures of models.");
		out->query =
			"SELECT name, count(*), sum(duration_ns) FROM trace.zones GROUP BY ALL";
		return;
	}
	if (facts->function_count && !facts_rows_of(facts, "device.ops").kept &&
	    (facts->function_samples >= SAMPLES_FEW || !was_barely_sampled(facts))) {
		say_functions(facts, out);
		return;
	}
	if (was_barely_sampled(facts)) {
		say_short(facts, utf8, out);
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
		 is_python_program(facts)
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
			say_no_regions(facts, utf8, out);
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

/* A query takes some milliseconds even where its table is empty, and most programs have no device,
   no ranks and no event loop. Steps may be of an imported trace, which has no stream of them; a
   packed file may have rows that no stream of it counts. */
static bool can_hold(const struct rules_row *rule, const struct tables *tables,
		     const struct facts *facts)
{
	bool of_devices = !strcmp(rule->tab, "devices");
	const char *table = of_devices ? "device.ops" : rule->needs;
	bool is_packed = tables && !tables_recording(tables);

	if (!table || !facts->table_count || (is_packed && !of_devices))
		return true;
	return facts_rows_of(facts, table).kept ||
	       (!strcmp(table, "trace.steps") && facts->steps.count);
}

/* Several verdicts and the report read these, of few rows each; over many operations each of them
   takes a second. */
static void keep_devices(struct tables *tables, const struct facts *facts)
{
	static const char *const views[] = { "breakdown", "overlap", "queues" };

	for (size_t i = 0; tables && facts_rows_of(facts, "device.ops").kept > KEPT_OPS_LEAST &&
			   i < sizeof(views) / sizeof(views[0]);
	     i++)
		tables_keep_view(tables, "device", views[i]);
}

size_t verdict_all(struct tables *tables, const struct facts *facts, bool utf8, struct verdict *out,
		   size_t room)
{
	struct candidate *found = calloc(rules_count, sizeof(*found));
	bool ended = room && verdict_end_say(tables, facts, utf8, &out[0]);
	size_t count = 0, said = ended;

	keep_devices(tables, facts);
	for (size_t i = 0; found && i < rules_count && !is_too_short(facts); i++) {
		if (!can_hold(&rules[i], tables, facts))
			continue;
		found[count].rule = &rules[i];
		count += tables ? verdict_look(tables, &rules[i], facts, &found[count].finding)
				: look_at_facts(facts, &rules[i], &found[count].finding);
	}
	verdict_rank(found, count, facts->steps.count > 0);
	for (size_t i = 0; i < count && said < room; i++) {
		if (verdict_rank_is_said_better(&found[i], found, count))
			continue;
		out[said] = nothing_said;
		verdict_say(found[i].rule, &found[i].finding, facts, utf8, &out[said++]);
	}
	/* Killed ranks that waited for another: what they waited for comes before their end. */
	if (ended && said > 1 && verdict_rank_names_a_rank(found[0].rule) &&
	    !strstr(out[0].sentence, " absent") && !strstr(out[0].evidence, " absent")) {
		struct verdict end = out[0];

		out[0] = out[1];
		out[1] = end;
	}
	free(found);
	if (said || !room)
		return said;
	out[0] = nothing_said;
	say_none(tables, facts, utf8, &out[0]);
	return 1;
}
