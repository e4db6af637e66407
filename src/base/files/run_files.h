/*
 * The files of a recording, which may be a directory, the two directories of a supervised run (the
 * live one on tmpfs and the one on disk, each naming the other as its peer), a snapshot, or bytes
 * in memory. Lists and opens them by paths relative to the run: "run", "p12-345/s1.head". No
 * malloc: the recorder uses it for snapshots.
 */
#ifndef KYMO_BASE_FILES_RUN_FILES_H
#define KYMO_BASE_FILES_RUN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/files/readat.h"
#include "base/files/snapshot_format.h"

#define RUN_FILES_PATH_BYTES 64 /* as in a snapshot's entries */
/* Never follows a link, never waits for a pipe or terminal. */
#define RUN_FILES_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* The kind of a process's file, by its name. Lists are in this order. */
enum run_files_kind {
	RUN_FILES_CONTROL,
	RUN_FILES_NAMES,
	RUN_FILES_TEXT,
	RUN_FILES_THREADS,
	RUN_FILES_HEAD, /* s<id>.head */
	RUN_FILES_TOTALS, /* s<id>.totals */
	RUN_FILES_SEGMENT, /* s<id>.<seq> */
	RUN_FILES_FOREIGN, /* not kymo's */
};

struct run_files_item {
	char name[RUN_FILES_PATH_BYTES];
	enum run_files_kind kind;
	uint32_t id;
	uint64_t sequence;
};

struct run_files_list {
	struct run_files_item *items; /* by kind, stream and sequence, without duplicates */
	size_t count;
	size_t room_bytes;
};

/* A file in memory, for tests and fuzzing. */
struct run_files_blob {
	char path[RUN_FILES_PATH_BYTES];
	const void *data;
	size_t bytes;
};

struct run_files {
	int dirs[2]; /* directories, the live one first; -1: none */
	char dir_paths[2][KYMO_PATH_BYTES];
	struct readat snapshot; /* the file, or its bytes */
	struct kymo_snapshot_head snapshot_head;
	struct kymo_snapshot_entry *entries; /* of the snapshot, by path */
	size_t entry_count, entry_room_bytes;
	size_t refused_entries; /* of the snapshot: damaged, duplicate or overlapping */
	const struct run_files_blob *blobs;
	size_t blob_count;
};

enum run_files_kind run_files_parse(const char *name, struct run_files_item *out);
/* "p<pid>-<starttime>", and with ".<life>" after an exec (from 2). */
struct run_files_process {
	int32_t pid;
	uint32_t life; /* 1: the first */
	uint64_t starttime;
};
/* The file `run` of a directory; its texts end. 0, or a negative errno. */
int run_files_run_of(int dir, struct kymo_run_file *run);
bool run_files_is_process(const char *name, struct run_files_process *out); /* out may be NULL */

/* path: a run's directory (either one), a process's directory in it, or a snapshot. */
int run_files_open(struct run_files *source, const char *path, struct kymo_error *err);
int run_files_open_snapshot(struct run_files *source, const void *bytes, size_t byte_count,
			    struct kymo_error *err);
void run_files_open_blobs(struct run_files *source, const struct run_files_blob *blobs,
			  size_t blob_count);
void run_files_close(struct run_files *source);
static inline bool run_files_is_snapshot(const struct run_files *source)
{
	return source->snapshot.fd >= 0 || source->snapshot.memory;
}

/* -ENOENT and *err: no such file. Opens only regular files. */
int run_files_file(const struct run_files *source, const char *path, struct readat *out,
		   struct kymo_error *err);
/* Reads the header of a file and checks its magic. False: missing, or of another kind. */
bool run_files_head(const struct run_files *source, const char *path, const char *magic, void *out,
		    size_t bytes);
/* Lists the process directories. Initialise a list with { 0 }; a used list may be passed again. */
int run_files_processes(const struct run_files *source, struct run_files_list *list);
/* Lists the files of a process in both directories. The live one is read first, because a segment
   is copied to disk before it is removed there. */
int run_files_list_all(const struct run_files *source, const char *process,
		       struct run_files_list *list);
void run_files_list_free(struct run_files_list *list);
/* The snapshot's entry for a path; NULL: none, or not a snapshot. */
const struct kymo_snapshot_entry *run_files_entry(const struct run_files *source, const char *path);

#endif
