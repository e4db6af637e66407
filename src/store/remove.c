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
#include "base/files/safe_path.h"
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

/* A directory that is to be removed, with the one that contains it. */
struct half {
	struct safe_dir parent;
	int fd;
};

static void half_close(struct half *half)
{
	if (half->fd >= 0)
		close(half->fd);
	half->fd = -1;
	safe_dir_close(&half->parent);
}

/* opened: a descriptor that the path was read by, or -1; another directory at its path is
   refused. */
static int half_open(struct half *half, const char *path, int opened, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	int rc = safe_dir_parent(&half->parent, path, 0, &why);

	half->fd = -1;
	if (rc)
		return error_set(err, -rc, "cannot remove %s: %s", path, safe_dir_reason(rc, &why));
	half->fd = safe_dir_enter(half->parent.fd, half->parent.name);
	if (half->fd == -EPERM)
		return error_set(err, EPERM,
				 "cannot remove %s: it belongs to another user; run "
				 "kymo rm as that user",
				 path);
	if (half->fd < 0)
		return error_set(err, -half->fd, "cannot remove %s: %s", path, strerror(-half->fd));
	if (opened >= 0 && !safe_dir_same(opened, half->fd))
		return error_set(err, ESTALE,
				 "%s was not removed: it was replaced by another directory", path);
	return 0;
}

static int remove_half(const struct half *half, const char *path, struct kymo_error *err)
{
	int left;

	if (!is_recording(half->fd))
		return error_set(err, EINVAL, "%s was not removed: it is not a kymo recording",
				 path);
	left = empty_directory(half->fd, ".", false);
	if (left < 0)
		return error_set(err, -left, "cannot remove all of %s: %s", path, strerror(-left));
	if (left)
		return error_set(err, ENOTEMPTY,
				 "the recording in %s was removed, but not the directory: it has "
				 "%d files that are not kymo's",
				 path, left);
	if (unlinkat(half->parent.fd, half->parent.name, AT_REMOVEDIR))
		return error_set(err, errno, "cannot remove the directory %s: %s", path,
				 strerror(errno));
	return 0;
}

static int remove_dir(const char *path, int opened, struct kymo_error *err)
{
	struct half half;
	int rc = half_open(&half, path, opened, err);

	if (!rc)
		rc = remove_half(&half, path, err);
	half_close(&half);
	return rc;
}

/* Which of the two the path means; it may be that of a process in it. */
static int half_of_path(const struct run_files *source, const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), up;
	int which = 0;

	if (fd < 0)
		return 0;
	up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (source->dirs[1] >= 0 && !safe_dir_same(source->dirs[0], fd) &&
	    (up < 0 || !safe_dir_same(source->dirs[0], up)))
		which = 1;
	if (up >= 0)
		close(up);
	close(fd);
	return which;
}

/* Anyone can write a `run` file that names a directory. */
static bool points_back(const struct run_files *source, int named)
{
	struct kymo_run_file run;
	int back = -1;
	bool is;

	if (!run_files_run_of(source->dirs[!named], &run) && run.peer[0] == '/')
		back = open(run.peer, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	is = back >= 0 && safe_dir_same(back, source->dirs[named]);
	if (back >= 0)
		close(back);
	return is;
}

static int remove_directory(const char *path, struct store_removed *out, struct kymo_error *err)
{
	struct run_files source;
	int rc = run_files_open(&source, path, err), named, other;

	if (rc)
		return rc;
	named = half_of_path(&source, path);
	other = source.dirs[!named] >= 0 ? !named : -1;
	if (other >= 0 && !points_back(&source, named)) {
		strcpy(out->kept, source.dir_paths[other]);
		other = -1;
	}
	/* The live one first: the other names it until then. */
	for (int which = 0; which < 2 && !rc; which++)
		if (which == named || which == other)
			rc = remove_dir(source.dir_paths[which], source.dirs[which], err);
	if (!rc && other >= 0)
		strcpy(out->other, source.dir_paths[other]);
	for (int which = 0; which < 2 && !rc; which++)
		if (which == named || which == other)
			discover_forget(source.dir_paths[which]);
	run_files_close(&source);
	return rc;
}

static int remove_file(const char *path, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	struct safe_dir parent;
	int rc = safe_dir_parent(&parent, path, 0, &why);

	if (!rc && unlinkat(parent.fd, parent.name, 0))
		rc = -errno;
	safe_dir_close(&parent);
	if (rc)
		return error_set(err, -rc, "cannot remove %s: %s", path, safe_dir_reason(rc, &why));
	discover_forget(path);
	return 0;
}

static int remove_resolved(const char *path, struct store_removed *out, struct kymo_error *err)
{
	struct store_entry entry;
	struct stat st;
	int rc = discover_inspect(path, false, &entry);

	if (rc == -ENOENT)
		return error_set(err, EINVAL, "%s was not removed: it is not a kymo recording",
				 path);
	if (entry.state == STORE_LIVE && entry.kind == STORE_DIRECTORY)
		return error_set(err, EBUSY,
				 "%s is still being recorded by process %d; stop it first", path,
				 (int)entry.pid);
	if (entry.kind == STORE_SNAPSHOT || entry.kind == STORE_PACKED)
		return remove_file(path, err);
	if (entry.kind == STORE_LAKE)
		return error_set(err, EINVAL, "%s was not removed: use `kymo lake rm %s`", path,
				 path);
	/* An unreadable one is removed, too, if it is a recording. */
	return stat(path, &st) || !S_ISDIR(st.st_mode)
		       ? error_set(err, EINVAL,
				   "%s was not removed: it is damaged or of another version; "
				   "delete it by hand",
				   path)
		       : remove_directory(path, out, err);
}

int store_remove_both(const char *path, struct store_removed *out, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	char whole[KYMO_PATH_BYTES];
	/* All that follows uses this path, which others cannot redirect. */
	int rc = safe_path_resolve(path, whole, sizeof(whole), &why);

	out->other[0] = out->kept[0] = '\0';
	if (rc == -EPERM)
		return error_set(err, EPERM, "cannot remove %s: %s", path, why.text);
	if (rc)
		return error_set(err, -rc, "no recording '%s': %s; `kymo ls` lists them", path,
				 strerror(-rc));
	return remove_resolved(whole, out, err);
}

int store_remove(const char *path, struct kymo_error *err)
{
	struct store_removed removed;

	return store_remove_both(path, &removed, err);
}

bool store_remove_empty(const char *path)
{
	struct safe_dir parent;
	bool removed = !safe_dir_parent(&parent, path, 0, NULL) &&
		       !unlinkat(parent.fd, parent.name, AT_REMOVEDIR);

	safe_dir_close(&parent);
	return removed;
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
	return !remove_dir(path, -1, NULL);
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

static int prune_root(const char *root)
{
	struct statvfs fs;
	uint64_t tenth;

	if (statvfs(root, &fs))
		return 0;
	tenth = (uint64_t)fs.f_blocks * fs.f_frsize / 10;
	/* All recordings together take less: no need to inspect each. */
	if ((uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize <= tenth)
		return 0;
	return discover_prune(root, tenth);
}

int store_prune(void)
{
	struct paths_roots roots;
	int removed = 0;

	paths_roots(&roots, NULL);
	for (size_t i = 0; i < roots.count; i++)
		removed += prune_root(roots.path[i]);
	return removed;
}
