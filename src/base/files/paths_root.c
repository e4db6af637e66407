/* The directory of live recordings, also where another user has taken its name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files/dir_names.h"
#include "base/files/paths.h"

#define SHM "/dev/shm"
#define SMALL_TMPFS_BYTES (256ull << 20)
#define OWN_ROOT (SAFE_DIR_MAKE | SAFE_DIR_OWN)
#define PRIVATE_NAME "kymo-%u-"
#define RANDOM_PART "XXXXXX" /* of mkdtemp() */
#define PRIVATE_BYTES 64

static enum paths_fallback fallback;

enum paths_fallback paths_root_fallback(void)
{
	return fallback;
}

/* ---- the places ------------------------------------------------------------------------------ */

static void usual_path(char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, SHM "/kymo-%u", (unsigned)geteuid());
}

/* False: there is no such directory. */
static bool runtime_path(char *out, size_t out_bytes)
{
	const char *given = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int length;

	if (given && *given == '/')
		length = snprintf(out, out_bytes, "%s", given);
	else
		length = snprintf(out, out_bytes, "/run/user/%u", (unsigned)geteuid());
	if (length < 0 || (size_t)length + sizeof("/kymo") > out_bytes || stat(out, &st) ||
	    st.st_uid != geteuid())
		return false;
	strcat(out, "/kymo");
	return true;
}

struct private_roots {
	void (*found)(const char *path, void *context);
	void *context;
};

/* Others can make directories of such names, too. */
static int consider_private(const char *name, void *context)
{
	const struct private_roots *roots = context;
	struct safe_dir dir;
	char path[NAME_MAX + sizeof(SHM) + 1];
	char begin[32];

	snprintf(begin, sizeof(begin), PRIVATE_NAME, (unsigned)geteuid());
	if (strncmp(name, begin, strlen(begin)) != 0 ||
	    strlen(name) != strlen(begin) + strlen(RANDOM_PART))
		return 0;
	snprintf(path, sizeof(path), SHM "/%s", name);
	if (!safe_dir_open(&dir, path, SAFE_DIR_OWN, NULL))
		roots->found(dir.path, roots->context);
	safe_dir_close(&dir);
	return 0;
}

static void each_private(void (*found)(const char *path, void *context), void *context)
{
	struct private_roots roots = { found, context };
	struct safe_dir shm;

	if (!safe_dir_open(&shm, SHM, 0, NULL))
		dir_names_each(shm.fd, consider_private, &roots);
	safe_dir_close(&shm);
}

/* ---- opening one ----------------------------------------------------------------------------- */

static bool tmpfs_is_large_enough(void)
{
	struct statfs fs;

	if (statfs(SHM, &fs) || access(SHM, W_OK))
		return false;
	return (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize >= SMALL_TMPFS_BYTES;
}

/* Every process of the user takes the same one. */
static void keep_first(const char *path, void *context)
{
	char *first = context;

	if (!*first || strcmp(path, first) < 0)
		snprintf(first, PRIVATE_BYTES, "%s", path);
}

static int open_private(struct safe_dir *out, struct kymo_error *err)
{
	char path[PRIVATE_BYTES] = "";

	each_private(keep_first, path);
	if (!*path) {
		snprintf(path, sizeof(path), SHM "/" PRIVATE_NAME RANDOM_PART, (unsigned)geteuid());
		if (!mkdtemp(path))
			return error_set(err, errno,
					 "cannot create the directory %s: %s; set KYMO_DIR to a "
					 "directory of your own",
					 path, strerror(errno));
	}
	return safe_dir_open(out, path, OWN_ROOT, err);
}

/* A directory of this user with a mode for others is an error instead: chmod mends it. */
static bool is_taken(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && st.st_uid != geteuid();
}

static int open_in_memory(struct safe_dir *out, struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES];
	int rc;

	usual_path(path, sizeof(path));
	rc = safe_dir_open(out, path, OWN_ROOT, err);
	if (!rc || !is_taken(path))
		return rc;
	fallback = PATHS_TAKEN_BY_ANOTHER;
	if (runtime_path(path, sizeof(path)) && !safe_dir_open(out, path, OWN_ROOT, NULL))
		return 0;
	return open_private(out, err);
}

static int open_in_state(struct safe_dir *out, struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES];
	int rc = paths_state(path, sizeof(path), err);

	fallback = PATHS_TMPFS_IS_SMALL;
	if (rc)
		return rc;
	if (strlen(path) + sizeof("/live") > sizeof(path))
		return error_set(err, ENAMETOOLONG, "the path of the state directory is too long");
	strcat(path, "/live");
	return safe_dir_open(out, path, OWN_ROOT, err);
}

int paths_root_open(struct safe_dir *out, struct kymo_error *err)
{
	const char *wish = secure_getenv("KYMO_DIR");

	out->fd = -1;
	fallback = PATHS_USUAL;
	if (wish && *wish)
		return safe_dir_open(out, wish, OWN_ROOT, err);
	return tmpfs_is_large_enough() ? open_in_memory(out, err) : open_in_state(out, err);
}

int paths_root(char *out, size_t out_bytes, struct kymo_error *err)
{
	struct safe_dir dir;
	int rc = paths_root_open(&dir, err);

	if (!rc && strlen(dir.path) >= out_bytes)
		rc = error_set(err, ENAMETOOLONG, "the path %.60s… is too long", dir.path);
	if (!rc)
		strcpy(out, dir.path);
	safe_dir_close(&dir);
	return rc;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void roots_add(const char *path, void *context)
{
	struct paths_roots *roots = context;

	for (size_t i = 0; i < roots->count; i++)
		if (!strcmp(roots->path[i], path))
			return;
	if (roots->count < PATHS_ROOTS_MOST)
		strcpy(roots->path[roots->count++], path);
}

static void add_existing(struct paths_roots *roots, const char *path)
{
	struct safe_dir dir;

	if (!safe_dir_open(&dir, path, SAFE_DIR_OWN, NULL))
		roots_add(dir.path, roots);
	safe_dir_close(&dir);
}

int paths_roots(struct paths_roots *out, struct kymo_error *err)
{
	const char *wish = secure_getenv("KYMO_DIR");
	char path[KYMO_PATH_BYTES];
	int rc = paths_root(path, sizeof(path), err);

	out->count = 0;
	if (!rc)
		roots_add(path, out);
	if (wish && *wish)
		return rc;
	usual_path(path, sizeof(path));
	add_existing(out, path);
	if (runtime_path(path, sizeof(path)))
		add_existing(out, path);
	each_private(roots_add, out);
	return rc;
}

bool paths_in_roots(const char *path)
{
	struct paths_roots roots;
	bool found = false;

	paths_roots(&roots, NULL);
	for (size_t i = 0; i < roots.count && !found; i++) {
		size_t bytes = strlen(roots.path[i]);

		found = !strncmp(path, roots.path[i], bytes) && path[bytes] == '/';
	}
	return found;
}
