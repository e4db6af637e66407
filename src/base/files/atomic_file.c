#include "base/files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/child_notes.h"

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

static int name_temporary(struct atomic_file *aside, const char *path, struct kymo_error *err)
{
	if (strlen(path) >= sizeof(aside->path))
		return error_set(err, ENAMETOOLONG, "cannot write a file with a name of %zu bytes",
				 strlen(path));
	strcpy(aside->path, path);
	snprintf(aside->temporary, sizeof(aside->temporary), "%s.tmp-%ld", path, (long)getpid());
	return 0;
}

static void remove_temporary(const struct atomic_file *aside)
{
	unlink(aside->temporary);
	child_notes_drop(aside->temporary);
}

static int open_temporary(struct atomic_file *aside, struct kymo_error *err)
{
	int fd = open(aside->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return error_set(err, errno, "cannot write %s: %s", aside->path, strerror(errno));
	child_notes_file(aside->temporary);
	aside->file = fdopen(fd, "w");
	if (aside->file)
		return 0;
	close(fd);
	remove_temporary(aside);
	return error_set(err, ENOMEM, "cannot write %s: out of memory", aside->path);
}

int atomic_file_open(struct atomic_file *aside, const char *path, bool replace,
		     struct kymo_error *err)
{
	int rc = atomic_file_check(path, replace, err);

	*aside = (struct atomic_file){ .replace = replace };
	if (!rc)
		rc = name_temporary(aside, path, err);
	return rc ? rc : open_temporary(aside, err);
}

/* Without --force, a file that was created meanwhile stays. */
static int rename_temporary(struct atomic_file *aside)
{
	if (aside->replace ||
	    renameat2(AT_FDCWD, aside->temporary, AT_FDCWD, aside->path, RENAME_NOREPLACE)) {
		if (!aside->replace && errno != EINVAL && errno != ENOSYS)
			return -1;
		return rename(aside->temporary, aside->path);
	}
	return 0;
}

int atomic_file_commit(struct atomic_file *aside, struct kymo_error *err)
{
	bool bad = fflush(aside->file) || ferror(aside->file) || fsync(fileno(aside->file));
	int code = errno;

	if (bad && code == EINVAL && !ferror(aside->file))
		bad = false; /* a file system that does not support sync */
	if (fclose(aside->file) && !bad) {
		bad = true;
		code = errno;
	}
	aside->file = NULL;
	if (!bad && !rename_temporary(aside)) {
		child_notes_drop(aside->temporary);
		return 0;
	}
	code = bad ? code : errno;
	remove_temporary(aside);
	code = code ? code : EIO;
	return error_set(err, code, "cannot write %s: %s", aside->path, strerror(code));
}

void atomic_file_discard(struct atomic_file *aside)
{
	if (!aside->file)
		return;
	fclose(aside->file);
	aside->file = NULL;
	remove_temporary(aside);
}

int atomic_file_name(struct atomic_file *aside, const char *path, struct kymo_error *err)
{
	int rc, fd;

	*aside = (struct atomic_file){ .replace = true };
	rc = name_temporary(aside, path, err);
	if (rc)
		return rc;
	/* Tried now, so that the reason is the system's own. */
	fd = open(aside->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		aside->temporary[0] = '\0';
		return error_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	}
	close(fd);
	unlink(aside->temporary);
	child_notes_file(aside->temporary);
	return 0;
}

int atomic_file_end(struct atomic_file *aside, int rc, struct kymo_error *err)
{
	int failed;

	if (!aside->temporary[0])
		return rc;
	failed = atomic_file_publish(AT_FDCWD, aside->temporary, aside->path, rc);
	child_notes_drop(aside->temporary);
	if (rc || !failed)
		return rc;
	return error_set(err, -failed, "cannot rename %s to %s: %s", aside->temporary, aside->path,
			 strerror(-failed));
}
