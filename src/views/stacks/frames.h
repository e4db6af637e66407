/* Names with their source, file and line, each once, numbered from 0 in the order of appearance. */
#ifndef KYMO_VIEWS_STACKS_FRAMES_H
#define KYMO_VIEWS_STACKS_FRAMES_H

#include <stddef.h>
#include <stdint.h>

struct frames_one {
	const char *name, *source, *file; /* ended by NUL; may hold others; "" : not known */
	uint32_t name_bytes, source_bytes, file_bytes;
	int32_t line; /* 0: not known */
};

struct frames {
	struct frames_one *list;
	size_t count, room;
	uint32_t *slots; /* number + 1 */
	size_t slot_count; /* a power of two */
};

#define FRAMES_NONE UINT32_MAX

/* The number of a frame, which is copied at its first appearance; FRAMES_NONE without memory. */
uint32_t frames_number(struct frames *frames, const struct frames_one *one);
void frames_fini(struct frames *frames);

#endif
