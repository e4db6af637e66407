/*
 * Death at every instruction (FAULTS 2). A program is stepped one instruction at a time through the
 * end of its zones and of a batch; after each one the recording is read as if the program had died
 * there, since what it leaves is exactly what is in its files then. So the moments between filling
 * and publishing a row are all among them, and counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include "recorded.h"

#define BEFORE 254u /* rows before the steps begin: the third zone is the first of the next batch */
#define ZONES 3u

static void some_zones_then_stop(void)
{
	uint32_t id = kymo_name("stepped");

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	for (unsigned i = 0; i < BEFORE + ZONES; i++) {
		struct kymo_zone zone = kymo_zone_begin_id(id);

		if (i == BEFORE)
			raise(SIGSTOP);
		kymo_zone_end(&zone);
	}
	raise(SIGSTOP);
}

/* The slot of the next row, looked at in the file; and the head that the program has published. */
struct look {
	const uint64_t *head;
	const struct kymo_zone_row *rows;
};

static const char *map_file(const char *name, size_t bytes)
{
	char path[2 * KYMO_PATH_BYTES], command[2 * KYMO_PATH_BYTES];
	FILE *find;
	void *map;
	int fd;

	snprintf(command, sizeof(command), "find '%s' -name '%s'", recorded_run, name);
	find = popen(command, "r");
	assert_non_null(fgets(path, sizeof(path), find));
	pclose(find);
	path[strcspn(path, "\n")] = '\0';
	fd = open(path, O_RDONLY);
	map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	return map;
}

static void begin_look(struct look *look)
{
	look->head = (const void *)(map_file("s0.head", KYMO_HEAD_FILE_BYTES) + KYMO_LIVE_OFFSET +
				    offsetof(struct kymo_stream_live, head));
	look->rows = (const void *)(map_file("s0.0", 32768) + sizeof(struct kymo_segment_head));
}

/* Some of the row is there, and no reader may see it. */
static bool is_between(const struct look *look)
{
	const struct kymo_zone_row *row = &look->rows[*(const volatile uint64_t *)look->head];

	return row->start_ticks || row->duration_ticks || row->name;
}

static uint64_t rows_if_it_died_now(uint64_t last)
{
	static struct kymo_zone_row rows[BEFORE + ZONES];
	struct recording *recording = recorded_open();
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	const struct store_total *total = total_of(recording, zones, "stepped");
	uint64_t emitted = zones->emitted;

	assert_true(emitted == last || emitted == last + 1);
	assert_int_equal(zones->kept, emitted);
	assert_int_equal(total->count, emitted);
	assert_int_equal(read_zones(zones, rows, BEFORE + ZONES), emitted);
	for (uint64_t i = 0; i < emitted; i++) {
		assert_string_equal(name_of(recording, zones, rows[i].name), "stepped");
		assert_int_equal(rows[i].thread, 1);
		assert_true(rows[i].start_ticks > 0);
		if (i)
			assert_true(rows[i].start_ticks >=
				    rows[i - 1].start_ticks + rows[i - 1].duration_ticks);
	}
	if (recording->problem_count)
		fail_msg("%s", recording->problems[0]);
	store_close(recording);
	return emitted;
}

static bool step(pid_t pid)
{
	int status = 0;

	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid)
		return false;
	return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

/* ThreadSanitizer makes hundreds of instructions of one. */
static void skip_under_tsan(void)
{
#ifdef __SANITIZE_THREAD__
	print_message("too many instructions under ThreadSanitizer\n");
	skip();
#endif
}

static void dies_at_every_instruction(const char *environment)
{
	pid_t pid = recorded_start(some_zones_then_stop, environment);
	uint64_t steps = 0, opened = 0, between = 0, rows = BEFORE;
	struct look look;
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status)) {
		print_message("ptrace is denied here\n");
		recorded_remove();
		skip();
	}
	begin_look(&look);
	for (; step(pid); steps++) {
		bool now_between = is_between(&look);

		/* A fold is thousands of instructions alike: a part of them will do. */
		if (!now_between && *look.head == rows && steps % 37)
			continue;
		rows = rows_if_it_died_now(rows);
		between += now_between;
		opened++;
	}
	assert_int_equal(rows, BEFORE + ZONES);
	assert_true(between >= ZONES);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(rows_if_it_died_now(rows), BEFORE + ZONES);
	print_message("%llu instructions, %llu looked at, %llu between filling and publishing\n",
		      (unsigned long long)steps, (unsigned long long)opened,
		      (unsigned long long)between);
	recorded_remove();
}

static void a_row_of_a_ring_is_seen_only_once_it_is_published(void **state)
{
	(void)state;
	skip_under_tsan();
	dies_at_every_instruction(NULL);
}

static void a_row_of_a_chain_is_seen_only_once_it_is_published(void **state)
{
	(void)state;
	skip_under_tsan();
	dies_at_every_instruction("KYMO_KEEP=all");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_of_a_ring_is_seen_only_once_it_is_published),
		cmocka_unit_test(a_row_of_a_chain_is_seen_only_once_it_is_published),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
