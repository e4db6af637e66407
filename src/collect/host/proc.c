#include "collect/host/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

ssize_t proc_read(const char *path, char *out, size_t out_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t got = 0;

	if (fd < 0)
		return -errno;
	while (used < out_bytes - 1) {
		got = read(fd, out + used, out_bytes - 1 - used);
		if (got <= 0 && !(got < 0 && errno == EINTR))
			break;
		used += got > 0 ? (size_t)got : 0;
	}
	if (got < 0)
		got = -errno;
	close(fd);
	out[used] = '\0';
	return got < 0 && !used ? got : (ssize_t)used;
}

/* Field 3 and the numbers 4 to 24 come after the last parenthesis of the name. */
#define FIRST_NUMBER 4
#define LAST_NUMBER 24

static void proc_take_name(const char *from, const char *to, char *out, size_t out_bytes)
{
	size_t length = (size_t)(to - from);

	if (length >= out_bytes)
		length = out_bytes - 1;
	memcpy(out, from, length);
	out[length] = '\0';
}

int proc_parse_stat(const char *text, struct proc_stat *out)
{
	const char *name = strchr(text, '(');
	const char *end = strrchr(text, ')');
	uint64_t number[LAST_NUMBER + 1] = { 0 };
	char *at;

	if (!name || !end || end < name || strlen(end) < 4)
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	out->pid = (pid_t)strtol(text, NULL, 10);
	proc_take_name(name + 1, end, out->name, sizeof(out->name));
	out->state = end[2];
	at = (char *)end + 3;
	for (int field = FIRST_NUMBER; field <= LAST_NUMBER; field++) {
		char *from = at;

		number[field] = (uint64_t)strtoll(from, &at, 10);
		if (at == from)
			return -EINVAL;
	}
	out->ppid = (pid_t)number[4];
	out->group = (pid_t)number[5];
	out->session = (pid_t)number[6];
	out->terminal = number[7] != 0;
	out->minor_faults = number[10];
	out->children_faults = number[11];
	out->major_faults = number[12];
	out->user_ticks = number[14];
	out->system_ticks = number[15];
	out->children_ticks = number[16] + number[17];
	out->threads = (uint32_t)number[20];
	out->starttime = number[22];
	out->vms_bytes = number[23];
	out->rss_bytes = number[24] * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

uint64_t proc_ticks_ns(uint64_t ticks)
{
	return ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

int proc_stat(pid_t pid, struct proc_stat *out)
{
	char path[48], text[1024];
	ssize_t bytes;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	bytes = proc_read(path, text, sizeof(text));
	rc = bytes < 0 ? (int)bytes : proc_parse_stat(text, out);
	if (!rc)
		out->starttime = clock_shared_starttime(out->starttime);
	return rc;
}

bool proc_alive(pid_t pid, uint64_t starttime)
{
	struct proc_stat stat;

	if (proc_stat(pid, &stat) || stat.starttime != starttime)
		return false;
	return stat.state != 'Z' && stat.state != 'X' && stat.state != 'x';
}

/* The last number of "NSpid:	4711	12	1": the pid in the innermost namespace. */
static bool is_inner_pid(pid_t outer, pid_t inner)
{
	char path[48], text[4096];
	char *at, *end, *last;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)outer);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return false;
	at = strstr(text, "\nNSpid:");
	end = at ? strchr(at + 1, '\n') : NULL;
	if (!end)
		return false;
	*end = '\0';
	last = strrchr(at, '\t');
	return last && strtol(last, NULL, 10) == inner;
}

bool proc_alive_elsewhere(pid_t pid, uint64_t starttime)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	bool alive = false;

	while (directory && !alive && (entry = readdir(directory))) {
		pid_t outer = (pid_t)strtol(entry->d_name, NULL, 10);

		alive = outer > 0 && proc_alive(outer, starttime) && is_inner_pid(outer, pid);
	}
	if (directory)
		closedir(directory);
	return alive;
}

uint64_t proc_field(const char *text, const char *key, uint64_t fallback)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, length))
			return strtoull(line + length, NULL, 10);
	}
	return fallback;
}
