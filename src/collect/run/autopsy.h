/*
 * What a program waited for when it made no progress, kept in its recording: after a kill it cannot
 * be asked any more. When all processes together have used hardly any CPU for two seconds, their
 * stacks are taken as `kymo backtrace --why` does, once, and again every ten seconds if the reason
 * changes. A mark named AUTOPSY_MARK has the reason, one named AUTOPSY_END says that the program
 * went on.
 */
#ifndef KYMO_COLLECT_RUN_AUTOPSY_H
#define KYMO_COLLECT_RUN_AUTOPSY_H

#include "collect/host/family.h"

#define AUTOPSY_MARK "no progress"
#define AUTOPSY_END "progress"

struct autopsy {
	uint64_t cpu_ticks; /* of all processes, at the last look */
	uint64_t looked_ns;
	uint64_t idle_since_ns; /* 0: not idle */
	uint64_t taken_ns; /* 0: not in this idle time */
	char reason[512]; /* the last one, to tell whether it changed */
};

/* After each sample of the processes. now_ns: CLOCK_MONOTONIC. */
void autopsy_look(struct autopsy *autopsy, const struct family *family, uint64_t now_ns);

#endif
