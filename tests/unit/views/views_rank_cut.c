/* Queries of some ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tables/catalog/catalog.h"
#include "views/timeline/rank_set.h"

static void tables_with_ranks_are_cut(void **unused)
{
	struct rank_set set;
	struct buf sql = { 0 };

	(void)unused;
	assert_true(catalog_view_count > 0);
	assert_true(rank_set_read(&set, "3"));
	rank_set_cut(&set, "SELECT 1 FROM trace.steps s, my.trace.steps, trace.steps_more", &sql);
	assert_string_equal(
		buf_get(&sql),
		"SELECT 1 FROM (SELECT * FROM trace.steps WHERE (rank BETWEEN 3 AND 3)) "
		"s, my.trace.steps, trace.steps_more");
	buf_fini(&sql);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(tables_with_ranks_are_cut) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
