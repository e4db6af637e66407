/*
 * What a child process leaves for its parent in shared memory, so that the parent can name the
 * recording, end the child at its deadline, and remove the files that a killed child was writing.
 * Without a page (child_notes_use() was not called) all notes do nothing.
 */
#ifndef KYMO_BASE_SCRATCH_CHILD_NOTES_H
#define KYMO_BASE_SCRATCH_CHILD_NOTES_H

#include <stdint.h>

#include "base/format.h"

#define CHILD_NOTES_FILES 4

struct child_notes {
	char recording[KYMO_PATH_BYTES]; /* the one that was opened last */
	char files[CHILD_NOTES_FILES][KYMO_PATH_BYTES + 64]; /* being written; "": free */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, of the running call into DuckDB; 0: none */
	uint32_t limit_ms; /* the time limit that the deadline is made of */
};

/* The page of this process; NULL ends it. */
void child_notes_use(struct child_notes *shared);
void child_notes_recording(const char *path);
void child_notes_deadline(uint64_t deadline_ns, uint32_t limit_ms);
/* A file or directory that is removed if the process is killed, until child_notes_drop(). */
void child_notes_file(const char *path);
void child_notes_drop(const char *path);

/* For the parent, after the death of the child: removes the files, and what DuckDB keeps next to
   them (FILE.wal, FILE.spill). */
void child_notes_clean(const struct child_notes *notes);

#endif
