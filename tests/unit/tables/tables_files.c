/* Packed files, Parquet and Arrow: whole or not at all, and the same answers as the recording
   itself. */
#include "tables_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tables/catalog/catalog.h"
#include "tables_fixture.h"

static char small[256], packed[256];

static int setup(void **state)
{
	(void)state;
	ask_setup();
	snprintf(small, sizeof(small), "%s", ask_path("small"));
	snprintf(packed, sizeof(packed), "%s", ask_path("run.kymo"));
	fixture_small(small);
	if (tables_pack(small, packed, NULL, &ask_error))
		fail_msg("%s", ask_error.text);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ask_teardown();
	return 0;
}

static char *answer_of(struct tables *tables, const char *sql)
{
	const char *answer;

	if (ask(tables, sql, &answer))
		fail_msg("%s\n%s", sql, ask_error.text);
	return strdup(answer);
}

static void every_table_answers_the_same_packed(void **state)
{
	struct tables *from_store = ask_open(small), *from_file = ask_open(packed);
	char sql[128], *expected;

	(void)state;
	assert_null(tables_recording(from_file));
	for (size_t i = 0; i <= catalog_view_count; i++) {
		snprintf(sql, sizeof(sql), "FROM %s.%s ORDER BY ALL",
			 i < catalog_view_count ? catalog_views[i].schema : "app",
			 i < catalog_view_count ? catalog_views[i].name : "requests");
		expected = answer_of(from_store, sql);
		assert_answer(from_file, sql, expected);
		free(expected);
	}
	tables_close(from_store);
	tables_close(from_file);
}

static void packed_columns_are_those_of_the_catalog(void **state)
{
	struct tables *tables = ask_open(packed);
	struct buf expected = { 0 };
	char sql[160];

	(void)state;
	for (size_t i = 0; i < catalog_view_count; i++) {
		buf_reset(&expected);
		for (size_t k = 0; k < catalog_views[i].column_count; k++)
			buf_print(&expected, "%s%s|%s", k ? "\n" : "",
				  catalog_views[i].columns[k].name,
				  catalog_views[i].columns[k].type);
		snprintf(sql, sizeof(sql), "SELECT column_name, column_type FROM (DESCRIBE %s.%s)",
			 catalog_views[i].schema, catalog_views[i].name);
		assert_answer(tables, sql, buf_get(&expected));
	}
	buf_fini(&expected);
	tables_close(tables);
}

static void a_packed_file_is_safe_too(void **state)
{
	struct tables *tables = ask_open(packed);

	(void)state;
	assert_refused(tables, "DELETE FROM trace.zone_rows", EPERM, "--unsafe");
	assert_refused(tables, "FROM read_text('/etc/passwd')", EPERM, "--unsafe");
	tables_close(tables);
}

/* A view in a file from elsewhere may contain anything; the file is refused. */
static void a_hostile_packed_file_reads_nothing(void **state)
{
	struct tables_options options = { .unsafe = true };
	struct tables *unsafe = ask_open_with(packed, &options), *tables = NULL;
	char sql[512];

	(void)state;
	snprintf(sql, sizeof(sql),
		 "ATTACH '%s' AS bad; CREATE SCHEMA bad.kymo; CREATE TABLE bad.kymo.runs AS FROM "
		 "rec.kymo.runs; CREATE SCHEMA "
		 "bad.trace; CREATE VIEW bad.trace.zones AS FROM read_text('/etc/passwd'); DETACH "
		 "bad; SELECT 1",
		 ask_path("bad.kymo"));
	assert_answer(unsafe, sql, "1");
	tables_close(unsafe);
	assert_true(tables_open(ask_path("bad.kymo"), NULL, &tables, &ask_error) < 0);
	assert_non_null(strstr(ask_error.text, "it has the view trace.zones"));
}

static void another_database_is_not_a_recording(void **state)
{
	struct tables_options options = { .unsafe = true };
	struct tables *tables = ask_open_with(small, &options), *none = NULL;
	char sql[512];

	(void)state;
	snprintf(sql, sizeof(sql),
		 "ATTACH '%s' AS other; CREATE TABLE other.t AS SELECT 1; DETACH other; SELECT 1",
		 ask_path("other.db"));
	assert_answer(tables, sql, "1");
	tables_close(tables);
	assert_true(tables_open(ask_path("other.db"), NULL, &none, &ask_error) < 0);
	assert_non_null(strstr(ask_error.text, "not a packed recording"));
}

static void packing_what_is_packed_is_refused(void **state)
{
	(void)state;
	assert_int_equal(tables_pack(packed, ask_path("again.kymo"), NULL, &ask_error), -EINVAL);
	assert_non_null(strstr(ask_error.text, "packed already"));
	assert_int_not_equal(access(ask_path("again.kymo"), F_OK), 0);
}

static void leaves_nothing_beside(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "test -z \"$(ls -d '%s'/%s.* 2>/dev/null)\"",
		 ask_directory, name);
	assert_int_equal(system(command), 0);
}

static void a_directory_that_is_missing_is_said(void **state)
{
	(void)state;
	assert_int_equal(tables_pack(small, ask_path("none/run.kymo"), NULL, &ask_error), -ENOENT);
	assert_non_null(strstr(ask_error.text, "No such file or directory"));
}

/* A limit of file size stands in for a full disk: FAULTS 16. */
static void a_full_disk_leaves_the_old_file_whole(void **state)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	char old[8] = "";
	int status, fd;
	pid_t child;

	(void)state;
	fd = open(ask_path("full.kymo"), O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	child = fork();
	if (!child) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(tables_pack(small, ask_path("full.kymo"), NULL, &ask_error) < 0 &&
				      ask_error.text[0]
			      ? 7
			      : 8);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	fd = open(ask_path("full.kymo"), O_RDONLY);
	assert_int_equal(read(fd, old, sizeof(old)), 3);
	assert_string_equal(old, "old");
	close(fd);
	leaves_nothing_beside("full.kymo");
}

static uint64_t told_done, told_all;

static void tell(uint64_t done, uint64_t all)
{
	told_done = done;
	told_all = all;
}

static void packing_tells_its_progress(void **state)
{
	(void)state;
	assert_int_equal(tables_pack(small, ask_path("told.kymo"), tell, &ask_error), 0);
	assert_int_equal(told_all, 22);
	assert_true(told_done <= told_all);
	leaves_nothing_beside("told.kymo");
}

static void parquet_holds_the_same_rows(void **state)
{
	struct tables_options options = { .unsafe = true };
	struct tables *tables = ask_open(small), *unsafe = ask_open_with(small, &options);
	struct tables_result *result = NULL;
	char sql[512];

	(void)state;
	assert_int_equal(tables_query(tables,
				      "SELECT *, [name] AS l, {'a': step} AS s FROM trace.zones, "
				      "range(1000) ORDER BY ALL",
				      &result, &ask_error),
			 0);
	if (tables_write_parquet(result, ask_path("a.parquet"), &ask_error))
		fail_msg("%s", ask_error.text);
	tables_result_close(result);
	snprintf(sql, sizeof(sql),
		 "SELECT count(*), sum(duration_ns), count(DISTINCT name), any_value(l[1]) FROM "
		 "'%s'",
		 ask_path("a.parquet"));
	assert_answer(unsafe, sql, "6000|2950000|3|load");
	leaves_nothing_beside("a.parquet");
	tables_close(unsafe);
	tables_close(tables);
}

static void a_query_that_fails_leaves_no_parquet(void **state)
{
	struct tables *tables = ask_open(small);
	struct tables_result *result = NULL;

	(void)state;
	assert_int_equal(tables_query(tables,
				      "SELECT CASE WHEN range > 4999999 THEN error('no more') ELSE "
				      "range END FROM range(6000000)",
				      &result, &ask_error),
			 0);
	assert_true(tables_write_parquet(result, ask_path("b.parquet"), &ask_error) < 0);
	assert_non_null(strstr(ask_error.text, "no more"));
	tables_result_close(result);
	assert_int_not_equal(access(ask_path("b.parquet"), F_OK), 0);
	leaves_nothing_beside("b.parquet");
	tables_close(tables);
}

#ifdef TEST_ARROW
static void arrow_is_a_stream_that_ends(void **state)
{
	struct tables *tables = ask_open(small);
	struct tables_result *result = NULL;
	unsigned char bytes[8] = { 0 };
	int fd = open(ask_path("a.arrow"), O_CREAT | O_RDWR | O_TRUNC, 0600);

	(void)state;
	assert_int_equal(
		tables_query(tables, "SELECT * FROM trace.zones, range(1000)", &result, &ask_error),
		0);
	if (tables_write_arrow(result, fd, &ask_error))
		fail_msg("%s", ask_error.text);
	tables_result_close(result);
	/* The end of a stream is a continuation marker and a length of 0. */
	lseek(fd, -8, SEEK_END);
	assert_int_equal(read(fd, bytes, 8), 8);
	assert_memory_equal(bytes, "\xff\xff\xff\xff\0\0\0\0", 8);
	close(fd);
	tables_close(tables);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_table_answers_the_same_packed),
		cmocka_unit_test(packed_columns_are_those_of_the_catalog),
		cmocka_unit_test(a_packed_file_is_safe_too),
		cmocka_unit_test(a_hostile_packed_file_reads_nothing),
		cmocka_unit_test(another_database_is_not_a_recording),
		cmocka_unit_test(packing_what_is_packed_is_refused),
		cmocka_unit_test(a_directory_that_is_missing_is_said),
		cmocka_unit_test(a_full_disk_leaves_the_old_file_whole),
		cmocka_unit_test(packing_tells_its_progress),
		cmocka_unit_test(parquet_holds_the_same_rows),
		cmocka_unit_test(a_query_that_fails_leaves_no_parquet),
#ifdef TEST_ARROW
		cmocka_unit_test(arrow_is_a_stream_that_ends),
#endif
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
