/* Pools of free indexes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <kymo/pool.h>

#define INDEXES 64u
#define THREADS 8
#define TURNS 200000u

static uint32_t next_free[INDEXES];
static uint32_t holders[INDEXES]; /* atomic: how many threads have taken it */
static uint64_t pool;
static uint32_t shared; /* atomic: times that an index was taken by two */

static uint32_t *next_of(uint32_t index)
{
	return &next_free[index];
}

static void the_last_one_given_is_the_first_taken(void **unused)
{
	uint32_t index = 7;

	(void)unused;
	pool = 0;
	assert_false(kymo__pool_pop(&pool, next_of, &index));
	assert_int_equal(index, 7);
	for (uint32_t i = 0; i < 3; i++)
		kymo__pool_push(&pool, i, next_of);
	for (uint32_t i = 3; i-- > 0;) {
		assert_true(kymo__pool_pop(&pool, next_of, &index));
		assert_int_equal(index, i);
	}
	assert_false(kymo__pool_pop(&pool, next_of, &index));
}

static void every_change_raises_the_tag(void **unused)
{
	uint64_t before;
	uint32_t index = 0;

	(void)unused;
	pool = 0;
	kymo__pool_push(&pool, 5, next_of);
	before = pool;
	assert_true(kymo__pool_pop(&pool, next_of, &index));
	kymo__pool_push(&pool, index, next_of);
	assert_int_equal((uint32_t)pool, (uint32_t)before);
	assert_int_equal(pool >> 32, (before >> 32) + 2);
}

static void *take_and_give(void *unused)
{
	uint32_t index;

	(void)unused;
	for (uint32_t i = 0; i < TURNS; i++) {
		if (!kymo__pool_pop(&pool, next_of, &index))
			continue;
		if (kymo__fetch_add_relaxed(&holders[index], 1))
			kymo__fetch_add_relaxed(&shared, 1);
		kymo__fetch_sub_relaxed(&holders[index], 1);
		kymo__pool_push(&pool, index, next_of);
	}
	return NULL;
}

static void no_two_threads_take_the_same(void **unused)
{
	pthread_t threads[THREADS];
	uint32_t index, count = 0;

	(void)unused;
	pool = 0;
	for (uint32_t i = 0; i < INDEXES; i++)
		kymo__pool_push(&pool, i, next_of);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared, 0);
	while (kymo__pool_pop(&pool, next_of, &index))
		count += !holders[index]++;
	assert_int_equal(count, INDEXES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_one_given_is_the_first_taken),
		cmocka_unit_test(every_change_raises_the_tag),
		cmocka_unit_test(no_two_threads_take_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
