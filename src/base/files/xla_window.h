/*
 * A window of XLA's profiler as the recorded program writes it, and kymo run decodes it after the
 * program's end: this header, then the XSpace, a protocol buffer. kymo run creates the file, which
 * has no name, and gives its path below /proc in KYMO_XLA_FILE. Programs append with one write.
 */
#ifndef KYMO_BASE_FILES_XLA_WINDOW_H
#define KYMO_BASE_FILES_XLA_WINDOW_H

#include <stdint.h>

#define XLA_WINDOW_MAGIC "KYMOXLA1"
#define XLA_WINDOWS_BYTES_MAX (UINT64_C(1) << 28) /* of the file: then no more windows */

struct xla_window {
	char magic[8];
	uint64_t bytes; /* of the XSpace */
	uint64_t starttime; /* with pid: the process, as its control page has them */
	int32_t pid;
	uint32_t step;
	/* Both clocks, read together, at the begin and at the end of the window. */
	uint64_t begin_ticks, begin_realtime_ns;
	uint64_t end_ticks, end_realtime_ns;
};

/* The XSpace is followed by zeros up to a multiple of 8. */
static inline uint64_t xla_window_padded(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

#endif
