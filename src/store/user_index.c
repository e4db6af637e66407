/* The index of recordings outside KYMO_DIR and the working directory: a file with one path per
   line. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/atomic_file.h"
#include "base/buf.h"
#include "base/files/paths.h"
#include "store/discover.h"

#define INDEX_BYTES_MAX (1u << 20)

#define INDEX "index"

/* Opens and locks it; reopens it if it was replaced meanwhile. */
static int index_open(int state)
{
	struct stat mine, there;
	int fd;

	for (int try = 0; try < 10; try++) {
		fd = openat(state, INDEX, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
			    0600);
		if (fd < 0 || flock(fd, LOCK_EX) || fstat(fd, &mine))
			break;
		if (!fstatat(state, INDEX, &there, AT_SYMLINK_NOFOLLOW) &&
		    mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
			return fd;
		close(fd);
		fd = -1;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static char *index_read(int fd)
{
	const struct readat file = { .fd = fd, .whole = true };
	uint64_t size = readat_size(&file);
	char *text;
	size_t bytes;

	if (size > INDEX_BYTES_MAX)
		size = INDEX_BYTES_MAX;
	text = malloc((size_t)size + 1);
	if (!text)
		return NULL;
	bytes = readat_copy(&file, 0, text, (size_t)size);
	text[bytes] = '\0';
	return text;
}

char *discover_index_text(void)
{
	struct safe_dir state;
	char *text;
	int fd = paths_state_open(&state, NULL)
			 ? -1
			 : openat(state.fd, INDEX, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	safe_dir_close(&state);
	if (fd < 0)
		return NULL;
	text = index_read(fd);
	close(fd);
	return text;
}

char *discover_next_line(char **rest)
{
	char *line = *rest;
	char *end;

	if (!line || !*line)
		return NULL;
	end = strchr(line, '\n');
	*rest = end ? end + 1 : line + strlen(line);
	if (end)
		*end = '\0';
	return line;
}

/* Keeps the recordings that still exist, without `gone`. */
static int index_rewrite(int state, char *text, const char *gone, const char *added)
{
	struct buf kept = { 0 };
	char *rest = text, *line;
	int rc;

	while ((line = discover_next_line(&rest)))
		if (*line == '/' && (!gone || strcmp(line, gone)) &&
		    (!added || strcmp(line, added)) && !access(line, F_OK))
			buf_print(&kept, "%s\n", line);
	if (added)
		buf_print(&kept, "%s\n", added);
	rc = kept.failed ? -ENOMEM : atomic_file_put(state, INDEX, buf_get(&kept), kept.used);
	buf_fini(&kept);
	return rc;
}

static int index_change(const char *gone, const char *added, struct kymo_error *err)
{
	struct safe_dir state;
	int rc = paths_state_open(&state, err);
	int fd;
	char *text;

	if (rc)
		return rc;
	fd = index_open(state.fd);
	if (fd < 0) {
		rc = error_set(err, errno, "cannot open the index of recordings %s/" INDEX ": %s",
			       state.path, strerror(errno));
		safe_dir_close(&state);
		return rc;
	}
	text = index_read(fd);
	rc = text ? index_rewrite(state.fd, text, gone, added) : -ENOMEM;
	if (rc)
		error_set(err, -rc, "cannot write the index of recordings %s/" INDEX ": %s",
			  state.path, strerror(-rc));
	free(text);
	close(fd); /* also unlocks */
	safe_dir_close(&state);
	return rc;
}

int store_remember(const char *path, struct kymo_error *err)
{
	char whole[PATH_MAX];

	if (!realpath(path, whole))
		return error_set(err, errno, "cannot add the recording %s to the index: %s", path,
				 strerror(errno));
	if (strlen(whole) >= KYMO_PATH_BYTES || strchr(whole, '\n'))
		return error_set(err, EINVAL,
				 "cannot add the recording %s to the index: its path is too long "
				 "or has a line break",
				 path);
	return index_change(NULL, whole, err);
}

void discover_forget(const char *path)
{
	char *text = discover_index_text();
	bool listed = text && strstr(text, path);

	free(text);
	if (listed)
		index_change(path, NULL, NULL);
}
