/* Readers that are stopped or killed, and a ring that goes round and round (FAULTS 17, 18, 19). */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <kymo/atomic.h>

#include "recorded.h"

#define ROUNDS 100
#define ROWS_IN_A_ROUND 2048u /* KYMO_RING_ROWS=1024, and a segment more */
#define NAMES 300u

/* ---- 17, 19 ---- */

static void write_for_ever(void)
{
	for (;;) {
		KYMO_SCOPE("row");
		kymo__fetch_add_relaxed(&shared_counts()[0], 1);
	}
}

static void read_for_ever(const char *run)
{
	for (;;) {
		struct recording *recording = NULL;

		if (store_open(run, &recording, NULL))
			_exit(1);
		for (size_t i = 0; i < recording->stream_count; i++) {
			static struct kymo_zone_row rows[20000];

			read_zones(&recording->streams[i], rows, 20000);
		}
		store_close(recording);
		kymo__fetch_add_relaxed(&shared_counts()[1], 1);
	}
}

static pid_t start_reader(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		read_for_ever(recorded_run);
	}
	return pid;
}

/* Waits until a count has grown; a minute without is for ever. */
static void wait_for(const uint64_t *count, uint64_t more)
{
	uint64_t until = kymo__load_relaxed(count) + more;
	struct timespec pause = { 0, 200000 };

	for (int i = 0; i < 300000 && kymo__load_relaxed(count) < until; i++)
		nanosleep(&pause, NULL);
	assert_true(kymo__load_relaxed(count) >= until);
}

static void some_moment(void)
{
	struct timespec pause = { 0, random() % 2000000 };

	nanosleep(&pause, NULL);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Rows that take the writer several times round its ring. */
#define LAPS 50000u

static void a_reader_that_is_stopped_anywhere_does_not_stop_the_writer(void **state)
{
	(void)state;
	pid_t writer = recorded_start(write_for_ever, NULL), reader = start_reader();

	wait_for(&shared_counts()[1], 1);
	for (int i = 0; i < 60; i++) {
		int status = 0;

		some_moment();
		kill(reader, SIGSTOP);
		assert_int_equal(waitpid(reader, &status, WUNTRACED), reader);
		assert_true(WIFSTOPPED(status));
		wait_for(&shared_counts()[0], LAPS);
		kill(reader, SIGCONT);
	}
	/* And it goes on reading, of a ring that has gone by under it. */
	wait_for(&shared_counts()[1], 2);
	end(reader);
	end(writer);
	recorded_remove();
}

static void readers_that_are_killed_anywhere_do_not_stop_the_writer(void **state)
{
	(void)state;
	pid_t writer = recorded_start(write_for_ever, "KYMO_KEEP=all KYMO_BUDGET=16M");

	for (int i = 0; i < 100; i++) {
		pid_t reader = start_reader();

		some_moment();
		end(reader);
		wait_for(&shared_counts()[0], 1000);
	}
	end(writer);
	recorded_close(recorded_open());
}

/* ---- 18 ---- */

static void go_round(void)
{
	uint32_t ids[NAMES];

	for (unsigned i = 0; i < NAMES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name %u", i);
		ids[i] = kymo_name(name);
	}
	for (unsigned i = 0; i < ROUNDS * ROWS_IN_A_ROUND + 77; i++) {
		struct kymo_zone zone = kymo_zone_begin_id(ids[i % NAMES]);

		kymo_zone_end(&zone);
		kymo_counter_id(ids[i % NAMES], i);
	}
}

static void check_names(const struct recording *recording, const struct store_stream *zones)
{
	static struct kymo_zone_row rows[ROWS_IN_A_ROUND];
	uint64_t kept = read_zones(zones, rows, ROWS_IN_A_ROUND);

	assert_int_equal(kept, zones->kept);
	for (uint64_t i = 0; i < kept; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name %u",
			 (unsigned)((zones->overwritten + i) % NAMES));
		assert_string_equal(name_of(recording, zones, rows[i].name), name);
	}
}

static void a_ring_that_went_round_100_times_adds_up_and_every_name_resolves(void **state)
{
	(void)state;
	struct recording *recording = recorded(go_round, "KYMO_RING_ROWS=1024");
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	uint64_t all = ROUNDS * ROWS_IN_A_ROUND + 77, total = 0;

	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		assert_int_equal(stream->emitted, all);
		assert_int_equal(stream->emitted,
				 stream->kept + stream->overwritten + stream->dropped_total);
		assert_true(stream->kept >= 1024 && stream->kept <= ROWS_IN_A_ROUND);
		assert_int_equal(stream->dropped_total, 0);
	}
	assert_int_equal(recording->stream_count, 2);
	for (size_t i = 0; i < zones->total_count; i++)
		total += zones->totals[i].count;
	assert_int_equal(total, all);
	check_names(recording, zones);
	recorded_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_that_is_stopped_anywhere_does_not_stop_the_writer),
		cmocka_unit_test(readers_that_are_killed_anywhere_do_not_stop_the_writer),
		cmocka_unit_test(a_ring_that_went_round_100_times_adds_up_and_every_name_resolves),
	};

	srandom((unsigned)time(NULL));
	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
