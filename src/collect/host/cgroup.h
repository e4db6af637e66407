/*
 * Control groups, versions 1 and 2: limits, usage and pressure (waiting time). Rows of host.cgroup,
 * one for each group with a process of the program.
 */
#ifndef KYMO_COLLECT_HOST_CGROUP_H
#define KYMO_COLLECT_HOST_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CGROUP_PATH_BYTES 256
#define CGROUP_NONE UINT64_MAX /* no limit, or unknown */

enum cgroup_resource { CGROUP_CPU, CGROUP_MEMORY, CGROUP_IO, CGROUP_RESOURCES };

/* The groups of a process by controller; "" if none. */
struct cgroup_paths {
	char unified[CGROUP_PATH_BYTES]; /* version 2 */
	char memory[CGROUP_PATH_BYTES]; /* version 1 */
	char cpu[CGROUP_PATH_BYTES];
};

/* Time in which some or all tasks of the group waited, in µs since its start; CGROUP_NONE: not
   available. */
struct cgroup_pressure {
	uint64_t some_us, full_us;
};

struct cgroup_reading {
	uint64_t memory_bytes, memory_limit_bytes;
	double cpu_limit; /* cores; 0: none */
	uint64_t throttled_ns, throttled_count;
	uint64_t oom_kills; /* processes killed because memory ran out, since the group began */
	struct cgroup_pressure pressure[CGROUP_RESOURCES];
};

/* Parses the text of /proc/PID/cgroup. */
void cgroup_parse_paths(const char *text, struct cgroup_paths *out);
/* Parses the text of cpu.pressure, memory.pressure or io.pressure. */
void cgroup_parse_pressure(const char *text, struct cgroup_pressure *out);
/* Parses "max" or a number (version 2); a number close to 2^63 means no limit (version 1). */
uint64_t cgroup_parse_limit(const char *text);
/* Parses the text of cpu.max: cores; 0: no limit. */
double cgroup_parse_cpu_max(const char *text);
/* Reads a group below root (/sys/fs/cgroup except in tests). Limits are the smallest of the group
   and its ancestors. */
void cgroup_read(const char *root, const struct cgroup_paths *paths, struct cgroup_reading *out);
#define CGROUP_ALL_HIERARCHIES UINT32_MAX
/* As cgroup_read(), of the hierarchies in the mask only. Returns those that have told something: on
   most machines one or two of five. */
uint32_t cgroup_read_some(const char *root, const struct cgroup_paths *paths, uint32_t hierarchies,
			  struct cgroup_reading *out);

#define CGROUP_GROUPS 16

struct cgroup {
	struct cgroup_group {
		struct cgroup_paths paths;
		struct cgroup_reading last;
		uint64_t read_ns, sample;
		uint32_t hierarchies, reads;
		pid_t pid; /* a process of the group */
	} groups[CGROUP_GROUPS];
	size_t count;
	uint64_t samples;
};

/* Samples the group of this process, unless it was sampled in this round already. */
void cgroup_sample(struct cgroup *cgroup, pid_t pid, uint64_t now_ns);
/* Samples all groups once more, after their processes have ended: the kills are counted late. */
void cgroup_last(struct cgroup *cgroup, uint64_t now_ns);
/* Ends a round of cgroup_sample(). */
void cgroup_next(struct cgroup *cgroup);

#endif
