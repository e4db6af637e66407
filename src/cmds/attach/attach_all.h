/* kymo attach --all: a process of this command for each program of the user. */
#ifndef KYMO_CMDS_ATTACH_ATTACH_ALL_H
#define KYMO_CMDS_ATTACH_ATTACH_ALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_all {
	const char *directory; /* the folder of the recordings; NULL: ./kymo-programs */
	const char *pattern; /* of the command line; NULL: every program that starts from now on */
	uint64_t duration_ns; /* 0: until a signal arrives */
	uint64_t most_bytes; /* of recordings of programs that have ended */
	/* Records one program, in a process of its own. Returns the exit status. */
	int (*record)(void *context, pid_t pid, uint64_t starttime, const char *directory);
	void *context;
};

/* Returns the exit status. */
int attach_all(const struct attach_all *all);

#endif
