/*
 * Directories that no other user can exchange. Each directory of a path is opened relative to the
 * one before it and checked by its descriptor; the last descriptor is held, and files are made
 * relative to it. libc only, no malloc: the recorder uses it.
 *
 * Another user can exchange what is in a directory if the directory belongs to that user (neither
 * root nor the effective user), or if its group (other than root's) or everyone may write to it and
 * it has no sticky bit.
 *
 * - Root refuses a path through such a directory (-EPERM).
 * - Other users may use it, because people share directories; symbolic links in it are followed
 *   only if they belong to root or to the effective user.
 *
 * A user outside of the user namespace counts as root: the kernel shows all of them as one.
 */
#ifndef KYMO_BASE_FILES_SAFE_PATH_H
#define KYMO_BASE_FILES_SAFE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/format.h"

struct safe_dir {
	int fd; /* -1: none */
	bool shared; /* another user can exchange a part of the path; never for root */
	char path[KYMO_PATH_BYTES]; /* absolute, without symbolic links */
	char name[NAME_MAX + 1]; /* of safe_dir_parent(): the last part, which may not exist */
};

#define SAFE_DIR_NONE \
	{ \
		.fd = -1 \
	}

enum safe_dir_flags {
	SAFE_DIR_MAKE = 1, /* creates missing directories, mode 0700 */
	/* The last one must be a directory, not a link, that only the effective user can
	   access. */
	SAFE_DIR_OWN = 2,
	SAFE_DIR_ANY = 4, /* of safe_path_resolve(): the last part may be another file */
};

/* 0, or a negative errno and *err; -EPERM: refused as described above. */
int safe_dir_open(struct safe_dir *dir, const char *path, unsigned flags, struct kymo_error *err);
/* Opens the directory that contains the last part of the path, which becomes dir->name. -EINVAL if
   that part is empty, "." or "..". */
int safe_dir_parent(struct safe_dir *dir, const char *path, unsigned flags, struct kymo_error *err);
/* The absolute path of an existing file or directory, without symbolic links. -EPERM: refused. For
   root, only root can change what the result leads to. */
int safe_path_resolve(const char *path, char *out, size_t out_bytes, struct kymo_error *err);
/* Opens a directory in it, never through a link; it must belong to the effective user. A
   descriptor, or a negative errno. */
int safe_dir_enter(int directory, const char *name);
void safe_dir_close(struct safe_dir *dir); /* an empty one is fine */
/* For "cannot write FILE: REASON": the sentence of a refusal, else the system's words. */
const char *safe_dir_reason(int rc, const struct kymo_error *err);
/* Whether two descriptors are of the same file. */
bool safe_dir_same(int one, int other);

#endif
