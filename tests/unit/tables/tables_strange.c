/* Tables of users, and of liars: names that clash, quote, or are reserved never keep a recording
   from opening. */
#include "tables_opened.h"

#include <errno.h>

#include "tables_make.h"

struct row {
	uint64_t a, b;
};

static void add_table(struct make *make, const char *name, const struct kymo_column *columns,
		      size_t count)
{
	const struct schema_table table = { name, columns, count, sizeof(struct row), NULL };

	make_stream(make, &table, &(struct row){ 1, 2 }, 1);
}

static const struct kymo_column plain[] = { { "a", KYMO_U64, 0, 0, NULL },
					    { "b", KYMO_U64, 8, 0, NULL } };
static const struct kymo_column keywords[] = { { "select", KYMO_U64, 0, 0, NULL },
					       { "from", KYMO_U64, 8, 0, NULL } };
static const struct kymo_column doubled[] = { { "a", KYMO_U64, 0, 0, NULL },
					      { "A", KYMO_U64, 8, 0, NULL } };
static const struct kymo_column taken[] = { { "pid", KYMO_U64, 0, 0, NULL },
					    { "rank", KYMO_U64, 8, 0, NULL } };
static const struct kymo_column names[] = { { "name", KYMO_NAME, 0, 0, NULL },
					    { "name_id", KYMO_U64, 8, 0, NULL } };

static const struct kymo_column zones[] = { { "start_ns", KYMO_F64, 0, 0, NULL },
					    { "name", KYMO_U64, 8, 0, NULL } };

static int setup(void **state)
{
	static struct make make;

	(void)state;
	ask_setup();
	make_run(&make, ask_path("strange"));
	make_process(&make, 100, -1);
	make.no_totals = true;
	add_table(&make, "app.keywords", keywords, 2);
	add_table(&make, "app.doubled", doubled, 2);
	add_table(&make, "app.taken", taken, 2);
	add_table(&make, "app.names", names, 2);
	add_table(&make, "App.Plain", plain, 2);
	add_table(&make, "app.plain", plain, 2);
	add_table(&make, "temp.t", plain, 2);
	add_table(&make, "system.t", plain, 2);
	add_table(&make, "information_schema.tables", plain, 2);
	add_table(&make, "pg_catalog.t", plain, 2);
	add_table(&make, "main.select", plain, 2);
	add_table(&make, "rec.t", plain, 2);
	add_table(&make, "kymo.evil", plain, 2);
	add_table(&make, "TRACE.zones", plain, 2);
	add_table(&make, "trace.zones", zones, 2);
	add_table(&make, "trace.regions", plain, 2);
	make_process_end(&make);
	tables = ask_open(ask_path("strange"));
	return 0;
}

static void any_name_can_be_asked_for(void **state)
{
	(void)state;
	assert_answer(tables, "FROM app.keywords", "1|2|100|NULL");
	assert_answer(tables, "SELECT \"select\", \"from\" FROM app.keywords", "1|2");
	assert_answer(tables, "FROM rec.temp.t", "1|2|100|NULL");
	assert_answer(tables, "FROM rec.rec.t", "1|2|100|NULL");
	assert_answer(tables, "FROM kymo_scan('kymo.evil') SELECT a, b", "1|2");
	assert_answer(tables, "FROM main.\"select\"", "1|2|100|NULL");
}

static void declared_columns_win_over_derived_ones(void **state)
{
	(void)state;
	assert_answer(tables, "FROM app.taken", "1|2");
	assert_answer(tables, "SELECT name, name_id FROM app.names", "NULL|2");
	assert_answer(tables, "SELECT column_name FROM (DESCRIBE FROM kymo_scan('app.names'))",
		      "name\nname_id\nname_source\nname_file\nname_line\nname_"
		      "instance\npid\nrank\nstream\nhost\nprocess_id");
	assert_answer(tables, "FROM app.doubled", "1|100|NULL");
}

static void own_tables_keep_their_columns(void **state)
{
	(void)state;
	/* A stream that calls itself trace.zones and is none: a row with nothing known. */
	assert_answer(tables, "SELECT name, start_ns, duration_ns, pid FROM trace.zones",
		      "NULL|NULL|NULL|100");
	assert_answer(tables, "SELECT count(*) FROM trace.regions", "0");
}

static void what_could_not_be_named_is_said(void **state)
{
	(void)state;
	assert_answer(tables,
		      "SELECT DISTINCT split_part(text, ':', 1) FROM kymo.problems WHERE text LIKE "
		      "'%kymo_scan%' ORDER BY 1",
		      "TRACE.zones\napp.plain\ninformation_schema.tables\nkymo.evil\npg_catalog."
		      "t\ntrace.regions");
	assert_answer(
		tables, "SELECT text FROM kymo.problems WHERE text LIKE 'kymo.evil%'",
		"kymo.evil: the name is reserved for kymo; kymo_scan('kymo.evil') reads the table");
	assert_answer(tables, "SELECT count(*) FROM kymo.problems WHERE text LIKE '%app.doubled%'",
		      "1");
	assert_answer(tables,
		      "SELECT count(*) FROM kymo.problems WHERE text LIKE 'trace.zones: column "
		      "\"start_ns\"%'",
		      "1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_name_can_be_asked_for),
		cmocka_unit_test(declared_columns_win_over_derived_ones),
		cmocka_unit_test(own_tables_keep_their_columns),
		cmocka_unit_test(what_could_not_be_named_is_said),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
