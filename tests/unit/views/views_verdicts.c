/*
 * A report leaves out a verdict whose query fails, so that one bad query does not hide the others.
 * Here no query may fail: over a recording without rows, and over one in which every table has
 * some.
 */
#include <math.h>

#include "tables/tables_ask.h"
#include "tables/tables_fixture.h"

#include "tables/sql_fill.h"
#include "views/report/blocks.h"
#include "views/report/measures.h"
#include "views/verdicts/rules.h"
#include "views/verdicts/verdict.h"

static struct tables *empty, *full;

static int setup(void **state)
{
	struct make *make = malloc(sizeof(*make));

	(void)state;
	ask_setup();
	make_run(make, ask_path("empty"));
	free(make);
	empty = ask_open(ask_path("empty"));
	fixture_small(ask_path("full"));
	full = ask_open(ask_path("full"));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tables_close(empty);
	tables_close(full);
	ask_teardown();
	return 0;
}

static void assert_runs(struct tables *tables, const char *name, const char *sql)
{
	const char *answer;

	if (ask(tables, sql, &answer))
		fail_msg("%s: %s\n%s", name, ask_error.text, sql);
	assert_null(strchr(answer, '\n')); /* one row or none */
}

static void assert_query(const struct rules_row *rule, const char *query, const char *zones)
{
	struct buf sql = { 0 };

	sql_fill(&sql, query,
		 (struct sql_value[]){
			 { "run_ns", .text = "6e10" }, { "zones", .text = zones }, { NULL } });
	assert_runs(empty, rule->name, buf_get(&sql));
	assert_runs(full, rule->name, buf_get(&sql));
	buf_fini(&sql);
}

static void no_query_of_a_verdict_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < rules_count; i++) {
		assert_query(&rules[i], rules[i].sql, "trace.zones");
		if (!rules[i].zones_if)
			continue;
		assert_query(&rules[i], rules[i].sql, "(FROM trace.zones LIMIT 0)");
		assert_query(&rules[i], rules[i].zones_if, "");
	}
}

static void no_query_for_the_numbers_of_a_verdict_fails(void **state)
{
	const char *answer;

	(void)state;
	for (size_t i = 0; i < rules_count; i++)
		if (ask(empty, rules[i].query, &answer) || ask(full, rules[i].query, &answer))
			fail_msg("%s: %s\n%s", rules[i].name, ask_error.text, rules[i].query);
}

static void assert_report(struct tables *tables)
{
	struct kymo_error err = { 0 };
	struct measures measures = { 0 };
	struct facts facts = { 0 };
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (facts_gather(tables, &facts, &err) ||
	    measures_gather(tables, &facts, &measures, &err) ||
	    blocks_write(tables, &facts, out, &err) ||
	    blocks_write_range(tables, 0, 30000000000, NULL, out, &err))
		fail_msg("%s", err.text);
	fclose(out);
	free(text);
	measures_fini(&measures);
	facts_fini(&facts);
}

static void no_query_of_a_report_fails(void **state)
{
	(void)state;
	assert_report(empty);
	assert_report(full);
}

static void there_is_always_a_verdict(void **state)
{
	struct tables *const both[] = { empty, full };
	struct verdict verdicts[VERDICT_MOST];
	struct facts facts;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(facts_gather(both[i], &facts, NULL), 0);
		assert_true(verdict_all(both[i], &facts, true, verdicts, VERDICT_MOST) > 0);
		assert_true(verdicts[0].sentence[0]);
		facts_fini(&facts);
	}
}

static void a_rule_that_fails_is_a_problem_and_the_others_go_on(void **state)
{
	struct verdict verdicts[VERDICT_MOST];
	struct facts facts;
	double before;

	(void)state;
	assert_int_equal(facts_gather(full, &facts, NULL), 0);
	before = tables_number(full, "SELECT count(*) FROM kymo.problems", -1);
	facts.duration_ns = NAN; /* no number in SQL: queries with {run_ns} fail */
	assert_true(verdict_all(full, &facts, true, verdicts, VERDICT_MOST) > 0);
	assert_non_null(strstr(tables_problems(full), "could not be evaluated: "));
	assert_true(tables_number(full, "SELECT count(*) FROM kymo.problems", 0) > before);
	facts_fini(&facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_query_of_a_verdict_fails),
		cmocka_unit_test(no_query_for_the_numbers_of_a_verdict_fails),
		cmocka_unit_test(no_query_of_a_report_fails),
		cmocka_unit_test(there_is_always_a_verdict),
		cmocka_unit_test(a_rule_that_fails_is_a_problem_and_the_others_go_on),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
