#include "cmds/prompt/history_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files/atomic_file.h"
#include "base/files/paths.h"

#define NAME "query_history"
#define BYTES_KEPT (256 << 10) /* the newest; older ones are removed at twice as many */

/* The last bytes of the file, from the beginning of a line. */
static void read_newest(int fd, struct buf *out)
{
	off_t size = lseek(fd, 0, SEEK_END), from = size > BYTES_KEPT ? size - BYTES_KEPT : 0;
	char block[4096];
	const char *line;
	ssize_t count;

	while ((count = pread(fd, block, sizeof(block), from + (off_t)out->used)) > 0 &&
	       out->used < BYTES_KEPT)
		buf_add(out, block, (size_t)count);
	line = from && out->used ? memchr(out->data, '\n', out->used) : NULL;
	if (line) {
		out->used -= (size_t)(line + 1 - out->data);
		memmove(out->data, line + 1, out->used + 1);
	}
}

static void each_line(struct buf *text, void (*each)(void *context, const char *line),
		      void *context)
{
	char *at = text->data, *end;

	for (; at && *at; at = end + 1) {
		end = strchr(at, '\n');
		if (!end)
			return; /* another prompt is writing it */
		*end = '\0';
		each(context, at);
	}
}

static int history_file_in(int directory)
{
	int fd = openat(directory, NAME, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
			0600);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && !fchmod(fd, 0600))
		return fd;
	close(fd);
	return -1;
}

int history_file_open(void (*each)(void *context, const char *line), void *context)
{
	struct kymo_error err = { 0 };
	struct safe_dir state;
	struct buf text = { 0 };
	int fd;

	if (paths_state_open(&state, &err))
		return -1;
	fd = history_file_in(state.fd);
	if (fd >= 0)
		read_newest(fd, &text);
	if (fd >= 0 && lseek(fd, 0, SEEK_END) > 2 * BYTES_KEPT &&
	    !atomic_file_put(state.fd, NAME, buf_get(&text), text.used)) {
		close(fd);
		fd = history_file_in(state.fd);
	}
	each_line(&text, each, context);
	buf_fini(&text);
	safe_dir_close(&state);
	return fd;
}

void history_file_add(int fd, const char *line)
{
	struct buf text = { 0 };

	buf_text(&text, line);
	buf_char(&text, '\n');
	/* One write, so that lines of two prompts do not mix. A lost history is no error. */
	if (fd >= 0 && !text.failed && write(fd, text.data, text.used) < 0)
		(void)0;
	buf_fini(&text);
}

void history_file_close(int fd)
{
	if (fd >= 0)
		close(fd);
}
