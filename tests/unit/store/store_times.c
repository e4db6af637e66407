/* What the store makes of the times in a recording, right ones and impossible ones. */
#include "handmade_claims.h"

static void ticks_become_ns_since_the_epoch(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10);
	recording = opened(&made);
	assert_int_equal(store_clock_ns(&recording->processes[0].clock, HANDMADE_EPOCH + 3000),
			 1500);
	assert_int_equal(store_clock_ns(&recording->processes[0].clock, HANDMADE_EPOCH - 3000),
			 -1500);
	assert_int_equal(store_clock_span_ns(&recording->processes[0].clock, 10), 5);
	store_close(recording);
	handmade_free(&made);
}

static void extreme_times_saturate(void **state)
{
	const struct store_clock fast = { .base_ticks = 5, .base_ns = 0, .mult = UINT64_MAX };
	const struct store_clock late = { .base_ticks = 0,
					  .base_ns = INT64_MAX - 1,
					  .mult = UINT64_C(1) << 32 };
	const struct store_clock early = { .base_ticks = UINT64_MAX,
					   .base_ns = INT64_MIN + 1,
					   .mult = UINT64_C(1) << 32 };

	(void)state;
	assert_int_equal(store_clock_ns(&fast, UINT64_MAX), INT64_MAX);
	assert_int_equal(store_clock_ns(&late, UINT64_MAX), INT64_MAX);
	assert_int_equal(store_clock_ns(&early, 0), INT64_MIN);
	assert_int_equal(store_clock_span_ns(&fast, UINT64_MAX), INT64_MAX);
}

static void nonsense_pairs_are_refused_and_the_run_s_rate_is_used(void **state)
{
	struct handmade made = { 0 };
	struct kymo_control *control;
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10);
	handmade_control(&made, "p12-77", 12);
	handmade_names(&made, "p12-77", handmade_words);
	handmade_threads(&made, "p12-77", 13);
	control = (void *)(uintptr_t)handmade_find(&made, "p12-77/control")->data;
	control->pairs[1].monotonic_ns = 5;
	recording = opened(&made);
	assert_problem(recording, "clock pairs are invalid");
	assert_int_equal(store_clock_ns(&recording->processes[1].clock, HANDMADE_EPOCH + 3000),
			 1500);
	store_close(recording);
	handmade_free(&made);
}

static void a_process_of_one_pair_has_the_rate_from_the_run_s_begin_to_its_end(void **state)
{
	struct handmade made = { 0 };
	struct kymo_control *control;
	struct kymo_run_file *run;
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10);
	control = (void *)(uintptr_t)handmade_find(&made, "p10-77/control")->data;
	control->pair_count = 1;
	run = (void *)(uintptr_t)handmade_find(&made, "run")->data;
	run->ended = 1;
	run->end = run->epoch;
	run->end.ticks += 8000000;
	run->end.monotonic_ns += 2000000;
	recording = opened(&made);
	assert_int_equal(store_clock_ns(&recording->processes[0].clock, HANDMADE_EPOCH + 3000),
			 750);
	store_close(recording);
	handmade_free(&made);
}

static void a_pair_that_is_half_written_gives_way_to_the_one_before(void **state)
{
	struct handmade made = { 0 };
	struct kymo_control *control;
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10);
	control = (void *)(uintptr_t)handmade_find(&made, "p10-77/control")->data;
	control->pairs[2].ticks = UINT64_MAX;
	control->pairs[2].monotonic_ns = 7;
	control->pair_count = 3;
	recording = opened(&made);
	assert_int_equal(store_clock_ns(&recording->processes[0].clock, HANDMADE_EPOCH + 3000),
			 1500);
	store_close(recording);
	handmade_free(&made);
}

static void the_end_is_that_of_the_last_row_unless_it_is_impossible(void **state)
{
	struct handmade made = { 0 };
	struct kymo_zone_row *rows;
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10);
	rows = (void *)((char *)(uintptr_t)handmade_find(&made, "p10-77/s0.0")->data +
			sizeof(struct kymo_segment_head));
	rows[9].start_ticks = HANDMADE_EPOCH + 40000000000ull;
	recording = opened(&made);
	assert_int_equal(recording->duration_ns,
			 20000000000ll + (int64_t)rows[9].duration_ticks / 2);
	store_close(recording);
	rows[9].start_ticks = UINT64_MAX - 5;
	recording = opened(&made);
	assert_int_equal(recording->duration_ns, 10000000000ll);
	store_close(recording);
	handmade_free(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_become_ns_since_the_epoch),
		cmocka_unit_test(extreme_times_saturate),
		cmocka_unit_test(nonsense_pairs_are_refused_and_the_run_s_rate_is_used),
		cmocka_unit_test(
			a_process_of_one_pair_has_the_rate_from_the_run_s_begin_to_its_end),
		cmocka_unit_test(a_pair_that_is_half_written_gives_way_to_the_one_before),
		cmocka_unit_test(the_end_is_that_of_the_last_row_unless_it_is_impossible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
