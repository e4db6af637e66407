/* Paths that no other user can exchange. What needs a second user is in tests/attack. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/safe_path.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/kymo-safe-XXXXXX");
	return !mkdtemp(folder) || chdir(folder) || mkdir("a", 0755) || mkdir("a/b", 0755) ||
	       symlink("a/b", "link") || symlink("../../a", "a/b/up") || symlink("loop", "loop") ||
	       close(creat("file", 0600));
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") || system(command); /* NOLINT(cert-env33-c): a fixed name */
}

/* The path from the folder on, or the negative errno as text. */
static const char *opened(const char *path, unsigned flags)
{
	static char shown[KYMO_PATH_BYTES];
	struct safe_dir dir;
	struct stat by_path, by_fd;
	int rc = safe_dir_open(&dir, path, flags, NULL);

	if (rc) {
		assert_int_equal(dir.fd, -1);
		snprintf(shown, sizeof(shown), "%s", strerrorname_np(-rc));
		return shown;
	}
	assert_int_equal(fstat(dir.fd, &by_fd), 0);
	assert_int_equal(stat(path, &by_path), 0);
	assert_true(by_fd.st_ino == by_path.st_ino && by_fd.st_dev == by_path.st_dev);
	assert_int_equal(strncmp(dir.path, folder, strlen(folder)), 0);
	snprintf(shown, sizeof(shown), "%s", dir.path + strlen(folder));
	safe_dir_close(&dir);
	return shown;
}

static void the_path_is_absolute_and_without_links(void **state)
{
	char absolute[128];

	(void)state;
	assert_string_equal(opened("a/b", 0), "/a/b");
	assert_string_equal(opened("./a//b/.", 0), "/a/b");
	assert_string_equal(opened("a/../a/b/..", 0), "/a");
	assert_string_equal(opened("link", 0), "/a/b");
	assert_string_equal(opened("link/up/b", 0), "/a/b");
	snprintf(absolute, sizeof(absolute), "%s/link/", folder);
	assert_string_equal(opened(absolute, 0), "/a/b");
}

static void what_is_no_directory_is_an_error(void **state)
{
	(void)state;
	assert_string_equal(opened("missing", 0), "ENOENT");
	assert_string_equal(opened("file", 0), "ENOTDIR");
	assert_string_equal(opened("file/a", 0), "ENOTDIR");
	assert_string_equal(opened("loop", 0), "ELOOP");
	assert_string_equal(opened("link", SAFE_DIR_OWN), "ENOTDIR");
	assert_string_equal(opened("a", SAFE_DIR_OWN), "EPERM"); /* mode 0755 */
	assert_string_equal(opened(".", SAFE_DIR_OWN), ""); /* of mkdtemp() */
}

static void missing_directories_are_made_privately(void **state)
{
	struct stat st;

	(void)state;
	assert_string_equal(opened("x/y/z", SAFE_DIR_MAKE | SAFE_DIR_OWN), "/x/y/z");
	assert_int_equal(stat("x/y", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void a_parent_is_opened_and_the_last_part_may_be_missing(void **state)
{
	struct safe_dir dir;
	struct kymo_error err = { 0 };

	(void)state;
	assert_int_equal(safe_dir_parent(&dir, "link/new/", 0, NULL), 0);
	assert_string_equal(dir.path + strlen(folder), "/a/b");
	assert_string_equal(dir.name, "new");
	safe_dir_close(&dir);
	assert_int_equal(safe_dir_parent(&dir, "/", 0, &err), -EINVAL);
	assert_int_equal(safe_dir_parent(&dir, "a/..", 0, &err), -EINVAL);
	assert_int_equal(safe_dir_parent(&dir, "", 0, &err), -EINVAL);
	assert_int_equal(safe_dir_parent(&dir, "missing/new", 0, &err), -ENOENT);
}

static void a_file_is_resolved_through_links(void **state)
{
	char out[KYMO_PATH_BYTES];

	(void)state;
	assert_int_equal(symlink("../../file", "a/b/to-file"), 0);
	assert_int_equal(safe_path_resolve("link/to-file", out, sizeof(out), NULL), 0);
	assert_string_equal(out + strlen(folder), "/file");
	assert_int_equal(safe_path_resolve("file/x", out, sizeof(out), NULL), -ENOTDIR);
	assert_int_equal(safe_path_resolve("file", out, 4, NULL), -ENAMETOOLONG);
}

static void a_link_is_never_entered(void **state)
{
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	(void)state;
	fd = safe_dir_enter(here, "a");
	assert_true(fd >= 0 && !safe_dir_same(fd, here));
	close(fd);
	assert_int_equal(safe_dir_enter(here, "link"), -ENOTDIR);
	close(here);
}

/* Root alone refuses; another user may have such a directory. */
static void a_directory_that_others_can_change_is_refused_for_root(void **state)
{
	struct kymo_error err = { 0 };
	struct safe_dir dir;
	int rc;

	(void)state;
	assert_int_equal(chmod("a", 0777), 0);
	rc = safe_dir_open(&dir, "a/b", 0, &err);
	assert_int_equal(rc, geteuid() ? 0 : -EPERM);
	if (rc)
		assert_non_null(strstr(err.text, "/a is writable by other users (mode 0777, "));
	else
		assert_true(dir.shared);
	safe_dir_close(&dir);
	assert_int_equal(chmod("a", 01777), 0);
	assert_string_equal(opened("a/b", 0), "/a/b");
	assert_int_equal(chmod("a", 0755), 0);
}

static void paths_that_are_too_long_are_an_error(void **state)
{
	char path[8 * KYMO_PATH_BYTES];
	struct safe_dir dir;

	(void)state;
	for (size_t bytes = 250; bytes < sizeof(path); bytes += 37) {
		memset(path, 'x', bytes);
		for (size_t i = 100; i < bytes; i += 100)
			path[i] = '/';
		path[bytes] = '\0';
		assert_true(safe_dir_open(&dir, path, 0, NULL) < 0);
		assert_true(safe_dir_parent(&dir, path, 0, NULL) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_path_is_absolute_and_without_links),
		cmocka_unit_test(what_is_no_directory_is_an_error),
		cmocka_unit_test(missing_directories_are_made_privately),
		cmocka_unit_test(a_parent_is_opened_and_the_last_part_may_be_missing),
		cmocka_unit_test(a_file_is_resolved_through_links),
		cmocka_unit_test(a_link_is_never_entered),
		cmocka_unit_test(a_directory_that_others_can_change_is_refused_for_root),
		cmocka_unit_test(paths_that_are_too_long_are_an_error),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
