/* Moving files between the halves of a run, with a made-up process on the other side. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/format.h"
#include "base/files/paths.h"
#include "collect/move/archive.h"
#include "collect/move/copy.h"
#include "collect/move/guard.h"
#include "collect/say.h"

#define SEGMENT_BYTES 5000

/* Two directories. */
struct place {
	char path[64];
	int live, disk;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	char name[96];

	strcpy(place->path, "/tmp/kymo-move-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	snprintf(name, sizeof(name), "%s/live", place->path);
	mkdir(name, 0700);
	place->live = open(name, O_RDONLY | O_DIRECTORY);
	snprintf(name, sizeof(name), "%s/disk", place->path);
	mkdir(name, 0700);
	place->disk = open(name, O_RDONLY | O_DIRECTORY);
	say_quiet(true);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", place->path);
	close(place->live);
	close(place->disk);
	free(place);
	return system(command);
}

static void make_file(int directory, const char *name, const void *data, size_t bytes)
{
	int fd = openat(directory, name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, bytes), (ssize_t)bytes);
	close(fd);
}

static bool is_there(int directory, const char *name)
{
	return !faccessat(directory, name, F_OK, 0);
}

/* ---- copying --------------------------------------------------------------------------------- */

static void a_copy_has_the_same_bytes_and_leaves_nothing_aside(void **state)
{
	static const enum copy_how ways[] = { COPY_WHOLE, COPY_THIN };
	struct place *place = *state;
	char data[20000], back[20000];
	uint64_t bytes;

	memset(data, 0, sizeof(data));
	memset(data + 9000, 'x', 100); /* a page of zeros on either side */
	for (int i = 0; i < 2; i++) {
		int fd;

		make_file(place->live, "s1.0", data, sizeof(data));
		assert_int_equal(copy_file(place->live, place->disk, "s1.0", ways[i], &bytes), 0);
		fd = openat(place->disk, "s1.0", O_RDONLY);
		assert_int_equal(read(fd, back, sizeof(back)), sizeof(back));
		close(fd);
		assert_memory_equal(data, back, sizeof(data));
		assert_false(is_there(place->disk, ".s1.0.part"));
		unlinkat(place->live, "s1.0", 0);
	}
}

static void a_file_that_claims_to_be_huge_takes_no_room(void **state)
{
	struct place *place = *state;
	struct stat st;
	uint64_t bytes;
	int fd;

	make_file(place->live, "text", "abc", 3);
	fd = openat(place->live, "text", O_RDWR);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	close(fd);
	assert_int_equal(copy_file(place->live, place->disk, "text", COPY_THIN, &bytes), 0);
	assert_int_equal(fstatat(place->disk, "text", &st, 0), 0);
	assert_true(st.st_size == 1ll << 40 && st.st_blocks < 100);
}

static void what_is_no_file_is_not_copied(void **state)
{
	struct place *place = *state;
	uint64_t bytes;

	assert_int_equal(symlinkat("/etc/passwd", place->live, "s1.0"), 0);
	assert_true(copy_file(place->live, place->disk, "s1.0", COPY_THIN, &bytes) < 0);
	assert_true(copy_file(place->live, place->disk, "s1.0", COPY_WHOLE, &bytes) < 0);
	assert_int_equal(mkfifoat(place->live, "s2.0", 0600), 0);
	assert_true(copy_file(place->live, place->disk, "s2.0", COPY_THIN, &bytes) < 0);
	assert_int_equal(copy_file(place->live, place->disk, "s3.0", COPY_WHOLE, &bytes), -ENOENT);
	assert_false(is_there(place->disk, "s1.0") || is_there(place->disk, "s2.0") ||
		     is_there(place->disk, ".s2.0.part"));
}

/* ---- the swap -------------------------------------------------------------------------------- */

static void a_swap_happens_only_on_what_is_expected(void **state)
{
	struct place *place = *state;
	uint64_t words[4] = { 1, 2, 3, 4 };
	int fd;

	guard_install();
	make_file(place->live, "head", words, sizeof(words));
	fd = openat(place->live, "head", O_RDWR);
	assert_int_equal(guard_swap(fd, 8, 2, 5), 1);
	assert_int_equal(guard_swap(fd, 8, 2, 6), 0);
	assert_int_equal(guard_add(fd, 16, 10), 0);
	assert_true(guard_swap(fd, 32, 0, 1) < 0); /* behind the end */
	assert_true(guard_swap(fd, UINT64_MAX - 7, 0, 1) < 0);
	assert_true(guard_swap(fd, 12, 0, 1) < 0);
	assert_int_equal(pread(fd, words, sizeof(words), 0), sizeof(words));
	assert_true(words[1] == 5 && words[2] == 13);
	close(fd);
}

static void cut_again_and_again(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail */
	alarm(20); /* also when the test itself has died */
	for (;;)
		if (ftruncate(fd, 0) || ftruncate(fd, 12288))
			_exit(1);
}

static void a_file_that_is_cut_under_the_swap_is_survived(void **state)
{
	struct place *place = *state;
	int fd = openat(place->live, "head", O_RDWR | O_CREAT, 0600);
	time_t end = time(NULL) + 2;
	int refused = 0;
	pid_t child;

#ifdef __SANITIZE_THREAD__
	print_message("TSan does not follow a jump out of a handler of SIGBUS\n");
	close(fd);
	skip();
#endif
	guard_install(); /* here: cmocka has a handler of its own around each test */
	assert_int_equal(ftruncate(fd, 12288), 0);
	child = fork();
	if (child == 0)
		cut_again_and_again(fd);
	while (time(NULL) < end)
		for (int i = 0; i < 100; i++)
			refused += guard_add(fd, 4096 + 128, 1) < 0;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(refused > 0);
	assert_int_equal(ftruncate(fd, 12288), 0);
	assert_int_equal(guard_add(fd, 4096 + 128, 1), 0);
	close(fd);
}

/* ---- a process and its chain ----------------------------------------------------------------- */

struct made {
	char name[64];
	int directory;
	struct kymo_stream_live live;
};

static void write_live(struct made *made)
{
	int fd = openat(made->directory, "s1.head", O_RDWR);

	assert_int_equal(pwrite(fd, &made->live, sizeof(made->live), KYMO_LIVE_OFFSET),
			 sizeof(made->live));
	close(fd);
}

static uint64_t read_word(int directory, const char *name, size_t offset)
{
	int fd = openat(directory, name, O_RDONLY);
	uint64_t word = 0;

	assert_int_equal(pread(fd, &word, sizeof(word), (off_t)offset), sizeof(word));
	close(fd);
	return word;
}

/* A process with one chain of so many segments, the last one open. */
static void make_process(struct place *place, struct made *made, pid_t pid, uint64_t starttime,
			 uint64_t segments)
{
	static char zeros[KYMO_CONTROL_BYTES], segment[SEGMENT_BYTES];
	uint64_t held = segments * SEGMENT_BYTES;
	char name[32];
	int fd;

	memset(made, 0, sizeof(*made));
	snprintf(made->name, sizeof(made->name), "p%d-%llu", (int)pid,
		 (unsigned long long)starttime);
	assert_int_equal(mkdirat(place->live, made->name, 0700), 0);
	made->directory = openat(place->live, made->name, O_RDONLY | O_DIRECTORY);
	make_file(made->directory, "control", zeros, sizeof(zeros));
	fd = openat(made->directory, "control", O_RDWR);
	assert_int_equal(pwrite(fd, &held, sizeof(held), offsetof(struct kymo_control, held_bytes)),
			 sizeof(held));
	close(fd);
	make_file(made->directory, "s1.head", zeros, KYMO_HEAD_FILE_BYTES);
	for (uint64_t i = 0; i < segments; i++) {
		snprintf(name, sizeof(name), "s1.%llu", (unsigned long long)i);
		memset(segment, 'a' + (int)i, sizeof(segment));
		make_file(made->directory, name, segment, sizeof(segment));
	}
	made->live.segment_next = segments;
	write_live(made);
}

static const struct budget roomy = { 1ull << 30, 1ull << 30 };

static void sealed_segments_move_and_the_open_one_stays(void **state)
{
	struct place *place = *state;
	struct archive archive;
	struct made made;
	char path[96];

	make_process(place, &made, getpid() + 1, 77, 4);
	archive_init(&archive, place->live, place->disk, &roomy);
	archive_pass(&archive);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/s1.%d", made.name, i);
		assert_true(is_there(place->disk, path));
		assert_false(is_there(place->live, path));
	}
	snprintf(path, sizeof(path), "%s/s1.3", made.name);
	assert_true(is_there(place->live, path));
	assert_false(is_there(place->disk, path));
	assert_int_equal(
		read_word(made.directory, "s1.head",
			  KYMO_LIVE_OFFSET + offsetof(struct kymo_stream_live, segment_first)),
		3);
	assert_int_equal(
		read_word(made.directory, "control", offsetof(struct kymo_control, moved_bytes)),
		3 * SEGMENT_BYTES);
	archive_fini(&archive);
	close(made.directory);
}

static void what_the_process_gave_up_first_is_not_kept(void **state)
{
	struct place *place = *state;
	struct archive archive;
	struct made made;
	char path[96];

	/* The head says that 0 and 1 are gone; their files are still being removed. */
	make_process(place, &made, getpid() + 1, 77, 4);
	made.live.segment_first = 2;
	write_live(&made);
	archive_init(&archive, place->live, place->disk, &roomy);
	archive_pass(&archive);
	snprintf(path, sizeof(path), "%s/s1.1", made.name);
	assert_false(is_there(place->disk, path));
	snprintf(path, sizeof(path), "%s/s1.2", made.name);
	assert_true(is_there(place->disk, path));
	archive_fini(&archive);
	close(made.directory);
}

static void a_chain_that_claims_the_impossible_ends(void **state)
{
	struct place *place = *state;
	struct archive archive;
	struct made made;

	make_process(place, &made, getpid() + 1, 77, 2);
	made.live.segment_next = UINT64_MAX;
	write_live(&made);
	archive_init(&archive, place->live, place->disk, &roomy);
	archive_pass(&archive); /* returns */
	made.live.segment_first = UINT64_MAX;
	made.live.segment_next = 0;
	write_live(&made);
	archive_pass(&archive);
	archive_fini(&archive);
	close(made.directory);
}

static void beyond_the_disks_budget_the_oldest_go(void **state)
{
	static const struct budget small = { 1ull << 30, 2 * 8192 + 4096 };
	struct place *place = *state;
	struct archive archive;
	struct made made;
	char path[96];

	make_process(place, &made, getpid() + 1, 77, 8);
	archive_init(&archive, place->live, place->disk, &small);
	archive_pass(&archive);
	snprintf(path, sizeof(path), "%s/s1.6", made.name);
	assert_true(is_there(place->disk, path));
	snprintf(path, sizeof(path), "%s/s1.0", made.name);
	assert_false(is_there(place->disk, path) || is_there(place->live, path));
	assert_true(archive.disk_bytes <= small.disk_bytes && archive.removed_segments > 0);
	archive_fini(&archive);
	close(made.directory);
}

static void a_dead_process_moves_as_a_whole_and_a_living_one_stays(void **state)
{
	struct place *place = *state;
	struct archive archive;
	struct made dead, living;
	pid_t child = fork();
	char path[96];

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	make_process(place, &dead, child, 1, 3); /* another life of that pid */
	make_process(place, &living, child, paths_starttime(child), 3);
	archive_init(&archive, place->live, place->disk, &roomy);
	archive_mark_target(&archive, child, 1, 9);
	archive_retire_dead(&archive);
	assert_int_equal(archive_left(&archive), 1);
	assert_false(is_there(place->live, dead.name));
	assert_true(is_there(place->live, living.name));
	snprintf(path, sizeof(path), "%s/s1.2", dead.name);
	assert_true(is_there(place->disk, path));
	snprintf(path, sizeof(path), "%s/control", dead.name);
	assert_int_equal(
		(uint32_t)read_word(place->disk, path, offsetof(struct kymo_control, ended)), 2);
	assert_int_equal((uint32_t)read_word(place->disk, path,
					     offsetof(struct kymo_control, wstatus_known)),
			 1);
	archive_fini(&archive);
	close(dead.directory);
	close(living.directory);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* ---- spare segments ------------------------------------------------------------------------- */

/* As the process itself would: a segment more, sealed by the next. */
static void seal_one_more(struct made *made)
{
	static char segment[SEGMENT_BYTES];
	uint64_t held = (made->live.segment_next + 1) * SEGMENT_BYTES;
	char name[32];
	int fd = openat(made->directory, "control", O_RDWR);

	snprintf(name, sizeof(name), "s1.%llu", (unsigned long long)made->live.segment_next);
	make_file(made->directory, name, segment, sizeof(segment));
	made->live.segment_first = made->live.segment_next - 1;
	made->live.segment_next++;
	write_live(made);
	assert_int_equal(pwrite(fd, &held, sizeof(held), offsetof(struct kymo_control, held_bytes)),
			 sizeof(held));
	close(fd);
}

static void a_process_that_seals_pass_after_pass_finds_spares(void **state)
{
	struct place *place = *state;
	struct archive archive;
	struct made made;
	struct stat st;
	char path[96];

	make_process(place, &made, getpid() + 1, 77, 2);
	archive_init(&archive, place->live, place->disk, &roomy);
	archive_pass(&archive);
	assert_false(is_there(made.directory, ".spare0")); /* once may be all */
	seal_one_more(&made);
	archive_pass(&archive);
	assert_int_equal(fstatat(made.directory, ".spare0", &st, 0), 0);
	assert_int_equal(st.st_size, SEGMENT_BYTES);
	assert_true(is_there(made.directory, ".spare1") && !is_there(made.directory, ".spare2"));
	assert_int_equal(
		read_word(made.directory, "control", offsetof(struct kymo_control, spare_bytes)),
		SEGMENT_BYTES);
	/* It is dead: no spare reaches the disk, none stays. */
	archive_retire_dead(&archive);
	assert_false(is_there(place->live, made.name));
	snprintf(path, sizeof(path), ".%s", made.name);
	assert_false(is_there(place->live, path));
	archive_fini(&archive);
	close(made.directory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_copy_has_the_same_bytes_and_leaves_nothing_aside),
		TEST(a_file_that_claims_to_be_huge_takes_no_room),
		TEST(what_is_no_file_is_not_copied),
		TEST(a_swap_happens_only_on_what_is_expected),
		TEST(a_file_that_is_cut_under_the_swap_is_survived),
		TEST(sealed_segments_move_and_the_open_one_stays),
		TEST(what_the_process_gave_up_first_is_not_kept),
		TEST(a_chain_that_claims_the_impossible_ends),
		TEST(beyond_the_disks_budget_the_oldest_go),
		TEST(a_dead_process_moves_as_a_whole_and_a_living_one_stays),
		TEST(a_process_that_seals_pass_after_pass_finds_spares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
