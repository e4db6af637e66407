/* What a comparison says, of figures that are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tables/tables.h" /* what compares needs it, and is not built for sanitizers */
#include "views/compare/compare.h"

static const char *said(struct compare_stats stats, bool whole, size_t runs)
{
	static struct compare compare;
	struct compare_run all[4] = { { .whole = whole } };
	struct compare_item item = { .stats = stats };

	compare = (struct compare){ .runs = all,
				    .a_count = runs / 2,
				    .b_count = runs - runs / 2,
				    .items = &item,
				    .item_count = 1,
				    .fail_above = -1 };
	compare_say(&compare);
	return compare.sentence;
}

static void an_interval_that_holds_one_needs_no_word(void **state)
{
	struct compare_stats same = { .a = 1,
				      .b = 1.01,
				      .ratio = 1.01,
				      .low = 0.99,
				      .high = 1.03,
				      .p = 0.4,
				      .could_see = 0.05 };

	(void)state;
	assert_string_equal(
		said(same, false, 2),
		"No significant difference: in B a step takes 1.010 times as long (95 % interval "
		"0.990 to 1.030); a change of 5.0 % would have been detected.");
}

static void an_interval_without_one_is_not_a_difference_if_chance_explains_it(void **state)
{
	struct compare_stats wide = {
		.a = 1, .b = 1.6, .ratio = 1.6, .low = 1.1, .high = 3, .p = 0.03, .could_see = 0.5
	};

	(void)state;
	assert_string_equal(
		said(wide, false, 2),
		"No significant difference: in B a step takes 1.600 times as long (95 % interval "
		"1.100 to 3.000; not significant among so many tests); a change of 50 % would have "
		"been detected.");
	wide.significant = true;
	assert_string_equal(
		said(wide, false, 2),
		"B is slower: a step takes 1.600 times as long (95 % interval 1.100 to 3.000).");
}

static void what_has_no_end_says_where_it_begins(void **state)
{
	struct compare_stats open = { .a = 1,
				      .b = 20,
				      .ratio = 20,
				      .low = 4,
				      .high = INFINITY,
				      .p = 0.01,
				      .significant = true };

	(void)state;
	assert_string_equal(said(open, false, 2), "B is slower: a step takes 20.000 times as long "
						  "(95 % interval from 4.000).");
}

static void one_run_on_each_side_says_nothing(void **state)
{
	static const char few[] =
		"No conclusion on the time of a step: there are few values, and "
		"successive ones depend on each other (drift, or a busy machine). "
		"Record longer, or several runs of each.";
	struct compare_stats one = {
		.a = 1, .b = 2, .ratio = 2, .low = NAN, .high = NAN, .p = NAN
	};

	(void)state;
	assert_string_equal(said(one, true, 2),
			    "No conclusion on the time of a run: each side has one run, which does "
			    "not show how "
			    "much runs vary. Record several: kymo compare A1 A2 A3 -- B1 B2 B3.");
	assert_string_equal(said(one, false, 2), few);
	one.p = 0.2;
	one.could_see = 30; /* of what it was */
	assert_string_equal(said(one, false, 2), few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_that_holds_one_needs_no_word),
		cmocka_unit_test(an_interval_without_one_is_not_a_difference_if_chance_explains_it),
		cmocka_unit_test(what_has_no_end_says_where_it_begins),
		cmocka_unit_test(one_run_on_each_side_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
