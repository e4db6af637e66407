/* -DKYMO_DISABLE: all that a program can call compiles, does nothing, and needs no libkymo. */
#define KYMO_DISABLE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <kymo/kymo.h>

static void every_call_is_there_and_does_nothing(void **state)
{
	(void)state;
	struct kymo_region region = KYMO_REGION_INIT("region");
	struct kymo_zone zone = kymo_zone_begin_id(kymo_name("zone"));
	struct kymo_totals totals = { .bytes = sizeof(totals), .count = 1 };
	char line[8] = "before";

	KYMO_SCOPE("scope");
	KYMO_SCOPE("a second one");
	KYMO_FUNCTION();
	KYMO_REGION_SCOPE(&region);
	kymo_zone_text("text", 4);
	kymo_zone_text_of(&zone, "text", 4);
	kymo_zone_value_of(&zone, 1);
	kymo_zone_end(&zone);
	kymo_mark("mark", NULL);
	kymo_counter("counter", 1.0);
	kymo_step(NULL);
	kymo_step_end(NULL);
	assert_int_equal(kymo_enable(NULL), 0);
	assert_false(kymo_enabled());
	assert_int_equal(kymo_region_start(&region), 0);
	assert_int_equal(kymo_region_stop(&region), 0);
	assert_null(kymo_region_create("made"));
	assert_int_equal(kymo_region_init(&region, "made"), 0);
	assert_int_equal(kymo_regions_start_by_name(&region, 1, "nobody"), 0);
	assert_int_equal(kymo_regions_stop_by_name(&region, 1, "nobody"), 0);
	assert_int_equal(kymo_region_totals(&region, &totals), 0);
	assert_int_equal(totals.count, 0);
	assert_int_equal(kymo_region_print_to(line, sizeof(line), &region), 0);
	assert_string_equal(line, "");
	assert_int_equal(kymo_region_print(&region), 0);
	assert_int_equal(kymo_regions_print_all(&region, 1), 0);
	assert_true(kymo_ticks_ns(1000) == 0);
	assert_null(kymo_table_create("app.table", NULL, 0, 0, NULL));
	assert_string_equal(kymo_directory(), "");
}

/* Compiles this file alone, without the library: nothing may be missing. */
static void nothing_of_libkymo_is_needed(void **state)
{
	(void)state;
	assert_int_equal(
		system("printf '#include <kymo/kymo.h>\\nint main(void) { KYMO_SCOPE(\"x\"); "
		       "kymo_counter(\"c\", 1); kymo_step(0); return kymo_enabled(); }\\n' | "
		       "cc -DKYMO_DISABLE -I" TEST_SOURCE_DIR "/include -x c - -o /dev/null"),
		0);
	assert_int_equal(
		system("printf '#include <kymo/kymo.h>\\nint main() { KYMO_SCOPE(\"x\"); "
		       "kymo_counter(\"c\", 1); kymo_step(0); return kymo_enabled(); }\\n' | "
		       "c++ -std=c++17 -DKYMO_DISABLE -I" TEST_SOURCE_DIR
		       "/include -x c++ - -o /dev/null"),
		0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_there_and_does_nothing),
		cmocka_unit_test(nothing_of_libkymo_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
