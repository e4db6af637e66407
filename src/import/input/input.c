#include "import/input/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

long input_raw(struct input *input, char *out, size_t bytes)
{
	ssize_t got;

	if (input->memory) {
		size_t left = input->memory_bytes - (size_t)input->read_bytes;

		bytes = bytes < left ? bytes : left;
		memcpy(out, input->memory + input->read_bytes, bytes);
		input->read_bytes += bytes;
		return (long)bytes;
	}
	do
		got = read(input->fd, out, bytes);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		error_set(&input->damage, errno, "it cannot be read: %s", strerror(errno));
	else
		input->read_bytes += (uint64_t)got;
	if (input->most_bytes && input->read_bytes > input->most_bytes) {
		error_set(&input->damage, EFBIG, "it expands to more than %llu MB",
			  (unsigned long long)(input->most_bytes >> 20));
		return -1;
	}
	return (long)got;
}

static int make_window(struct input *input, struct kymo_error *err)
{
	input->window_bytes = INPUT_WINDOW_BYTES;
	input->window = calloc(1, input->window_bytes + JSON_SCAN_PADDING);
	return input->window ? 0 : error_set(err, ENOMEM, "no memory to read a trace");
}

static int input_begin(struct input *input, const unsigned char *magic, struct kymo_error *err)
{
	int rc = make_window(input, err);

	if (!rc && magic[0] == 0x1f && magic[1] == 0x8b) {
		input->gzip = input_gzip_open();
		if (!input->gzip)
			rc = error_set(err, ENOTSUP,
				       "it is compressed, and this kymo was built without zlib; "
				       "unpack it with gunzip");
	}
	if (rc)
		input_close(input);
	return rc;
}

int input_open(struct input *input, const char *path, struct kymo_error *err)
{
	unsigned char magic[2] = { 0 };
	struct stat status;

	memset(input, 0, sizeof(*input));
	input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (input->fd < 0)
		return error_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(input->fd, &status) || !S_ISREG(status.st_mode)) {
		close(input->fd);
		input->fd = -1;
		return error_set(err, EINVAL, "%s is not a regular file", path);
	}
	input->file_bytes = (uint64_t)status.st_size;
	if (pread(input->fd, magic, 2, 0) < 0)
		magic[0] = 0; /* the first read reports it */
	return input_begin(input, magic, err);
}

int input_open_pipe(struct input *input, int fd, uint64_t most_bytes, struct kymo_error *err)
{
	const unsigned char magic[2] = { 0 };

	memset(input, 0, sizeof(*input));
	input->fd = fd;
	input->most_bytes = most_bytes;
	return input_begin(input, magic, err);
}

int input_open_memory(struct input *input, const void *bytes, size_t count, struct kymo_error *err)
{
	unsigned char magic[2] = { 0 };

	memset(input, 0, sizeof(*input));
	input->fd = -1;
	input->memory = bytes;
	input->memory_bytes = count;
	input->file_bytes = count;
	memcpy(magic, bytes, count < 2 ? count : 2);
	return input_begin(input, magic, err);
}

void input_close(struct input *input)
{
	if (input->gzip)
		input_gzip_close(input->gzip);
	if (input->fd >= 0)
		close(input->fd);
	free(input->window);
	memset(input, 0, sizeof(*input));
	input->fd = -1;
}

static bool input_grow(struct input *input)
{
	size_t bytes = input->window_bytes * 2;
	char *window = bytes <= INPUT_WINDOW_MOST
			       ? realloc(input->window, bytes + JSON_SCAN_PADDING)
			       : NULL;

	if (!window)
		return false;
	input->window = window;
	input->window_bytes = bytes;
	return true;
}

/* Until the window is full or the file ends. */
static void input_fill(struct input *input)
{
	while (!input->ended && input->used < input->window_bytes) {
		size_t room = input->window_bytes - input->used;
		long got = input->gzip ? input_gzip_read(input, input->window + input->used, room)
				       : input_raw(input, input->window + input->used, room);

		if (got > 0)
			input->used += (size_t)got;
		else
			input->ended = true;
	}
	memset(input->window + input->used, 0, JSON_SCAN_PADDING);
}

bool input_more(struct input *input, struct json_scan *scan)
{
	size_t done = scan->at ? (size_t)(scan->at - input->window) : 0;
	size_t left = input->used - done;

	if (input->ended)
		return false;
	if (done) {
		memmove(input->window, input->window + done, left);
		input->window_at += done;
		input->used = left;
	} else if (left == input->window_bytes && !input_grow(input)) {
		return false;
	}
	input_fill(input);
	scan->at = input->window;
	scan->end = input->window + input->used;
	scan->state = JSON_OK;
	return input->used > left;
}

uint64_t input_offset(const struct input *input, const struct json_scan *scan)
{
	return input->window_at + (scan->at ? (uint64_t)(scan->at - input->window) : 0);
}
