/* Writes a snapshot: one file after another, then the table of contents. No malloc. After the first
   error all calls do nothing. */
#ifndef KYMO_RECORD_SNAPSHOT_FILE_H
#define KYMO_RECORD_SNAPSHOT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/files/snapshot_format.h"

#define SNAPSHOT_FILE_BUFFER_BYTES (256u << 10)

struct snapshot_file {
	int fd;
	int error; /* the first error, negative */
	uint64_t at; /* offset of the next byte */
	/* RLIMIT_FSIZE: beyond it the kernel would send SIGXFSZ to the user's program */
	uint64_t most;
	char *buffer; /* SNAPSHOT_FILE_BUFFER_BYTES */
	size_t buffered;
	struct kymo_snapshot_entry *entries;
	size_t count, room_bytes;
	/* returned by kymo__snapshot_file_end() if there was no memory for an entry */
	struct kymo_snapshot_entry nowhere;
};

void kymo__snapshot_file_write_at(struct snapshot_file *writer, const char *bytes, size_t count,
				  uint64_t at);
void kymo__snapshot_file_flush(struct snapshot_file *writer);
void kymo__snapshot_file_add(struct snapshot_file *writer, const void *bytes, size_t count);
void kymo__snapshot_file_add_zeros(struct snapshot_file *writer, size_t count);
/* process NULL: a file of the run itself. */
void kymo__snapshot_file_begin(struct snapshot_file *writer, const char *process, const char *name);
struct kymo_snapshot_entry *kymo__snapshot_file_end(struct snapshot_file *writer);

#endif
