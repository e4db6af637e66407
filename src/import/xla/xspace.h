/*
 * An XSpace, as XLA's profiler returns it: the operations of XLA, by the lines that they ran on. On
 * the host these are the events that have the stat hlo_op; of a device's plane, all events.
 */
#ifndef KYMO_IMPORT_XLA_XSPACE_H
#define KYMO_IMPORT_XLA_XSPACE_H

#include <stddef.h>
#include <stdint.h>

/* In the bytes that were read; not terminated. */
struct xspace_text {
	const char *at;
	uint32_t bytes;
};

struct xspace_line {
	struct xspace_text plane, name;
};

struct xspace_op {
	int64_t start_ns, duration_ns; /* since 1970 */
	struct xspace_text name, module; /* module: bytes 0 if it has none */
	uint32_t line; /* of xspace.lines */
	uint32_t depth;
};

struct xspace {
	struct xspace_line *lines;
	size_t line_count, line_room;
	struct xspace_op *ops; /* by line and start, with their depth */
	size_t op_count, op_room;
};

/* *out is initialised and valid after an error, too. 0; -EINVAL: not well-formed; -ENOMEM. */
int xspace_read(struct xspace *out, const void *bytes, size_t count);
void xspace_free(struct xspace *space);

#endif
