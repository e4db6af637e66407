/* kymo import: traces of other tools become a recording. docs/import.md has the formats. */
#ifndef KYMO_IMPORT_IMPORT_H
#define KYMO_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/intern.h"

struct import_options {
	const char *output; /* the directory to make */
	const char *const
		*comm; /* patterns (fnmatch) of kernels that communicate; ends with NULL */
	/* Bytes of the file read so far, of all; may be NULL. */
	void (*progress)(void *context, uint64_t done, uint64_t all);
	/* A sentence about a file that was read only in part; may be NULL. */
	void (*say)(void *context, const char *sentence);
	void *context;
};

struct import_result {
	size_t files, processes;
	uint64_t events, rows, skipped; /* rows: events that have a row */
	int64_t duration_ns;
};

/* pids of the recording so far: equal ones of different machines get another number. */
struct import_pids {
	int32_t *list;
	size_t count, room;
	struct intern index;
	int32_t free_pid; /* for the next that has none: all below are taken */
	size_t files; /* in all */
	struct import_result *result;
};

/* Files and directories; of a directory all files that are traces by their content. */
int import_files(const char *const *paths, size_t count, const struct import_options *options,
		 struct import_result *result, struct kymo_error *err);
/* Calls `each` for every file that import_files() reads of them, in its order. */
int import_each_file(const char *const *paths, size_t count,
		     void (*each)(const char *file, void *context), void *context,
		     struct kymo_error *err);
/* Whether the file is a trace that import_files() reads, by its first bytes. */
bool import_is_trace(const char *path);

/* TARGET of a command line, as store_resolve(); a file that is a trace, or a directory of traces,
   becomes a recording in the user's cache (import_cache.c). how: progress and say; may be NULL. */
int import_resolve(const char *target, char *out, size_t out_bytes,
		   const struct import_options *how, struct kymo_error *err);

/* The same of several traces, as one recording. */
int import_resolve_files(const char *const *files, size_t count, char *out, size_t out_bytes,
			 const struct import_options *how, struct kymo_error *err);

struct input;
struct trace;
/* Reads all events. A file that is damaged or cut keeps what was read, and *damage says why. A
   negative errno and *err: nothing in it is a trace. */
int import_events(struct trace *trace, struct input *input, struct kymo_error *damage,
		  struct kymo_error *err);

#endif
