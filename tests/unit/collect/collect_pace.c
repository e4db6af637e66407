/* The time between two samples of a process, where the user has not set it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "collect/sample/sample_pace.h"

#define MS 1000000ull
#define SECOND 1000000000ull

static uint64_t next_ms(uint64_t fixed_ns, uint64_t age_ns, uint64_t unchanged, uint64_t cost_ns)
{
	struct sample_pace pace = {
		.fixed_ns = fixed_ns, .age_ns = age_ns, .unchanged = unchanged, .cost_ns = cost_ns
	};

	return sample_pace_next(&pace) / MS;
}

static void test_the_period_grows_from_1_to_10_ms_in_the_first_second(void **state)
{
	(void)state;
	assert_int_equal(next_ms(0, 0, 0, 0), 1);
	assert_int_equal(next_ms(0, 100 * MS, 0, 50000), 1);
	assert_int_equal(next_ms(0, 200 * MS, 0, 50000), 2);
	assert_int_equal(next_ms(0, 500 * MS, 0, 50000), 5);
	assert_int_equal(next_ms(0, SECOND - 1, 0, 50000), 9);
	assert_int_equal(next_ms(0, SECOND, 0, 50000), 10);
}

/* A program of 150 ms has an answer, and one of a second not many more samples than it needs. */
static void test_the_first_second_has_330_samples(void **state)
{
	uint64_t samples = 0, early = 0;

	(void)state;
	for (uint64_t age_ns = 0; age_ns < SECOND; samples++) {
		struct sample_pace pace = { .age_ns = age_ns };

		early += age_ns < 150 * MS;
		age_ns += sample_pace_next(&pace);
	}
	assert_in_range(early, 135, 150);
	assert_in_range(samples, 300, 350);
}

static void test_an_unchanged_stack_of_the_first_second_is_sampled_every_10_ms(void **state)
{
	const uint64_t same = SAMPLE_PACE_FIRST_SAME;

	(void)state;
	assert_int_equal(next_ms(0, SECOND / 10, same - 1, 0), 1);
	assert_int_equal(next_ms(0, SECOND / 10, same, 0), 2);
	assert_int_equal(next_ms(0, SECOND / 10, 2 * same, 0), 4);
	assert_int_equal(next_ms(0, SECOND / 10, 4 * same, 0), 10);
	assert_int_equal(next_ms(0, SECOND / 2, UINT64_MAX, 0), 10);
	/* the first change */
	assert_int_equal(next_ms(0, SECOND / 10, 0, 0), 1);
}

/* A program that starts a thousand processes. */
static void test_first_seconds_share_an_amount_of_cpu_time(void **state)
{
	struct sample_pace pace = { .cost_ns = 50000 };
	uint64_t begun = 0;

	(void)state;
	for (int process = 0; process < 1000; process++) {
		pace.run_ns += 10 * MS;
		pace.age_ns = 0;
		begun += sample_pace_is_first(&pace);
		for (; pace.age_ns < 10 * MS; pace.age_ns += sample_pace_next(&pace))
			pace.spent_ns += sample_pace_is_first(&pace) ? pace.cost_ns : 0;
	}
	assert_in_range(begun, 2, 500);
	assert_true(pace.spent_ns <= 10 * MS + pace.run_ns / 1000 + pace.cost_ns);
	pace.age_ns = 0;
	assert_int_equal(sample_pace_next(&pace) / MS, 10);
	pace.run_ns += 60 * SECOND;
	assert_int_equal(sample_pace_next(&pace) / MS, 1);
}

static void test_an_unchanged_stack_is_sampled_less_often(void **state)
{
	const uint64_t same = SAMPLE_PACE_SAME;

	(void)state;
	assert_int_equal(next_ms(0, SECOND, same - 1, 0), 10);
	assert_int_equal(next_ms(0, SECOND, same, 0), 20);
	assert_int_equal(next_ms(0, SECOND, 2 * same, 0), 40);
	assert_int_equal(next_ms(0, SECOND, 3 * same, 0), 80);
	assert_int_equal(next_ms(0, SECOND, 4 * same, 0), 100);
	assert_int_equal(next_ms(0, SECOND, UINT64_MAX, 0), 100);
	/* the first change */
	assert_int_equal(next_ms(0, SECOND, 0, 0), 10);
}

static void test_a_burst_is_as_the_first_second(void **state)
{
	struct sample_pace pace = { .age_ns = 60 * SECOND, .burst = 1, .cost_ns = 50000 };

	(void)state;
	assert_int_equal(sample_pace_next(&pace), MS);
	pace.cost_ns = MS; /* at most a tenth of a core */
	assert_int_equal(sample_pace_next(&pace), 10 * MS);
	pace.fixed_ns = 100 * MS;
	assert_int_equal(sample_pace_next(&pace), 100 * MS);
}

static void test_a_set_period_is_kept(void **state)
{
	(void)state;
	assert_int_equal(next_ms(100 * MS, 0, 0, 0), 100);
	assert_int_equal(next_ms(2 * MS, 5 * SECOND, 1000, SECOND), 2);
}

static void test_costly_samples_take_half_a_percent_of_a_core(void **state)
{
	(void)state;
	assert_int_equal(next_ms(0, SECOND, 0, 50000), 10);
	assert_int_equal(next_ms(0, SECOND, 0, 650000), 130);
	assert_int_equal(next_ms(0, SECOND, 100, 2 * MS), 400);
	assert_int_equal(next_ms(0, 0, 0, 650000), 6); /* ten in the first second */
	assert_int_equal(next_ms(0, SECOND, 0, UINT64_MAX), 10000);
}

static void test_samples_of_an_idle_process_take_less(void **state)
{
	struct sample_pace pace = { .age_ns = SECOND, .cost_ns = 50000 };

	(void)state;
	assert_int_equal(sample_pace_next(&pace) / MS, 10);
	pace.idle_permille = 500;
	assert_int_equal(sample_pace_next(&pace) / MS, 16);
	pace.idle_permille = 1000;
	assert_int_equal(sample_pace_next(&pace) / MS, 50);
	pace.idle_permille = UINT32_MAX;
	assert_int_equal(sample_pace_next(&pace) / MS, 50);
	pace.cost_ns = 7500; /* a cheap one is taken every 10 ms */
	assert_int_equal(sample_pace_next(&pace) / MS, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_period_grows_from_1_to_10_ms_in_the_first_second),
		cmocka_unit_test(test_the_first_second_has_330_samples),
		cmocka_unit_test(test_first_seconds_share_an_amount_of_cpu_time),
		cmocka_unit_test(
			test_an_unchanged_stack_of_the_first_second_is_sampled_every_10_ms),
		cmocka_unit_test(test_an_unchanged_stack_is_sampled_less_often),
		cmocka_unit_test(test_samples_of_an_idle_process_take_less),
		cmocka_unit_test(test_a_burst_is_as_the_first_second),
		cmocka_unit_test(test_a_set_period_is_kept),
		cmocka_unit_test(test_costly_samples_take_half_a_percent_of_a_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
