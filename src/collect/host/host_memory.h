/* RSS of a process over time, in rows of host.memory: read as often as its stacks are, and written
   only when it has changed. */
#ifndef KYMO_COLLECT_HOST_HOST_MEMORY_H
#define KYMO_COLLECT_HOST_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_MEMORY_STEP_BYTES (256u << 10) /* a smaller change is not written */
/* Of processes without Python, whose stacks are not read. */
#define HOST_MEMORY_FIRST_NS 10000000ull /* in the first second */
#define HOST_MEMORY_FIRST_FOR_NS 1000000000ull
#define HOST_MEMORY_NS 100000000ull /* afterwards */
#define HOST_MEMORY_SLOWEST_NS 1000000000ull /* while nothing changes */

struct host_memory {
	uint64_t rss_bytes; /* as written */
	uint64_t read_ns; /* 0: never */
};

/* The RSS by the text of /proc/PID/statm; 0: none, as of a zombie. */
uint64_t host_memory_parse(const char *statm);
/* Takes the RSS as read at now_ns. True if it has changed, and a row was written. */
bool host_memory_note(struct host_memory *memory, pid_t pid, uint64_t rss_bytes, uint64_t now_ns);
/* Reads the RSS and takes it. */
bool host_memory_look(struct host_memory *memory, pid_t pid, uint64_t now_ns);
/* The time until the next look, of a run of that age after `unchanged` looks without a change. */
uint64_t host_memory_pause(uint64_t age_ns, uint64_t unchanged);

#endif
