/*
 * Every verdict is complete, and docs/verdicts.md has its row. tools/gen-table-docs runs this with
 * KYMO_WRITE_DOCS set: then the table of the page is written instead of compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tables/tables.h"
#include "views/verdicts/rules.h"
#include "views/verdicts/verdict.h"

#define PAGE TEST_SOURCE_DIR "/docs/verdicts.md"
#define MARK "<!-- the table -->\n"

static void read_page(struct buf *out)
{
	FILE *file = fopen(PAGE, "r");
	char bytes[4096];
	size_t count;

	while (file && (count = fread(bytes, 1, sizeof(bytes), file)) > 0)
		buf_add(out, bytes, count);
	if (file)
		fclose(file);
}

/* The table is the rest of the page, from its mark on. */
static void the_page_has_a_row_for_each_rule(void **unused)
{
	struct buf page = { 0 }, table = { 0 };
	const char *mark;
	FILE *file;

	(void)unused;
	read_page(&page);
	rules_docs(&table);
	mark = strstr(buf_get(&page), MARK);
	assert_non_null(mark);
	if (getenv("KYMO_WRITE_DOCS")) {
		file = fopen(PAGE, "w");
		assert_non_null(file);
		fwrite(page.data, 1, (size_t)(mark - page.data) + strlen(MARK), file);
		fwrite(table.data, 1, table.used, file);
		fclose(file);
	} else if (strcmp(mark + strlen(MARK), buf_get(&table))) {
		fail_msg("%s differs from src/views/verdicts/rules: run tools/gen-table-docs",
			 PAGE);
	}
	buf_fini(&page);
	buf_fini(&table);
}

static void every_rule_is_whole_and_has_a_name_of_its_own(void **unused)
{
	(void)unused;
	assert_true(rules_count >= 13);
	assert_true(rules_count < VERDICT_MOST); /* and how it ended */
	for (size_t i = 0; i < rules_count; i++) {
		assert_true(rules[i].threshold > 0 && rules[i].threshold < 1);
		assert_true(rules[i].weight > 0 && rules[i].weight <= 1);
		assert_true(rules[i].sql[0] && rules[i].sentence[0] && rules[i].advice[0]);
		assert_true(rules[i].tab[0] && rules[i].query[0]);
		assert_null(strchr(rules[i].query, '"')); /* a report quotes it with these */
		assert_true(strlen(rules[i].name) < sizeof(((struct verdict *)0)->name));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(rules[i].name, rules[j].name);
	}
}

/* Else it reads all of them in a recording of any size. zone_place joins with a region first. */
static void rules_read_zones_only_if_they_have_to(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < rules_count; i++) {
		if (!strstr(rules[i].sql, "zones_of"))
			assert_null(strstr(rules[i].sql, "FROM trace.zones"));
		assert_int_equal(strstr(rules[i].sql, "{zones}") != NULL,
				 rules[i].zones_if != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_has_a_row_for_each_rule),
		cmocka_unit_test(every_rule_is_whole_and_has_a_name_of_its_own),
		cmocka_unit_test(rules_read_zones_only_if_they_have_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
