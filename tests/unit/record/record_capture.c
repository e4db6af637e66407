/* A part of a recording as a file: what was chosen, and what is missing of it. */
#include "recorded.h"

#include <errno.h>

#include <kymo/capture.h>

#define ROWS_OF_RING 11264u /* 10,000 and a segment more */

static char *in_root(const char *name)
{
	static char path[KYMO_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", recorded_root, name);
	return path;
}

static bool zones_alone(void *context, const char *table)
{
	(void)context;
	return !strcmp(table, "trace.zones");
}

static bool only_that_name(void *context, const struct kymo_captured *row, bool writes)
{
	(void)writes;
	return row->name == *(const uint32_t *)context;
}

/* Of all rows that it saw, the last three. */
static bool last_three(void *context, const struct kymo_captured *row, bool writes)
{
	uint64_t *counts = context;

	(void)row;
	counts[writes]++;
	return !writes || counts[0] - counts[1] < 3;
}

static void zones(const char *name, int count)
{
	uint32_t id = kymo_name(name);

	for (int i = 0; i < count; i++) {
		struct kymo_zone zone = kymo_zone_begin_id(id);

		kymo_zone_end(&zone);
	}
}

static int write_part(const char *name, uint64_t from_ticks, uint64_t until_ticks,
		      bool (*wants_row)(void *, const struct kymo_captured *, bool), void *context)
{
	const struct kymo_capture capture = { sizeof(capture), from_ticks, until_ticks,
					      zones_alone,     wants_row,  context };

	return kymo_capture_write(in_root(name), &capture, NULL);
}

static void two_names(void)
{
	uint32_t wanted;
	uint64_t counts[2] = { 0 }, middle;

	kymo_mark("a mark", NULL);
	zones("one", 5);
	middle = kymo_ticks();
	zones("two", 7);
	wanted = kymo_name("two");
	shared_counts()[0] = (uint64_t)-write_part("named", 0, 0, only_that_name, &wanted);
	shared_counts()[1] = (uint64_t)-write_part("before", 0, middle, NULL, NULL);
	shared_counts()[2] = (uint64_t)-write_part("after", middle, 0, NULL, NULL);
	shared_counts()[3] = (uint64_t)-write_part("last", 0, 0, last_three, counts);
	shared_counts()[4] = (uint64_t)-kymo_capture_write(in_root("none"), NULL, NULL);
}

/* The one stream that is in the file. */
static void assert_file(const char *name, uint64_t kept, uint64_t overwritten)
{
	struct recording *recording = NULL;

	assert_int_equal(store_open(in_root(name), &recording, NULL), 0);
	assert_int_equal(recording->stream_count, 1);
	assert_string_equal(recording->streams[0].table, "trace.zones");
	assert_int_equal(recording->streams[0].kept, kept);
	assert_int_equal(recording->streams[0].overwritten, overwritten);
	assert_int_equal(recording->streams[0].emitted, kept + overwritten);
	store_close(recording);
}

static void rows_are_chosen_by_table_time_and_name(void **state)
{
	(void)state;
	store_close(recorded(two_names, ""));
	for (int i = 0; i < 4; i++)
		assert_int_equal(shared_counts()[i], 0);
	assert_int_equal(shared_counts()[4], EINVAL);
	assert_file("named", 7, 0);
	assert_file("before", 5, 0);
	assert_file("after", 7, 0);
	assert_file("last", 3, 0);
}

static void round_and_round(void)
{
	uint64_t late;

	zones("round", 30000);
	late = kymo_ticks();
	zones("round", 100);
	write_part("all", 0, 0, NULL, NULL);
	write_part("late", late, 0, NULL, NULL);
}

static void what_a_ring_overwrote_is_counted_where_it_is_missed(void **state)
{
	struct recording *recording = recorded(round_and_round, "");

	(void)state;
	assert_file("all", recording->streams[0].kept, recording->streams[0].overwritten);
	assert_true(recording->streams[0].overwritten >= 30100 - ROWS_OF_RING);
	assert_file("late", 100, 0);
	store_close(recording);
}

static void longer_rings(void)
{
	shared_counts()[0] = (uint64_t)-kymo_keep_rows("trace.zones", 40000);
	shared_counts()[1] = (uint64_t)-kymo_keep_rows("no.table", 40000);
	shared_counts()[2] = (uint64_t)-kymo_keep_rows(NULL, 40000);
	zones("kept", 30000);
}

static void a_table_may_have_longer_rings(void **state)
{
	struct recording *recording = recorded(longer_rings, "");

	(void)state;
	assert_int_equal(shared_counts()[0], 0);
	assert_int_equal(shared_counts()[1], EINVAL);
	assert_int_equal(shared_counts()[2], EINVAL);
	assert_int_equal(recording->streams[0].kept, 30000);
	store_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_chosen_by_table_time_and_name),
		cmocka_unit_test(what_a_ring_overwrote_is_counted_where_it_is_missed),
		cmocka_unit_test(a_table_may_have_longer_rings),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
