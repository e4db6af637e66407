/* The flame graph of zones: callers by nesting, times cut at the ends of an interval. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "views/timeline/zone_flame.h"

/* One lane: step [100, 1100) with load [100, 300) and run [400, 1000), twice; 1000 ns apart. */
static void make(struct zone_model *model)
{
	struct zone_model_lane lane = { .rank = -1 };

	*model = (struct zone_model){ 0 };
	zone_model_clock_ns(model);
	zone_model_lane(model, &lane);
	for (uint64_t at = 100; at < 4000; at += 2000) {
		zone_model_add(model, 0, 0, at, 1000, 0);
		zone_model_add(model, 0, 1, at, 200, 1);
		zone_model_add(model, 0, 1, at + 300, 600, 2);
	}
}

static void check(const struct zone_flame_range *range, const char *expected)
{
	struct zone_model model;
	struct call_tree tree;
	struct buf out = { 0 };

	make(&model);
	assert_int_equal(zone_flame_make(&model, range, &tree), 0);
	assert_int_equal(zone_flame_json(&tree, NULL, NULL, &out), 0);
	assert_string_equal(buf_get(&out), expected);
	buf_fini(&out);
	call_tree_fini(&tree);
	zone_model_fini(&model);
}

static void zones_of_one_path_are_one_node(void **unused)
{
	(void)unused;
	check(&(struct zone_flame_range){ INT64_MIN, INT64_MAX, -1, NULL },
	      "[-1,-1,0],[0,0,2000],[1,1,400],[2,1,1200]");
}

static void zones_are_cut_at_the_ends_of_an_interval(void **unused)
{
	(void)unused;
	check(&(struct zone_flame_range){ 500, 2150, 0, NULL },
	      "[-1,-1,0],[0,0,650],[2,1,500],[1,1,50]");
	check(&(struct zone_flame_range){ 500, 2150, 1, NULL }, "");
}

static void names_are_numbered_by_appearance(void **unused)
{
	const struct zone_flame_range range = { 500, 900, -1, NULL };
	uint32_t numbers[3] = { 0 };
	struct zone_model model;
	struct call_tree tree;
	struct buf out = { 0 };
	size_t names = 0;

	(void)unused;
	make(&model);
	assert_int_equal(zone_flame_make(&model, &range, &tree), 0);
	assert_int_equal(zone_flame_json(&tree, numbers, &names, &out), 0);
	assert_string_equal(buf_get(&out), "[-1,-1,0],[0,0,400],[1,1,400]");
	assert_int_equal(names, 2);
	assert_true(numbers[0] == 1 && numbers[1] == 0 && numbers[2] == 2);
	assert_true(zone_flame_whole_ns(&tree) == 400);
	buf_fini(&out);
	call_tree_fini(&tree);
	zone_model_fini(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zones_of_one_path_are_one_node),
		cmocka_unit_test(zones_are_cut_at_the_ends_of_an_interval),
		cmocka_unit_test(names_are_numbered_by_appearance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
