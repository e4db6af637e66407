/*
 * Bytes of a file, plain or gzip (told by its first bytes), through a window that moves. Memory is
 * bounded by the window, whatever the file claims. A file is never mapped: it may be truncated
 * meanwhile.
 */
#ifndef KYMO_IMPORT_INPUT_H
#define KYMO_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "import/json_scan.h"

#define INPUT_WINDOW_BYTES (1u << 20)
#define INPUT_WINDOW_MOST (64u << 20) /* the longest event */

struct input_gzip;

struct input {
	int fd;
	uint64_t file_bytes, read_bytes; /* of the file; 0: unknown */
	uint64_t most_bytes; /* of a pipe; 0: any number */
	uint64_t window_at; /* offset of the window in the unpacked bytes */
	char *window;
	size_t window_bytes; /* without the padding */
	size_t used;
	struct input_gzip *gzip; /* NULL: plain */
	const char *memory; /* a file in memory, for tests and fuzzing; else NULL */
	size_t memory_bytes;
	bool ended;
	struct kymo_error damage; /* why it ended early; code 0: it did not */
};

int input_open(struct input *input, const char *path, struct kymo_error *err);
/* Takes the descriptor, also if it fails. Beyond most_bytes the pipe ends with damage. */
int input_open_pipe(struct input *input, int fd, uint64_t most_bytes, struct kymo_error *err);
int input_open_memory(struct input *input, const void *bytes, size_t count, struct kymo_error *err);
void input_close(struct input *input);

/* Moves the window so that it begins at scan->at, and reads more. Sets scan to it, with state
   JSON_OK. False: there is no more, scan is as before; if damage has no code, the value is longer
   than the largest window, or the file has ended. */
bool input_more(struct input *input, struct json_scan *scan);
/* Offset of scan->at in the unpacked bytes. */
uint64_t input_offset(const struct input *input, const struct json_scan *scan);

/* input_gzip.c, or no_gzip.c without zlib */
struct input_gzip *input_gzip_open(void); /* NULL: cannot be unpacked here */
void input_gzip_close(struct input_gzip *gzip);
/* Unpacks from input->fd or input->memory. The number of bytes, 0 at the end; -1: input->damage. */
long input_gzip_read(struct input *input, char *out, size_t bytes);
/* The next bytes of the file itself. */
long input_raw(struct input *input, char *out, size_t bytes);

#endif
