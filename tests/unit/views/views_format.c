/* How numbers look. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "views/term/format.h"

static void durations_have_three_digits_and_a_unit(void **state)
{
	static const struct {
		double ns;
		const char *text;
	} cases[] = {
		{ 0, "0 ns" },		 { 85, "85 ns" },
		{ 999.4, "999 ns" },	 { 999.6, "1.00 µs" },
		{ 84900, "84.9 µs" },	 { 112000, "112 µs" },
		{ 999600, "1.00 ms" },	 { 1200000, "1.20 ms" },
		{ 9995000, "10.0 ms" },	 { 33300000, "33.3 ms" },
		{ 85.7e9, "85.7 s" },	 { 211e9, "211 s" },
		{ 9999.4e9, "9,999 s" }, { 36e12, "10.0 h" },
		{ -1500, "-1.50 µs" },	 { NAN, "?" },
		{ INFINITY, "?" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(format_duration(cases[i].ns, true).text, cases[i].text);
	assert_string_equal(format_duration(84900, false).text, "84.9 us");
}

static void a_run_is_told_in_minutes(void **state)
{
	(void)state;
	assert_string_equal(format_clock(274e9, true).text, "4:34");
	assert_string_equal(format_clock(3080e9, true).text, "51:20");
	assert_string_equal(format_clock(3723e9, true).text, "1:02:03");
	assert_string_equal(format_clock(59.94e9, true).text, "59.9 s");
	assert_string_equal(format_clock(59.96e9, true).text, "1:00");
	assert_string_equal(format_clock(12e6, true).text, "12.0 ms");
}

static void counts_have_commas(void **state)
{
	(void)state;
	assert_string_equal(format_count(0).text, "0");
	assert_string_equal(format_count(999).text, "999");
	assert_string_equal(format_count(1000).text, "1,000");
	assert_string_equal(format_count(10012640).text, "10,012,640");
	assert_string_equal(format_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
	assert_string_equal(format_count_short(9999999).text, "9,999,999");
	assert_string_equal(format_count_short(12345678).text, "12.3 M");
	assert_string_equal(format_count_short(4560000000).text, "4.56 G");
}

static void bytes_are_decimal(void **state)
{
	(void)state;
	assert_string_equal(format_bytes(0).text, "0 B");
	assert_string_equal(format_bytes(512).text, "512 B");
	assert_string_equal(format_bytes(999.6).text, "1 kB");
	assert_string_equal(format_bytes(12e3).text, "12 kB");
	assert_string_equal(format_bytes(75e6).text, "75 MB");
	assert_string_equal(format_bytes(3.01e9).text, "3.01 GB");
	assert_string_equal(format_bytes(-1).text, "?");
}

static void percents_do_not_round_to_nothing_or_all(void **state)
{
	(void)state;
	assert_string_equal(format_percent(0).text, "0 %");
	assert_string_equal(format_percent(0.00001).text, "< 0.01 %");
	assert_string_equal(format_percent(0.0031).text, "0.31 %");
	assert_string_equal(format_percent(0.05).text, "5.0 %");
	assert_string_equal(format_percent(0.164).text, "16 %");
	assert_string_equal(format_percent(0.999).text, "> 99 %");
	assert_string_equal(format_percent(1).text, "100 %");
	assert_string_equal(format_percent(0.0 / 0.0).text, "?");
}

static void doubles_read_back_as_themselves(void **state)
{
	(void)state;
	assert_string_equal(format_double(0.1).text, "0.1");
	assert_string_equal(format_double(0.1 + 0.2).text, "0.30000000000000004");
	assert_string_equal(format_double(1).text, "1.0");
	assert_string_equal(format_double(-0.0).text, "-0.0");
	assert_string_equal(format_double(1e300).text, "1e+300");
	assert_string_equal(format_double(NAN).text, "nan");
	assert_string_equal(format_double(-INFINITY).text, "-inf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_three_digits_and_a_unit),
		cmocka_unit_test(a_run_is_told_in_minutes),
		cmocka_unit_test(counts_have_commas),
		cmocka_unit_test(bytes_are_decimal),
		cmocka_unit_test(percents_do_not_round_to_nothing_or_all),
		cmocka_unit_test(doubles_read_back_as_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
