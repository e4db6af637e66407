#include "base/files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scratch/child_notes.h"
#include "base/scratch/scratch.h"

#define NAMES_TRIED 16 /* others can take names in /tmp */

int atomic_file_check(const char *path, bool replace, struct kymo_error *err)
{
	struct stat status;

	if (lstat(path, &status))
		return 0;
	if (S_ISDIR(status.st_mode))
		return error_set(err, EISDIR, "cannot write %s: it is a directory; name a file",
				 path);
	if (!replace)
		return error_set(err, EEXIST, "%s exists; --force overwrites it", path);
	return 0;
}

static int open_parent(struct atomic_file *aside, const char *path, bool replace,
		       struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	int rc;

	aside->file = NULL;
	aside->directory.fd = aside->folder = -1;
	aside->part[0] = aside->temporary[0] = '\0';
	aside->replace = replace;
	if (strlen(path) >= sizeof(aside->path))
		return error_set(err, ENAMETOOLONG, "cannot write a file with a name of %zu bytes",
				 strlen(path));
	strcpy(aside->path, path);
	rc = safe_dir_parent(&aside->directory, path, 0, &why);
	return rc ? error_set(err, -rc, "cannot write %s: %s", path, safe_dir_reason(rc, &why)) : 0;
}

static void name_part(struct atomic_file *aside, int try)
{
	int length = snprintf(aside->part, sizeof(aside->part), "%s" SCRATCH_MARK "%ld",
			      aside->directory.name, (long)getpid());

	if (try)
		snprintf(aside->part + length, sizeof(aside->part) - (size_t)length, ".%d", try);
}

/* Tells the parent of this process what to remove if it is killed (note), or no longer. */
static void tell_part(const struct atomic_file *aside, void (*tell)(const char *path))
{
	char path[KYMO_PATH_BYTES + sizeof(aside->part) + 2];

	snprintf(path, sizeof(path), "%s/%s", aside->directory.path[1] ? aside->directory.path : "",
		 aside->part);
	tell(path);
}

/* Removes what killed processes have left for the same file. */
static void sweep_parts(const struct atomic_file *aside)
{
	char stem[ATOMIC_FILE_NAME_BYTES];

	snprintf(stem, sizeof(stem), "%s" SCRATCH_MARK, aside->directory.name);
	scratch_sweep(aside->directory.fd, stem);
}

/* ---- a file without a name: a kill leaves nothing -------------------------------------------- */

static void name_descriptor(int fd, char out[32])
{
	snprintf(out, 32, "/proc/self/fd/%d", fd);
}

/* -1: the file system has none, or /proc, which gives it a name later, is not mounted. */
static int create_unnamed(const struct atomic_file *aside)
{
	int fd = openat(aside->directory.fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
	char path[32];

	if (fd < 0)
		return -1;
	name_descriptor(fd, path);
	if (!access(path, F_OK))
		return fd;
	close(fd);
	return -1;
}

/* link() replaces nothing, so a file that is to be replaced gets a temporary name first. */
static int name_unnamed(struct atomic_file *aside)
{
	int directory = aside->directory.fd, rc = -1;
	char path[32];

	name_descriptor(fileno(aside->file), path);
	if (!aside->replace)
		return linkat(AT_FDCWD, path, directory, aside->directory.name, AT_SYMLINK_FOLLOW);
	for (int try = 0; rc && (!try || errno == EEXIST) && try < NAMES_TRIED; try++) {
		name_part(aside, try);
		rc = linkat(AT_FDCWD, path, directory, aside->part, AT_SYMLINK_FOLLOW);
	}
	if (rc)
		aside->part[0] = '\0';
	return rc;
}

/* ---- a file with a temporary name ------------------------------------------------------------ */

static int create_part(struct atomic_file *aside)
{
	int fd = create_unnamed(aside);

	if (fd >= 0)
		return fd;
	for (int try = 0; fd < 0 && (!try || errno == EEXIST) && try < NAMES_TRIED; try++) {
		name_part(aside, try);
		fd = openat(aside->directory.fd, aside->part,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	}
	if (fd < 0) {
		aside->part[0] = '\0';
		return fd;
	}
	scratch_hold(fd);
	tell_part(aside, child_notes_file);
	return fd;
}

static void remove_part(const struct atomic_file *aside, int flags)
{
	if (!aside->part[0])
		return; /* it never had a name */
	unlinkat(aside->directory.fd, aside->part, flags);
	tell_part(aside, child_notes_drop);
}

static void close_directories(struct atomic_file *aside)
{
	if (aside->folder >= 0)
		close(aside->folder);
	aside->folder = -1;
	safe_dir_close(&aside->directory);
	aside->part[0] = '\0';
}

int atomic_file_open(struct atomic_file *aside, const char *path, bool replace,
		     struct kymo_error *err)
{
	int rc = atomic_file_check(path, replace, err);
	int fd;

	aside->file = NULL;
	if (!rc)
		rc = open_parent(aside, path, replace, err);
	if (rc)
		return rc;
	sweep_parts(aside);
	fd = create_part(aside);
	if (fd < 0) {
		rc = error_set(err, errno, "cannot write %s: %s", path, strerror(errno));
		close_directories(aside);
		return rc;
	}
	aside->file = fdopen(fd, "w");
	if (aside->file)
		return 0;
	close(fd);
	remove_part(aside, 0);
	close_directories(aside);
	return error_set(err, ENOMEM, "cannot write %s: out of memory", path);
}

/* Without --force, a file that was created meanwhile stays. */
static int rename_part(const struct atomic_file *aside)
{
	int directory = aside->directory.fd;
	const char *name = aside->directory.name;

	if (aside->replace ||
	    renameat2(directory, aside->part, directory, name, RENAME_NOREPLACE)) {
		if (!aside->replace && errno != EINVAL && errno != ENOSYS)
			return -1;
		return renameat(directory, aside->part, directory, name);
	}
	return 0;
}

/* Flushes, syncs, gives an unnamed file its name, and closes. 0 or an errno. */
static int settle_file(struct atomic_file *aside)
{
	int code = 0;

	if (fflush(aside->file) || ferror(aside->file))
		code = errno ? errno : EIO;
	else if (fsync(fileno(aside->file)) && errno != EINVAL) /* EINVAL: not supported there */
		code = errno;
	else if (!aside->part[0] && name_unnamed(aside))
		code = errno;
	if (fclose(aside->file) && !code)
		code = errno ? errno : EIO;
	aside->file = NULL;
	return code;
}

int atomic_file_commit(struct atomic_file *aside, struct kymo_error *err)
{
	int code = settle_file(aside);

	if (!code && aside->part[0] && rename_part(aside))
		code = errno;
	if (code)
		remove_part(aside, 0);
	else if (aside->part[0])
		tell_part(aside, child_notes_drop);
	close_directories(aside);
	return code ? error_set(err, code, "cannot write %s: %s", aside->path, strerror(code)) : 0;
}

void atomic_file_discard(struct atomic_file *aside)
{
	if (!aside->file)
		return;
	fclose(aside->file);
	aside->file = NULL;
	remove_part(aside, 0);
	close_directories(aside);
}

/* ---- for writers that make the file ---------------------------------------------------------- */

static int make_folder(struct atomic_file *aside)
{
	int rc = -1;

	for (int try = 0; rc && (!try || errno == EEXIST) && try < NAMES_TRIED; try++) {
		name_part(aside, try);
		rc = mkdirat(aside->directory.fd, aside->part, 0700);
	}
	if (rc)
		return -errno;
	tell_part(aside, child_notes_file);
	aside->folder = safe_dir_enter(aside->directory.fd, aside->part);
	if (aside->folder < 0)
		return aside->folder;
	scratch_hold(aside->folder);
	return 0;
}

int atomic_file_name(struct atomic_file *aside, const char *path, struct kymo_error *err)
{
	int rc = open_parent(aside, path, true, err);
	int length;

	if (rc)
		return rc;
	sweep_parts(aside);
	/* Tried now, so that the reason is the system's own. */
	rc = make_folder(aside);
	if (rc) {
		close_directories(aside);
		return error_set(err, -rc, "cannot write %s: %s", path, strerror(-rc));
	}
	length = snprintf(aside->temporary, sizeof(aside->temporary), "%s/%s/%s",
			  aside->directory.path[1] ? aside->directory.path : "", aside->part,
			  aside->directory.name);
	if (length > 0 && (size_t)length < sizeof(aside->temporary))
		return 0;
	rc = atomic_file_end(aside, -ENAMETOOLONG, err);
	aside->temporary[0] = '\0';
	return error_set(err, -rc, "cannot write %s: %s", path, strerror(-rc));
}

int atomic_file_end(struct atomic_file *aside, int rc, struct kymo_error *err)
{
	const char *name = aside->directory.name;
	int failed = 0;

	if (!aside->temporary[0] || aside->folder < 0)
		return rc;
	if (!rc && renameat(aside->folder, name, aside->directory.fd, name))
		failed = errno;
	if (rc || failed)
		unlinkat(aside->folder, name, 0);
	remove_part(aside, AT_REMOVEDIR);
	close_directories(aside);
	if (!failed)
		return rc;
	return error_set(err, failed, "cannot rename %s to %s: %s", aside->temporary, aside->path,
			 strerror(failed));
}
