/* What a person who waits is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "views/term/progress.h"

static void one_unit_for_both_numbers(void **state)
{
	static const struct {
		uint64_t done, all;
		const char *text;
	} cases[] = {
		{ 4100000, 10000000, "reading 4.1 of 10.0 M zones  41 %" },
		{ 0, 10000000, "reading 0.0 of 10.0 M zones  0 %" },
		{ 12345, 99999, "reading 12.3 of 100.0 k zones  12 %" },
		{ 3, 12, "reading 3 of 12 zones  25 %" },
		{ 13, 12, "reading 12 of 12 zones  100 %" },
		{ 4100000, 0, "reading 4.1 M zones" },
	};
	struct progress progress = { .doing = "reading", .what = "zones" };
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		progress_text(&progress, cases[i].done, cases[i].all, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_unit_for_both_numbers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
