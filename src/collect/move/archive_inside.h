/* Shared by archive.c (moves segments) and retire.c (moves ended processes). */
#ifndef KYMO_COLLECT_MOVE_ARCHIVE_INSIDE_H
#define KYMO_COLLECT_MOVE_ARCHIVE_INSIDE_H

#include <stddef.h>

#include "base/format.h"
#include "collect/move/archive.h"

/* Offset of a word of a stream's live header in its file. */
#define LIVE_WORD(field) (KYMO_LIVE_OFFSET + offsetof(struct kymo_stream_live, field))

/* Opens a directory inside another, never through a symbolic link. */
int archive_open_directory(int parent, const char *name);
int archive_open_on_disk(const struct archive *archive, const char *name);
/* Reads exactly `bytes` bytes; false: the file is too short. */
bool archive_read_exactly(int fd, void *out, size_t bytes, uint64_t at);
/* Calls each() with every name in the directory that is not hidden, until it returns nonzero. */
int archive_for_each_name(int directory_fd, int (*each)(const char *name, void *context),
			  void *context);
/* Counts bytes on disk, and removes the oldest segments when the budget is exceeded. */
void archive_count_bytes(struct archive *archive, uint64_t bytes);
/* Adds a segment to the queue. It is in the order of arrival, so the oldest rows of each stream are
   removed first, and no gap arises within a stream. */
void archive_account(struct archive *archive, const char *process, uint32_t stream,
		     uint64_t sequence, uint64_t bytes, int rule);
/* Segments of one stream, in order, become one file under the name of the first, with one row in
   each period. 0; 1: rows of this table are not thinned; or a negative errno, and they are
   unchanged. */
int archive_thin(struct archive *archive, const struct archive_segment *const *batch, size_t count,
		 uint64_t period_ns, uint64_t *out_bytes);
/* Of the stream whose head file this is; -1: none. */
int archive_rule(const struct archive *archive, int head_fd);
/* "s<id>.head" */
bool archive_parse_head_name(const char *name, uint32_t *out_id);
/* Opens the control page, which is created shortly after the directory. */
bool archive_open_control(const struct archive *archive, struct archive_process *process);
int archive_notice(const char *name, void *context);
unsigned long archive_life_of(const struct archive_process *process);
void archive_disk_failed(struct archive *archive, int error);
void archive_drop_process(struct archive *archive, size_t index);

#endif
