/*
 * A snapshot: the files of a run, one after another in one file, each as a consistent image (a ring
 * has the head and floor of the moment it was copied). Readers treat it like a dead directory: the
 * store maps a path to a range of bytes.
 *
 *	struct kymo_snapshot_head
 *	bytes of the files, each beginning at a multiple of 64
 *	struct kymo_snapshot_entry[count], at toc_offset
 */
#ifndef KYMO_BASE_FILES_SNAPSHOT_FORMAT_H
#define KYMO_BASE_FILES_SNAPSHOT_FORMAT_H

#include "base/format.h"

#define KYMO_MAGIC_SNAPSHOT "KYMOSNP"

struct kymo_snapshot_head {
	struct kymo_file_head file;
	uint64_t toc_offset;
	uint64_t count;
	uint64_t taken_realtime_ns;
	/* the recording's clock, together with CLOCK_MONOTONIC; 0: taken after another boot */
	uint64_t taken_ticks;
	uint64_t taken_monotonic_ns;
	uint64_t reserved;
}; /* 64 bytes */

struct kymo_snapshot_entry {
	char path[64]; /* relative to the run: "run", "p123-456/s1.head"; NUL-padded */
	uint64_t offset;
	uint64_t bytes;
	/* for a control file: 1 if the process was running when the snapshot was taken */
	uint64_t was_running;
	uint64_t reserved;
}; /* 96 bytes */

#endif
