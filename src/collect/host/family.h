/*
 * The program and all its descendants, found in /proc. Only processes that are new since the last
 * scan are read: the kernel gives pids in order, and /proc/loadavg ends with the last one. If there
 * are few new ones, /proc is not listed. A child whose parent ended between two scans is not found
 * here; if it records, its directory is found by archive.c.
 */
#ifndef KYMO_COLLECT_HOST_FAMILY_H
#define KYMO_COLLECT_HOST_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/host/host_memory.h"
#include "collect/host/host_threads.h"

struct family_member {
	pid_t pid;
	uint64_t starttime;
	char name[64]; /* of the last scan: exec changes it */
	bool gone;
	bool recorded; /* it has a directory; set by the owner of this struct */
	/* values of the last sample, used by host.c */
	uint64_t cpu_ticks, sampled_ns;
	uint64_t rss_bytes, peak_bytes;
	struct host_memory memory;
	struct host_threads threads;
	uint64_t network_namespace; /* inode; 0: not read yet */
};

struct family {
	/* [0] is the program; ended ones stay until family_forget() */
	struct family_member *members;
	size_t count, room;
	pid_t last_pid; /* of the host, at the last scan; 0: not known */
	uint64_t looks;
	uint64_t gone_unrecorded; /* forgotten members that did not record */
	char gone_names[128]; /* of some of them */
};

/* Called before the program starts: existing processes are not its descendants. */
void family_init(struct family *family);
/* Adds the program itself. 0 or -ENOMEM. */
int family_root(struct family *family, pid_t root, uint64_t starttime, const char *name);
/* Finds new descendants and marks those that have ended. */
void family_look(struct family *family);
struct family_member *family_find(struct family *family, pid_t pid, uint64_t starttime);
/* Adds a process that belongs to the program but was not found in /proc. */
struct family_member *family_add(struct family *family, pid_t pid, uint64_t starttime,
				 const char *name);
/* Drops members that have ended, except the program, and counts those that did not record. */
void family_forget(struct family *family);
void family_fini(struct family *family);

#endif
