/* Times are decoded without a call where that is safe; the result is that of the store's clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tables/scan/decode.h"
#include "tables/words.h"

static const uint64_t edges[] = {
	0,
	1,
	5,
	1000,
	(1ull << 32) - 1,
	1ull << 32,
	(1ull << 57) + 3,
	(1ull << 58) - 1,
	1ull << 58,
	(1ull << 58) + 1,
	(1ull << 61) - 1,
	1ull << 62,
	(1ull << 63) - 1,
	1ull << 63,
	UINT64_MAX - 1,
	UINT64_MAX,
};
#define EDGES (sizeof(edges) / sizeof(edges[0]))

static void compare(const struct store_clock *clock, uint64_t ticks)
{
	assert_true(decode_time_ns(clock, ticks) == store_clock_ns(clock, ticks));
	assert_true(decode_span_ns(clock, ticks) == store_clock_span_ns(clock, ticks));
}

static void fast_clock_is_the_stores_clock_at_every_edge(void **state)
{
	struct store_clock clock = { 0 };

	(void)state;
	for (size_t base = 0; base < EDGES; base++)
		for (size_t ns = 0; ns < EDGES; ns++)
			for (size_t mult = 0; mult < EDGES; mult++)
				for (size_t ticks = 0; ticks < EDGES; ticks++) {
					clock.base_ticks = edges[base];
					clock.base_ns = (int64_t)edges[ns];
					clock.mult = edges[mult];
					compare(&clock, edges[ticks]);
				}
}

static void fast_clock_is_the_stores_clock_for_usual_times(void **state)
{
	struct store_clock clock = { .base_ticks = 123456789012345,
				     .base_ns = -77,
				     .mult = 1789569706,
				     .kind = KYMO_CLOCK_TSC };
	uint64_t random = 1;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		compare(&clock, clock.base_ticks + (random >> 20) - (1ull << 43));
	}
}

static void a_text_that_was_cut_ends_with_a_whole_character(void **state)
{
	char cut[] = "caf\xc3", whole[] = "caf\xc3\xa9", three[] = "a\xe2\x82", none[] = "";

	(void)state;
	words_trim(cut);
	words_trim(whole);
	words_trim(three);
	words_trim(none);
	assert_string_equal(cut, "caf");
	assert_string_equal(whole, "caf\xc3\xa9");
	assert_string_equal(three, "a");
	assert_string_equal(none, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fast_clock_is_the_stores_clock_at_every_edge),
		cmocka_unit_test(fast_clock_is_the_stores_clock_for_usual_times),
		cmocka_unit_test(a_text_that_was_cut_ends_with_a_whole_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
