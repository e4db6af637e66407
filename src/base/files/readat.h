/*
 * A file of a recording, or a range of one, or bytes in memory: read by copying, never mapped. A
 * file that is cut short under us is then a short read; through a mapping it would be SIGBUS.
 */
#ifndef KYMO_BASE_FILES_READAT_H
#define KYMO_BASE_FILES_READAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/format.h"

struct readat {
	const unsigned char *memory; /* not NULL: there, and fd is -1 */
	int fd; /* -1: none */
	bool whole; /* all of the file, also what it grows by; else [offset, offset + bytes) */
	bool owned; /* readat_close() closes fd */
	uint64_t offset, bytes;
};

#define READAT_NONE \
	{ \
		NULL, -1, false, false, 0, 0 \
	}

/* How many bytes there are now. */
uint64_t readat_size(const struct readat *file);
/* Copies [at, at + bytes); returns how much of it there was. */
size_t readat_copy(const struct readat *file, uint64_t at, void *out, size_t bytes);
static inline bool readat_all(const struct readat *file, uint64_t at, void *out, size_t bytes)
{
	return readat_copy(file, at, out, bytes) == bytes;
}
void readat_close(struct readat *file); /* an empty one is fine */

/*
 * Copies the struct that begins a file, after checking magic, version and length; what an older
 * minor version did not write is zero. `label` names the file in *err. -ENODATA: not begun; the
 * recorder stores the magic last.
 */
int readat_head(const struct readat *file, const char *magic, void *out, size_t out_bytes,
		const char *label, struct kymo_error *err);

#endif
