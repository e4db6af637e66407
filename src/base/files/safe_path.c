#include "base/files/safe_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LINKS_MOST 40 /* as the kernel */
#define OVERFLOW_UID 65534u /* every user outside of a user namespace */
#define AUTOFS_MAGIC 0x0187
#define PART_FLAGS (O_PATH | O_NOFOLLOW | O_CLOEXEC)

/* ---- who can exchange what ------------------------------------------------------------------- */

static bool in_user_namespace(void)
{
	char map[64] = "";
	unsigned inside = 0, outside = 0, count = 0;
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, map, sizeof(map) - 1) < 0)
		map[0] = '\0';
	close(fd);
	return sscanf(map, "%u %u %u", &inside, &outside, &count) == 3 && count != 4294967295u;
}

static bool is_trusted(uid_t owner)
{
	return !owner || owner == geteuid() || (owner == OVERFLOW_UID && in_user_namespace());
}

static bool others_may_write(const struct stat *st)
{
	return (st->st_mode & 002) || ((st->st_mode & 020) && st->st_gid);
}

static bool others_can_exchange(const struct stat *st)
{
	return !is_trusted(st->st_uid) || (others_may_write(st) && !(st->st_mode & S_ISVTX));
}

/* ---- one part of the path -------------------------------------------------------------------- */

struct walk {
	struct safe_dir *dir;
	struct kymo_error *err;
	char rest[2 * KYMO_PATH_BYTES]; /* still to be walked */
	const char *at; /* in rest */
	unsigned flags;
	int links;
	bool open_to_links; /* others can put links into the current directory */
};

static int refuse_shared(const struct walk *walk, const struct stat *st)
{
	const char *path = walk->dir->path;

	if (!is_trusted(st->st_uid))
		return error_set(walk->err, EPERM,
				 "%s belongs to user %u, who can replace what is in it by a link; "
				 "use a directory of your own, or run kymo as user %u",
				 path, (unsigned)st->st_uid, (unsigned)st->st_uid);
	return error_set(walk->err, EPERM,
			 "%s is writable by other users (mode %04o, group %u), who can replace "
			 "what is in it by a link; use another directory, or run `chmod go-w %s`",
			 path, (unsigned)(st->st_mode & 07777), (unsigned)st->st_gid, path);
}

static int check_own(const struct walk *walk, const struct stat *st)
{
	const char *path = walk->dir->path;

	if (!S_ISDIR(st->st_mode))
		return error_set(walk->err, ENOTDIR,
				 "%s is not a directory (a symbolic link is not followed); remove "
				 "it or set KYMO_DIR",
				 path);
	if (st->st_uid != geteuid())
		return error_set(walk->err, EPERM,
				 "%s belongs to user %u, not to you (%u); set KYMO_DIR to a "
				 "directory of your own",
				 path, (unsigned)st->st_uid, (unsigned)geteuid());
	if (st->st_mode & 077)
		return error_set(walk->err, EPERM,
				 "%s is accessible to other users (mode %03o); run `chmod 700 %s`",
				 path, (unsigned)(st->st_mode & 0777), path);
	return 0;
}

/* The current directory, just entered. */
static int judge_entered(struct walk *walk, const struct stat *st)
{
	bool shared = others_can_exchange(st);

	walk->open_to_links = shared || others_may_write(st);
	if (!shared)
		return 0;
	if (!geteuid())
		return refuse_shared(walk, st);
	walk->dir->shared = true;
	return 0;
}

static bool is_last(const struct walk *walk)
{
	return !walk->at[strspn(walk->at, "/")];
}

static int walk_failed(const struct walk *walk, const char *what, int code)
{
	return error_set(walk->err, code, "cannot %s %s: %s", what, walk->dir->path,
			 strerror(code));
}

static int add_to_path(struct walk *walk, const char *part)
{
	size_t used = strlen(walk->dir->path);
	int length;

	if (used == 1)
		used = 0; /* "/" */
	length = snprintf(walk->dir->path + used, sizeof(walk->dir->path) - used, "/%s", part);
	return length < 0 || (size_t)length >= sizeof(walk->dir->path) - used
		       ? error_set(walk->err, ENAMETOOLONG, "the path %.60s… is too long",
				   walk->dir->path)
		       : 0;
}

static void drop_from_path(struct walk *walk)
{
	char *slash = strrchr(walk->dir->path, '/');

	slash[slash == walk->dir->path] = '\0';
}

static int walk_into(struct walk *walk, int fd, const struct stat *st)
{
	close(walk->dir->fd);
	walk->dir->fd = fd;
	return judge_entered(walk, st);
}

/* The text of the link replaces it in the rest of the path. */
static int follow_link(struct walk *walk, int link, const struct stat *st)
{
	char target[KYMO_PATH_BYTES], rest[sizeof(walk->rest)];
	ssize_t bytes;
	int length;

	if (walk->open_to_links && !is_trusted(st->st_uid))
		return error_set(walk->err, EPERM,
				 "%s is a symbolic link of user %u, which is not followed; use a "
				 "path without it",
				 walk->dir->path, (unsigned)st->st_uid);
	bytes = readlinkat(link, "", target, sizeof(target) - 1);
	if (bytes < 0 || ++walk->links > LINKS_MOST)
		return walk_failed(walk, "follow the link", bytes < 0 ? errno : ELOOP);
	target[bytes] = '\0';
	length = snprintf(rest, sizeof(rest), "%s/%s", target, walk->at);
	if ((size_t)bytes >= sizeof(target) - 1 || length < 0 || (size_t)length >= sizeof(rest))
		return walk_failed(walk, "follow the link", ENAMETOOLONG);
	strcpy(walk->rest, rest);
	walk->at = walk->rest;
	drop_from_path(walk);
	if (*target != '/')
		return 0;
	strcpy(walk->dir->path, "/");
	length = openat(walk->dir->fd, "/", PART_FLAGS | O_DIRECTORY);
	if (length < 0)
		return walk_failed(walk, "open", errno);
	close(walk->dir->fd);
	walk->dir->fd = length;
	walk->open_to_links = false;
	return 0;
}

/* O_PATH alone does not mount what automount has not mounted yet. */
static int open_part(const struct walk *walk, const char *part)
{
	char inside[NAME_MAX + 3];
	struct statfs fs;
	int fd = openat(walk->dir->fd, part, PART_FLAGS), mounted;

	if (fd < 0 || walk->open_to_links || fstatfs(fd, &fs) || fs.f_type != AUTOFS_MAGIC)
		return fd;
	snprintf(inside, sizeof(inside), "%s/.", part);
	mounted = openat(walk->dir->fd, inside, PART_FLAGS | O_DIRECTORY);
	if (mounted < 0)
		return fd;
	close(fd);
	return mounted;
}

static int open_or_make(const struct walk *walk, const char *part)
{
	int fd = open_part(walk, part);

	if (fd >= 0)
		return fd;
	if (errno != ENOENT || !(walk->flags & SAFE_DIR_MAKE))
		return walk_failed(walk, "open", errno);
	if (mkdirat(walk->dir->fd, part, 0700) && errno != EEXIST)
		return error_set(walk->err, errno,
				 "cannot create the directory %s: %s; set KYMO_DIR to a writable "
				 "directory",
				 walk->dir->path, strerror(errno));
	fd = open_part(walk, part);
	return fd < 0 ? walk_failed(walk, "open", errno) : fd;
}

static int walk_part(struct walk *walk, const char *part)
{
	struct stat st;
	int rc = add_to_path(walk, part);
	int fd = rc ? rc : open_or_make(walk, part);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		rc = walk_failed(walk, "stat", errno);
	else if ((walk->flags & SAFE_DIR_OWN) && is_last(walk))
		rc = check_own(walk, &st);
	if (!rc && S_ISDIR(st.st_mode))
		return walk_into(walk, fd, &st);
	if (!rc && !((walk->flags & SAFE_DIR_ANY) && !S_ISLNK(st.st_mode) && is_last(walk)))
		rc = S_ISLNK(st.st_mode) ? follow_link(walk, fd, &st)
					 : walk_failed(walk, "open", ENOTDIR);
	close(fd);
	return rc;
}

static int walk_up(struct walk *walk)
{
	struct stat st;
	int fd = openat(walk->dir->fd, "..", PART_FLAGS | O_DIRECTORY);

	drop_from_path(walk);
	if (fd < 0)
		return walk_failed(walk, "open", errno);
	if (!fstat(fd, &st))
		return walk_into(walk, fd, &st);
	close(fd);
	return walk_failed(walk, "stat", errno);
}

/* ---- the whole path -------------------------------------------------------------------------- */

static int walk_rest(struct walk *walk)
{
	char part[NAME_MAX + 1];
	int rc = 0;

	while (!rc && *(walk->at += strspn(walk->at, "/"))) {
		size_t bytes = strcspn(walk->at, "/");

		if (bytes >= sizeof(part))
			return walk_failed(walk, "open a name in", ENAMETOOLONG);
		memcpy(part, walk->at, bytes);
		part[bytes] = '\0';
		walk->at += bytes;
		if (!strcmp(part, ".."))
			rc = walk_up(walk);
		else if (strcmp(part, ".") != 0)
			rc = walk_part(walk, part);
	}
	return rc;
}

static int begin_at(struct walk *walk, const char *start)
{
	struct stat st;

	walk->dir->fd = open(start, PART_FLAGS | O_DIRECTORY);
	if (walk->dir->fd < 0 || fstat(walk->dir->fd, &st))
		return walk_failed(walk, "open", errno);
	return judge_entered(walk, &st);
}

static int walk_set_rest(struct walk *walk, const char *first, const char *path)
{
	int length = snprintf(walk->rest, sizeof(walk->rest), "%s/%s", first, path);

	walk->at = walk->rest;
	return length < 0 || (size_t)length >= sizeof(walk->rest)
		       ? error_set(walk->err, ENAMETOOLONG, "the path %.60s… is too long", path)
		       : 0;
}

/* From the working directory itself, whose path this user may not walk: others own a part of it. */
static int walk_from_here(struct walk *walk, const char *path)
{
	char here[KYMO_PATH_BYTES];
	int rc = walk_set_rest(walk, ".", path);

	if (!getcwd(here, sizeof(here)))
		return walk_failed(walk, "find the path of", errno);
	safe_dir_close(walk->dir);
	strcpy(walk->dir->path, here);
	if (!rc)
		rc = begin_at(walk, ".");
	walk->dir->shared = walk->open_to_links = true;
	return rc ? rc : walk_rest(walk);
}

static int walk_from_root(struct walk *walk, const char *path)
{
	char here[KYMO_PATH_BYTES] = "";
	int rc;

	strcpy(walk->dir->path, "/");
	if (*path != '/' && !getcwd(here, sizeof(here)))
		return error_set(walk->err, errno, "cannot find the working directory: %s",
				 strerror(errno));
	rc = walk_set_rest(walk, here, path);
	if (!rc)
		rc = begin_at(walk, "/");
	return rc ? rc : walk_rest(walk);
}

/* Reading needs a descriptor without O_PATH; making files in a directory that cannot be read does
   not. */
static void make_readable(struct safe_dir *dir)
{
	int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	close(dir->fd);
	dir->fd = fd;
}

int safe_dir_open(struct safe_dir *dir, const char *path, unsigned flags, struct kymo_error *err)
{
	struct walk walk = { .dir = dir, .err = err, .flags = flags };
	struct stat st;
	int rc;

	dir->fd = -1;
	dir->shared = false;
	dir->path[0] = '\0';
	rc = walk_from_root(&walk, path);
	if (rc == -EACCES && *path != '/' && geteuid())
		rc = walk_from_here(&walk, path);
	if (!rc && (flags & SAFE_DIR_OWN)) /* of "." and "/", which walk_part() has not seen */
		rc = fstat(dir->fd, &st) ? walk_failed(&walk, "stat", errno)
					 : check_own(&walk, &st);
	if (rc)
		safe_dir_close(dir);
	else
		make_readable(dir);
	return rc;
}

int safe_dir_parent(struct safe_dir *dir, const char *path, unsigned flags, struct kymo_error *err)
{
	char parent[KYMO_PATH_BYTES];
	size_t end = strlen(path), begin;

	dir->fd = -1;
	while (end && path[end - 1] == '/')
		end--;
	for (begin = end; begin && path[begin - 1] != '/';)
		begin--;
	if (end - begin > NAME_MAX || begin + 2 > sizeof(parent))
		return error_set(err, ENAMETOOLONG, "the path %.60s… is too long", path);
	memcpy(dir->name, path + begin, end - begin);
	dir->name[end - begin] = '\0';
	if (!dir->name[0] || !strcmp(dir->name, ".") || !strcmp(dir->name, ".."))
		return error_set(err, EINVAL, "%s is not the name of a file", path);
	/* "." after it, so that "x" becomes "." and "/x" becomes "/.". */
	memcpy(parent, path, begin);
	strcpy(parent + begin, ".");
	return safe_dir_open(dir, parent, flags, err);
}

int safe_path_resolve(const char *path, char *out, size_t out_bytes, struct kymo_error *err)
{
	struct safe_dir dir;
	int rc = safe_dir_open(&dir, path, SAFE_DIR_ANY, err);

	if (!rc && strlen(dir.path) >= out_bytes)
		rc = error_set(err, ENAMETOOLONG, "the path %.60s… is too long", dir.path);
	if (!rc)
		strcpy(out, dir.path);
	safe_dir_close(&dir);
	return rc;
}

const char *safe_dir_reason(int rc, const struct kymo_error *err)
{
	return rc == -EPERM && err->text[0] ? err->text : strerror(-rc);
}

int safe_dir_enter(int directory, const char *name)
{
	struct stat st;
	int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = fstat(fd, &st) ? -errno : st.st_uid != geteuid() ? -EPERM : fd;
	if (rc < 0)
		close(fd);
	return rc;
}

bool safe_dir_same(int one, int other)
{
	struct stat a, b;

	return !fstat(one, &a) && !fstat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void safe_dir_close(struct safe_dir *dir)
{
	if (dir->fd >= 0)
		close(dir->fd);
	dir->fd = -1;
}
