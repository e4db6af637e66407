/*
 * A file of a recording, a range of a file, or bytes in memory: read by copying, never mapped. A
 * file that is truncated meanwhile is then a short read; a mapping would raise SIGBUS.
 */
#ifndef KYMO_BASE_FILES_READAT_H
#define KYMO_BASE_FILES_READAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/format.h"

struct readat {
	const unsigned char *memory; /* not NULL: the bytes, and fd is -1 */
	int fd; /* -1: none */
	bool whole; /* the whole file, as it grows; else [offset, offset + bytes) */
	bool owned; /* readat_close() closes fd */
	uint64_t offset, bytes;
};

#define READAT_NONE \
	{ \
		NULL, -1, false, false, 0, 0 \
	}

/* The current number of bytes. */
uint64_t readat_size(const struct readat *file);
/* Copies [at, at + bytes). Returns the number of bytes copied. */
size_t readat_copy(const struct readat *file, uint64_t at, void *out, size_t bytes);
static inline bool readat_all(const struct readat *file, uint64_t at, void *out, size_t bytes)
{
	return readat_copy(file, at, out, bytes) == bytes;
}
/*
 * The next bytes of [at, end) that are stored; false: none. The rest are holes of a sparse file:
 * they read as zeros, which no writer publishes. Memory, and files of systems without holes, are
 * stored completely.
 */
bool readat_stored(const struct readat *file, uint64_t at, uint64_t end, uint64_t *out_from,
		   uint64_t *out_to);
/* As readat_copy(), into zeroed memory whose pages are not touched where the file has holes. */
size_t readat_copy_stored(const struct readat *file, uint64_t at, void *out, size_t bytes);
void readat_close(struct readat *file); /* READAT_NONE is fine */

/*
 * Copies the struct at the start of a file after checking magic, version and length. Fields that an
 * older version did not write are 0. `label` names the file in *err. -ENODATA: not complete; the
 * recorder stores the magic last.
 */
int readat_head(const struct readat *file, const char *magic, void *out, size_t out_bytes,
		const char *label, struct kymo_error *err);

#endif
