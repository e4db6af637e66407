/* The public API, from the program's side: what each call promises, and what the store reads
   back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorded.h"

/* ---- zones, regions ---- */

static void three_nested_zones(void)
{
	KYMO_SCOPE("outer");
	for (int i = 0; i < 2; i++) {
		KYMO_SCOPE("inner");
	}
}

static void scopes_nest_and_carry_depth(void **state)
{
	(void)state;
	struct recording *recording = recorded(three_nested_zones, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	struct kymo_zone_row row[3];

	assert_int_equal(zones->kept, 3);
	assert_int_equal(read_zones(zones, row, 3), 3);
	assert_string_equal(name_of(recording, zones, row[0].name), "inner");
	assert_string_equal(name_of(recording, zones, row[1].name), "inner");
	assert_string_equal(name_of(recording, zones, row[2].name), "outer");
	assert_int_equal(row[0].depth, 1);
	assert_int_equal(row[2].depth, 0);
	assert_true(row[2].start_ticks <= row[0].start_ticks);
	assert_true(row[0].start_ticks + row[0].duration_ticks <= row[1].start_ticks);
	const struct store_total *outer = total_of(recording, zones, "outer");
	const struct store_total *inner = total_of(recording, zones, "inner");
	assert_int_equal(outer->count, 1);
	assert_int_equal(inner->count, 2);
	assert_int_equal(outer->child_ticks, inner->sum_ticks);
	recorded_close(recording);
}

static int recursion(int left)
{
	static struct kymo_region region = KYMO_REGION_INIT("recursive");
	int rc = kymo_region_start(&region);

	if (left)
		rc |= recursion(left - 1);
	return rc | kymo_region_stop(&region);
}

static void recurse_100(void)
{
	if (recursion(99))
		abort();
}

static void a_region_may_recurse_deeper_than_the_mapped_stack(void **state)
{
	(void)state;
	struct recording *recording = recorded(recurse_100, NULL);

	assert_int_equal(
		total_of(recording, stream_of(recording, "trace.zones"), "recursive")->count, 100);
	recorded_close(recording);
}

static void scope_around_a_region(int above)
{
	static struct kymo_region region = KYMO_REGION_INIT("region");
	KYMO_SCOPE("scope");

	if (above) {
		scope_around_a_region(above - 1);
		return;
	}
	for (int i = 0; i < 2; i++) { /* the second time in the place of a region that has ended */
		KYMO_SCOPE("after");

		kymo_region_start(&region);
		kymo_region_stop(&region);
	}
	kymo_region_start(&region);
	kymo_region_stop(&region);
	KYMO_SCOPE("after");
	kymo_region_start(&region);
	kymo_region_stop(&region);
	KYMO_SCOPE("last");
}

static void scopes_70_deep(void)
{
	scope_around_a_region(69);
}

static void a_region_deeper_than_the_mapped_stack_leaves_scopes_their_depth(void **state)
{
	(void)state;
	struct recording *recording = recorded(scopes_70_deep, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	static const uint32_t depth[] = { 71, 70, 71, 70, 70, 71, 71, 70, 69 };
	struct kymo_zone_row row[9];

	assert_int_equal(read_zones(zones, row, 9), 9);
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(row[i].depth, depth[i]);
	recorded_close(recording);
}

static void cross_two_regions(void)
{
	static struct kymo_region a = KYMO_REGION_INIT("a"), b = KYMO_REGION_INIT("b"),
				  c = KYMO_REGION_INIT("c");

	kymo_region_start(&a);
	kymo_region_start(&b);
	kymo_region_stop(&a); /* leaves a hole below b */
	kymo_region_start(&c);
	kymo_region_stop(&c);
	kymo_region_stop(&b);
	kymo_region_start(&c); /* both are gone: depth 0 again */
	kymo_region_stop(&c);
}

static void regions_that_cross_keep_their_depth(void **state)
{
	(void)state;
	struct recording *recording = recorded(cross_two_regions, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	struct kymo_zone_row row[4];

	assert_int_equal(read_zones(zones, row, 4), 4);
	assert_int_equal(row[0].depth, 0); /* a */
	assert_int_equal(row[1].depth, 2); /* c above b */
	assert_int_equal(row[2].depth, 1); /* b */
	assert_int_equal(row[3].depth, 0); /* c alone */
	recorded_close(recording);
}

static void stop_without_start(void)
{
	struct kymo_region region = KYMO_REGION_INIT("never");

	if (kymo_region_stop(&region) != -ENOENT || kymo_region_start(NULL) != -EINVAL ||
	    kymo_region_stop(NULL) != -EINVAL)
		abort();
	kymo_region_start(&region);
	if (kymo_region_stop(&region) || kymo_region_stop(&region) != -ENOENT)
		abort();
}

static void wrong_use_of_regions_is_told_by_the_return_value(void **state)
{
	(void)state;
	struct recording *recording = recorded(stop_without_start, NULL);

	recorded_close(recording);
}

static void die_inside(void)
{
	KYMO_SCOPE("outer");
	KYMO_SCOPE("inside");
	_exit(3);
}

static void zones_open_at_death_are_shown(void **state)
{
	(void)state;
	struct recording *recording = recorded(die_inside, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");

	assert_int_equal(zones->kept, 0);
	assert_int_equal(zones->open_count, 2);
	assert_string_equal(recording->names[zones->open_zones[1].name].text, "inside");
	assert_int_equal(zones->open_zones[1].depth, 1);
	recorded_close(recording);
}

static void ends_elsewhere(void)
{
	static struct kymo_site site = { "moved", __FILE__, __LINE__, 0 };
	struct kymo_zone zone = kymo_zone_begin(&site);
	pid_t pid = fork();

	if (!pid) {
		kymo_zone_end(&zone); /* begun in the parent */
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	kymo_zone_end(&zone);
}

static void a_zone_that_ends_in_a_forked_child_is_flagged(void **state)
{
	(void)state;
	struct recording *recording = recorded(ends_elsewhere, NULL);
	size_t foreign = 0;

	assert_int_equal(recording->process_count, 2);
	for (size_t i = 0; i < recording->stream_count; i++) {
		struct kymo_zone_row row;

		if (!strcmp(recording->streams[i].table, "trace.zones") &&
		    read_zones(&recording->streams[i], &row, 1) == 1)
			foreign += row.flags & KYMO_ZONE_FOREIGN;
	}
	assert_int_equal(foreign, 1);
	recorded_close(recording);
}

/* ---- retention ---- */

static void hundred_thousand_zones(void)
{
	for (int i = 0; i < 100000; i++) {
		KYMO_SCOPE("many");
	}
}

static void flight_keeps_the_last_ten_thousand_and_counts_all(void **state)
{
	(void)state;
	struct recording *recording = recorded(hundred_thousand_zones, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");

	assert_int_equal(zones->emitted, 100000);
	assert_true(zones->kept >= 10000 && zones->kept <= 11264);
	assert_int_equal(zones->emitted, zones->kept + zones->overwritten + zones->dropped_total);
	assert_int_equal(total_of(recording, zones, "many")->count, 100000);
	recorded_close(recording);
}

static void keep_all_keeps_every_row(void **state)
{
	(void)state;
	struct recording *recording = recorded(hundred_thousand_zones, "KYMO_KEEP=all");
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	uint64_t sum = 0;
	struct kymo_zone_row *rows = calloc(100000, sizeof(*rows));

	assert_int_equal(zones->kept, 100000);
	assert_int_equal(read_zones(zones, rows, 100000), 100000);
	for (int i = 0; i < 100000; i++)
		sum += rows[i].duration_ticks;
	assert_int_equal(total_of(recording, zones, "many")->sum_ticks, sum);
	free(rows);
	recorded_close(recording);
}

static void two_million_zones(void)
{
	for (int i = 0; i < 2000000; i++) {
		KYMO_SCOPE("many");
	}
}

static void keep_all_stays_within_its_budget(void **state)
{
	(void)state;
	struct recording *recording = recorded(two_million_zones, "KYMO_KEEP=all KYMO_BUDGET=16M");
	const struct store_stream *zones = stream_of(recording, "trace.zones");

	assert_int_equal(zones->emitted, 2000000);
	assert_true(zones->kept * 32 <= 16u << 20);
	assert_true(zones->kept * 32 >= 8u << 20);
	assert_int_equal(zones->emitted, zones->kept + zones->overwritten + zones->dropped_total);
	assert_int_equal(zones->dropped_total, 0);
	recorded_close(recording);
}

/* ---- other rows ---- */

struct request {
	uint64_t at;
	double ms;
	uint32_t thread;
	char path[20];
};

static const struct kymo_column request_columns[] = {
	{ "at_ns", KYMO_TIME, offsetof(struct request, at), 0, "ns" },
	{ "ms", KYMO_F64, offsetof(struct request, ms), 0, "ms" },
	{ "thread", KYMO_THREAD, offsetof(struct request, thread), 0, NULL },
	{ "path", KYMO_TEXT, offsetof(struct request, path), 20, NULL },
};

static void marks_counters_steps_and_a_table(void)
{
	struct kymo_table *table = kymo_table_create("app.requests", request_columns, 4,
						     sizeof(struct request), NULL);
	char text[1001];

	memset(text, 'x', 1000);
	text[1000] = '\0';
	for (int i = 0; i < 3; i++) {
		struct request request = { kymo_ticks(), i * 1.5, 0, "/index" };

		kymo_step(NULL);
		kymo_mark("mark", text);
		kymo_counter("loss", 1.0 / (i + 1));
		if (kymo_table_append(table, &request))
			abort();
	}
	kymo_step_end(NULL);
}

static void every_kind_of_row_arrives(void **state)
{
	(void)state;
	struct recording *recording = recorded(marks_counters_steps_and_a_table, NULL);
	const struct store_stream *requests = stream_of(recording, "app.requests");
	struct request row[3];

	assert_int_equal(stream_of(recording, "trace.marks")->kept, 3);
	assert_int_equal(stream_of(recording, "trace.counters")->kept, 3);
	assert_int_equal(stream_of(recording, "trace.steps")->kept, 3);
	assert_int_equal(stream_of(recording, "trace.zone_text")->kept,
			 3 * 32); /* 1,000 bytes are 32 parts of 32 */
	assert_int_equal(requests->column_count, 4);
	assert_string_equal(requests->columns[1].unit, "ms");
	assert_int_equal(store_read_rows(requests, &requests->chunks[0], 0, 3, row), 3);
	assert_string_equal(row[2].path, "/index");
	assert_true(row[2].ms > 2.99);
	assert_true(row[2].thread != 0);
	recorded_close(recording);
}

static void bad_tables_are_refused_with_a_sentence(void **state)
{
	(void)state;
	static const struct kymo_column outside = { "x", KYMO_I64, 4, 0, NULL };
	static const struct kymo_column twice[] = { { "x", KYMO_I64, 0, 0, NULL },
						    { "X", KYMO_I64, 8, 0, NULL } };
	struct kymo_error err;

	assert_null(
		kymo_table_create("requests", request_columns, 4, sizeof(struct request), &err));
	assert_non_null(strstr(err.text, "schema.table"));
	assert_null(
		kymo_table_create("trace.mine", request_columns, 4, sizeof(struct request), &err));
	assert_non_null(strstr(err.text, "reserved for kymo"));
	assert_null(kymo_table_create("app.outside", &outside, 1, 8, &err));
	assert_non_null(strstr(err.text, "outside of the row"));
	assert_null(kymo_table_create("app.twice", twice, 2, 16, &err));
	assert_non_null(strstr(err.text, "twice"));
}

static void names_are_utf8_when_cut(void **state)
{
	(void)state;
	/* "é" is two bytes: 5 bytes hold two of them. */
	assert_int_equal(kymo__utf8_cut("éééé", 8, 5), 4);
	assert_int_equal(kymo__utf8_cut("abc", 3, 5), 3);
	assert_int_equal(kymo__utf8_cut("\x80\x80\x80\x80\x80\x80", 6, 5), 5);
}

static void five_thousand_names(void)
{
	for (int i = 0; i < 5000; i++) {
		char name[32];
		struct kymo_zone zone;

		snprintf(name, sizeof(name), "name %d", i);
		zone = kymo_zone_begin_id(kymo_name(name));
		kymo_zone_end(&zone);
	}
}

static void every_one_of_many_names_resolves(void **state)
{
	(void)state;
	struct recording *recording = recorded(five_thousand_names, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	struct kymo_zone_row *rows = calloc(5000, sizeof(*rows));

	assert_int_equal(read_zones(zones, rows, 5000), 5000);
	for (int i = 0; i < 5000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name %d", i);
		assert_string_equal(name_of(recording, zones, rows[i].name), name);
	}
	assert_int_equal(zones->total_count, 5000);
	free(rows);
	recorded_close(recording);
}

static void more_names_than_totals(void)
{
	for (int i = 0; i < 17000; i++) {
		char name[32];
		struct kymo_zone zone;

		snprintf(name, sizeof(name), "name %d", i);
		zone = kymo_zone_begin_id(kymo_name(name));
		kymo_zone_end(&zone);
	}
}

static void rows_without_totals_are_counted_and_told(void **state)
{
	(void)state;
	struct recording *recording = recorded(more_names_than_totals, "KYMO_KEEP=all");
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	uint64_t counted = 0;

	for (size_t i = 0; i < zones->total_count; i++)
		counted += zones->totals[i].count;
	assert_int_equal(zones->kept, 17000);
	assert_int_equal(counted + zones->untotalled, 17000);
	assert_true(zones->untotalled > 0);
	assert_true(recording->processes[0].control.totals_full > 0);
	assert_int_equal(recording->problem_count, 1);
	assert_non_null(strstr(recording->problems[0], "trace.regions"));
	recorded_close(recording);
}

static void nothing_at_all(void)
{
	kymo_disable();
	hundred_thousand_zones();
	kymo_mark("m", "t");
	kymo_counter("c", 1);
	kymo_enable(NULL);
	{
		KYMO_SCOPE("after");
	}
}

static void nothing_is_recorded_while_off(void **state)
{
	(void)state;
	struct recording *recording = recorded(nothing_at_all, NULL);

	assert_int_equal(recording->stream_count, 1);
	assert_int_equal(stream_of(recording, "trace.zones")->emitted, 1);
	recorded_close(recording);
}

static void monotonic_clock(void)
{
	KYMO_SCOPE("sleep");
	usleep(20000);
}

static void an_unstable_counter_is_replaced_and_said(void **state)
{
	(void)state;
	struct recording *recording = recorded(monotonic_clock, "KYMO_CLOCK=monotonic");
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	struct kymo_zone_row row;

	assert_int_equal(recording->processes[0].clock.kind, KYMO_CLOCK_MONOTONIC);
	assert_int_equal(read_zones(zones, &row, 1), 1);
	assert_true(row.duration_ticks >= 20000000);
	recorded_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scopes_nest_and_carry_depth),
		cmocka_unit_test(a_region_may_recurse_deeper_than_the_mapped_stack),
		cmocka_unit_test(a_region_deeper_than_the_mapped_stack_leaves_scopes_their_depth),
		cmocka_unit_test(regions_that_cross_keep_their_depth),
		cmocka_unit_test(wrong_use_of_regions_is_told_by_the_return_value),
		cmocka_unit_test(zones_open_at_death_are_shown),
		cmocka_unit_test(a_zone_that_ends_in_a_forked_child_is_flagged),
		cmocka_unit_test(flight_keeps_the_last_ten_thousand_and_counts_all),
		cmocka_unit_test(keep_all_keeps_every_row),
		cmocka_unit_test(keep_all_stays_within_its_budget),
		cmocka_unit_test(every_kind_of_row_arrives),
		cmocka_unit_test(bad_tables_are_refused_with_a_sentence),
		cmocka_unit_test(every_one_of_many_names_resolves),
		cmocka_unit_test(rows_without_totals_are_counted_and_told),
		cmocka_unit_test(names_are_utf8_when_cut),
		cmocka_unit_test(nothing_is_recorded_while_off),
		cmocka_unit_test(an_unstable_counter_is_replaced_and_said),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
