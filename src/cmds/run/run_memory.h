/* kymo run --memory: records allocations from the start. */
#ifndef KYMO_CMDS_RUN_RUN_MEMORY_H
#define KYMO_CMDS_RUN_RUN_MEMORY_H

#include <stdbool.h>

#include "cmds/run/run_python.h"

struct run_memory {
	bool ready, on, exact; /* ready: preloaded, can be turned on at any time */
};

/* "sampled" or NULL, "exact", or "off". -1, or the exit status of a usage error. */
int run_memory_word(struct run_memory *memory, const char *word);
/* Sets variables for the program. injected: kymo is in the program's Pythons already, which the
   lines of Python code need. -1, or the exit status. */
int run_memory_prepare(const struct run_memory *memory, bool injected,
		       struct run_environment *environment);

#endif
