/* The scan over many names, threads, segments and streams, against numbers that the test counts
   itself. */
#include "tables_opened.h"

#include <errno.h>

#include "tables_make.h"

/* far beyond a vector of DuckDB, so dictionaries are larger than what points into them */
#define NAMES 10000u
#define ROWS 300000u
#define STREAMS 3u

static uint64_t count_of[NAMES], sum_of[NAMES], sum_all;

/* Some names are short enough to lie inside DuckDB's string_t, some are not. */
static void name_text(uint32_t i, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, i % 2 ? "n%u" : "a name that is longer than twelve bytes %u", i);
}

static struct kymo_zone_row *make_rows(const uint32_t *names, uint32_t thread, uint64_t *random)
{
	struct kymo_zone_row *rows = calloc(ROWS, sizeof(rows[0]));
	uint32_t pick;

	for (uint32_t i = 0; i < ROWS; i++) {
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		pick = (uint32_t)(*random >> 33) % NAMES;
		rows[i] = (struct kymo_zone_row){ MAKE_EPOCH + i * 10u,
						  1 + (*random >> 40) % 1000,
						  names[pick],
						  thread,
						  (uint16_t)(i % 8),
						  0,
						  i / 1000 };
		count_of[pick]++;
		sum_of[pick] += rows[i].duration_ticks;
		sum_all += rows[i].duration_ticks;
	}
	return rows;
}

static int setup(void **state)
{
	static struct make make;
	static uint32_t names[NAMES];
	char text[64];
	uint64_t random = 7;

	(void)state;
	ask_setup();
	make_run(&make, ask_path("many"));
	make_process(&make, 100, -1);
	make.no_totals = true;
	for (uint32_t i = 0; i < NAMES; i++) {
		name_text(i, text, sizeof(text));
		names[i] = make_name(&make, text, i % 3 ? "file.c" : NULL, i, KYMO_SOURCE_C, 0);
	}
	for (uint32_t i = 0; i < STREAMS; i++) {
		struct kymo_zone_row *rows;

		snprintf(text, sizeof(text), "worker %u", i % 10);
		rows = make_rows(names, make_thread(&make, 101 + (int32_t)i, text), &random);
		make_stream_cut(&make, schema_find("trace.zones"), rows, ROWS, 65536);
		free(rows);
	}
	make_process_end(&make);
	tables = ask_open(ask_path("many"));
	return 0;
}

static void every_group_of_a_large_dictionary_is_exact(void **state)
{
	struct tables_result *result = NULL;
	struct tables_cell cells[3];
	char text[64];
	uint64_t seen = 0;
	int64_t count;
	unsigned index;

	(void)state;
	assert_int_equal(tables_query(tables,
				      "SELECT name, count(*), sum(duration_ns)::BIGINT FROM "
				      "trace.zones GROUP BY name",
				      &result, &ask_error),
			 0);
	while ((count = tables_next(result, &ask_error)) > 0)
		for (int64_t row = 0; row < count; row++, seen++) {
			for (size_t i = 0; i < 3; i++)
				tables_cell(result, i, (size_t)row, &cells[i]);
			snprintf(text, sizeof(text), "%.*s", (int)cells[0].text_bytes,
				 cells[0].text);
			assert_int_equal(sscanf(strpbrk(text, "0123456789"), "%u", &index), 1);
			assert_int_equal(cells[1].integer, count_of[index]);
			assert_int_equal(cells[2].integer, sum_of[index]);
			name_text(index, text, sizeof(text));
			assert_memory_equal(text, cells[0].text, cells[0].text_bytes);
		}
	tables_result_close(result);
	assert_int_equal(count, 0);
	assert_int_equal(seen, NAMES);
}

static void assert_number(const char *sql, uint64_t expected)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)expected);
	assert_answer(tables, sql, text);
}

static void all_rows_are_seen_once(void **state)
{
	(void)state;
	assert_number("SELECT count(*) FROM trace.zones", ROWS * STREAMS);
	assert_number("SELECT sum(duration_ns) FROM trace.zones", sum_all);
	assert_number("SELECT count(DISTINCT (tid, start_ns)) FROM trace.zones", ROWS * STREAMS);
	assert_answer(
		tables,
		"SELECT thread, tid, count(*), max(step) FROM trace.zones GROUP BY ALL ORDER BY 1",
		"worker 0|101|300000|299\nworker 1|102|300000|299\nworker 2|103|300000|299");
}

static void filters_on_names_see_the_right_rows(void **state)
{
	(void)state;
	assert_number("SELECT count(*) FROM trace.zones WHERE name = 'n4321'", count_of[4321]);
	assert_number("SELECT sum(duration_ns) FROM trace.zones WHERE name = 'a name that is "
		      "longer than twelve bytes 9998'",
		      sum_of[9998]);
	assert_number(
		"SELECT count(*) FROM trace.zones WHERE name LIKE '%bytes 2468' AND line = 2468",
		count_of[2468]);
	assert_number("SELECT count(*) FROM trace.zones WHERE name IN ('n1', 'n3', 'no such')",
		      count_of[1] + count_of[3]);
	/* Every third name has no file. */
	assert_answer(tables, "SELECT count(DISTINCT line) FROM trace.zones WHERE file IS NULL",
		      "3333");
}

static void names_survive_joins_sorts_windows_and_limits(void **state)
{
	(void)state;
	assert_number("SELECT count(*) FROM trace.zones a JOIN (SELECT DISTINCT name FROM "
		      "trace.zones) b ON a.name = b.name",
		      ROWS * STREAMS);
	assert_number("SELECT count(*) FROM (SELECT name, lag(name) OVER (ORDER BY tid, start_ns) "
		      "AS before FROM trace.zones) "
		      "WHERE before IS NULL",
		      1);
	assert_answer(tables, "SELECT name FROM trace.zones ORDER BY name DESC, start_ns LIMIT 1",
		      "n9999");
	assert_answer(tables, "SELECT min(name), max(name), max(length(name)) FROM trace.zones",
		      "a name that is longer than twelve bytes 0|n9999|44");
	assert_number("SELECT count(*) FROM (FROM trace.zones LIMIT 12345 OFFSET 100)", 12345);
	assert_number("SELECT count(*) FROM (SELECT name FROM trace.zones UNION ALL SELECT file "
		      "FROM trace.zones)",
		      2 * ROWS * STREAMS);
	assert_answer(tables,
		      "WITH t AS MATERIALIZED (SELECT name, line FROM trace.zones) SELECT count(*) "
		      "FROM t WHERE name <> "
		      "CASE WHEN line % 2 = 1 THEN 'n' ELSE 'a name that is longer than twelve "
		      "bytes ' END || line",
		      "0");
}

/* A row that was handed out must not change when its buffer is used again. */
static void rows_that_are_kept_do_not_change(void **state)
{
	(void)state;
	assert_answer(tables,
		      "SELECT count(*) FROM (SELECT list({'name': name, 'line': line}) AS kept "
		      "FROM trace.zones GROUP BY tid), "
		      "unnest(kept) AS u(z) WHERE z.name NOT LIKE '%' || z.line",
		      "0");
}

static void a_range_is_the_same_as_a_filter(void **state)
{
	(void)state;
	assert_answer(tables,
		      "SELECT (SELECT count(*) FROM kymo_scan('trace.zones', from_ns := 1000000, "
		      "to_ns := 1500000)) = "
		      "(SELECT count(*) FROM trace.zones WHERE start_ns < 1500000 AND start_ns + "
		      "duration_ns > 1000000), "
		      "(SELECT sum(name_id) FROM kymo_scan('trace.zones', step_from := 7, step_to "
		      ":= 9)) = "
		      "(SELECT sum(name_id) FROM kymo_scan('trace.zones') WHERE step IN (7, 8))",
		      "true|true");
}

/* The good part, and no crash: FAULTS 14. */
static void a_segment_that_is_cut_after_opening_gives_the_good_part(void **state)
{
	static struct make make;
	struct kymo_zone_row rows[100] = { { MAKE_EPOCH, 1, 0, 0, 0, 0, 0 } };
	struct tables *cut;
	const char *answer;

	(void)state;
	make_run(&make, ask_path("cut"));
	make_process(&make, 100, -1);
	make.no_totals = true;
	make_stream(&make, schema_find("trace.zones"), rows, 100);
	make_process_end(&make);
	cut = ask_open(ask_path("cut"));
	assert_int_equal(truncate(ask_path("cut/p100-7/s1.0"), 64 + 32 * 10 + 5), 0);
	assert_int_equal(ask(cut, "SELECT count(start_ns) FROM trace.zones", &answer), 0);
	assert_true(atoi(answer) == 10 || atoi(answer) == 100);
	tables_close(cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_group_of_a_large_dictionary_is_exact),
		cmocka_unit_test(all_rows_are_seen_once),
		cmocka_unit_test(filters_on_names_see_the_right_rows),
		cmocka_unit_test(names_survive_joins_sorts_windows_and_limits),
		cmocka_unit_test(rows_that_are_kept_do_not_change),
		cmocka_unit_test(a_range_is_the_same_as_a_filter),
		cmocka_unit_test(a_segment_that_is_cut_after_opening_gives_the_good_part),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
