/*
 * Stacks of a profile (speedscope, pprof) until its frames are known: a tree whose nodes are frames
 * below their callers. Both formats may name the frames after the stacks that consist of them.
 */
#ifndef KYMO_IMPORT_PROFILES_PROFILE_STACKS_H
#define KYMO_IMPORT_PROFILES_PROFILE_STACKS_H

#include "import/trace.h"

#define PROFILE_DEPTH_MOST 4096u /* frames beyond, at the inner end of a stack, are left out */
#define PROFILE_NODES_MOST (1u << 22)
#define PROFILE_ROWS_MOST (1u << 23) /* that counts stand for; beyond, a stack is one row */

struct profile_node {
	uint32_t parent; /* its number; 0: none */
	uint32_t frame; /* number of a frame, in the format's own list */
};

struct profile_stacks {
	TRACE_LIST(profile_node, nodes); /* entry 0 is not used */
	struct intern index;
};

/* A function at a line. */
struct profile_frame {
	struct json_text name, file, module; /* bytes 0: none */
	int64_t line;
};

/* The node of a frame below `parent`; 0: no memory, or too many. */
uint32_t profile_stacks_node(struct profile_stacks *stacks, uint32_t parent, uint32_t frame);
void profile_stacks_fini(struct profile_stacks *stacks);

/* "f (dir/x.py:12)", as kymo names frames of samples, is a function, a file and a line. of_kymo:
   "f (libx.so)" has a library, too. The texts stay as long as the trace. */
void profile_frame_split(struct trace *trace, struct profile_frame *frame, bool of_kymo);
bool profile_frame_is_python(const struct profile_frame *frame);
/* The trace's own node of it, below a node of the trace; 0: no memory. */
uint32_t profile_frame_node(struct trace *trace, uint32_t parent,
			    const struct profile_frame *frame);

#endif
