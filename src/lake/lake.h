/*
 * Writes recordings into a lake: Parquet files that any engine reads (docs/lake.md). DuckDB writes
 * them, in a process of its own, never in the recorded program.
 *
 * A flush writes the rows that its recording has got since the one before. Its files are named by
 * the number of rows of their table that came earlier, and a file is never replaced, so that a
 * flush that is repeated, or that was killed at any point, neither doubles nor loses a row. How far
 * each stream is in the lake is in kymo.flushes, and in the footer of each file.
 */
#ifndef KYMO_LAKE_LAKE_H
#define KYMO_LAKE_LAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/format.h"

/* 0: regions, processes, streams; 1: also steps, collectives, host; 2: all tables. */
enum { LAKE_TIER_TOTALS, LAKE_TIER_STEPS, LAKE_TIER_ALL };

/* A time in which the lake could not be written. */
#define LAKE_GAPS_MOST 64u
struct lake_gap {
	uint64_t from_unix_ns, to_unix_ns;
	uint32_t attempts;
	char reason[256];
};

/* What the process that writes while the program runs knows of its own flushes. */
struct lake_gaps {
	struct lake_gap list[LAKE_GAPS_MOST];
	size_t count;
	bool open; /* the last one has not ended */
	uint64_t flushes, cpu_ns;
};

struct lake_options {
	const char *lake; /* its directory, which is made if it is missing */
	const char
		*run; /* name of the job; NULL: the id of its scheduler, or made of the recording */
	int tier;
	/* Whether tables of tier 2 of a rank are wanted; NULL: those of all ranks. */
	bool (*wants_rank)(const void *context, int32_t rank);
	const void *context;
	/* The program runs: tables that are computed from all of its rows wait for its end. */
	bool running;
	uint32_t threads; /* of DuckDB; 0: one for each core */
	uint64_t memory_bytes; /* limit of DuckDB; 0: tables_own_memory() */
	const struct lake_gaps *gaps; /* NULL: none */
	/* 0 of all *_ns of a new job; 0: the start of the recording */
	uint64_t epoch_unix_ns;
};

struct lake_result {
	char job[KYMO_PATH_BYTES + 128]; /* LAKE/JOB: what kymo query takes */
	uint64_t rows, bytes, files; /* written */
};

/* path: a recording or a directory of recordings of a job. Adds to *out. -EBUSY: another process
   writes the same recording into this lake now. */
int lake_add(const char *path, const struct lake_options *options, struct lake_result *out,
	     struct kymo_error *err);
/* Writes kymo.now of a recording alone. */
int lake_now(const char *path, const struct lake_options *options, struct kymo_error *err);

#endif
