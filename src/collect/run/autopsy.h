/*
 * What a program waited for when it made no progress, kept in its recording: after a kill it cannot
 * be asked any more. When all processes together have used hardly any CPU for two seconds, their
 * stacks are taken as `kymo backtrace --why` does, once, and again every three seconds if the
 * reason changes. Three marks have the reason as a sentence, the function, and all threads; one
 * named AUTOPSY_END says that the program went on.
 */
#ifndef KYMO_COLLECT_RUN_AUTOPSY_H
#define KYMO_COLLECT_RUN_AUTOPSY_H

#include "collect/host/family.h"
#include "collect/run/autopsy_reason.h"

#define AUTOPSY_MARK "no progress"
#define AUTOPSY_PLACE "no progress: place"
#define AUTOPSY_THREADS "no progress: threads"
#define AUTOPSY_END "progress"

struct autopsy {
	uint64_t cpu_ticks; /* of all processes, at the last look */
	uint64_t looked_ns;
	uint64_t idle_since_ns; /* 0: not idle */
	uint64_t taken_ns; /* 0: not in this idle time */
	char reason[AUTOPSY_REASON_BYTES]; /* the last one, to tell whether it changed */
};

/* After each sample of the processes. now_ns: CLOCK_MONOTONIC. */
void autopsy_look(struct autopsy *autopsy, const struct family *family, uint64_t now_ns);

#endif
