/* What headers for code that is marked for other tools use: pools, renamed zones, texts of outer
   zones. */
#include <pthread.h>

#include "kymo/marked.h"
#include "recorded.h"

#define THREADS 4
#define POINTERS 2000

static const void *pointer(long thread, long i)
{
	return (const void *)(uintptr_t)(0x100000 + (thread * POINTERS + i) * 16);
}

static void *allocate_and_free(void *argument)
{
	long thread = (long)(intptr_t)argument;

	for (long i = 0; i < POINTERS; i++)
		kymo__pool_alloc("shared", pointer(thread, i), 10);
	for (long i = 0; i < POINTERS; i++)
		kymo__pool_free("shared", pointer(thread, i));
	return NULL;
}

static void threads_on_one_pool(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, allocate_and_free, (void *)(intptr_t)i);
	for (long i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	kymo__pool_alloc("shared", pointer(0, 0), 7);
}

struct found {
	uint64_t rows;
	uint64_t last_ticks;
	double last; /* the value that was written last */
};

static void look_at(const struct recording *recording, const struct store_stream *stream,
		    const struct store_chunk *chunk, const char *name, struct found *found)
{
	struct schema_counter_row row;

	for (uint64_t i = 0; store_read_rows(stream, chunk, i, 1, &row) == 1; i++) {
		if (strcmp(name_of(recording, stream, row.name), name))
			continue;
		found->rows++;
		if (row.ts_ticks >= found->last_ticks) {
			found->last_ticks = row.ts_ticks;
			found->last = row.value;
		}
	}
}

static struct found counter_of(const struct recording *recording, const char *name)
{
	struct found found = { 0 };

	for (uint32_t s = 0; s < recording->stream_count; s++) {
		const struct store_stream *stream = &recording->streams[s];

		for (uint32_t c = 0;
		     !strcmp(stream->table, "trace.counters") && c < stream->chunk_count; c++)
			look_at(recording, stream, &stream->chunks[c], name, &found);
	}
	return found;
}

static void live_bytes_of_a_pool_are_exact_with_many_threads(void **state)
{
	(void)state;
	struct recording *recording = recorded(threads_on_one_pool, "KYMO_RING_ROWS=20000");
	struct found found = counter_of(recording, "memory: shared");

	assert_int_equal(found.rows, 2 * THREADS * POINTERS + 1);
	assert_true(found.last == 7.0);
	assert_int_equal(counter_of(recording, "memory: not tracked").rows, 0);
	recorded_close(recording);
}

static void more_pointers_than_fit(void)
{
	uint64_t *counts = shared_counts();

	for (long i = 0; i < 70000; i++)
		kymo__pool_alloc(NULL, pointer(0, i), 1);
	counts[0] = 70000;
	kymo__pool_discard(NULL);
}

static void pointers_that_do_not_fit_are_counted_and_left_out(void **state)
{
	(void)state;
	struct recording *recording = recorded(more_pointers_than_fit, "KYMO_RING_ROWS=100000");
	struct found memory = counter_of(recording, "memory");
	struct found not_tracked = counter_of(recording, "memory: not tracked");

	assert_int_equal(memory.rows - 1 + not_tracked.rows, shared_counts()[0]);
	assert_true(not_tracked.rows >= 70000 - 65536);
	assert_true(not_tracked.last == (double)not_tracked.rows);
	assert_true(memory.last == 0.0); /* the discard */
	recorded_close(recording);
}

static void a_hundred_pools(void)
{
	char name[100];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "pool %d", i);
			kymo__pool_alloc(name, pointer(round, i), 5);
		}
	kymo__pool_free("pool 0", pointer(0, 0));
	kymo__pool_free("pool 1", pointer(0, 0)); /* of another pool: nothing */
	kymo__pool_free("pool 2", pointer(3, 0)); /* never seen: nothing */
}

static void pools_beyond_the_sixty_third_share_one(void **state)
{
	(void)state;
	struct recording *recording = recorded(a_hundred_pools, NULL);

	assert_true(counter_of(recording, "memory: pool 0").last == 5.0);
	assert_true(counter_of(recording, "memory: pool 1").last == 10.0);
	assert_true(counter_of(recording, "memory: pool 62").last == 10.0);
	assert_int_equal(counter_of(recording, "memory: pool 2").rows, 2);
	assert_int_equal(counter_of(recording, "memory: pool 63").rows, 0);
	assert_true(counter_of(recording, "memory: other pools").last == 2 * 37 * 5.0);
	recorded_close(recording);
}

static void renamed_from_a_copy(void)
{
	static struct kymo_site outer = { "outer", "here.c", 1, 0 },
				inner = { "inner", "here.c", 2, 0 };
	struct kymo_zone first = kymo_zone_begin(&outer), second = kymo_zone_begin(&inner);
	struct kymo_zone copy = first;

	kymo__zone_rename(&copy, kymo_name("outer, renamed"));
	kymo_zone_text_of(&first, "text", 4);
	kymo__zone_end_renamed(&second);
	kymo__zone_end_renamed(&first);
}

static void a_zone_that_was_renamed_by_a_copy_ends_under_its_new_name(void **state)
{
	(void)state;
	struct recording *recording = recorded(renamed_from_a_copy, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	const struct store_stream *texts = stream_of(recording, "trace.zone_text");
	struct schema_text_row text;
	struct kymo_zone_row row[2];

	assert_int_equal(read_zones(zones, row, 2), 2);
	assert_string_equal(name_of(recording, zones, row[0].name), "inner");
	assert_string_equal(name_of(recording, zones, row[1].name), "outer, renamed");
	assert_int_equal(store_read_rows(texts, &texts->chunks[0], 0, 1, &text), 1);
	assert_string_equal(name_of(recording, texts, text.name), "outer, renamed");
	assert_int_equal(text.at_ticks, row[1].start_ticks);
	recorded_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_bytes_of_a_pool_are_exact_with_many_threads),
		cmocka_unit_test(pointers_that_do_not_fit_are_counted_and_left_out),
		cmocka_unit_test(pools_beyond_the_sixty_third_share_one),
		cmocka_unit_test(a_zone_that_was_renamed_by_a_copy_ends_under_its_new_name),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
