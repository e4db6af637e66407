/*
 * A job: a directory whose file `job` marks it as such, with a recording in each subdirectory, as
 * `kymo run -o DIR/` makes them: one for each host or rank. They are opened as one recording.
 *
 * Processes, threads, streams and problems are those of all of them; names are unified. Times count
 * from the earliest start; clocks of hosts are aligned by collectives (host_clocks.h). Processes of
 * different runs that have the same pid differ in their host: of hosts with the same name
 * (containers) the second is NAME#2.
 */
#ifndef KYMO_STORE_JOB_H
#define KYMO_STORE_JOB_H

#include "store/store.h"

#define JOB_MAGIC "KYMOJOB\n"
#define JOB_MARK "job" /* the file: the magic, then the job's id and a newline */

/* Whether the directory has the mark. */
bool job_is(int directory);
/* Returns like store_open(). A recording that cannot be read is a problem of the job, not an
   error, unless none can be. */
int job_open(const char *path, struct recording **out, struct kymo_error *err);
/* Adds to all times of a recording, so that they count from another moment. */
void job_shift(struct recording *recording, int64_t by);
/* Removes all recordings of a job, its mark and its directory; other files stay, and so does the
   directory then. Refuses (-EBUSY) if one of them runs, or may run on another host. */
int job_remove(const char *path, size_t *removed, struct kymo_error *err);

/* The ranks of a recording. */
struct job_ranks {
	int32_t rank; /* -1: none, or several are recorded */
	int32_t ranks; /* of the job; -1: none */
	uint32_t recorded; /* different ranks */
	int64_t steps; /* of the rank that has most; without ranks of all processes together */
};

void job_ranks(const struct recording *recording, struct job_ranks *out);

#endif
