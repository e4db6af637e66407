/* An XSpace of XLA's profiler: whatever the bytes are, the reader stays within them, and every
   operation refers to a line, in the order that its struct promises. */
#include <stdint.h>
#include <stdlib.h>

#include "import/xla/xspace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_text(const uint8_t *data, size_t bytes, struct xspace_text text)
{
	const uint8_t *at = (const uint8_t *)text.at;

	if (text.bytes &&
	    (at < data || at > data + bytes || text.bytes > (size_t)(data + bytes - at)))
		abort();
}

static void check_op(const struct xspace *space, size_t i)
{
	const struct xspace_op *op = &space->ops[i], *before = i ? op - 1 : op;

	if (op->line >= space->line_count || before->line > op->line ||
	    (before->line == op->line && before->start_ns > op->start_ns))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct xspace space;
	int rc = xspace_read(&space, data, bytes);

	for (size_t i = 0; i < space.line_count; i++) {
		check_text(data, bytes, space.lines[i].plane);
		check_text(data, bytes, space.lines[i].name);
	}
	for (size_t i = 0; i < space.op_count; i++) {
		check_text(data, bytes, space.ops[i].name);
		check_text(data, bytes, space.ops[i].module);
		if (!rc)
			check_op(&space, i);
	}
	xspace_free(&space);
	return 0;
}
