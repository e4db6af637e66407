#include "base/files/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define SMALL_TMPFS_BYTES (256ull << 20)

static int root_is_fallback;

int paths_root_is_fallback(void)
{
	return root_is_fallback;
}

/* Creates the directory, or accepts one that only this user can access. */
static int own_directory(const char *path, struct kymo_error *err)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return error_set(
			err, errno,
			"cannot create the directory %s: %s; set KYMO_DIR to a writable directory",
			path, strerror(errno));
	if (lstat(path, &st))
		return error_set(err, errno, "cannot stat %s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return error_set(err, ENOTDIR,
				 "%s is not a directory (a symbolic link is not followed); remove "
				 "it or set KYMO_DIR",
				 path);
	if (st.st_uid != geteuid())
		return error_set(err, EPERM,
				 "%s belongs to user %u, not to you (%u); set KYMO_DIR to a "
				 "directory of your own",
				 path, (unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & 077)
		return error_set(err, EPERM,
				 "%s is accessible to other users (mode %03o); run `chmod 700 %s`",
				 path, (unsigned)(st.st_mode & 0777), path);
	return 0;
}

/* mkdir -p, mode 0700. */
static int make_parents(const char *path, struct kymo_error *err)
{
	char part[1024];
	size_t length = strlen(path);

	if (length >= sizeof(part))
		return error_set(err, ENAMETOOLONG, "the path %.60s… is too long", path);
	memcpy(part, path, length + 1);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0700) && errno != EEXIST)
			return error_set(err, errno, "cannot create the directory %s: %s", part,
					 strerror(errno));
		*slash = '/';
	}
	return 0;
}

int paths_state(char *out, size_t out_bytes, struct kymo_error *err)
{
	const char *state = secure_getenv("XDG_STATE_HOME");
	const char *home = secure_getenv("HOME");
	int length;
	int rc;

	if (state && *state == '/')
		length = snprintf(out, out_bytes, "%s/kymo", state);
	else if (home && *home == '/')
		length = snprintf(out, out_bytes, "%s/.local/state/kymo", home);
	else
		return error_set(err, ENOENT,
				 "neither XDG_STATE_HOME nor HOME is set; set KYMO_DIR to a "
				 "directory for recordings");
	if (length < 0 || (size_t)length >= out_bytes)
		return error_set(err, ENAMETOOLONG, "the path of the state directory is too long");
	rc = make_parents(out, err);
	return rc ? rc : own_directory(out, err);
}

static int tmpfs_is_large_enough(void)
{
	struct statfs fs;

	if (statfs("/dev/shm", &fs) || access("/dev/shm", W_OK))
		return 0;
	return (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize >= SMALL_TMPFS_BYTES;
}

int paths_root(char *out, size_t out_bytes, struct kymo_error *err)
{
	const char *wish = secure_getenv("KYMO_DIR");
	int rc;

	root_is_fallback = 0;
	if (wish && *wish) {
		if (strlen(wish) >= out_bytes)
			return error_set(err, ENAMETOOLONG, "KYMO_DIR is too long");
		strcpy(out, wish);
		rc = make_parents(out, err);
		return rc ? rc : own_directory(out, err);
	}
	if (tmpfs_is_large_enough()) {
		snprintf(out, out_bytes, "/dev/shm/kymo-%u", (unsigned)geteuid());
		return own_directory(out, err);
	}
	root_is_fallback = 1;
	rc = paths_state(out, out_bytes, err);
	if (rc)
		return rc;
	if (strlen(out) + 6 > out_bytes)
		return error_set(err, ENAMETOOLONG, "the path of the state directory is too long");
	strcat(out, "/live");
	return own_directory(out, err);
}

/* Only characters that are safe and readable in a file name. */
static void plain_name(const char *program, char *out, size_t out_bytes)
{
	size_t n = 0;

	for (; *program && n + 1 < out_bytes; program++) {
		char c = *program;
		int plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || ((c == '.' || c == '-' || c == '_') && n > 0);

		out[n++] = plain ? c : '_';
	}
	out[n] = '\0';
}

int paths_make_run(const char *root, const char *program, pid_t pid, char *out, size_t out_bytes,
		   struct kymo_error *err)
{
	char name[64], when[32];
	time_t now = time(NULL);
	struct tm parts;

	plain_name(program && *program ? program : "program", name, sizeof(name));
	gmtime_r(&now,
		 &parts); /* not localtime: it takes a lock that may be held in a forked child */
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &parts);
	for (int try = 0; try < 100; try++) {
		int length = snprintf(out, out_bytes, try ? "%s/%s-%s-%d.%d" : "%s/%s-%s-%d", root,
				      name, when, (int)pid, try);

		if (length < 0 || (size_t)length >= out_bytes)
			return error_set(err, ENAMETOOLONG,
					 "the path of the recording in %s is too long", root);
		if (!mkdir(out, 0700))
			return 0;
		if (errno != EEXIST)
			return error_set(err, errno, "cannot create the recording %s: %s", out,
					 strerror(errno));
	}
	return error_set(err, EEXIST,
			 "cannot make a recording in %s: a hundred recordings of that name exist",
			 root);
}

/* A number of /proc/PID/stat, fields counted from 1; 0: no such process. */
static uint64_t stat_field(pid_t pid, int wanted)
{
	char path[48], text[1024];
	char *at;
	ssize_t bytes;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (bytes <= 0)
		return 0;
	text[bytes] = '\0';
	at = strrchr(text, ')'); /* the program's name may contain anything */
	for (int field = 2; at && field < wanted; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t paths_starttime(pid_t pid)
{
	return stat_field(pid, 22);
}

pid_t paths_parent(pid_t pid)
{
	return (pid_t)stat_field(pid, 4);
}

void paths_process(const char *run, pid_t pid, uint64_t starttime, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s/p%d-%llu", run, (int)pid, (unsigned long long)starttime);
}
