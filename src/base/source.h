/*
 * Where the files of a recording are: a directory, the two halves of a supervised run (the live one on tmpfs, the
 * other on disk, each naming the other as its peer), a snapshot, or bytes in memory. One way to list them and one to
 * open them; paths are relative to the run: "run", "p12-345/s1.head". No malloc: the recorder takes snapshots too.
 */
#ifndef KYMO_BASE_SOURCE_H
#define KYMO_BASE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/readat.h"
#include "base/snapshot_format.h"

#define SOURCE_PATH_BYTES 64 /* as in a snapshot's entries */
/* Of whatever a recording may hold: no link is followed, no pipe or terminal waited for. */
#define SOURCE_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* What a file of a process is, by its name. The order is that of lists. */
enum source_kind {
	SOURCE_CONTROL,
	SOURCE_NAMES,
	SOURCE_TEXT,
	SOURCE_THREADS,
	SOURCE_HEAD, /* s<id>.head */
	SOURCE_TOTALS, /* s<id>.totals */
	SOURCE_SEGMENT, /* s<id>.<seq> */
	SOURCE_FOREIGN, /* none of kymo's */
};

struct source_item {
	char name[SOURCE_PATH_BYTES];
	enum source_kind kind;
	uint32_t id;
	uint64_t sequence;
};

struct source_list {
	struct source_item *items; /* by kind, stream and sequence; each once */
	size_t count;
	size_t room_bytes;
};

/* A file in memory, for tests and fuzzing. */
struct source_blob {
	char path[SOURCE_PATH_BYTES];
	const void *data;
	size_t bytes;
};

struct source {
	int halves[2]; /* directories, the live half first; -1: none */
	char half_paths[2][KYMO_PATH_BYTES];
	struct readat snapshot; /* the file, or its bytes */
	struct kymo_snapshot_head snapshot_head;
	struct kymo_snapshot_entry *entries; /* of the snapshot, by path */
	size_t entry_count, entry_room_bytes;
	size_t refused_entries; /* of the snapshot: damaged, twice, or over one another */
	const struct source_blob *blobs;
	size_t blob_count;
};

enum source_kind source_parse(const char *name, struct source_item *out);
/* "p<pid>-<starttime>", and with ".<life>" after an exec (from 2). */
struct source_process {
	int32_t pid;
	uint32_t life; /* 1: the first */
	uint64_t starttime;
};
bool source_is_process(const char *name, struct source_process *out); /* out may be NULL */

/* path: a run's directory (either half), a process's directory in it, or a snapshot. */
int source_open(struct source *source, const char *path, struct kymo_error *err);
int source_open_snapshot(struct source *source, const void *bytes, size_t byte_count,
			 struct kymo_error *err);
void source_open_blobs(struct source *source, const struct source_blob *blobs, size_t blob_count);
void source_close(struct source *source);
static inline bool source_is_snapshot(const struct source *source)
{
	return source->snapshot.fd >= 0 || source->snapshot.memory;
}

/* -ENOENT (and a sentence) where there is none; never opens anything but a regular file. */
int source_file(const struct source *source, const char *path, struct readat *out,
		struct kymo_error *err);
/* The head of a file, checked for its magic; false: there is none, or it is of another kind. */
bool source_head(const struct source *source, const char *path, const char *magic, void *out,
		 size_t bytes);
/* Names of the process directories. Lists begin as { 0 }; a list that was used before is used again. */
int source_processes(const struct source *source, struct source_list *list);
/* Files of a process, in both halves. The live half is listed first: a segment is copied to disk before it goes there. */
int source_files(const struct source *source, const char *process, struct source_list *list);
void source_list_free(struct source_list *list);
/* The snapshot's entry for a path; NULL: none, or not a snapshot. */
const struct kymo_snapshot_entry *source_entry(const struct source *source, const char *path);

#endif
