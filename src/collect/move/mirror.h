/*
 * Copies to the disk directory what a reader needs beside the segments that archive.h has moved:
 * control pages, names, threads, and of each stream its header, totals and the segment that is
 * being written. What is on disk reads by itself when the host, its memory or the collector is
 * gone.
 *
 * A copy is of one moment: the header has the head from before its rows were copied and the floor
 * from after it (format.h), and its totals are copied while no fold is under way (fold.h). For a
 * stream that folds all the time that may not succeed: its copy then has no totals, as its header
 * shows.
 */
#ifndef KYMO_COLLECT_MOVE_MIRROR_H
#define KYMO_COLLECT_MOVE_MIRROR_H

#include "collect/move/archive.h"

struct mirror {
	uint64_t next_ns; /* not before this time */
};

/* Refreshes the copies of processes that run, if it is time: after 5 seconds, then every
   10, and at most for a hundredth of the time. Streams without new rows cost one read. */
void mirror_refresh(struct mirror *mirror, struct archive *archive);

#endif
