/*
 * Control groups, versions 1 and 2: what a process may use, what its group uses, and how much it
 * waits (pressure). Rows of host.cgroup, one for each group in which some process of the program
 * is.
 */
#ifndef KYMO_COLLECT_HOST_CGROUP_H
#define KYMO_COLLECT_HOST_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CGROUP_PATH_BYTES 256
#define CGROUP_NONE UINT64_MAX /* no limit; not known */

enum cgroup_resource { CGROUP_CPU, CGROUP_MEMORY, CGROUP_IO, CGROUP_RESOURCES };

/* Which group a process is in, by controller; "" where there is none. */
struct cgroup_paths {
	char unified[CGROUP_PATH_BYTES]; /* version 2 */
	char memory[CGROUP_PATH_BYTES]; /* version 1 */
	char cpu[CGROUP_PATH_BYTES];
};

/* Time in which some, or all, of the group waited, in µs since it began; CGROUP_NONE: not kept. */
struct cgroup_pressure {
	uint64_t some_us, full_us;
};

struct cgroup_reading {
	uint64_t memory_bytes, memory_limit_bytes;
	double cpu_limit; /* cores; 0: none */
	uint64_t throttled_ns, throttled_count;
	struct cgroup_pressure pressure[CGROUP_RESOURCES];
};

/* The text of /proc/PID/cgroup. */
void cgroup_parse_paths(const char *text, struct cgroup_paths *out);
/* The text of cpu.pressure, memory.pressure, io.pressure. */
void cgroup_parse_pressure(const char *text, struct cgroup_pressure *out);
/* "max" or a number, of version 2; a number that is next to 2^63 means none in version 1. */
uint64_t cgroup_parse_limit(const char *text);
/* The text of cpu.max: cores; 0: none. */
double cgroup_parse_cpu_max(const char *text);
/* Reads a group under a root, /sys/fs/cgroup but in tests. Limits are the smallest of the group and
   all above it. */
void cgroup_read(const char *root, const struct cgroup_paths *paths, struct cgroup_reading *out);

#define CGROUP_GROUPS 16

struct cgroup {
	struct cgroup_group {
		struct cgroup_paths paths;
		struct cgroup_reading last;
		uint64_t read_ns, sample;
		pid_t pid; /* the process that led here */
	} groups[CGROUP_GROUPS];
	size_t count;
	uint64_t samples;
};

/* Of this process the group is sampled, unless one of the same sample was in it. */
void cgroup_sample(struct cgroup *cgroup, pid_t pid, uint64_t now_ns);
/* Ends a round of cgroup_sample(). */
void cgroup_next(struct cgroup *cgroup);

#endif
