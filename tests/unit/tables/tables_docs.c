/*
 * docs/tables has a page for each table of the catalog. tools/gen-table-docs runs this test with
 * KYMO_WRITE_DOCS set, which writes the pages instead of comparing them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tables/catalog/catalog.h"

static void read_page(const char *path, struct buf *out)
{
	FILE *file = fopen(path, "r");
	char bytes[4096];
	size_t count;

	while (file && (count = fread(bytes, 1, sizeof(bytes), file)) > 0)
		buf_add(out, bytes, count);
	if (file)
		fclose(file);
}

static void write_page(const char *path, const struct buf *page)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(page->data, 1, page->used, file) != page->used || fclose(file))
		fail_msg("%s cannot be written: %s", path, strerror(errno));
}

static void compare_page(const char *path, const struct buf *page)
{
	struct buf there = { 0 };

	read_page(path, &there);
	if (strcmp(buf_get(&there), buf_get(page)))
		fail_msg("%s differs from src/tables/sql: run tools/gen-table-docs", path);
	buf_fini(&there);
}

static void check_page(const char *name, const struct buf *page)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/docs/tables/%s.md", TEST_SOURCE_DIR, name);
	if (getenv("KYMO_WRITE_DOCS"))
		write_page(path, page);
	else
		compare_page(path, page);
}

static void there_is_a_page_for_each_table(void **state)
{
	struct buf page = { 0 };
	char name[128];

	(void)state;
	for (size_t i = 0; i < catalog_view_count; i++) {
		buf_reset(&page);
		catalog_page(&page, &catalog_views[i]);
		snprintf(name, sizeof(name), "%s.%s", catalog_views[i].schema,
			 catalog_views[i].name);
		check_page(name, &page);
	}
	buf_fini(&page);
}

static void the_index_lists_them(void **state)
{
	struct buf page = { 0 };

	(void)state;
	catalog_index_page(&page);
	check_page("README", &page);
	buf_fini(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_a_page_for_each_table),
		cmocka_unit_test(the_index_lists_them),
	};

	if (getenv("KYMO_WRITE_DOCS")) {
		mkdir(TEST_SOURCE_DIR "/docs", 0777);
		mkdir(TEST_SOURCE_DIR "/docs/tables", 0777);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
