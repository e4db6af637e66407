/* The map of step × rank, and the choice of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "views/timeline/step_map.h"

/* Four ranks, ten steps of 1000 ns; rank 2 takes 1500 in step 7, and rank 5 has no step 3. */
static void make_map(struct step_map *map)
{
	static const int32_t ranks[] = { 5, 0, 2, 1 };

	*map = (struct step_map){ 0 };
	for (size_t i = 0; i < 4; i++)
		for (int64_t step = 10; step < 20; step++)
			if (ranks[i] != 5 || step != 13)
				assert_int_equal(
					step_map_add(map, ranks[i], step, step * 2000,
						     ranks[i] == 2 && step == 17 ? 1500 : 1000),
					0);
	assert_int_equal(step_map_settle(map), 0);
}

static signed char *cells_of(const struct step_map *map, struct step_map_part *part)
{
	signed char *cells = NULL;

	assert_int_equal(step_map_cells(map, part, &cells), 0);
	return cells;
}

static void a_cell_is_the_distance_to_the_median_of_its_step(void **unused)
{
	struct step_map_part all = { .to = INT64_MAX, .end_rank = 99, .columns = 99, .rows = 99 };
	struct step_map map;
	signed char *cells;

	(void)unused;
	make_map(&map);
	cells = cells_of(&map, &all);
	assert_int_equal(all.columns, 10);
	assert_int_equal(all.rows, 4); /* ranks 0, 1, 2, 5 */
	for (size_t i = 0; i < 40; i++)
		assert_int_equal(cells[i], i == 27 ? 50 : i == 33 ? STEP_MAP_NONE : 0);
	free(cells);
	step_map_fini(&map);
}

/* Of each rank a map of its own, as several threads read them. */
static void maps_of_single_ranks_join_to_the_same_map(void **unused)
{
	struct step_map_part all = { .to = INT64_MAX, .end_rank = 99, .columns = 99, .rows = 99 };
	struct step_map_part same = all;
	struct step_map map, joined = { 0 };
	signed char *cells, *others;

	(void)unused;
	make_map(&map);
	for (int32_t rank = 5; rank >= 0; rank--)
		for (int64_t half = 10; half < 20; half += 5) {
			struct step_map one = { 0 };

			for (int64_t step = half; step < half + 5; step++)
				if (rank != 3 && rank != 4 && (rank != 5 || step != 13))
					step_map_add(&one, rank, step, step * 2000,
						     rank == 2 && step == 17 ? 1500 : 1000);
			assert_int_equal(step_map_join(&joined, &one), 0);
			assert_null(one.ranks);
		}
	assert_int_equal(step_map_settle(&joined), 0);
	cells = cells_of(&map, &all);
	others = cells_of(&joined, &same);
	assert_int_equal(joined.cells, map.cells);
	assert_int_equal(same.rows, all.rows);
	assert_memory_equal(cells, others, all.rows * all.columns);
	free(cells);
	free(others);
	step_map_fini(&map);
	step_map_fini(&joined);
}

static void a_coarse_cell_keeps_the_farthest_value(void **unused)
{
	struct step_map_part part = { .to = INT64_MAX, .end_rank = 99, .columns = 2, .rows = 2 };
	struct step_map_part cell = {
		.from = 15, .to = 20, .first_rank = 2, .end_rank = 3, .columns = 1, .rows = 1
	};
	static const signed char expected[] = { 0, 0, 0, 50 };
	struct step_map map;
	signed char *cells;
	struct buf json = { 0 };

	(void)unused;
	make_map(&map);
	cells = cells_of(&map, &part);
	assert_memory_equal(cells, expected, 4);
	free(cells);
	free(cells_of(&map, &cell));
	step_map_json(&map, &cell, &json);
	assert_non_null(strstr(buf_get(&json),
			       "\"worst\":{\"rank\":2,\"step\":17,\"start_ns\":34000,"
			       "\"duration_ns\":1500,\"median_ns\":1000"));
	buf_fini(&json);
	step_map_fini(&map);
}

static void waits_count_per_step_and_chosen_ranks_keep_their_median(void **unused)
{
	struct step_map_part part = {
		.to = INT64_MAX, .end_rank = 99, .columns = 99, .rows = 99, .of = STEP_MAP_WAIT
	};
	struct step_map map;
	signed char *cells;

	(void)unused;
	make_map(&map);
	for (int32_t rank = 0; rank < 3; rank++) {
		step_map_add_wait(&map, rank, 12, rank == 1 ? 0 : 300);
		step_map_add_wait(&map, rank, 12, 100);
		step_map_add_wait(&map, rank, 99, 100); /* no such step */
	}
	assert_int_equal(step_map_settle(&map), 0);
	assert_true(rank_set_read(&part.ranks, "1-2"));
	cells = cells_of(&map, &part);
	assert_int_equal(part.rows, 2);
	assert_int_equal(cells[2], -30); /* rank 1: 100 of 1000 ns, the median is 400 */
	assert_int_equal(cells[12], 0);
	assert_int_equal(cells[3], STEP_MAP_NONE);
	free(cells);
	step_map_forget_waits(&map);
	assert_false(map.waits);
	step_map_fini(&map);
}

static void steps_far_apart_take_no_memory(void **unused)
{
	struct step_map map = { 0 };

	(void)unused;
	assert_int_equal(step_map_add(&map, 0, 5, 0, 10), 0);
	assert_int_equal(step_map_add(&map, 0, INT64_MAX / 8, 0, 10), 0);
	assert_int_equal(step_map_add(&map, 1, INT64_C(1) << 40, 0, 10), 0);
	assert_int_equal(step_map_add(&map, -1, 5, 0, 10), 0);
	assert_int_equal(map.hidden, 2);
	assert_int_equal(map.cells, 1);
	for (int64_t step = 100000; step > 5; step--) /* in descending order */
		assert_int_equal(step_map_add(&map, 2, step, step, 10), 0);
	assert_int_equal(step_map_add(&map, 2, 7, 70, 30), 0); /* the later row counts */
	assert_int_equal(step_map_settle(&map), 0);
	assert_true(map.cells < 200000);
	assert_int_equal((int)map.median_ns[2], 30);
	step_map_fini(&map);
}

static void a_choice_of_ranks_is_a_list(void **unused)
{
	static const char *const wrong[] = { "x",  "1,", ",1",	"3-1",
					     "1-", "-1", "1 2", "99999999999" };
	struct rank_set set;

	(void)unused;
	assert_true(rank_set_read(&set, "0,8-15"));
	assert_true(rank_set_has(&set, 0) && rank_set_has(&set, 15) && !rank_set_has(&set, 1));
	assert_false(rank_set_has(&set, -1));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(rank_set_read(&set, wrong[i]));
	assert_true(rank_set_read(&set, "") && rank_set_has(&set, -1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_is_the_distance_to_the_median_of_its_step),
		cmocka_unit_test(maps_of_single_ranks_join_to_the_same_map),
		cmocka_unit_test(a_coarse_cell_keeps_the_farthest_value),
		cmocka_unit_test(waits_count_per_step_and_chosen_ranks_keep_their_median),
		cmocka_unit_test(steps_far_apart_take_no_memory),
		cmocka_unit_test(a_choice_of_ranks_is_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
