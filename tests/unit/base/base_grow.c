/* Lists that grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/grow.h"

static void a_list_keeps_what_it_holds(void **unused)
{
	size_t room = 0;
	uint32_t *list = NULL;

	(void)unused;
	for (uint32_t i = 0; i < 1000; i++) {
		assert_true(grow((void **)&list, &room, i, sizeof(*list)));
		assert_true(room > i);
		list[i] = i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
	free(list);
}

static void a_short_list_keeps_what_it_holds_when_it_shrinks_and_grows(void **unused)
{
	uint32_t *list = NULL;
	size_t count = 0;

	(void)unused;
	for (size_t most = 1; most < 40; most++) {
		for (; count < most; count++) {
			assert_true(grow_short((void **)&list, count, sizeof(*list)));
			list[count] = (uint32_t)count;
		}
		for (size_t i = 0; i < count; i++)
			assert_int_equal(list[i], i);
		count /= 3;
	}
	free(list);
}

static void what_is_new_is_zeroed(void **unused)
{
	uint64_t *list = NULL;
	size_t count = 0;

	(void)unused;
	assert_true(grow_zeroed((void **)&list, &count, 3, sizeof(*list)));
	list[0] = list[1] = list[2] = UINT64_MAX;
	assert_true(grow_zeroed((void **)&list, &count, 2, sizeof(*list)));
	assert_int_equal(count, 3);
	assert_true(grow_zeroed((void **)&list, &count, 100, sizeof(*list)));
	assert_int_equal(count, 100);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(list[i], i < 3 ? UINT64_MAX : 0);
	free(list);
}

static void a_list_too_large_is_refused_and_stays(void **unused)
{
	uint64_t *list = malloc(sizeof(*list));
	volatile size_t most = SIZE_MAX; /* so that the compiler does not refuse it first */
	size_t room = most / 8, count = 1;
	void *before = list;

	(void)unused;
	assert_false(grow((void **)&list, &room, room, sizeof(*list)));
	assert_int_equal(room, most / 8);
	assert_false(grow_short((void **)&list, most / 4 + 1, sizeof(*list)));
	assert_false(grow_zeroed((void **)&list, &count, most / 4, sizeof(*list)));
	assert_int_equal(count, 1);
	assert_ptr_equal(list, before);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_keeps_what_it_holds),
		cmocka_unit_test(a_short_list_keeps_what_it_holds_when_it_shrinks_and_grows),
		cmocka_unit_test(what_is_new_is_zeroed),
		cmocka_unit_test(a_list_too_large_is_refused_and_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
