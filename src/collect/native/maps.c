#include "collect/native/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int maps_parse(const char *line, struct maps_row *row)
{
	unsigned major = 0, minor = 0;
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &row->start, &row->end, row->mode, &row->offset, &major, &minor, &row->inode,
		   &at) < 7 ||
	    !at)
		return -EINVAL;
	row->device = (uint64_t)major << 32 | minor;
	snprintf(row->path, sizeof(row->path), "%s", line + at);
	row->path[strcspn(row->path, "\n")] = '\0';
	return 0;
}

int maps_each(pid_t pid, int (*each)(void *context, const struct maps_row *row), void *context)
{
	struct maps_row row;
	char path[48], *line = NULL;
	size_t room = 0;
	FILE *file;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (!rc && getline(&line, &room, file) > 0)
		if (!maps_parse(line, &row))
			rc = each(context, &row);
	free(line);
	fclose(file);
	return rc;
}

/* The descriptor of O_PATH holds the file that was checked, even if its name is replaced. */
int maps_open_regular(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC), opened;
	char again[32];
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOEXEC;
	}
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	opened = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (opened < 0)
		opened = -errno;
	close(fd);
	return opened;
}

void maps_file(pid_t pid, const struct maps_row *row, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, row->start,
		 row->end);
	/* map_files works for deleted files, too, but needs privileges. */
	if (access(out, R_OK))
		snprintf(out, out_bytes, "/proc/%d/root%s", (int)pid, row->path);
}
