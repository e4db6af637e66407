/*
 * Moves complete data from the live directory of a run (memory) to its disk directory.
 *
 * A sealed segment k of a stream is copied to a temporary file, renamed into place on disk, claimed
 * by a compare-and-swap of the stream's segment_first from k to k + 1, and unlinked in the live
 * directory. Therefore
 *  - a reader that lists the live directory first and the disk directory second sees every row at
 *    least once: the file is on disk before it leaves the live directory. A segment that is seen
 *    twice has the same number;
 *  - a mover that is killed at any point leaves the file in one directory or in both;
 *  - if the process has dropped the segment in the meantime (its budget), the swap fails and our
 *    copy is removed.
 * A process that has ended is moved as a whole: all files are on disk, `control` last, before its
 * directory leaves the live directory by one rename.
 *
 * The files belong to the recorded program: they are read by pread() (a truncated file is a short
 * read), and the swap is guarded (guard.h). Nothing here blocks or signals the program.
 */
#ifndef KYMO_COLLECT_MOVE_ARCHIVE_H
#define KYMO_COLLECT_MOVE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/budget.h"
#include "collect/keep_rules.h"

#define ARCHIVE_NAME_BYTES 40 /* "p<pid>-<starttime>" */

/* A process in the live directory. */
struct archive_process {
	char name[ARCHIVE_NAME_BYTES];
	pid_t pid; /* in its own pid namespace */
	uint64_t starttime;
	int control_fd; /* -1: could not be opened yet */
	bool foreign; /* its pid namespace is not ours */
	bool broken; /* its segments cannot be claimed; ignored until it has ended */
	uint64_t held_bytes; /* when nothing was left to move */
	uint64_t scanned_bytes; /* held at the last scan */
	uint64_t segment_bytes; /* of the largest segment in the last pass that moved any */
	uint64_t scanned_ns; /* time of the last scan of its streams */
};

/* A segment on disk, in a queue with the oldest first: removed when the disk budget is used up. */
struct archive_segment {
	char process[ARCHIVE_NAME_BYTES];
	uint32_t stream;
	uint64_t sequence;
	uint64_t bytes;
	uint64_t arrived_ns; /* its newest row is at most this old */
	int rule; /* of archive.keep; -1: none */
	unsigned level; /* of the rule */
};

struct archive {
	int live_fd, disk_fd; /* borrowed */
	struct budget budget;
	struct keep_rules keep; /* by table; may be set after archive_init() */
	uint64_t (*clock)(void); /* clock_monotonic_ns() */
	double ns_per_tick; /* of times in rows; 0: unknown, and nothing is thinned */
	uint64_t expired_ns; /* when the rules were last applied */
	pid_t self; /* the collector's own process, which is retired last */
	struct archive_process *processes;
	size_t process_count, process_room;
	struct archive_segment *queue;
	size_t queue_first, queue_count, queue_room;
	uint64_t disk_bytes;
	uint64_t retry_ns; /* after a failure: not before this time */
	bool reported_full;
	int64_t changed_ns; /* when the live directory was, in realtime */
	int64_t listed_ns; /* when it was listed, in realtime; 0: to be listed */
	unsigned idle; /* passes in a row without anything to do */
	/* results */
	uint64_t recorded_processes; /* of the program, ever */
	uint64_t recorded_rows; /* published by those that have been retired */
	uint64_t removed_segments; /* removed to keep the disk budget */
	uint64_t expired_segments; /* removed by the rules of archive.keep */
	uint64_t thinned_segments; /* that became one with others */
	uint64_t thinned_rows; /* that these had more than the one */
	int last_error; /* a negative errno of the disk; 0: none */
};

void archive_init(struct archive *archive, int live_fd, int disk_fd, const struct budget *budget);
void archive_fini(struct archive *archive);
/* Finds new processes and moves sealed segments. Returns the milliseconds until the next call. */
int archive_pass(struct archive *archive);
/* Removes segments on disk that are older, or more, than their rule allows, or thins them as it
   says. Totals of zones are in other files and stay. */
void archive_expire(struct archive *archive);
/* Moves processes that have ended as a whole. To be called from time to time. */
void archive_retire_dead(struct archive *archive);
/* Writes the wait status of the program, which has ended, to its control page. */
void archive_mark_target(struct archive *archive, pid_t pid, uint64_t starttime, int wstatus);
/* Moves the collector's own files, after its last row. */
void archive_retire_self(struct archive *archive);
/* Number of processes left in the live directory: still running, or not movable. */
static inline size_t archive_left(const struct archive *archive)
{
	return archive->process_count;
}
/* True for processes of kymo: the collector, one that joined, or a command that changed a
   setting. */
bool archive_is_collector(const struct archive *archive, struct archive_process *process);
/* True if a process of the program, not of kymo, is in the live directory. */
bool archive_has_program(struct archive *archive);
bool archive_process_alive(const struct archive_process *process);

#endif
