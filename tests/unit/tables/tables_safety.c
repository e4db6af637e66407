/* FAULTS 33: SQL that reads files, changes settings, or never ends. */
#include "tables_small.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "tables/duck.h"

static void statements_other_than_select_and_explain_are_refused(void **state)
{
	static const char *const statements[] = {
		"CREATE TABLE t (a INT)",
		"CREATE OR REPLACE VIEW trace.zones AS SELECT 1",
		"DROP VIEW trace.zones",
		"ATTACH ':memory:' AS other",
		"DETACH rec",
		"USE memory",
		"SET threads = 1",
		"SET VARIABLE x = 1",
		"RESET threads",
		"PRAGMA threads = 1",
		"INSERT INTO app.requests VALUES (1)",
		"CALL duckdb_settings()",
		"BEGIN",
		"COMMIT",
		"PREPARE p AS SELECT 1",
		"CHECKPOINT",
		"EXPORT DATABASE '/tmp/kymo-no'",
		"IMPORT DATABASE '/tmp/kymo-no'",
		"INSTALL httpfs",
		"LOAD httpfs",
		"VACUUM",
		"COPY (SELECT 1) TO '/tmp/kymo-no.csv'",
		"EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/kymo-no.csv'",
		"EXPLAIN ANALYZE CREATE TABLE t (a INT)",
		"CREATE MACRO m() AS 1",
		"CREATE SECRET s (TYPE http)",
		"SELECT 1; SELECT 2",
		"SELECT 1; DROP VIEW trace.zones",
	};
	const char *answer;

	(void)state;
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		int rc = ask(tables, statements[i], &answer);

		if (rc >= 0)
			fail_msg("%s was not refused", statements[i]);
		if (!strstr(ask_error.text, "--unsafe") && rc == -EPERM)
			fail_msg("%s: no word of --unsafe: %s", statements[i], ask_error.text);
	}
	assert_int_not_equal(access("/tmp/kymo-no.csv", F_OK), 0);
	assert_answer(tables, "SELECT count(*) FROM trace.zones", "6");
}

static void functions_that_reach_out_are_refused_however_they_are_written(void **state)
{
	static const char *const queries[] = {
		"FROM read_csv('/etc/passwd')",
		"FROM read_text('/etc/passwd')",
		"SELECT * FROM \"read_text\"('/etc/passwd')",
		"SELECT * FROM READ_BLOB ('/etc/passwd')",
		"FROM read_json('/etc/passwd')",
		"FROM read_parquet('/etc/passwd')",
		"FROM glob('/etc/*')",
		"FROM sniff_csv('/etc/passwd')",
		"FROM duckdb_secrets()",
		"FROM enable_logging(storage = 'file', storage_path = '/tmp/kymo-no')",
		"FROM enable_logging/* /* */ */()",
		"FROM enable_logging -- no\n ()",
		"FROM main.enable_logging()",
		"FROM enable_profiling(save_location = '/tmp/kymo-no')",
		"FROM query('FROM enable_' || 'logging()')",
		"FROM json_execute_serialized_sql('{}')",
		"FROM force_checkpoint()",
		"SELECT getenv('HOME')",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		assert_refused(tables, queries[i], EPERM, "--unsafe");
	assert_refused(tables, "FROM '/etc/passwd'", EINVAL, "does not exist");
	/* The words alone are no crime. */
	assert_answer(tables, "SELECT 'checkpoint' AS query WHERE 'glob' <> 'read_text'",
		      "checkpoint");
}

static void settings_stay_locked(void **state)
{
	(void)state;
	assert_answer(tables,
		      "SELECT current_setting('enable_external_access'), "
		      "current_setting('lock_configuration'), "
		      "current_setting('memory_limit'), current_setting('temp_directory')",
		      "false|true|1.0 GiB|");
}

static void what_only_reads_is_allowed(void **state)
{
	const char *answer;

	(void)state;
	assert_answer(tables, "VALUES (1, 'a')", "1|a");
	assert_answer(tables, "WITH x AS (SELECT 1 AS a) FROM x", "1");
	assert_answer(tables, "SELECT 1;", "1");
	assert_answer(tables, "SELECT 1 -- and no more", "1");
	assert_int_equal(ask(tables, "EXPLAIN SELECT * FROM trace.zones", &answer), 0);
	assert_int_equal(ask(tables, "EXPLAIN ANALYZE SELECT * FROM trace.zones", &answer), 0);
	assert_int_equal(ask(tables, "DESCRIBE trace.zones", &answer), 0);
	assert_int_equal(ask(tables, "SUMMARIZE trace.zones", &answer), 0);
	assert_int_equal(ask(tables, "SHOW ALL TABLES", &answer), 0);
	assert_refused(tables, "", EINVAL, "the SQL is empty");
	assert_refused(tables, " ; ", EINVAL, "the SQL is empty");
	assert_refused(tables, "SELECT ?", EINVAL, "parameter");
	assert_refused(tables, "SELECT 'a", EINVAL, "unterminated");
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const char *const endless[] = {
	"SELECT count(*) FROM range(1000000000000) a, range(1000) b",
	"SELECT sum(a.range * b.range) FROM range(100000) a JOIN range(100000) b ON a.range <> "
	"b.range",
	"WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
	"FROM range(1000000000000)",
};

static void a_query_without_end_is_stopped_at_its_time(void **state)
{
	struct tables_options options = { .timeout_ms = 300, .threads = 2 };
	struct tables *limited = ask_open_with(ask_path("small"), &options);
	double began;

	(void)state;
	for (size_t i = 0; i < sizeof(endless) / sizeof(endless[0]); i++) {
		began = seconds();
		assert_refused(limited, endless[i], ETIMEDOUT, "after 0.3 s");
		assert_true(seconds() - began < 5);
	}
	assert_answer(limited, "SELECT count(*) FROM trace.zones", "6");
	tables_close(limited);
}

static void on_signal(int number)
{
	(void)number;
	tables_interrupt(tables);
}

static void a_signal_cancels_a_query_and_the_next_one_works(void **state)
{
	struct itimerval soon = { { 0, 0 }, { 0, 200000 } };

	(void)state;
	signal(SIGALRM, on_signal);
	for (size_t i = 0; i < sizeof(endless) / sizeof(endless[0]); i++) {
		setitimer(ITIMER_REAL, &soon, NULL);
		assert_refused(tables, endless[i], ECANCELED, "cancelled");
	}
	signal(SIGALRM, SIG_DFL);
	assert_answer(tables, "SELECT 1", "1");
}

static void an_interrupt_that_comes_before_its_query_is_not_lost(void **state)
{
	(void)state;
	tables_interrupt(tables);
	tables_interrupt(tables);
	assert_refused(tables, endless[0], ECANCELED, "cancelled");
	assert_answer(tables, "SELECT 1", "1");
}

/* Nobody asks for the rest; what computes it has to end, or closing would wait for it. */
static void a_result_that_is_given_up_ends(void **state)
{
	struct tables_result *result;

	(void)state;
	for (size_t i = 0; i < 20; i++) {
		assert_int_equal(tables_query(tables, "FROM range(1000000000000)", &result, NULL),
				 0);
		assert_true(tables_next(result, NULL) > 0);
		tables_result_close(result);
	}
	assert_answer(tables, "SELECT 1", "1");
}

static void a_query_that_eats_memory_fails_with_a_sentence(void **state)
{
	struct tables_options options = { .memory_limit_bytes = 64 << 20, .threads = 2 };
	struct tables *limited = ask_open_with(ask_path("small"), &options);

	(void)state;
	assert_refused(
		limited,
		"SELECT count(DISTINCT range::VARCHAR || 'some longer text') FROM range(20000000)",
		ENOMEM, "--unsafe");
	assert_answer(limited, "SELECT 1", "1");
	tables_close(limited);
}

static const char *(*told)(duckdb_result *result);
static int masked;

/* What DuckDB says of a result whose rows another thread failed to make just before it was
   asked. */
static const char *tell_masked(duckdb_result *result)
{
	const char *why = told(result);

	return why && masked && masked-- ? "INTERRUPT Error: Interrupted!" : why;
}

static void fails_masked(struct tables *asked, int times, int code, const char *sentence)
{
	struct tables_result *result = NULL;
	int64_t count;

	masked = times;
	assert_int_equal(tables_query(asked,
				      "SELECT CASE WHEN range > 999999 THEN error('no more') END "
				      "FROM range(1000009)",
				      &result, &ask_error),
			 0);
	do
		count = tables_next(result, &ask_error);
	while (count > 0);
	masked = 0;
	assert_int_equal(count, -code);
	assert_string_equal(ask_error.text, sentence);
	tables_result_close(result);
	assert_answer(asked, "SELECT 1", "1");
}

static void the_reason_of_a_failure_is_found_where_duckdb_loses_it(void **state)
{
	static const char no_reason[] =
		"the query failed in a thread of DuckDB, without a reason; run it again";
	struct tables_options options = { .unsafe = true };
	struct tables *unsafe = ask_open_with(ask_path("small"), &options);

	(void)state;
	told = duck.result_error;
	duck.result_error = tell_masked;
	fails_masked(tables, 1, EINVAL, "Invalid Input Error: no more");
	fails_masked(tables, 1000, EIO, no_reason);
	fails_masked(unsafe, 1, EIO, no_reason); /* it may write: once is enough */
	duck.result_error = told;
	tables_close(unsafe);
}

static void unsafe_allows_several_statements_and_files(void **state)
{
	struct tables_options options = { .unsafe = true };
	struct tables *unsafe = ask_open_with(ask_path("small"), &options);

	(void)state;
	assert_answer(unsafe,
		      "CREATE TABLE memory.main.t AS FROM trace.zones; SELECT count(*) FROM "
		      "memory.main.t",
		      "6");
	assert_answer(unsafe, "SET threads = 1; SELECT current_setting('threads')", "1");
	assert_answer(unsafe, "SELECT count(*) > 0 FROM read_text('/proc/self/status')", "true");
	tables_close(unsafe);
}

static void what_is_no_recording_gets_a_sentence(void **state)
{
	struct tables *none = NULL;

	(void)state;
	assert_true(tables_open(ask_path("nothing"), NULL, &none, &ask_error) < 0);
	assert_null(none);
	assert_non_null(strstr(ask_error.text, "nothing"));
	assert_true(tables_open("/etc/passwd", NULL, &none, &ask_error) < 0);
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statements_other_than_select_and_explain_are_refused),
		cmocka_unit_test(functions_that_reach_out_are_refused_however_they_are_written),
		cmocka_unit_test(settings_stay_locked),
		cmocka_unit_test(what_only_reads_is_allowed),
		cmocka_unit_test(a_query_without_end_is_stopped_at_its_time),
		cmocka_unit_test(a_signal_cancels_a_query_and_the_next_one_works),
		cmocka_unit_test(an_interrupt_that_comes_before_its_query_is_not_lost),
		cmocka_unit_test(a_result_that_is_given_up_ends),
		cmocka_unit_test(a_query_that_eats_memory_fails_with_a_sentence),
		cmocka_unit_test(the_reason_of_a_failure_is_found_where_duckdb_loses_it),
		cmocka_unit_test(unsafe_allows_several_statements_and_files),
		cmocka_unit_test(what_is_no_recording_gets_a_sentence),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
