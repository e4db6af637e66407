#include "base/files/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static int paths_give(const struct safe_dir *dir, char *out, size_t out_bytes,
		      struct kymo_error *err)
{
	if (strlen(dir->path) >= out_bytes)
		return error_set(err, ENAMETOOLONG, "the path %.60s… is too long", dir->path);
	strcpy(out, dir->path);
	return 0;
}

int paths_state_open(struct safe_dir *out, struct kymo_error *err)
{
	const char *state = secure_getenv("XDG_STATE_HOME");
	const char *home = secure_getenv("HOME");
	char path[KYMO_PATH_BYTES];
	int length;

	out->fd = -1;
	if (state && *state == '/')
		length = snprintf(path, sizeof(path), "%s/kymo", state);
	else if (home && *home == '/')
		length = snprintf(path, sizeof(path), "%s/.local/state/kymo", home);
	else
		return error_set(err, ENOENT,
				 "neither XDG_STATE_HOME nor HOME is set; set KYMO_DIR to a "
				 "directory for recordings");
	if (length < 0 || (size_t)length >= sizeof(path))
		return error_set(err, ENAMETOOLONG, "the path of the state directory is too long");
	return safe_dir_open(out, path, SAFE_DIR_MAKE | SAFE_DIR_OWN, err);
}

int paths_state(char *out, size_t out_bytes, struct kymo_error *err)
{
	struct safe_dir dir;
	int rc = paths_state_open(&dir, err);

	if (!rc)
		rc = paths_give(&dir, out, out_bytes, err);
	safe_dir_close(&dir);
	return rc;
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

int paths_make_run_at(const struct safe_dir *root, const char *program, pid_t pid, char *out,
		      size_t out_bytes, struct kymo_error *err)
{
	char name[64], when[32];
	time_t now = time(NULL);
	struct tm parts;

	plain_name(program && *program ? program : "program", name, sizeof(name));
	gmtime_r(&now,
		 &parts); /* not localtime: it takes a lock that may be held in a forked child */
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &parts);
	for (int try = 0; try < 100; try++) {
		int length = snprintf(out, out_bytes, try ? "%s/%s-%s-%d.%d" : "%s/%s-%s-%d",
				      root->path, name, when, (int)pid, try);

		if (length < 0 || (size_t)length >= out_bytes)
			return error_set(err, ENAMETOOLONG,
					 "the path of the recording in %s is too long", root->path);
		if (!mkdirat(root->fd, out + strlen(root->path) + 1, 0700))
			return 0;
		if (errno != EEXIST)
			return error_set(err, errno, "cannot create the recording %s: %s", out,
					 strerror(errno));
	}
	return error_set(err, EEXIST,
			 "cannot make a recording in %s: a hundred recordings of that name exist",
			 root->path);
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
	return clock_shared_starttime(stat_field(pid, 22));
}

pid_t paths_parent(pid_t pid)
{
	return (pid_t)stat_field(pid, 4);
}

void paths_process(const char *run, pid_t pid, uint64_t starttime, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s/p%d-%llu", run, (int)pid, (unsigned long long)starttime);
}
