/* Every type of DuckDB as tables_cell() gives it: the same text as DuckDB's own cast to VARCHAR,
   JSON for what is nested. */
#include "tables_small.h"

static const char *const scalars[] = {
	"170141183460469231731687303715884105727::HUGEINT",
	"(-170141183460469231731687303715884105727)::HUGEINT",
	"(-1)::HUGEINT",
	"340282366920938463463374607431768211455::UHUGEINT",
	"1.5::DECIMAL(4,1)",
	"(-0.05)::DECIMAL(9,2)",
	"12345678901234.5678::DECIMAL(18,4)",
	"(-1234567890123456789012345678.9)::DECIMAL(38,1)",
	"7::DECIMAL(3,0)",
	"DATE '2024-02-29'",
	"DATE '1969-12-31'",
	"DATE '0044-03-15 (BC)'",
	"'infinity'::DATE",
	"TIME '23:59:59.000123'",
	"TIME '00:00:00'",
	"TIMESTAMP '1969-12-31 23:59:59.5'",
	"TIMESTAMP '2024-01-02 03:04:05'",
	"TIMESTAMP '2024-01-02 03:04:05.678901'",
	"'-infinity'::TIMESTAMP",
	"TIMESTAMP_S '2024-01-02 03:04:05'",
	"TIMESTAMP_MS '2024-01-02 03:04:05.678'",
	"TIMESTAMP_NS '2024-01-02 03:04:05.123456789'",
	"TIMETZ '01:02:03+05:30'",
	"TIMETZ '01:02:03-08'",
	"INTERVAL '1 year 2 months 3 days 04:05:06.7'",
	"INTERVAL '1 day'",
	"INTERVAL '-1 month'",
	"INTERVAL '-90 seconds'",
	"INTERVAL '0 seconds'",
	"'8b3f1a52-0000-4c1d-9a77-ffffffffffff'::UUID",
	"'00000000-0000-0000-0000-000000000001'::UUID",
	"'\\x00ab\\xFF\"c'::BLOB",
	"'0101101'::BIT",
	"'101011110000'::BIT",
	"'b'::ENUM('a', 'b')",
	"123456789012345678901234567890123456789012::BIGNUM",
	"(-98765432109876543210987654321098765432109)::BIGNUM",
	"0::BIGNUM",
	"'text'",
	"''",
	"'much longer than twelve bytes, so it is not inline'",
};

static void text_is_what_duckdb_would_say(void **state)
{
	struct buf sql = { 0 }, both = { 0 };
	const char *answer;

	(void)state;
	for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++) {
		buf_reset(&sql);
		buf_print(&sql, "SELECT (%s)::VARCHAR", scalars[i]);
		assert_int_equal(ask(tables, buf_get(&sql), &answer), 0);
		buf_reset(&both);
		buf_text(&both, answer);
		buf_reset(&sql);
		buf_print(&sql, "SELECT %s", scalars[i]);
		assert_answer(tables, buf_get(&sql), both.used ? buf_get(&both) : "");
	}
	buf_fini(&sql);
	buf_fini(&both);
}

static void numbers_are_numbers(void **state)
{
	(void)state;
	assert_answer(tables, "SELECT true, (-1)::TINYINT, 300::SMALLINT, -5, 1::BIGINT << 40",
		      "true|-1|300|-5|1099511627776");
	assert_answer(tables,
		      "SELECT 255::UTINYINT, 65535::USMALLINT, 4294967295::UINTEGER, "
		      "18446744073709551615::UBIGINT",
		      "255|65535|4294967295|18446744073709551615");
	assert_answer(tables,
		      "SELECT 0.1::FLOAT, 1e300::DOUBLE, 'nan'::DOUBLE, '-inf'::FLOAT, NULL",
		      "0.1|1e+300|nan|-inf|NULL");
}

static void nested_values_are_json(void **state)
{
	(void)state;
	assert_answer(tables, "SELECT [1, NULL, 3], []", "[1, null, 3]|[]");
	assert_answer(tables, "SELECT {'a': 1, 'b c': 'x\"y\\z'}",
		      "{\"a\": 1, \"b c\": \"x\\\"y\\\\z\"}");
	assert_answer(tables, "SELECT map {'k': [true], 'l': NULL}, map {1: 2.5}",
		      "{\"k\": [true], \"l\": null}|{\"1\": 2.5}");
	assert_answer(tables, "SELECT [1.5::DOUBLE, 'nan'::DOUBLE], [DATE '2024-01-02']",
		      "[1.5, \"nan\"]|[\"2024-01-02\"]");
	assert_answer(tables, "SELECT array_value(1, 2, 3)", "[1, 2, 3]");
	assert_answer(tables, "SELECT union_value(n := 7)", "7");
	assert_answer(tables, "SELECT [chr(10) || chr(9) || chr(1)]", "[\"\\n\\t\\u0001\"]");
	assert_answer(tables, "SELECT [[1], NULL, [2, 3]][3], [{'a': [1]}]",
		      "[2, 3]|[{\"a\": [1]}]");
	assert_answer(tables, "SELECT '{\"a\": 1}'::JSON", "{\"a\": 1}");
}

static void assert_type(const char *expression, const char *type)
{
	struct tables_result *result = NULL;
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT %s AS a", expression);
	assert_int_equal(tables_query(tables, sql, &result, &ask_error), 0);
	assert_string_equal(tables_column_name(result, 0), "a");
	assert_string_equal(tables_column_type(result, 0), type);
	tables_result_close(result);
}

static void types_are_spelled_as_sql(void **state)
{
	(void)state;
	assert_type("1", "INTEGER");
	assert_type("1.25", "DECIMAL(3,2)");
	assert_type("['a']", "VARCHAR[]");
	assert_type("{'a': 1}", "STRUCT(\"a\" INTEGER)");
	assert_type("map {'a': 1}", "MAP(VARCHAR, INTEGER)");
	assert_type("'a'::ENUM('a', 'it''s')", "ENUM('a', 'it''s')");
	assert_type("'{}'::JSON", "JSON");
	assert_type("array_value(1, 2)", "INTEGER[2]");
	assert_type("now()", "TIMESTAMP WITH TIME ZONE");
}

/* Whatever DuckDB itself thinks of as its types. */
static void all_types_of_duckdb_are_shown(void **state)
{
	const char *answer;

	(void)state;
	assert_int_equal(ask(tables, "FROM test_all_types()", &answer), 0);
	assert_null(strstr(answer, "not shown"));
	assert_answer(tables, "SELECT count(*) FROM test_all_types()", "3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_what_duckdb_would_say),
		cmocka_unit_test(numbers_are_numbers),
		cmocka_unit_test(nested_values_are_json),
		cmocka_unit_test(types_are_spelled_as_sql),
		cmocka_unit_test(all_types_of_duckdb_are_shown),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
