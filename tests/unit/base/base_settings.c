/* Settings: texts to values, the control page, the environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/settings.h"

static struct kymo_control control;

static const char *round_trip(const char *name, const char *text)
{
	static char out[SETTINGS_TEXT_BYTES];
	const struct settings_key *key = settings_find(name);
	struct settings_value value;

	assert_non_null(key);
	if (settings_parse(key, text, &value, NULL))
		return NULL;
	settings_store(key, &control, &value);
	settings_load(key, &control, &value);
	settings_format(key, &value, out, sizeof(out));
	return out;
}

static void a_value_comes_back_from_the_page_as_it_was_typed(void **state)
{
	(void)state;
	memset(&control, 0, sizeof(control));
	assert_string_equal(round_trip("sample_rate", "0.1"), "0.1");
	assert_int_equal(control.sample_period_ns, 100000000);
	assert_string_equal(round_trip("kymo.system_rate", "86400"), "86400");
	assert_string_equal(round_trip("probing.sample_rate", ".5"), "0.5");
	assert_string_equal(round_trip("sample_rate", "0"), "0");
	assert_string_equal(round_trip("sample_rate", "Adaptive"), "adaptive");
	assert_string_equal(round_trip("torch", "YES"), "on");
	assert_int_equal(control.on, KYMO_ON_TORCH);
	assert_string_equal(round_trip("python", "1"), "on");
	assert_string_equal(round_trip("torch", "false"), "off");
	assert_int_equal(control.on, KYMO_ON_PYTHON);
	assert_string_equal(round_trip("keep", "all"), "all");
	assert_string_equal(round_trip("ring_rows", "100000000"), "100000000");
	assert_string_equal(round_trip("watch", "loss@train_step,lr@train_step"),
			    "loss@train_step,lr@train_step");
	assert_string_equal(round_trip("watch", ""), "");
	assert_int_equal(control.config_changes % 2, 0);
}

static void what_is_no_value_is_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "sample_rate", "" },
		{ "sample_rate", "." },
		{ "sample_rate", "-1" },
		{ "sample_rate", "1e3" },
		{ "sample_rate", "0,1" },
		{ "sample_rate", " 1" },
		{ "system_rate", "adaptive" },
		{ "sample_rate", "86400.1" },
		{ "sample_rate", "0.00001" },
		{ "torch", "" },
		{ "torch", "2" },
		{ "torch", "o n" },
		{ "ring_rows", "0" },
		{ "ring_rows", "+5" },
		{ "ring_rows", "100000001" },
		{ "keep", "" },
		{ "watch", "a\tb" },
		{ "sample_rate", "99999999999999999999999999999" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(round_trip(bad[i][0], bad[i][1]));
	assert_null(settings_find("kymo."));
	assert_null(settings_find("kymo.kymo.torch"));
}

/* The page may hold anything: it is shared memory. */
static void a_page_of_garbage_reads_as_the_initial_values(void **state)
{
	struct settings_value value;
	char text[SETTINGS_TEXT_BYTES];

	(void)state;
	memset(&control, 0xff, sizeof(control));
	for (const struct settings_key *key = settings_keys; key->name; key++) {
		settings_load(key, &control, &value);
		settings_format(key, &value, text, sizeof(text));
		if (key->type == SETTINGS_SECONDS || key->type == SETTINGS_COUNT)
			assert_string_equal(text, key->initial);
	}
}

/* A writer died in the middle: the count stays odd until the next one. */
static void a_text_reads_although_its_writer_died(void **state)
{
	(void)state;
	memset(&control, 0, sizeof(control));
	control.config_changes = 7;
	strcpy(control.torch_modules, "half");
	assert_string_equal(round_trip("watch", "x"), "x");
	assert_int_equal(control.config_changes, 8);
}

static int complaints;

static void count_complaint(const char *sentence)
{
	assert_non_null(
		strstr(sentence, "KYMO_TORCH=perhaps: expected on or off; torch stays off"));
	complaints++;
}

static void the_environment_is_read_and_garbage_means_nothing(void **state)
{
	(void)state;
	memset(&control, 0, sizeof(control));
	setenv("KYMO_TORCH", "perhaps", 1);
	setenv("KYMO_PYTHON", "partial,lines", 1); /* read by Python's front: no complaint */
	setenv("KYMO_MEMORY", "on", 1);
	setenv("KYMO_SAMPLE_RATE", "0.01", 1);
	settings_begin(&control, count_complaint);
	assert_int_equal(complaints, 1);
	assert_int_equal(control.on, KYMO_ON_ZONES | KYMO_ON_ALLOC);
	assert_int_equal(control.sample_period_ns, 10000000);
	assert_int_equal(control.system_period_ns, 1000000000);
	assert_int_equal(control.ring_rows, 10000);
	assert_int_equal(control.config_changes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_comes_back_from_the_page_as_it_was_typed),
		cmocka_unit_test(what_is_no_value_is_refused),
		cmocka_unit_test(a_page_of_garbage_reads_as_the_initial_values),
		cmocka_unit_test(a_text_reads_although_its_writer_died),
		cmocka_unit_test(the_environment_is_read_and_garbage_means_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
