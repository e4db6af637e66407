/* A snapshot's bytes: one file after another, and the table of contents. No malloc; the first error ends all. */
#ifndef KYMO_RECORD_SNAPFILE_H
#define KYMO_RECORD_SNAPFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/snapshot_format.h"

#define SNAPFILE_BUFFER_BYTES (256u << 10)

struct snapfile {
	int fd;
	int error; /* the first one, negative; all later calls do nothing */
	uint64_t at; /* where the next byte goes */
	uint64_t
		most; /* RLIMIT_FSIZE: beyond it the kernel would send a signal, to a program that is not ours */
	char *buffer; /* SNAPFILE_BUFFER_BYTES */
	size_t buffered;
	struct kymo_snapshot_entry *entries;
	size_t count, room_bytes;
	struct kymo_snapshot_entry
		nowhere; /* what kymo__snapfile_end() fills when there was no memory for an entry */
};

void kymo__snapfile_write_at(struct snapfile *writer, const char *bytes, size_t count, uint64_t at);
void kymo__snapfile_flush(struct snapfile *writer);
void kymo__snapfile_add(struct snapfile *writer, const void *bytes, size_t count);
void kymo__snapfile_add_zeros(struct snapfile *writer, size_t count);
/* process NULL: a file of the run itself. */
void kymo__snapfile_begin(struct snapfile *writer, const char *process, const char *name);
struct kymo_snapshot_entry *kymo__snapfile_end(struct snapfile *writer);

#endif
