#include "base/scratch/scratch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OLD_SECONDS 60 /* longer than from the creation to the lock */
#define ENTRIES_MOST 100000 /* looked at in one folder */
#define LEVELS 2 /* DuckDB keeps a folder for spilled data next to its file */

void scratch_hold(int fd)
{
	(void)!flock(fd, LOCK_EX | LOCK_NB);
}

int scratch_hold_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		scratch_hold(fd);
	return fd;
}

/* ---- removing ------------------------------------------------------------------------------- */

static bool is_itself_or_parent(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

void scratch_remove(int directory, const char *name, int levels)
{
	DIR *inside;
	int fd;

	if (!unlinkat(directory, name, 0) || levels < 0)
		return;
	fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	inside = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *entry; inside && (entry = readdir(inside));)
		if (!is_itself_or_parent(entry->d_name))
			scratch_remove(fd, entry->d_name, levels - 1);
	if (inside)
		closedir(inside);
	else if (fd >= 0)
		close(fd);
	unlinkat(directory, name, AT_REMOVEDIR);
}

/* ---- finding -------------------------------------------------------------------------------- */

static bool is_scratch_name(const char *name, const char *stem)
{
	size_t length = strlen(stem), letters = 0;

	if (strncmp(name, stem, length) != 0 || !name[length])
		return false;
	name += length;
	if (!name[strspn(name, "0123456789.")])
		return true;
	while (isalnum((unsigned char)name[letters]))
		letters++;
	return letters == 6 && !name[letters];
}

static bool is_old_and_own(const struct stat *st)
{
	return (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) && st->st_uid == geteuid() &&
	       st->st_mtime < time(NULL) - OLD_SECONDS;
}

static void sweep_one(int directory, const char *name)
{
	struct stat seen, opened;
	int fd;

	if (fstatat(directory, name, &seen, AT_SYMLINK_NOFOLLOW) || !is_old_and_own(&seen))
		return;
	fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &opened) && opened.st_ino == seen.st_ino && opened.st_dev == seen.st_dev &&
	    !flock(fd, LOCK_EX | LOCK_NB))
		scratch_remove(directory, name, LEVELS);
	close(fd);
}

void scratch_sweep(int directory, const char *stem)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	for (int i = 0; list && i < ENTRIES_MOST && (entry = readdir(list)); i++)
		if (is_scratch_name(entry->d_name, stem))
			sweep_one(fd, entry->d_name);
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
}

void scratch_sweep_path(const char *directory, const char *stem)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	scratch_sweep(fd, stem);
	close(fd);
}
