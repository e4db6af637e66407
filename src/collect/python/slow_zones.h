/*
 * What a process that records is in the middle of, seen from outside: its open zones, its step, its
 * marks. Read with pread() from its files; the process does nothing for it.
 */
#ifndef KYMO_COLLECT_PYTHON_SLOW_ZONES_H
#define KYMO_COLLECT_PYTHON_SLOW_ZONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/format.h"

#define SLOW_STREAMS 64

struct slow_zones_stream {
	int fd; /* of its head file */
	uint32_t id;
	bool zones; /* else: marks */
	bool ring; /* else: a chain of segments */
	uint64_t marks; /* seen so far */
	/* By depth: the zone that was told of last, and the age at which it will be told of
	   again. */
	uint64_t told[KYMO_OPEN_MAX];
	uint64_t again_ns[KYMO_OPEN_MAX];
};

struct slow_zones {
	char dir[KYMO_PATH_BYTES]; /* of the process, in the live directory */
	int control_fd; /* -1: it does not record (yet) */
	struct slow_zones_stream streams[SLOW_STREAMS];
	size_t stream_count;
	uint64_t looked_ns; /* for new streams */
	uint32_t step;
	uint64_t step_since_ns, step_again_ns;
};

void slow_zones_init(struct slow_zones *slow, const char *run_dir, pid_t pid, uint64_t starttime);
/* Whether something is slow, or was marked, since the last look; *cause says what. Told again when
   twice as old. */
bool slow_zones_look(struct slow_zones *slow, uint64_t limit_ns, char *cause, size_t cause_bytes);
/* The innermost open zone of any thread, and its age; false: none is open. */
bool slow_zones_open_zone(struct slow_zones *slow, pid_t tid, char *name, size_t name_bytes,
			  uint64_t *out_age_ns);
void slow_zones_fini(struct slow_zones *slow);

#endif
