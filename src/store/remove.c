/* Removes recordings: only files with kymo's names, only in directories that are recordings, never
   through a link. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/files/paths.h"
#include "base/grow.h"
#include "store/discover.h"

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)

/* ---- recognising recordings -------------------------------------------------------------- */

static bool begins_with(int directory, const char *path, const char *magic)
{
	struct readat file = { .fd = openat(directory, path,
					    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK),
			       .whole = true };
	char begin[8] = "";
	bool is = file.fd >= 0 && readat_all(&file, 0, begin, sizeof(begin)) &&
		  !memcmp(begin, magic, sizeof(begin));

	if (file.fd >= 0)
		close(file.fd);
	return is;
}

/* By content, of any version: `run`, or a process's control page. */
static bool is_recording(int directory)
{
	int fd = openat(directory, ".", DIRECTORY_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool found = dir && begins_with(fd, "run", KYMO_MAGIC_RUN);

	while (dir && !found && (entry = readdir(dir))) {
		char path[RUN_FILES_PATH_BYTES + 300];

		snprintf(path, sizeof(path), "%s/control", entry->d_name);
		found = run_files_is_process(entry->d_name, NULL) &&
			begins_with(fd, path, KYMO_MAGIC_CONTROL);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return found;
}

/* ---- removing ---------------------------------------------------------------------------- */

/* Returns the number of files left because they are not kymo's, or a negative errno. */
static int empty_directory(int directory, const char *name, bool is_process)
{
	int fd = openat(directory, name, DIRECTORY_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int left = 0, rc = 0;

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (rc >= 0 && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!is_process && run_files_is_process(entry->d_name, NULL)) {
			rc = empty_directory(fd, entry->d_name, true);
			left += rc > 0 ? rc : 0;
			if (!rc && unlinkat(fd, entry->d_name, AT_REMOVEDIR))
				rc = -errno;
		} else if (discover_is_ours(entry->d_name, is_process) &&
			   strcmp(entry->d_name, "run")) {
			rc = unlinkat(fd, entry->d_name, 0) && errno != ENOENT ? -errno : 0;
		} else if (strcmp(entry->d_name, "run") || is_process) {
			left++;
		}
	}
	/* Last: it identifies the rest until then. */
	if (rc >= 0 && !is_process && unlinkat(fd, "run", 0) && errno != ENOENT)
		rc = -errno;
	closedir(dir);
	return rc < 0 ? rc : left;
}

static int remove_dir(int directory, const char *path, struct kymo_error *err)
{
	int left;

	if (!is_recording(directory))
		return error_set(err, EINVAL, "%s was not removed: it is not a kymo recording",
				 path);
	left = empty_directory(directory, ".", false);
	if (left < 0)
		return error_set(err, -left, "cannot remove all of %s: %s", path, strerror(-left));
	if (left)
		return error_set(err, ENOTEMPTY,
				 "the recording in %s was removed, but not the directory: it has "
				 "%d files that are not kymo's",
				 path, left);
	if (rmdir(path))
		return error_set(err, errno, "cannot remove the directory %s: %s", path,
				 strerror(errno));
	return 0;
}

static int remove_directory(const char *path, struct kymo_error *err)
{
	struct run_files source;
	int rc = run_files_open(&source, path, err);

	if (rc)
		return rc;
	for (int which = 0; which < 2 && !rc; which++)
		if (source.dirs[which] >= 0)
			rc = remove_dir(source.dirs[which], source.dir_paths[which], err);
	if (!rc)
		for (int which = 0; which < 2; which++)
			discover_forget(source.dir_paths[which]);
	run_files_close(&source);
	return rc;
}

static int remove_file(const struct store_entry *entry, struct kymo_error *err)
{
	if (unlink(entry->path))
		return error_set(err, errno, "cannot remove %s: %s", entry->path, strerror(errno));
	discover_forget(entry->path);
	return 0;
}

int store_remove(const char *path, struct kymo_error *err)
{
	struct store_entry entry;
	struct stat st;
	int rc = discover_inspect(path, false, &entry);

	if (rc == -ENOENT) {
		if (lstat(path, &st))
			return error_set(err, errno, "no recording '%s': %s; `kymo ls` lists them",
					 path, strerror(errno));
		return error_set(err, EINVAL, "%s was not removed: it is not a kymo recording",
				 path);
	}
	if (entry.state == STORE_LIVE && entry.kind == STORE_DIRECTORY)
		return error_set(err, EBUSY,
				 "%s is still being recorded by process %d; stop it first", path,
				 (int)entry.pid);
	if (entry.kind == STORE_SNAPSHOT || entry.kind == STORE_PACKED)
		return remove_file(&entry, err);
	/* An unreadable one is removed, too, if it is a recording. */
	return stat(path, &st) || !S_ISDIR(st.st_mode)
		       ? error_set(err, EINVAL,
				   "%s was not removed: it is damaged or of another version; "
				   "delete it by hand",
				   path)
		       : remove_directory(path, err);
}

/* ---- pruning ----------------------------------------------------------------------------- */

struct old_run {
	char path[KYMO_PATH_BYTES];
	uint64_t started_unix_ns, bytes;
};

static int by_age(const void *left, const void *right)
{
	const struct old_run *a = left, *b = right;

	return a->started_unix_ns < b->started_unix_ns ? -1
						       : a->started_unix_ns > b->started_unix_ns;
}

/* Only the live directory in KYMO_DIR: the disk directory belongs to the user. */
static bool prune_one(const char *path)
{
	int fd = open(path, DIRECTORY_FLAGS);
	bool removed = fd >= 0 && !remove_dir(fd, path, NULL);

	if (fd >= 0)
		close(fd);
	return removed;
}

static bool note_dead(const char *path, struct old_run *run)
{
	struct store_entry entry;
	int fd;

	if (discover_inspect(path, false, &entry) || entry.kind != STORE_DIRECTORY ||
	    entry.state == STORE_LIVE)
		return false;
	snprintf(run->path, sizeof(run->path), "%s", path);
	run->started_unix_ns = entry.started_unix_ns;
	fd = open(path, DIRECTORY_FLAGS);
	run->bytes = fd < 0 ? 0 : discover_bytes_in(fd);
	if (fd >= 0)
		close(fd);
	return true;
}

static struct old_run *dead_runs(const char *root, size_t *out_count)
{
	DIR *dir = opendir(root);
	struct old_run *runs = NULL;
	struct dirent *entry;
	size_t room = 0;

	*out_count = 0;
	while (dir && (entry = readdir(dir))) {
		char path[KYMO_PATH_BYTES];
		int length = snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);

		if (entry->d_name[0] == '.' || length < 0 || (size_t)length >= sizeof(path))
			continue;
		if (!grow((void **)&runs, &room, *out_count, sizeof(*runs)))
			break;
		*out_count += note_dead(path, &runs[*out_count]);
	}
	if (dir)
		closedir(dir);
	return runs;
}

int discover_prune(const char *root, uint64_t most_bytes)
{
	struct old_run *runs;
	uint64_t held = 0;
	size_t count;
	int removed = 0;

	runs = dead_runs(root, &count);
	for (size_t i = 0; i < count; i++)
		held += runs[i].bytes;
	if (count)
		qsort(runs, count, sizeof(*runs), by_age);
	for (size_t i = 0; i < count && held > most_bytes; i++) {
		held -= runs[i].bytes;
		removed += prune_one(runs[i].path);
	}
	free(runs);
	return removed;
}

int store_prune(void)
{
	char root[KYMO_PATH_BYTES];
	struct statvfs fs;
	uint64_t tenth;

	if (paths_root(root, sizeof(root), NULL) || statvfs(root, &fs))
		return 0;
	tenth = (uint64_t)fs.f_blocks * fs.f_frsize / 10;
	/* All recordings together take less: no need to inspect each. */
	if ((uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize <= tenth)
		return 0;
	return discover_prune(root, tenth);
}
