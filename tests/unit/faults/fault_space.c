/* No room, few descriptors, little memory, wrong directories, for a program that records by itself
   (FAULTS 13, 15). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "recorded.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static void limit(int what, uint64_t soft)
{
	struct rlimit both;

	getrlimit((__rlimit_resource_t)what, &both);
	both.rlim_cur = soft;
	if (setrlimit((__rlimit_resource_t)what, &both))
		abort();
}

/* ---- 13: room goes and comes back ---- */

static void *zones_of_a_thread(void *unused)
{
	for (int i = 0; i < 100; i++) {
		KYMO_SCOPE("of a thread");
	}
	shared_counts()[1] += 100;
	return unused;
}

static void in_a_thread(void *(*function)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, function, NULL))
		abort();
	pthread_join(thread, NULL);
}

static void *counters_of_a_thread(void *unused)
{
	/* More attempts than there can be streams, were each one to use up a number. */
	for (int i = 0; i < 20000; i++)
		kymo_counter("counter", i);
	shared_counts()[2] += 20000;
	return unused;
}

static void room_goes_and_comes_back(void)
{
	for (int i = 0; i < 1500; i++) {
		KYMO_SCOPE("before");
	}
	limit(RLIMIT_FSIZE, 1);
	for (int i = 0; i < 20000; i++) {
		KYMO_SCOPE("without room");
	}
	in_a_thread(zones_of_a_thread);
	in_a_thread(counters_of_a_thread);
	for (int i = 0; i < 20000; i++)
		if (kymo__stream_take(&kymo__tables[SCHEMA_MARKS], 1))
			abort();
	limit(RLIMIT_FSIZE, RLIM_INFINITY);
	usleep(30000); /* attempts are 10 ms apart */
	for (int i = 0; i < 5000; i++) {
		KYMO_SCOPE("after");
	}
	kymo_counter("counter", 1);
	kymo_mark("after", NULL);
	in_a_thread(zones_of_a_thread);
	shared_counts()[0] = 1500 + 20000 + 5000;
}

static void after_a_time_without_room_recording_goes_on(void **state)
{
	(void)state;
	struct recording *recording = recorded(room_goes_and_comes_back, NULL);
	uint64_t emitted = 0, dropped = 0, after = 0, counters = 0, marks = 0;

	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		const struct store_total *total = total_of(recording, stream, "after");

		assert_int_equal(stream->emitted,
				 stream->kept + stream->overwritten + stream->dropped_total);
		if (!strcmp(stream->table, "trace.zones")) {
			emitted += stream->emitted;
			dropped += stream->dropped_total;
			after += total ? total->count : 0;
		}
		counters += strcmp(stream->table, "trace.counters") ? 0 : stream->emitted;
		marks += strcmp(stream->table, "trace.marks") ? 0 : stream->kept;
	}
	assert_int_equal(emitted, shared_counts()[0] + shared_counts()[1]);
	assert_true(dropped >= 10000 && dropped <= 20100);
	assert_int_equal(after, 5000);
	assert_int_equal(counters, shared_counts()[2] + 1);
	assert_int_equal(marks, 1);
	/* Attempts that failed are no threads. */
	assert_true(recording->thread_count <= 5);
	recorded_close(recording);
}

/* ---- 15: limits that were there before ---- */

/* A program under a limit: 7, or what it died of. It is told whether it records, and goes on as if
   it did. */
static int under(int what, uint64_t value, uint64_t *out_recorded)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct kymo_error err = { 0 };
		int rc;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGXFSZ, SIG_DFL);
		signal(SIGSEGV, SIG_DFL); /* not cmocka's */
		limit(what, value);
		rc = kymo_enable(&err);
		for (int i = 0; i < 30000; i++) {
			KYMO_SCOPE("limited");
			kymo_counter("counter", i);
		}
		zones_of_a_thread(NULL);
		*out_recorded = !rc;
		_exit(!rc || (rc < 0 && err.code && err.text[0]) ? 7 : 8);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void a_limit_on_the_size_of_files_sends_no_signal(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 4096, 24576, 40000, 70000, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_int_equal(under(RLIMIT_FSIZE, sizes[i], &shared_counts()[0]), 7);
	assert_int_equal(shared_counts()[0], 1); /* 1 MB is enough */
}

static void without_descriptors_the_program_goes_on(void **state)
{
	(void)state;
	for (uint64_t files = 0; files < 12; files++)
		assert_int_equal(under(RLIMIT_NOFILE, files, &shared_counts()[0]), 7);
	assert_int_equal(shared_counts()[0], 1);
}

static uint64_t address_space(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%lu", &pages) != 1)
		abort();
	fclose(file);
	return (uint64_t)pages * 4096;
}

static void without_address_space_the_program_goes_on(void **state)
{
	(void)state;
	if (SANITIZED) {
		print_message("a sanitizer needs all the address space there is\n");
		skip();
	}
	for (uint64_t more = 64 << 10; more <= 1ull << 32; more *= 4)
		assert_int_equal(under(RLIMIT_AS, address_space() + more, &shared_counts()[0]), 7);
	assert_int_equal(shared_counts()[0], 1);
}

/* ---- 15: limits and losses in mid-run ---- */

static void *leaves_64_rows(void *unused)
{
	for (int i = 0; i < 64; i++) {
		KYMO_SCOPE("late");
	}
	return unused;
}

static void descriptors_run_out(void)
{
	for (int i = 0; i < 100; i++) {
		KYMO_SCOPE("early");
	}
	limit(RLIMIT_NOFILE, 0);
	in_a_thread(leaves_64_rows); /* needs a stream, which needs a descriptor for a moment */
	for (int i = 0; i < 50000; i++) {
		KYMO_SCOPE("early");
	}
}

static void descriptors_that_run_out_lose_rows_that_are_counted(void **state)
{
	(void)state;
	struct recording *recording = recorded(descriptors_run_out, NULL);
	uint64_t emitted = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		emitted += recording->streams[i].emitted;
	assert_int_equal(emitted, 50100 + 64);
	assert_true(stream_of(recording, "trace.zones")->kept >= 100);
	recorded_close(recording);
}

static void directory_is_deleted(void)
{
	char command[KYMO_PATH_BYTES + 16], snapshot[128];

	for (int i = 0; i < 100; i++) {
		KYMO_SCOPE("early");
	}
	snprintf(command, sizeof(command), "rm -rf '%s'", kymo__process.run_dir);
	if (system(command))
		abort();
	for (int i = 0; i < 100000; i++) {
		KYMO_SCOPE("late");
	}
	in_a_thread(leaves_64_rows);
	kymo_counter("counter", 1);
	snprintf(snapshot, sizeof(snapshot), "%s/of-nothing", recorded_root);
	shared_counts()[0] = kymo_snapshot(snapshot, NULL) && access(snapshot, F_OK);
	shared_counts()[1] = 1;
}

static void a_directory_that_is_deleted_does_not_stop_the_program(void **state)
{
	const char *both[] = { NULL, "KYMO_KEEP=all" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		int status = -1;

		waitpid(recorded_start(directory_is_deleted, both[i]), &status, 0);
		assert_int_equal(status, 0);
		assert_int_equal(shared_counts()[1], 1);
		assert_int_equal(shared_counts()[0], 1); /* no snapshot of nothing */
	}
}

/* ---- 15: directories that are not ours ---- */

static char said[1024];

/* What kymo_enable() says with that KYMO_DIR; "" if it records. */
static const char *refusal(const char *directory)
{
	int to_us[2];
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(to_us), 0);
	pid = fork();
	if (!pid) {
		struct kymo_error err = { 0 };
		ssize_t done;

		setenv("KYMO_DIR", directory, 1);
		kymo_enable(&err);
		{
			KYMO_SCOPE("not recorded");
		}
		done = write(to_us[1], err.text, sizeof(err.text));
		_exit(done < 0);
	}
	close(to_us[1]);
	got = read(to_us[0], said, sizeof(said));
	close(to_us[0]);
	waitpid(pid, NULL, 0);
	return got == sizeof(said) ? said : "(died)";
}

static void directories_that_are_not_ours_alone_are_refused(void **state)
{
	char path[128], target[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/open", recorded_root);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_non_null(
		strstr(refusal(path), "is accessible to other users (mode 777); run `chmod 700 "));
	assert_int_equal(chmod(path, 0710), 0);
	assert_non_null(strstr(refusal(path), "is accessible to other users (mode 710)"));
	assert_int_equal(chmod(path, 0700), 0);
	assert_string_equal(refusal(path), "");
	snprintf(target, sizeof(target), "%s/link", recorded_root);
	assert_int_equal(symlink(path, target), 0);
	assert_non_null(strstr(refusal(target), "a symbolic link is not followed"));
	snprintf(target, sizeof(target), "%s/file", recorded_root);
	close(open(target, O_CREAT | O_WRONLY, 0600));
	assert_non_null(strstr(refusal(target), "is not a directory"));
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_non_null(strstr(refusal(path), "belongs to user 65534, not to you (0)"));
	} else {
		assert_non_null(strstr(refusal("/"), "belongs to user 0, not to you"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_time_without_room_recording_goes_on),
		cmocka_unit_test(a_limit_on_the_size_of_files_sends_no_signal),
		cmocka_unit_test(without_descriptors_the_program_goes_on),
		cmocka_unit_test(without_address_space_the_program_goes_on),
		cmocka_unit_test(descriptors_that_run_out_lose_rows_that_are_counted),
		cmocka_unit_test(a_directory_that_is_deleted_does_not_stop_the_program),
		cmocka_unit_test(directories_that_are_not_ours_alone_are_refused),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
