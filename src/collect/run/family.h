/*
 * The program and all its descendants, as /proc shows them. Only processes that are new since the
 * last look are read, so that a look costs one listing of /proc. A child whose parents are gone
 * before anybody looked is not found here; if it records, its directory tells of it (archive.c).
 */
#ifndef KYMO_COLLECT_RUN_FAMILY_H
#define KYMO_COLLECT_RUN_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/host/host_threads.h"

struct family_member {
	pid_t pid;
	uint64_t starttime;
	char name[64]; /* as last seen: exec changes it */
	bool gone;
	bool recorded; /* it has made a directory: set by the owner of this struct */
	/* host.c's: what the last sample saw */
	uint64_t cpu_ticks, sampled_ns;
	struct host_threads tasks;
	uint64_t network_namespace; /* inode; 0: not looked at yet */
};

struct family {
	struct family_member
		*members; /* [0] is the program; those that are gone stay until family_forget() */
	size_t count, room;
	pid_t *seen; /* pids of the last look, sorted */
	size_t seen_count;
	uint64_t looks;
	uint64_t gone_unrecorded; /* members forgotten that had not recorded */
	char gone_names[128]; /* of some of them */
};

/* Before the program starts: who is there already is no descendant of it. */
void family_init(struct family *family);
/* The program itself. 0 or -ENOMEM. */
int family_root(struct family *family, pid_t root, uint64_t starttime, const char *name);
/* Finds new descendants and marks those that are gone. */
void family_look(struct family *family);
struct family_member *family_find(struct family *family, pid_t pid, uint64_t starttime);
/* A process that is known to belong though /proc did not show it in time. */
struct family_member *family_add(struct family *family, pid_t pid, uint64_t starttime,
				 const char *name);
/* Drops members that are gone, and counts those that did not record; never the program itself. */
void family_forget(struct family *family);
void family_fini(struct family *family);

#endif
