/* Numbers for keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/intern.h"

#define KEYS 20000u

static bool same_text(const void *owner, uint32_t number, const void *key)
{
	const char(*list)[16] = owner;

	return !strcmp(list[number], key);
}

static uint64_t hash_text(const char *text)
{
	return intern_hash(0, text, strlen(text));
}

static void equal_keys_get_one_number_in_order_of_appearance(void **unused)
{
	static char list[KEYS][16];
	struct intern intern = { 0 };

	(void)unused;
	for (uint32_t i = 0; i < KEYS; i++) {
		snprintf(list[i], sizeof(list[i]), "key %u", i);
		assert_int_equal(intern_find(&intern, hash_text(list[i]), same_text, list, list[i]),
				 INTERN_NONE);
		assert_int_equal(intern_add(&intern, hash_text(list[i])), i);
	}
	for (uint32_t i = 0; i < KEYS; i++)
		assert_int_equal(intern_find(&intern, hash_text(list[i]), same_text, list, list[i]),
				 i);
	intern_fini(&intern);
	assert_int_equal(intern.count, 0);
}

static void keys_of_one_hash_are_told_apart(void **unused)
{
	static const char list[3][16] = { "a", "b", "c" };
	struct intern intern = { 0 };

	(void)unused;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(intern_add(&intern, 7), i);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(intern_find(&intern, 7, same_text, list, list[i]), i);
	assert_int_equal(intern_find(&intern, 7, same_text, list, "d"), INTERN_NONE);
	intern_fini(&intern);
}

static void hashes_above_32_bits_survive_growth(void **unused)
{
	static char list[2000][16];
	struct intern intern = { 0 };

	(void)unused;
	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(list[i], sizeof(list[i]), "%u", i);
		assert_int_equal(intern_add(&intern, (uint64_t)i << 40 | i), i);
	}
	for (uint32_t i = 0; i < 2000; i++)
		assert_int_equal(
			intern_find(&intern, (uint64_t)i << 40 | i, same_text, list, list[i]), i);
	intern_fini(&intern);
}

static void cleared_it_begins_at_0_again(void **unused)
{
	static const char list[1][16] = { "a" };
	struct intern intern = { 0 };

	(void)unused;
	intern_clear(&intern);
	assert_int_equal(intern_add(&intern, 1), 0);
	assert_int_equal(intern_add(&intern, 2), 1);
	intern_clear(&intern);
	assert_int_equal(intern_find(&intern, 1, same_text, list, "a"), INTERN_NONE);
	assert_int_equal(intern_add(&intern, 1), 0);
	intern_fini(&intern);
}

static void parts_and_lengths_count(void **unused)
{
	uint64_t whole = intern_hash(intern_hash(1, "ab", 2), "c", 1);

	(void)unused;
	assert_true(whole != intern_hash(intern_hash(1, "a", 1), "bc", 2));
	assert_true(whole != intern_hash(intern_hash(2, "ab", 2), "c", 1));
	assert_true(intern_hash(0, "a\0", 2) != intern_hash(0, "a", 1));
	assert_true(intern_hash(0, "123456789", 9) != intern_hash(0, "123456788", 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_keys_get_one_number_in_order_of_appearance),
		cmocka_unit_test(keys_of_one_hash_are_told_apart),
		cmocka_unit_test(hashes_above_32_bits_survive_growth),
		cmocka_unit_test(cleared_it_begins_at_0_again),
		cmocka_unit_test(parts_and_lengths_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
