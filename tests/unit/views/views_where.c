/* The place that a verdict names: taken apart, and written as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "tables/tables.h" /* verdicts need DuckDB: not in sanitized builds */
#include "views/verdicts/where.h"

static struct verdict at(const char *place, double share)
{
	struct verdict verdict = { .view = "", .query = "" };

	where_set(&verdict, place, share);
	return verdict;
}

static void assert_place(const char *place, const char *function, const char *file, int line)
{
	struct verdict verdict = at(place, -1);

	assert_string_equal(verdict.where_function, function);
	assert_string_equal(verdict.where_file, file);
	assert_int_equal(verdict.where_line, line);
}

static void assert_json(const char *place, double share, const char *expected)
{
	struct verdict verdict = at(place, share);
	struct buf json = { 0 };

	where_add_json(&json, &verdict);
	assert_string_equal(buf_get(&json), expected);
	buf_fini(&json);
}

static void a_place_is_function_file_and_line(void **state)
{
	struct verdict verdict = at("save (/home/a/train.py:31)", 0.875);

	(void)state;
	assert_string_equal(verdict.where_function, "save");
	assert_string_equal(verdict.where_file, "/home/a/train.py");
	assert_int_equal(verdict.where_line, 31);
	assert_true(verdict.where_share == 0.875);
}

static void names_are_those_of_the_function_around(void **state)
{
	(void)state;
	assert_place("f (/a/pkg/__init__.py:1)", "f", "/a/pkg/__init__.py", 1);
	assert_place("run(int) (/home/My (1)/a.cc:4)", "run(int)", "/home/My (1)/a.cc", 4);
	assert_place("operator() (int) (a.cc:4)", "operator() (int)", "a.cc", 4);
	assert_place("f.<locals>.<genexpr>.<locals>.<lambda> (x.py:2)", "f", "x.py", 2);
	assert_place("<lambda> (x.py:2)", "<lambda>", "x.py", 2);
	assert_place("parse.constprop.0.cold (a.c:2)", "parse", "a.c", 2);
	assert_place("spin", "spin", "", 0);
	assert_place("spin (libm.so)", "spin", "libm.so", 0);
	assert_place("", "", "", 0);
}

static void json_has_null_for_what_is_not_known(void **state)
{
	(void)state;
	assert_json("", 1, "null");
	assert_json("save (/a/\"b.py:3)", 0.5,
		    "{\"function\":\"save\",\"file\":\"/a/\\\"b.py\",\"line\":3,\"share\":0.5000}");
	assert_json("spin", -1,
		    "{\"function\":\"spin\",\"file\":null,\"line\":null,\"share\":null}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_is_function_file_and_line),
		cmocka_unit_test(names_are_those_of_the_function_around),
		cmocka_unit_test(json_has_null_for_what_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
