/* Programs of call frame information: their result at an address are the rules there. */
#ifndef KYMO_COLLECT_FRAMES_FRAME_PROGRAM_H
#define KYMO_COLLECT_FRAMES_FRAME_PROGRAM_H

#include "collect/frames/frame_entry.h"

#define FRAME_PROGRAM_REMEMBERED 32

struct frame_program {
	struct frame_table *table;
	const struct frame_kind *kind;
	struct dwarf_bytes bytes;
	const unsigned char *start; /* of the entry, at address `base` */
	uint64_t base;
	uint64_t location, wanted;
	struct frame_rules now, initial;
	struct frame_rules remembered[FRAME_PROGRAM_REMEMBERED];
	size_t remembered_count;
	bool failed;
};

/* Runs it until its place is beyond the wanted one. False: damaged, or no memory. */
bool frame_program_run(struct frame_program *run);

#endif
