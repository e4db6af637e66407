/* A snapshot of the last seconds of a recording. */
#ifndef KYMO_TRIGGER_RECENT_H
#define KYMO_TRIGGER_RECENT_H

#include <stdint.h>

#include "base/error.h"

/*
 * Writes the rows of the last last_ns to one file: rows that began or ended in this time, all rows
 * of tables without a time (frames of stacks), and all of the schema kymo, which has few. The zones
 * that are open now are kept, too. path of the recording: a directory of this machine that was
 * recorded since the last boot. Segments that ended before are not read.
 */
int recent_write(const char *directory, uint64_t last_ns, const char *file, struct kymo_error *err);
/* The rows since a moment of CLOCK_MONOTONIC, from which the times in the file count. */
int recent_write_since(const char *directory, uint64_t since_ns, const char *file,
		       struct kymo_error *err);

#endif
