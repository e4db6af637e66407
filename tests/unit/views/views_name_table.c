/* Names of zones and frames: equal ones have one number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "views/stacks/name_table.h"

static struct name_entry entry(const char *name, const char *source)
{
	return (struct name_entry){ .name = name,
				    .name_bytes = (uint32_t)strlen(name),
				    .source = source,
				    .source_bytes = (uint32_t)strlen(source),
				    .file = "f",
				    .file_bytes = 1,
				    .line = 3 };
}

static void names_are_known_again(void **unused)
{
	struct name_table table = { 0 };
	struct name_entry name;
	char text[16];

	(void)unused;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 3000; i++) {
			snprintf(text, sizeof(text), "n%u", i);
			name = entry(text, "c");
			assert_int_equal(name_table_add(&table, &name), i);
		}
	name = entry("n1", "python");
	assert_int_equal(name_table_add(&table, &name), 3000);
	name.line++;
	assert_int_equal(name_table_add(&table, &name), 3001);
	assert_string_equal(table.list[2999].name, "n2999");
	assert_string_equal(table.list[3000].source, "python");
	name_table_fini(&table);
}

static void further_names_share_one_and_known_ones_stay_known(void **unused)
{
	static const char *const texts[] = { "a", "b", "c", "d", "b", "a" };
	static const uint32_t expected[] = { 0, 1, 2, 2, 1, 0 };
	struct name_table table = { .most = 3 };

	(void)unused;
	for (size_t i = 0; i < 6; i++) {
		struct name_entry name = entry(texts[i], "c");

		assert_int_equal(name_table_add(&table, &name), expected[i]);
	}
	assert_int_equal(table.count, 3);
	assert_string_equal(table.list[2].name, "(further names)");
	name_table_fini(&table);
}

static void names_are_columns_of_json(void **unused)
{
	static const uint32_t which[] = { 1 };
	struct name_table table = { 0 };
	struct name_entry first = entry("a\"", "c"), second = entry("b", "py");
	struct buf out = { 0 };

	(void)unused;
	name_table_add(&table, &first);
	name_table_add(&table, &second);
	name_table_json(&table, NULL, 0, 2, &out);
	assert_string_equal(buf_get(&out), "\"name\":[\"a\\\"\",\"b\"],\"source\":[\"c\",\"py\"],"
					   "\"file\":[\"f\",\"f\"],\"line\":[3,3]");
	buf_reset(&out);
	name_table_json(&table, which, 0, 1, &out);
	assert_string_equal(buf_get(&out),
			    "\"name\":[\"b\"],\"source\":[\"py\"],\"file\":[\"f\"],\"line\":[3]");
	buf_fini(&out);
	name_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_known_again),
		cmocka_unit_test(further_names_share_one_and_known_ones_stay_known),
		cmocka_unit_test(names_are_columns_of_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
