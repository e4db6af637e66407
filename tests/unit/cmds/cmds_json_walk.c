/* Messages of an assistant: what is JSON, and what is found in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cmds/mcp/json_walk.h"

static bool good(const char *text)
{
	struct json_part part;

	return json_walk_check(text, strlen(text), &part);
}

static void only_json_is_taken(void **state)
{
	static const char *const right[] = {
		"{}",	   "[]",   " 0 ",	"-1.5e+3",     "\"\\u00e9\\n\"",
		"[1,[2]]", "null", "{\"\":{}}", "\"\xc3\xa9\""
	};
	static const char *const wrong[] = { "",	  "{",	      "{\"a\"}",      "{\"a\":1,}",
					     "[1,]",	  "01",	      "1.",	      "1e",
					     "+1",	  "nul",      "\"\n\"",	      "\"\\x\"",
					     "\"\\u12g4", "\"\xff\"", "\"\xc0\x80\"", "{} {}",
					     "{a:1}",	  "'a'",      "\"a",	      "-",
					     "\"\\",	  "\"\\u00",  "[1 2]",	      "{\"a\" 1}",
					     "tru" };

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_true(good(right[i]));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(good(wrong[i]));
}

static void nesting_has_a_limit(void **state)
{
	char text[2 * 100000 + 1];

	(void)state;
	for (size_t depth = 31; depth <= 33; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		text[2 * depth] = '\0';
		assert_int_equal(good(text), depth <= JSON_WALK_DEPTH);
	}
	memset(text, '[', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(good(text));
}

static void members_are_found_by_key(void **state)
{
	static const char text[] =
		"{\"a\":{\"id\":1},\"s\":\"\\\"id\\\":2\", \"id\" : \"x\\u00e9\" ,"
		"\"id\":3,\"list\":[1, \"two\",{}]}";
	struct json_part all, id, list, one;
	struct buf out = { 0 };
	size_t at = 0;

	(void)state;
	assert_true(json_walk_check(text, strlen(text), &all));
	id = json_walk_member(&all, "id"); /* the first one, of the outer object */
	assert_true(json_walk_text(&id, &out));
	assert_string_equal(buf_get(&out), "x\xc3\xa9");
	assert_null(json_walk_member(&all, "i").at);
	assert_null(json_walk_member(&id, "id").at);
	assert_int_equal(json_walk_kind(&(struct json_part){ NULL, 0 }), 0);
	list = json_walk_member(&all, "list");
	assert_true(json_walk_next(&list, &at, &one));
	assert_int_equal(json_walk_kind(&one), '1');
	assert_true(json_walk_next(&list, &at, &one));
	assert_int_equal(one.bytes, 5);
	assert_true(json_walk_next(&list, &at, &one));
	assert_int_equal(json_walk_kind(&one), '{');
	assert_false(json_walk_next(&list, &at, &one));
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_json_is_taken),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(members_are_found_by_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
