/* Expressions of call frame information: as of PLT entries, signal frames and realigned stacks. */
#ifndef KYMO_COLLECT_FRAMES_FRAME_EXPRESSION_H
#define KYMO_COLLECT_FRAMES_FRAME_EXPRESSION_H

#include "collect/frames/frame_rules.h"

/* first: pushed before it begins; NULL: nothing. False: not supported, or memory that was not
   copied. */
bool frame_expression(const unsigned char *bytes, size_t count, const uint64_t *first,
		      const struct frame_state *state, const struct frame_memory *memory,
		      uint64_t *out);

#endif
