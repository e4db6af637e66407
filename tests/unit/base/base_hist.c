/* Buckets of durations, and quantiles out of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hist.h"

#define VALUES 20000u

static void every_bucket_holds_its_own_bounds(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < KYMO_HIST_BUCKETS - 1; i++) {
		assert_int_equal(hist_bucket(hist_start(i)), i);
		assert_int_equal(hist_bucket(hist_start(i + 1) - 1), i);
		if (i >= 8)
			assert_true((hist_start(i + 1) - hist_start(i)) * 8 <= hist_start(i));
	}
	assert_int_equal(hist_start(KYMO_HIST_BUCKETS - 1), UINT64_C(15) << 41);
	assert_int_equal(hist_bucket(UINT64_MAX), KYMO_HIST_BUCKETS - 1);
	assert_int_equal(hist_bucket(UINT64_C(1) << 60), KYMO_HIST_BUCKETS - 1);
}

static void without_values_there_is_none(void **unused)
{
	uint64_t buckets[KYMO_HIST_BUCKETS] = { 0 };

	(void)unused;
	assert_int_equal(hist_quantile(buckets, 0.5, 1, 0, 0), -1);
}

static void one_value_is_every_quantile(void **unused)
{
	static const int64_t values[] = { 0, 1, 7, 8, 1000003, INT64_C(1) << 50 };

	(void)unused;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		uint64_t buckets[KYMO_HIST_BUCKETS] = { 0 };

		buckets[hist_bucket((uint64_t)values[i])] = 1;
		for (double share = 0; share <= 1; share += 0.25)
			assert_int_equal(hist_quantile(buckets, share, 1, values[i], values[i]),
					 values[i]);
	}
}

static void it_is_linear_inside_a_bucket(void **unused)
{
	uint64_t buckets[KYMO_HIST_BUCKETS] = { 0 };

	(void)unused;
	buckets[hist_bucket(1024)] = 4; /* [1024, 1152) */
	assert_int_equal(hist_quantile(buckets, 0.5, 1, 1024, 1151), 1088);
	assert_int_equal(hist_quantile(buckets, 0.75, 1, 1024, 1151), 1120);
	assert_int_equal(hist_quantile(buckets, 0.5, 0.5, 512, 575), 544);
	/* Halves are rounded up. */
	buckets[hist_bucket(1024)] = 256;
	assert_int_equal(hist_quantile(buckets, 1.0 / 256, 1, 1024, 1151), 1025);
}

static void it_stays_within_what_was_seen(void **unused)
{
	uint64_t buckets[KYMO_HIST_BUCKETS] = { 0 };

	(void)unused;
	buckets[hist_bucket(1100)] = 10;
	assert_int_equal(hist_quantile(buckets, 0.01, 1, 1100, 1110), 1100);
	assert_int_equal(hist_quantile(buckets, 0.99, 1, 1100, 1110), 1110);
}

static void the_last_bucket_ends_at_the_longest(void **unused)
{
	uint64_t buckets[KYMO_HIST_BUCKETS] = { 0 };
	int64_t start = (int64_t)hist_start(KYMO_HIST_BUCKETS - 1);

	(void)unused;
	buckets[KYMO_HIST_BUCKETS - 1] = 2;
	assert_int_equal(hist_quantile(buckets, 0.5, 1, start, 3 * start), 2 * start);
}

static int by_value(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Uniform, then over eight powers of two. */
static uint64_t value_of(uint64_t *state, int spread)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return spread ? 1000 + ((*state >> 40) >> (*state >> 33 & 7)) : 1000000 + (*state >> 44);
}

static void it_is_within_a_bucket_of_the_exact_quantile(void **unused)
{
	static const double shares[] = { 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999 };
	static uint64_t values[VALUES];

	(void)unused;
	for (int spread = 0; spread < 2; spread++) {
		uint64_t buckets[KYMO_HIST_BUCKETS] = { 0 }, state = 1;

		for (size_t i = 0; i < VALUES; i++) {
			values[i] = value_of(&state, spread);
			buckets[hist_bucket(values[i])]++;
		}
		qsort(values, VALUES, sizeof(values[0]), by_value);
		for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
			int64_t exact = (int64_t)values[(size_t)(shares[i] * VALUES) - 1];
			int64_t found = hist_quantile(buckets, shares[i], 1, (int64_t)values[0],
						      (int64_t)values[VALUES - 1]);

			assert_int_equal(hist_bucket((uint64_t)found),
					 hist_bucket((uint64_t)exact));
			/* Dense values: interpolation comes much closer than the bucket's width. */
			assert_true(llabs(found - exact) * 100 <= exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_bucket_holds_its_own_bounds),
		cmocka_unit_test(without_values_there_is_none),
		cmocka_unit_test(one_value_is_every_quantile),
		cmocka_unit_test(it_is_linear_inside_a_bucket),
		cmocka_unit_test(it_stays_within_what_was_seen),
		cmocka_unit_test(the_last_bucket_ends_at_the_longest),
		cmocka_unit_test(it_is_within_a_bucket_of_the_exact_quantile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
