/* What a killed process leaves behind is removed by the next one. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/scratch/scratch.h"

static char folder[64];
static int directory;

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/kymo-unit-scratch-XXXXXX");
	if (!mkdtemp(folder) || chdir(folder))
		return -1;
	directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory < 0;
}

static int remove_folder(void **state)
{
	(void)state;
	close(directory);
	if (chdir("/"))
		return -1;
	scratch_remove(AT_FDCWD, folder, 3);
	return access(folder, F_OK) ? 0 : -1;
}

/* An hour ago. */
static void make_old(const char *path)
{
	struct timespec times[2];

	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= 3600;
	times[1] = times[0];
	assert_int_equal(utimensat(directory, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static int make_file(const char *path)
{
	int fd = openat(directory, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void assert_there(const char *path, bool there)
{
	assert_int_equal(!faccessat(directory, path, F_OK, AT_SYMLINK_NOFOLLOW), there);
}

static void what_is_old_and_not_held_goes(void **state)
{
	(void)state;
	close(make_file("a.kymo-tmp-4711"));
	make_old("a.kymo-tmp-4711");
	assert_int_equal(mkdir("a.kymo-tmp-4712.1", 0700), 0);
	close(make_file("a.kymo-tmp-4712.1/a"));
	assert_int_equal(mkdir("a.kymo-tmp-4712.1/a.spill", 0700), 0);
	close(make_file("a.kymo-tmp-4712.1/a.spill/x"));
	make_old("a.kymo-tmp-4712.1");
	scratch_sweep(directory, "a" SCRATCH_MARK);
	assert_there("a.kymo-tmp-4711", false);
	assert_there("a.kymo-tmp-4712.1", false);
}

static void what_is_held_stays_until_its_owner_ends(void **state)
{
	int fd = make_file("b.kymo-tmp-1");

	(void)state;
	scratch_hold(fd);
	make_old("b.kymo-tmp-1");
	scratch_sweep(directory, "b" SCRATCH_MARK);
	assert_there("b.kymo-tmp-1", true);
	close(fd);
	scratch_sweep(directory, "b" SCRATCH_MARK);
	assert_there("b.kymo-tmp-1", false);
}

static void what_is_new_stays(void **state)
{
	(void)state;
	close(make_file("c.kymo-tmp-1"));
	scratch_sweep(directory, "c" SCRATCH_MARK);
	assert_there("c.kymo-tmp-1", true);
}

static void other_names_and_links_stay(void **state)
{
	static const char *const others[] = { "d",	 "d.kymo-tmp-",	 "d.kymo-tmp-mine",
					      "d.tmp-1", "e.kymo-tmp-1", "d.kymo-tmp-1x" };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		close(make_file(others[i]));
		make_old(others[i]);
	}
	assert_int_equal(symlink("d", "d.kymo-tmp-2"), 0);
	make_old("d.kymo-tmp-2");
	assert_int_equal(mkfifo("d.kymo-tmp-3", 0600), 0);
	make_old("d.kymo-tmp-3");
	scratch_sweep(directory, "d" SCRATCH_MARK);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_there(others[i], true);
	assert_there("d.kymo-tmp-2", true);
	assert_there("d.kymo-tmp-3", true);
}

static void a_link_inside_is_removed_and_not_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdir("kept", 0700), 0);
	close(make_file("kept/file"));
	assert_int_equal(mkdir("kymo-parquet-Ab12Cd", 0700), 0);
	assert_int_equal(symlink("../kept", "kymo-parquet-Ab12Cd/link"), 0);
	make_old("kymo-parquet-Ab12Cd");
	scratch_sweep_path(folder, "kymo-parquet-");
	assert_there("kymo-parquet-Ab12Cd", false);
	assert_there("kept/file", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_old_and_not_held_goes),
		cmocka_unit_test(what_is_held_stays_until_its_owner_ends),
		cmocka_unit_test(what_is_new_stays),
		cmocka_unit_test(other_names_and_links_stay),
		cmocka_unit_test(a_link_inside_is_removed_and_not_followed),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
