/*
 * Open zones, the current step and marks of a process that records, read from outside with pread()
 * on its files. The process is not involved.
 */
#ifndef KYMO_COLLECT_SAMPLE_SLOW_ZONES_H
#define KYMO_COLLECT_SAMPLE_SLOW_ZONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/format.h"

#define SLOW_STREAMS 64

struct slow_zones_stream {
	int fd; /* of its head file */
	uint32_t id;
	bool zones; /* false: marks */
	bool ring; /* false: a chain of segments */
	uint64_t marks; /* seen so far */
	/* By depth: the start of the zone reported last, and the age at which it is reported
	   again. */
	uint64_t reported_start[KYMO_OPEN_MAX];
	uint64_t again_ns[KYMO_OPEN_MAX];
};

struct slow_zones {
	char dir[KYMO_PATH_BYTES]; /* of the process, in the live directory */
	int control_fd; /* -1: it does not record yet */
	struct slow_zones_stream streams[SLOW_STREAMS];
	size_t stream_count;
	uint64_t searched_ns; /* the last search for new streams */
	uint32_t step;
	uint64_t step_since_ns, step_again_ns;
};

void slow_zones_init(struct slow_zones *zones, const char *run_dir, pid_t pid, uint64_t starttime);
/* True if a zone or step is slow, or a mark was set since the last call; *cause describes it. A
   slow zone is reported again each time its age has doubled. */
bool slow_zones_look(struct slow_zones *zones, uint64_t limit_ns, char *cause, size_t cause_bytes);
/* The innermost open zone of the thread and its age; false: none is open. */
bool slow_zones_open_zone(struct slow_zones *zones, pid_t tid, char *name, size_t name_bytes,
			  uint64_t *out_age_ns);
void slow_zones_fini(struct slow_zones *zones);

#endif
