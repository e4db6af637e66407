/* What archive.c (moving segments) and retire.c (processes that have ended) share. */
#ifndef KYMO_COLLECT_MOVE_ARCHIVE_INSIDE_H
#define KYMO_COLLECT_MOVE_ARCHIVE_INSIDE_H

#include <stddef.h>

#include "base/format.h"
#include "collect/move/archive.h"

/* Where a word of a stream's live header is in its file. */
#define LIVE_WORD(field) (KYMO_LIVE_OFFSET + offsetof(struct kymo_stream_live, field))

/* A directory inside another, never through a symbolic link. */
int archive_open_directory(int parent, const char *name);
int archive_open_on_disk(const struct archive *archive, const char *name);
/* Exactly so many bytes, or false: the file is too short. */
bool archive_read_exactly(int fd, void *out, size_t bytes, uint64_t at);
/* Calls each() with every name in the directory that is not hidden, until it returns not 0. */
int archive_for_each_name(int directory_fd, int (*each)(const char *name, void *context),
			  void *context);
/* Bytes that came to the disk; where they are too many, the oldest segments go. */
void archive_count_bytes(struct archive *archive, uint64_t bytes);
/* The queue is in the order of arrival, so the oldest rows of each stream go first, and no gap
   arises within one. */
void archive_account(struct archive *archive, const char *process, uint32_t stream,
		     uint64_t sequence, uint64_t bytes);
/* "s<id>.head" */
bool archive_parse_head_name(const char *name, uint32_t *out_id);
/* It exists a moment after its directory does. */
bool archive_open_control(const struct archive *archive, struct archive_process *process);
int archive_notice(const char *name, void *context);
unsigned long archive_life_of(const struct archive_process *process);
void archive_disk_failed(struct archive *archive, int error);
void archive_drop_process(struct archive *archive, size_t index);

#endif
