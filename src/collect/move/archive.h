/*
 * The mover: takes what is complete out of the live half of a run (memory) into the half on disk.
 *
 * A sealed segment k of a stream goes in this order: copied aside, renamed into place on disk,
 * claimed by a compare-and-swap of the stream's segment_first from k to k + 1, unlinked in the
 * live half. So
 *  - who lists the live half first and the disk half after it sees every row at least once: the
 *    file is on disk before it leaves the live half. What is seen twice has the same number;
 *  - a mover that is killed at any point leaves the file in one half or in both;
 *  - where the process gave the segment up meanwhile (its budget), the swap fails and our copy
 *    goes again.
 * A process that has ended goes as a whole: everything is on disk, `control` last, before its
 * directory leaves the live half by one rename.
 *
 * The files belong to the recorded program: they are read by pread() (a file cut short is a short
 * read), and the swap is guarded (guard.h). Nothing here blocks or signals the program.
 */
#ifndef KYMO_COLLECT_MOVE_ARCHIVE_H
#define KYMO_COLLECT_MOVE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/run/budget.h"

#define ARCHIVE_NAME_BYTES 40 /* "p<pid>-<starttime>" */

/* A process that is in the live half. */
struct archive_process {
	char name[ARCHIVE_NAME_BYTES];
	pid_t pid; /* in its own pid namespace */
	uint64_t starttime;
	int control_fd; /* -1: could not be opened yet */
	bool foreign; /* its pid namespace is not ours */
	bool broken; /* its files cannot be claimed: left alone until it has ended */
	uint64_t held_bytes; /* as last seen */
	uint64_t segment_bytes; /* of the largest segment that was moved when any was */
	uint64_t scanned_ns; /* its streams were looked at */
};

/* A segment on disk, oldest first in a queue: what goes when the disk's budget is used up. */
struct archive_segment {
	char process[ARCHIVE_NAME_BYTES];
	uint32_t stream;
	uint64_t sequence;
	uint64_t bytes;
};

struct archive {
	int live_fd, disk_fd; /* borrowed */
	struct budget budget;
	pid_t self; /* the collector's own process: it ends last */
	struct archive_process *processes;
	size_t process_count, process_room;
	struct archive_segment *queue;
	size_t queue_first, queue_count, queue_room;
	uint64_t disk_bytes;
	uint64_t retry_ns; /* after a failure: not before */
	bool said_full;
	/* results */
	uint64_t recorded_processes; /* of the program, ever */
	uint64_t recorded_rows; /* published by those that have been retired */
	uint64_t removed_segments; /* for the disk's budget */
	int last_error; /* of the disk, negative; 0: all is well */
};

void archive_init(struct archive *archive, int live_fd, int disk_fd, const struct budget *budget);
void archive_fini(struct archive *archive);
/* Notices new processes, moves sealed segments. Milliseconds until it should be called again. */
int archive_pass(struct archive *archive);
/* Processes that have ended go to disk as a whole. Call it now and then. */
void archive_retire_dead(struct archive *archive);
/* The program has ended: its wait status, for its control page. */
void archive_mark_target(struct archive *archive, pid_t pid, uint64_t starttime, int wstatus);
/* The collector itself, when it has written its last row. */
void archive_retire_self(struct archive *archive);
/* What is left in the live half: processes that run on, or could not be moved. */
static inline size_t archive_left(const struct archive *archive)
{
	return archive->process_count;
}
/* kymo itself: the collector, one that joined, or a command that changed a setting. */
bool archive_is_collector(const struct archive *archive, struct archive_process *process);
/* Some process of the program, rather than kymo itself, is in the live half. */
bool archive_has_program(struct archive *archive);
bool archive_process_alive(const struct archive_process *process);

#endif
