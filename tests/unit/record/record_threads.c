/* The public API from many threads, at their end, from signal handlers, and on both sides of a
   fork. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorded.h"

/* ---- threads ---- */

static void *one_zone(void *unused)
{
	(void)unused;
	KYMO_SCOPE("short");
	return NULL;
}

static void five_thousand_threads(void)
{
	for (int i = 0; i < 5000; i++) {
		pthread_t thread;

		if (!pthread_create(&thread, NULL, one_zone, NULL))
			pthread_join(thread, NULL);
	}
}

static void short_lived_threads_share_a_stream(void **state)
{
	(void)state;
	struct recording *recording = recorded(five_thousand_threads, NULL);
	size_t streams = 0;
	uint64_t rows = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, "trace.zones")) {
			streams++;
			rows += recording->streams[i].kept;
		}
	assert_int_equal(rows, 5000);
	assert_int_equal(streams, 1);
	assert_true(recording->thread_count > 5000);
	recorded_close(recording);
}

static void *many_zones(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100000; i++) {
		KYMO_SCOPE("shared");
	}
	return NULL;
}

static void eight_threads(void)
{
	pthread_t thread[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, many_zones, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
}

static void many_threads_on_one_region_are_counted_exactly(void **state)
{
	(void)state;
	struct recording *recording = recorded(eight_threads, NULL);
	uint64_t count = 0, emitted = 0;

	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_total *total = total_of(recording, &recording->streams[i],
							   "shared");

		count += total ? total->count : 0;
		emitted += recording->streams[i].emitted;
	}
	assert_int_equal(count, 800000);
	assert_int_equal(emitted, 800000);
	recorded_close(recording);
}

static pthread_key_t late_key;

static void records_late(void *value)
{
	/* Our own destructor may run before or after this one: rounds of destructors repeat. */
	if ((intptr_t)value < 3)
		pthread_setspecific(late_key, (void *)((intptr_t)value + 1));
	KYMO_SCOPE("late");
}

static void *sets_key(void *unused)
{
	(void)unused;
	KYMO_SCOPE("early");
	pthread_setspecific(late_key, (void *)1);
	return NULL;
}

static void records_after_its_end(void)
{
	pthread_t thread;

	pthread_key_create(&late_key, records_late);
	pthread_create(&thread, NULL, sets_key, NULL);
	pthread_join(thread, NULL);
}

static void rows_after_a_threads_end_are_dropped_and_counted(void **state)
{
	(void)state;
	struct recording *recording = recorded(records_after_its_end, NULL);
	uint64_t emitted = 0, kept = 0, closed = 0;

	for (size_t i = 0; i < recording->stream_count; i++) {
		emitted += recording->streams[i].emitted;
		kept += recording->streams[i].kept;
		closed += recording->streams[i].dropped[KYMO_DROP_CLOSED];
	}
	assert_int_equal(emitted, 4);
	assert_int_equal(kept + closed, 4);
	assert_true(closed >= 1);
	recorded_close(recording);
}

/* ---- signal handlers ---- */

static uint64_t handled, looped; /* counted by the program itself */

static void in_handler(int signal)
{
	(void)signal;
	handled++;
	KYMO_SCOPE("handler");
}

static void handler_storm(void)
{
	struct sigaction action = { .sa_handler = in_handler };
	uint64_t *counts = shared_counts();
	pid_t parent = getpid(), child;

	sigaction(SIGUSR1, &action, NULL);
	child = fork();
	if (!child) {
		for (int i = 0; i < 20000; i++)
			kill(parent, SIGUSR1);
		_exit(0);
	}
	while (waitpid(child, NULL, WNOHANG) != child) {
		KYMO_SCOPE("loop");
		looped++;
	}
	counts[0] = handled + looped;
}

static void rows_of_a_handler_that_interrupts_recording_are_counted(void **state)
{
	(void)state;
	struct recording *recording = recorded(handler_storm, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	uint64_t lost = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		if (recording->streams[i].without_file)
			lost += recording->streams[i].dropped_total;
	assert_int_equal(zones->emitted + lost, shared_counts()[0]);
	assert_int_equal(zones->emitted, zones->kept + zones->overwritten + zones->dropped_total);
	recorded_close(recording);
}

/* ---- fork ---- */

static void fork_while_threads_record(void)
{
	pthread_t thread[4];
	pid_t pid[20];

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, many_zones, NULL);
	for (int i = 0; i < 20; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			for (int j = 0; j < 1000; j++) {
				KYMO_SCOPE("child");
			}
			_exit(0);
		}
	}
	for (int i = 0; i < 20; i++)
		waitpid(pid[i], NULL, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

static void parent_and_children_of_fork_record_apart(void **state)
{
	(void)state;
	struct recording *recording = recorded(fork_while_threads_record, NULL);
	uint64_t child = 0, parent = 0;

	assert_int_equal(recording->process_count, 21);
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_total *of_child = total_of(recording, &recording->streams[i],
							      "child");
		const struct store_total *of_parent = total_of(recording, &recording->streams[i],
							       "shared");

		child += of_child ? of_child->count : 0;
		parent += of_parent ? of_parent->count : 0;
	}
	assert_int_equal(child, 20000);
	assert_int_equal(parent, 400000);
	recorded_close(recording);
}

static void fork_only(void)
{
	pid_t pid;

	{
		KYMO_SCOPE("parent");
	}
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static void a_child_that_records_nothing_leaves_no_file(void **state)
{
	(void)state;
	struct recording *recording = recorded(fork_only, NULL);

	assert_int_equal(recording->process_count, 1);
	recorded_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_lived_threads_share_a_stream),
		cmocka_unit_test(many_threads_on_one_region_are_counted_exactly),
		cmocka_unit_test(rows_after_a_threads_end_are_dropped_and_counted),
		cmocka_unit_test(rows_of_a_handler_that_interrupts_recording_are_counted),
		cmocka_unit_test(parent_and_children_of_fork_record_apart),
		cmocka_unit_test(a_child_that_records_nothing_leaves_no_file),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
