/* sql_fill(): values of run time in the text of a .sql file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tables/sql_fill.h"

static void assert_filled(const char *sql, const char *expected)
{
	static const struct sql_value values[] = {
		{ "type", .text = "UINTEGER" },
		{ "type_of", .text = "x" },
		{ "from", .number = INT64_MIN },
		{ NULL },
	};
	struct buf out = { 0 };

	sql_fill(&out, sql, values);
	assert_string_equal(buf_get(&out), expected);
	buf_fini(&out);
}

static void every_placeholder_is_replaced(void **state)
{
	(void)state;
	assert_filled("a::{type}, {type}", "a::UINTEGER, UINTEGER");
	assert_filled("{type_of}{type}", "xUINTEGER");
	assert_filled("t >= {from}", "t >= -9223372036854775808");
}

static void other_braces_stay(void **state)
{
	(void)state;
	assert_filled("{'a': {type}}", "{'a': UINTEGER}");
	assert_filled("{typ} {types} {type {", "{typ} {types} {type {");
	assert_filled("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_placeholder_is_replaced),
		cmocka_unit_test(other_braces_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
