/*
 * SIGKILL at 1,000 random instants (KYMO_TEST_KILLS): every committed row reads back, none is torn,
 * the totals are exact to the last row, and the arithmetic holds. The program counts for itself, in
 * memory that outlives it.
 */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <kymo/atomic.h>

#include "recorded.h"

/* Rows come in threes: first, second, then the outer zone that holds both. */
static const char *const names[3] = { "first", "second", "outer" };

static void commit_row(struct kymo_zone *zone)
{
	kymo_zone_end(zone);
	/* After the row, so the recording has this many, or one more. */
	kymo__store_release(&shared_counts()[0], shared_counts()[0] + 1);
}

static void record_for_ever(void)
{
	uint32_t id[3];

	for (int i = 0; i < 3; i++)
		id[i] = kymo_name(names[i]);
	for (;;) {
		struct kymo_zone outer = kymo_zone_begin_id(id[2]);

		for (int i = 0; i < 2; i++) {
			struct kymo_zone zone = kymo_zone_begin_id(id[i]);

			commit_row(&zone);
		}
		commit_row(&outer);
	}
}

static void sleep_up_to_ms(unsigned ms)
{
	struct timespec pause = { 0, (long)((uint64_t)random() % (ms * 1000000u)) };

	nanosleep(&pause, NULL);
}

struct sums {
	uint64_t count, sum, child, min, max;
};

static void add(struct sums *sums, uint64_t ticks, uint64_t child)
{
	sums->min = !sums->count || ticks < sums->min ? ticks : sums->min;
	sums->max = ticks > sums->max ? ticks : sums->max;
	sums->count++;
	sums->sum += ticks;
	sums->child += child;
}

static void check_row(const struct recording *recording, const struct store_stream *zones,
		      uint64_t number, const struct kymo_zone_row *row,
		      const struct kymo_zone_row *before)
{
	assert_string_equal(name_of(recording, zones, row->name), names[number % 3]);
	assert_int_equal(row->depth, number % 3 == 2 ? 0 : 1);
	assert_int_equal(row->thread, 1);
	if (before && number % 3 != 2)
		assert_true(before->start_ticks + before->duration_ticks <= row->start_ticks);
	if (before && number % 3 == 2)
		assert_true(row->start_ticks <= before->start_ticks &&
			    before->start_ticks + before->duration_ticks <=
				    row->start_ticks + row->duration_ticks);
}

static void check_rows(const struct recording *recording, const struct store_stream *zones,
		       struct sums sums[3])
{
	struct kymo_zone_row *rows = malloc((zones->kept + 1) * sizeof(*rows));
	uint64_t first = zones->chunk_count ? zones->chunks[0].first_row : 0, inner = 0;

	assert_int_equal(read_zones(zones, rows, zones->kept), zones->kept);
	for (uint64_t i = 0; i < zones->kept; i++) {
		uint64_t number = first + i, ticks = rows[i].duration_ticks;

		check_row(recording, zones, number, &rows[i], i ? &rows[i - 1] : NULL);
		add(&sums[number % 3], ticks, number % 3 == 2 ? inner : 0);
		inner = number % 3 == 2 ? 0 : inner + ticks;
	}
	free(rows);
}

static void check_totals(const struct recording *recording, const struct store_stream *zones,
			 const struct sums sums[3])
{
	bool whole = zones->kept == zones->emitted;

	for (uint64_t i = 0; i < 3; i++) {
		const struct store_total *total = total_of(recording, zones, names[i]);
		uint64_t expected = zones->emitted / 3 + (zones->emitted % 3 > i), in_histogram = 0;

		if (!expected) {
			assert_true(!total || !total->count);
			continue;
		}
		assert_non_null(total);
		assert_int_equal(total->count, expected);
		for (uint32_t bucket = 0; bucket < KYMO_HIST_BUCKETS; bucket++)
			in_histogram += total->histogram[bucket];
		assert_int_equal(in_histogram, expected);
		if (!whole)
			continue;
		assert_int_equal(total->sum_ticks, sums[i].sum);
		assert_int_equal(total->child_ticks, sums[i].child);
		assert_int_equal(total->min_ticks, sums[i].min);
		assert_int_equal(total->max_ticks, sums[i].max);
	}
}

static void kill_once(const char *environment)
{
	pid_t pid = recorded_start(record_for_ever, environment);
	struct recording *recording;
	const struct store_stream *zones = NULL;
	struct sums sums[3] = { { 0 } };
	uint64_t committed;

	sleep_up_to_ms(3);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	committed = shared_counts()[0];
	recording = recorded_open();
	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, "trace.zones") &&
		    !recording->streams[i].without_file)
			zones = &recording->streams[i];
	if (committed)
		assert_non_null(zones);
	if (zones) {
		assert_true(zones->emitted == committed || zones->emitted == committed + 1);
		assert_int_equal(zones->emitted,
				 zones->kept + zones->overwritten + zones->dropped_total);
		check_rows(recording, zones, sums);
		check_totals(recording, zones, sums);
	}
	if (recording->problem_count)
		fail_msg("%s", recording->problems[0]);
	recorded_close(recording);
}

static int kills(void)
{
	const char *wish = getenv("KYMO_TEST_KILLS");

	return wish ? atoi(wish) : 1000;
}

static void killed_at_any_instant_everything_committed_reads_back(void **state)
{
	(void)state;
	srandom((unsigned)time(NULL));
	for (int i = 0; i < kills(); i++)
		kill_once(i % 2 ? "KYMO_KEEP=all" : NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
		killed_at_any_instant_everything_committed_reads_back) };

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
