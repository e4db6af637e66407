/* JSON that clients send. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "serve/json_read.h"

static void fields_are_read_and_decoded(void **unused)
{
	static const char text[] = " {\"sql\" : \"a\\n\\\"\\u00e9\\ud83d\\ude00/\", "
				   "\"limit\":-12.5e3, \"id\":null, \"t\":true,\n"
				   "\"set\":{\"a\":\"1\",\"b\":2}, \"last\":\"\"} ";
	struct json_read json;

	(void)unused;
	assert_int_equal(json_read_object(text, sizeof(text) - 1, &json), 0);
	assert_string_equal(json_read_get(&json, "sql"), "a\n\"é😀/");
	assert_string_equal(json_read_get(&json, "limit"), "-12.5e3");
	assert_null(json_read_get(&json, "id"));
	assert_string_equal(json_read_get(&json, "t"), "true");
	assert_string_equal(json_read_get(&json, "last"), "");
	assert_null(json_read_get(&json, "a"));
	assert_int_equal(json.count, 7);
	assert_true(json.fields[4].inside && json.fields[5].inside);
	assert_string_equal(json.fields[5].value, "2");
	json_read_fini(&json);
}

static void what_is_no_such_object_is_refused(void **unused)
{
	static const char *const bad[] = { "",
					   "{",
					   "}",
					   "[]",
					   "null",
					   "{\"a\"}",
					   "{\"a\":}",
					   "{\"a\":\"b}",
					   "{\"a\":\"\\u0000\"}",
					   "{\"a\":\"\\ud800\"}",
					   "{\"a\":\"\\ud800\\u0041\"}",
					   "{\"a\":\"\\udc00\"}",
					   "{\"a\":\"\\x\"}",
					   "{\"a\":\"\\u12\"}",
					   "{\"a\":\"\n\"}",
					   "{\"a\":x}",
					   "{\"a\":[1]}",
					   "{\"a\":{\"b\":{\"c\":1}}}",
					   "{\"a\":1,}",
					   "{\"a\":1} x",
					   "{a:1}" };
	struct json_read json;

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(json_read_object(bad[i], strlen(bad[i]), &json), -EINVAL);
	assert_int_equal(json_read_object("{\"a\":\"b\0c\"}", 11, &json), -EINVAL);
}

static void too_many_fields_are_refused(void **unused)
{
	struct buf text = { 0 };
	struct json_read json;

	(void)unused;
	buf_char(&text, '{');
	for (int i = 0; i <= JSONIN_FIELDS; i++)
		buf_print(&text, "%s\"k%d\":%d", i ? "," : "", i, i);
	buf_char(&text, '}');
	assert_int_equal(json_read_object(text.data, text.used, &json), -EINVAL);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_read_and_decoded),
		cmocka_unit_test(what_is_no_such_object_is_refused),
		cmocka_unit_test(too_many_fields_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
