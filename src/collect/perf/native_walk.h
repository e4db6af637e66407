/* The callers of a sampled function, from the copy of its stack: by call frame information, else by
   frame pointers. */
#ifndef KYMO_COLLECT_PERF_NATIVE_WALK_H
#define KYMO_COLLECT_PERF_NATIVE_WALK_H

#include "collect/perf/address_space.h"

#define NATIVE_WALK_DEEPEST 512

struct native_frame {
	uint64_t address; /* within the instruction that was executed, or that called */
	struct module *module; /* NULL: compiled code, or memory without a file */
	uint64_t in_file; /* the address in the module's file */
	uint64_t function; /* in the file, from call frame information; 0: not known */
	/* For the interpreter loop: what its registers and its part of the stack contained. */
	uint64_t sp, cfa;
	uint64_t registers[FRAME_REGISTERS];
};

struct native_walk {
	struct native_frame frames[NATIVE_WALK_DEEPEST]; /* innermost first */
	size_t count;
	bool complete; /* the outermost frame was reached */
	bool cut; /* the copied part of the stack ended before */
	bool unmapped; /* an address was in no known mapping */
};

void native_walk(struct address_space *space, const struct perf_record *sample,
		 struct native_walk *out);

#endif
