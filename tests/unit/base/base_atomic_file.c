/* Files that appear whole or not at all. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/atomic_file.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/kymo-atomic-XXXXXX");
	return mkdtemp(folder) ? chdir(folder) : -1;
}

/* Counts what is left, and removes it. */
static size_t empty_folder(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
			unlinkat(dirfd(dir), entry->d_name, 0);
			count++;
		}
	closedir(dir);
	return count;
}

static int remove_folder(void **state)
{
	(void)state;
	empty_folder();
	return chdir("/") || rmdir(folder);
}

static void assert_holds(const char *path, const char *text)
{
	char bytes[64] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, sizeof(bytes) - 1, file), strlen(text));
	fclose(file);
	assert_string_equal(bytes, text);
}

static void a_file_appears_at_the_commit(void **state)
{
	struct kymo_error err = { 0 };
	struct atomic_file aside;

	(void)state;
	assert_int_equal(atomic_file_open(&aside, "a", false, &err), 0);
	fputs("text", aside.file);
	assert_int_equal(access("a", F_OK), -1);
	assert_int_equal(atomic_file_commit(&aside, &err), 0);
	atomic_file_discard(&aside);
	assert_holds("a", "text");
	assert_int_equal(empty_folder(), 1);
}

static void what_is_discarded_leaves_the_old_file(void **state)
{
	struct kymo_error err = { 0 };
	struct atomic_file aside;

	(void)state;
	assert_int_equal(atomic_file_put(AT_FDCWD, "a", "old", 3), 0);
	assert_int_equal(atomic_file_open(&aside, "a", false, &err), -EEXIST);
	assert_int_equal(atomic_file_open(&aside, "a", true, &err), 0);
	fputs("new", aside.file);
	atomic_file_discard(&aside);
	assert_holds("a", "old");
	assert_int_equal(empty_folder(), 1);
}

static void a_name_is_free_and_ends_at_its_path(void **state)
{
	struct kymo_error err = { 0 };
	struct atomic_file aside;

	(void)state;
	assert_int_equal(atomic_file_put(AT_FDCWD, "a", "old", 3), 0);
	assert_int_equal(atomic_file_name(&aside, "a", &err), 0);
	assert_int_equal(access(aside.temporary, F_OK), -1);
	assert_int_equal(atomic_file_put(AT_FDCWD, aside.temporary, "new", 3), 0);
	assert_int_equal(atomic_file_end(&aside, -EIO, &err), -EIO);
	assert_holds("a", "old");
	assert_int_equal(atomic_file_name(&aside, "a", &err), 0);
	assert_int_equal(atomic_file_put(AT_FDCWD, aside.temporary, "new", 3), 0);
	assert_int_equal(atomic_file_end(&aside, 0, &err), 0);
	assert_holds("a", "new");
	assert_int_equal(empty_folder(), 1);
	/* The writer has made nothing. */
	assert_int_equal(atomic_file_name(&aside, "a", &err), 0);
	assert_int_equal(atomic_file_end(&aside, 0, &err), -ENOENT);
}

static void a_missing_directory_is_an_error_at_once(void **state)
{
	struct kymo_error err = { 0 };
	struct atomic_file aside;

	(void)state;
	assert_int_equal(atomic_file_name(&aside, "missing/a", &err), -ENOENT);
	assert_string_equal(err.text, "cannot write missing/a: No such file or directory");
	assert_int_equal(atomic_file_end(&aside, -ENOENT, &err), -ENOENT);
	assert_int_equal(atomic_file_open(&aside, "missing/a", false, &err), -ENOENT);
	assert_int_equal(atomic_file_put(AT_FDCWD, "missing/a", "", 0), -ENOENT);
}

static void bytes_are_put_privately_and_replace_what_was_there(void **state)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY);
	struct stat st;

	(void)state;
	assert_int_equal(atomic_file_put(directory, "run", "first", 5), 0);
	assert_int_equal(atomic_file_put(directory, "run", "next", 4), 0);
	assert_holds("run", "next");
	assert_int_equal(fstatat(directory, "run", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(empty_folder(), 1);
	close(directory);
}

static void a_part_lies_hidden_beside_its_file(void **state)
{
	char part[32];

	(void)state;
	assert_int_equal(atomic_file_part_name("run", part, sizeof(part)), 0);
	assert_string_equal(part, ".run.part");
	assert_int_equal(atomic_file_part_name("/a/b/run", part, sizeof(part)), 0);
	assert_string_equal(part, "/a/b/.run.part");
	assert_int_equal(atomic_file_part_name("run", part, 9), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_appears_at_the_commit),
		cmocka_unit_test(what_is_discarded_leaves_the_old_file),
		cmocka_unit_test(a_name_is_free_and_ends_at_its_path),
		cmocka_unit_test(a_missing_directory_is_an_error_at_once),
		cmocka_unit_test(bytes_are_put_privately_and_replace_what_was_there),
		cmocka_unit_test(a_part_lies_hidden_beside_its_file),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
