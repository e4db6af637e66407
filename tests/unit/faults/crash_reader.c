/*
 * Readers against a writer at full speed (KYMO_TEST_SECONDS, 5): not one torn row, totals that are
 * exact for the head that was seen, and a writer that is never held up by a reader that is stopped
 * or killed.
 */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "recorded.h"

/* Every field is a function of the row's number, so that a torn row shows. */
struct pattern {
	uint64_t number, times_three, inverse, square;
	uint64_t more[4];
};

static const struct kymo_column pattern_columns[] = {
	{ "number", KYMO_U64, offsetof(struct pattern, number), 0, NULL },
	{ "times_three", KYMO_U64, offsetof(struct pattern, times_three), 0, NULL },
	{ "inverse", KYMO_U64, offsetof(struct pattern, inverse), 0, NULL },
	{ "square", KYMO_U64, offsetof(struct pattern, square), 0, NULL },
};

static struct pattern pattern_of(uint64_t number)
{
	struct pattern row = { number, number * 3, ~number, number * number, { 0 } };

	for (int i = 0; i < 4; i++)
		row.more[i] = number + (uint64_t)i;
	return row;
}

static void write_patterns(void)
{
	struct kymo_table *table = kymo_table_create("app.pattern", pattern_columns, 4,
						     sizeof(struct pattern), NULL);

	for (uint64_t number = 0;; number++) {
		struct pattern row = pattern_of(number);

		kymo_table_append(table, &row);
		{
			KYMO_SCOPE("zone");
		}
	}
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double wished_seconds(void)
{
	const char *wish = getenv("KYMO_TEST_SECONDS");

	return wish ? atof(wish) : 5;
}

static uint64_t check_patterns(const struct store_stream *stream)
{
	struct pattern *rows = malloc(sizeof(*rows) * (stream->kept + 1));
	uint64_t checked = 0;

	for (size_t i = 0; i < stream->chunk_count; i++) {
		const struct store_chunk *chunk = &stream->chunks[i];

		assert_int_equal(store_read_rows(stream, chunk, 0, chunk->rows, rows), chunk->rows);
		for (uint64_t k = 0; k < chunk->rows; k++) {
			struct pattern expected = pattern_of(chunk->first_row + k);

			assert_memory_equal(&rows[k], &expected, sizeof(expected));
		}
		checked += chunk->rows;
	}
	free(rows);
	return checked;
}

static void check_one_opening(uint64_t *out_rows)
{
	struct recording *recording = recorded_open();

	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		const struct store_total *total = total_of(recording, stream, "zone");

		assert_int_equal(stream->emitted,
				 stream->kept + stream->overwritten + stream->dropped_total);
		if (!strcmp(stream->table, "app.pattern"))
			*out_rows += check_patterns(stream);
		else if (total && stream->emitted)
			assert_int_equal(total->count, stream->emitted);
	}
	store_close(recording);
}

static void no_row_is_torn_under(const char *environment)
{
	pid_t pid = recorded_start(write_patterns, environment);
	double end = seconds_now() + wished_seconds();
	uint64_t rows = 0, openings = 0;

	while (seconds_now() < end) {
		check_one_opening(&rows);
		openings++;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	print_message("%llu rows in %llu openings, none torn\n", (unsigned long long)rows,
		      (unsigned long long)openings);
	assert_true(rows > 0);
	recorded_remove();
}

static void no_row_of_a_ring_is_torn(void **state)
{
	(void)state;
	no_row_is_torn_under(NULL);
}

static void no_row_of_a_chain_is_torn(void **state)
{
	(void)state;
	no_row_is_torn_under("KYMO_KEEP=all KYMO_BUDGET=64M");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_row_of_a_ring_is_torn),
		cmocka_unit_test(no_row_of_a_chain_is_torn),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
