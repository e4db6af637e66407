/* Keeps a lake in order: fewer files, and none of a job that is not needed any more. */
#ifndef KYMO_LAKE_TIDY_H
#define KYMO_LAKE_TIDY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct lake_compacted {
	uint64_t files_before, files_after;
	uint64_t bytes_before, bytes_after;
};

/* path: LAKE/JOB. Merges files of each table. What a reader finds at any moment, and after a kill
   at any moment, has each row once: a merged file names those it stands for. Tables that flushes
   replace are merged only when no process of the job runs. -EBUSY: another one compacts it. */
int lake_compact(const char *path, struct lake_compacted *out, struct kymo_error *err);

struct lake_aligned {
	uint64_t hosts, aligned, refused;
	int64_t error_ns; /* the largest */
};

/* path: LAKE/JOB. Writes dist.clocks of the job, by the calls that are in the lake now: readers
   apply it to dist.collectives. The files of the calls stay as they are. */
int lake_align(const char *path, struct lake_aligned *out, struct kymo_error *err);

/* Removes a job: its file last, so that an interrupted removal can be repeated. Only names of a
   lake are removed. */
int lake_remove(const char *path, uint64_t *out_files, struct kymo_error *err);

#endif
