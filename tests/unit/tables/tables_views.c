/* Every table of the design over a recording whose every number is known. */
#include "tables_small.h"

#include <errno.h>

#include "tables/catalog/catalog.h"
#include "tables/session.h"

static void zones_have_names_files_threads_and_ranks(void **state)
{
	(void)state;
	assert_answer(tables, "FROM trace.zones ORDER BY pid, start_ns",
		      "python|step|train.py|7|500|1000|0|100|101|main|0|1|NULL|box\n"
		      "c|op|NULL|NULL|600|50|0|100|102|loader|0|1|2|box\n"
		      "c|load|data.c|3|1000|200|1|100|101|main|0|1|NULL|box\n"
		      "python|step|train.py|7|1800|1000|0|100|101|main|0|2|NULL|box\n"
		      "c|load|data.c|3|2000|400|1|100|101|main|0|2|NULL|box\n"
		      "python|step|train.py|7|100|300|0|200|NULL|NULL|NULL|0|NULL|box");
}

static void open_zones_of_a_killed_process_are_listed_with_their_age(void **state)
{
	(void)state;
	assert_answer(tables, "FROM trace.open_zones",
		      "python|step|train.py|7|3000|59999997000|0|100|101|main|0|3|NULL|box\n"
		      "c|load|data.c|3|3100|59999996900|1|100|101|main|0|3|NULL|box");
}

static void regions_are_merged_over_streams_and_count_what_is_open(void **state)
{
	(void)state;
	assert_answer(
		tables, "FROM trace.regions ORDER BY ALL",
		"c|load|2|600|600|200|400|300|141.4|208|400|400|1|100|NULL|60|data.c|3|0|box\n"
		"c|op|1|50|50|50|50|50|NULL|50|50|50|0|100|2|30|NULL|NULL|0|box\n"
		"python|step|2|2000|1400|1000|1000|1000|0|1000|1000|1000|1|100|NULL|NULL|"
		"train.py|7|0|box");
}

static void texts_are_joined_from_their_parts_in_order(void **state)
{
	(void)state;
	assert_answer(tables, "SELECT ts_ns, name, text FROM trace.marks ORDER BY 1",
		      "700|epoch|hello world\n800|epoch|NULL");
	assert_answer(tables, "FROM trace.zone_text ORDER BY 1",
		      "1000|load|batch 7|NULL|100|101|main|0|box\n"
		      "2000|load|NULL|42|100|101|main|0|box");
}

static void counters_and_steps(void **state)
{
	(void)state;
	assert_answer(tables, "SELECT ts_ns, name, value, instance FROM trace.counters",
		      "900|loss|0.5|NULL\n1900|loss|0.25|NULL");
	assert_answer(tables, "FROM trace.steps", "1|step|500|1000|200|NULL|NULL|NULL|100|0|box");
}

static void what_no_counter_can_be_is_null(void **state)
{
	(void)state;
	assert_answer(tables,
		      "SELECT ts_ns, pid, cpu_pct, rss_bytes, vms_bytes, threads FROM host.process",
		      "1000|100|99.5|4096|NULL|2");
	assert_answer(tables, "SELECT cpu, busy_pct FROM host.cpu ORDER BY 1 NULLS FIRST",
		      "NULL|50\n1|25");
}

static void emitted_is_kept_and_overwritten_and_dropped(void **state)
{
	(void)state;
	assert_answer(tables, "SELECT * FROM kymo.streams WHERE table_name = 'trace.zones'",
		      "trace.zones|100|7|4|0|3|3|0|0|0|0|0|box\n"
		      "trace.zones|100|1|1|0|0|0|0|0|0|0|0|box\n"
		      "trace.zones|200|6|1|5|0|0|0|0|0|0|NULL|box");
	assert_answer(
		tables,
		"SELECT count(*) FROM kymo.streams WHERE emitted <> kept + overwritten + dropped",
		"0");
}

static void the_run_says_how_it_ended(void **state)
{
	(void)state;
	assert_answer(tables, "SELECT * EXCLUDE (path) FROM kymo.runs",
		      "1700000000000000000|made|made "
		      "--fast|box|/somewhere|100|killed|NULL|SIGKILL|60000000000|all|0.1.0|"
		      "monotonic|40|true|0|NULL|0|NULL");
	assert_answer(tables,
		      "SELECT pid, rank, ranks, role, state, exit_code, signal FROM kymo.processes",
		      "100|0|2|target|killed|NULL|SIGKILL\n200|NULL|NULL|target|ended|3|NULL");
	assert_answer(tables, "FROM kymo.threads",
		      "1|100|101|main|0|10|NULL|box\n2|100|102|loader|0|10|NULL|box");
	assert_answer(tables, "FROM kymo.config", "1500|sample_rate|0.1|0.01|kymo config|box");
}

static void overhead_is_stated_only_where_it_was_measured(void **state)
{
	(void)state;
	assert_answer(tables, "FROM kymo.overhead", "c|3|30|90|1.5e-07\npython|2|NULL|NULL|NULL");
}

static void a_table_declared_in_two_ways_is_joined_by_name(void **state)
{
	(void)state;
	assert_answer(tables, "FROM app.requests ORDER BY at_ns",
		      "100|1.5|/index|true|main|op|NULL|101|100|0\n"
		      "200|-0|/caf\xc3\xa9\xef\xbf\xbd!|false|loader|load|NULL|102|100|0\n"
		      "300|NULL|NULL|NULL|NULL|NULL|9|NULL|200|NULL");
	assert_answer(tables, "SELECT text FROM kymo.problems WHERE text LIKE 'app.requests%'",
		      "app.requests: column \"ms\" of stream 2 has another type than elsewhere; "
		      "its values are NULL");
}

static void a_range_of_time_takes_what_reaches_into_it(void **state)
{
	(void)state;
	assert_answer(tables,
		      "SELECT name, start_ns FROM kymo_scan('trace.zones', from_ns := 1200, to_ns "
		      ":= 1900) ORDER BY 2",
		      "step|500\nstep|1800");
	assert_answer(tables,
		      "SELECT ts_ns FROM kymo_scan('trace.marks', from_ns := 700, to_ns := 800)",
		      "700");
	assert_answer(tables,
		      "SELECT name FROM kymo_scan('trace.zones', step_from := 2) ORDER BY 1",
		      "load\nstep");
	assert_answer(
		tables,
		"SELECT count(*) FROM kymo_scan('trace.zones', from_ns := 9223372036854775807)",
		"0");
	assert_answer(
		tables,
		"SELECT count(*) FROM kymo_scan('trace.zones', from_ns := -9223372036854775808)",
		"6");
}

static void all_tables_are_in_the_information_schema(void **state)
{
	(void)state;
	assert_answer(
		tables,
		"SELECT table_schema, string_agg(table_name, ' ' ORDER BY table_name) FROM "
		"information_schema.tables "
		"GROUP BY 1 ORDER BY 1",
		"alloc|allocations frames live rows sites timeline\napp|requests\n"
		"device|breakdown clocks gaps idle idle_sums kernels launch_stats launches memory "
		"models ops "
		"overlap queue_depth queues steps waits\ndist|clocks collectives desync late "
		"ranks\n"
		"host|cgroup cpu gpu io memory network process program threads\n"
		"kymo|config costs gaps imports overhead problems processes runs streams threads "
		"triggers\n"
		"native|folded frames modules samples\n"
		"python|backtrace folded frames loop_stalls samples torch_trace variables\n"
		"torch|flops ops peaks\n"
		"trace|counters critical_path critical_sums links marks open_zones places regions "
		"steps zone_text "
		"zones");
}

static void add_expected(struct buf *out, const struct catalog_view *view)
{
	for (size_t i = 0; i < view->column_count; i++)
		buf_print(out, "%s%s|%s", i ? "\n" : "", view->columns[i].name,
			  view->columns[i].type);
}

static void every_view_has_the_columns_and_types_that_the_catalog_says(void **state)
{
	struct buf sql = { 0 }, expected = { 0 };

	(void)state;
	for (size_t i = 0; i < catalog_view_count; i++) {
		buf_reset(&sql);
		buf_reset(&expected);
		buf_print(&sql, "SELECT column_name, column_type FROM (DESCRIBE %s.%s)",
			  catalog_views[i].schema, catalog_views[i].name);
		add_expected(&expected, &catalog_views[i]);
		assert_answer(tables, buf_get(&sql), buf_get(&expected));
	}
	buf_fini(&sql);
	buf_fini(&expected);
}

static size_t views_made(const struct tables *session)
{
	size_t count = 0;

	for (size_t i = 0; i < catalog_view_count; i++)
		count += session->views_made[i];
	return count;
}

/* A session creates the views that its queries name, with those that they are made of. */
static void every_view_answers_as_the_first_of_a_session(void **state)
{
	struct buf sql = { 0 };

	(void)state;
	for (size_t i = 0; i < catalog_view_count; i++) {
		struct tables *fresh = ask_open(ask_path("small"));

		buf_reset(&sql);
		buf_print(&sql, "SELECT count(*) >= 0 FROM rec.\"%s\".%s", catalog_views[i].schema,
			  catalog_views[i].name);
		assert_answer(fresh, buf_get(&sql), "true");
		tables_close(fresh);
	}
	buf_fini(&sql);
}

static void a_query_creates_only_the_views_that_it_names(void **state)
{
	struct tables *fresh = ask_open(ask_path("small"));

	(void)state;
	assert_int_equal(views_made(fresh), 0);
	assert_answer(fresh, "SELECT 1", "1");
	assert_int_equal(views_made(fresh), 0);
	assert_answer(fresh, "SELECT count(*) FROM Trace.ZONES", "6");
	assert_int_equal(views_made(fresh), 1);
	assert_refused(fresh, "FROM trace.zone", EINVAL, "Did you mean \"zones\"");
	assert_int_equal(views_made(fresh), catalog_view_count);
	tables_close(fresh);
}

static void every_cause_of_dropped_rows_has_a_column(void **state)
{
	(void)state;
#define X(upper, lower, text) \
	assert_true(tables_number(tables, "SELECT count(dropped_" #lower ") FROM kymo.streams", \
				  -1) > 0);
	KYMO_DROP_CAUSES(X)
#undef X
}

static void an_unknown_name_gets_duckdbs_suggestion(void **state)
{
	(void)state;
	assert_refused(tables, "SELECT nam FROM trace.zones", EINVAL,
		       "Candidate bindings: \"name\"");
	assert_refused(tables, "FROM trace.zone", EINVAL, "Did you mean \"zones\"");
	assert_refused(tables, "FROM kymo_scan('x.y')", EINVAL,
		       "x.y is not a table of this recording");
}

static void two_results_of_one_session_do_not_disturb_each_other(void **state)
{
	struct tables_result *first = NULL;
	struct tables_cell cell;

	(void)state;
	assert_int_equal(tables_query(tables, "SELECT range FROM range(10000)", &first, NULL), 0);
	assert_true(tables_next(first, NULL) > 0);
	assert_answer(tables, "SELECT count(*) FROM trace.zones", "6");
	assert_true(tables_next(first, NULL) > 0);
	tables_cell(first, 0, 0, &cell);
	assert_int_equal(cell.integer, 2048);
	tables_result_close(first);
	assert_true(tables_number(tables, "SELECT sum(duration_ns) FROM trace.zones", -1) == 2950);
	assert_true(tables_number(tables, "SELECT nonsense", -1) == -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zones_have_names_files_threads_and_ranks),
		cmocka_unit_test(open_zones_of_a_killed_process_are_listed_with_their_age),
		cmocka_unit_test(regions_are_merged_over_streams_and_count_what_is_open),
		cmocka_unit_test(texts_are_joined_from_their_parts_in_order),
		cmocka_unit_test(counters_and_steps),
		cmocka_unit_test(what_no_counter_can_be_is_null),
		cmocka_unit_test(emitted_is_kept_and_overwritten_and_dropped),
		cmocka_unit_test(the_run_says_how_it_ended),
		cmocka_unit_test(overhead_is_stated_only_where_it_was_measured),
		cmocka_unit_test(a_table_declared_in_two_ways_is_joined_by_name),
		cmocka_unit_test(a_range_of_time_takes_what_reaches_into_it),
		cmocka_unit_test(all_tables_are_in_the_information_schema),
		cmocka_unit_test(every_view_has_the_columns_and_types_that_the_catalog_says),
		cmocka_unit_test(every_view_answers_as_the_first_of_a_session),
		cmocka_unit_test(a_query_creates_only_the_views_that_it_names),
		cmocka_unit_test(every_cause_of_dropped_rows_has_a_column),
		cmocka_unit_test(an_unknown_name_gets_duckdbs_suggestion),
		cmocka_unit_test(two_results_of_one_session_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
