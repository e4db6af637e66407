/* The time between two samples of a process, where the user has not set it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "collect/python/sample_pace.h"

#define MS 1000000ull
#define SECOND 1000000000ull

static uint64_t next_ms(uint64_t fixed_ns, uint64_t age_ns, uint64_t unchanged, uint64_t cost_ns)
{
	struct sample_pace pace = { fixed_ns, age_ns, unchanged, cost_ns };

	return sample_pace_next(&pace) / MS;
}

static void test_the_first_second_is_sampled_every_millisecond(void **state)
{
	(void)state;
	assert_int_equal(next_ms(0, 0, 0, 0), 1);
	assert_int_equal(next_ms(0, SECOND - 1, 0, 50000), 1);
	/* whatever changes: a program that ends in it has an answer */
	assert_int_equal(next_ms(0, SECOND / 2, 400, 50000), 1);
	assert_int_equal(next_ms(0, SECOND, 0, 50000), 10);
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

static void test_a_set_period_is_kept(void **state)
{
	(void)state;
	assert_int_equal(next_ms(100 * MS, 0, 0, 0), 100);
	assert_int_equal(next_ms(2 * MS, 5 * SECOND, 1000, SECOND), 2);
}

static void test_costly_samples_take_one_percent_of_a_core(void **state)
{
	(void)state;
	assert_int_equal(next_ms(0, SECOND, 0, 100000), 10);
	assert_int_equal(next_ms(0, SECOND, 0, 650000), 65);
	assert_int_equal(next_ms(0, SECOND, 100, 2 * MS), 200);
	assert_int_equal(next_ms(0, 0, 0, 650000), 6); /* ten in the first second */
	assert_int_equal(next_ms(0, SECOND, 0, UINT64_MAX), 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_second_is_sampled_every_millisecond),
		cmocka_unit_test(test_an_unchanged_stack_is_sampled_less_often),
		cmocka_unit_test(test_a_set_period_is_kept),
		cmocka_unit_test(test_costly_samples_take_one_percent_of_a_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
