/* Moves processes that have ended to the disk as a whole. See archive.h for the order. */
#include "base/grow.h"
#include "collect/move/archive_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/move/copy.h"
#include "collect/move/spare_segments.h"

#define FILE_NAME_BYTES 48

struct file_name {
	char name[FILE_NAME_BYTES];
	uint64_t sequence; /* of a segment; 0 for other files */
};

/* A process that is being moved. */
struct retirement {
	struct archive *archive;
	struct archive_process *process;
	int live_fd, disk_fd;
	bool collector; /* its rows are not counted as the program's */
	struct file_name *files;
	size_t count, room;
};

/* "s<id>.<seq>" */
static bool parse_segment_name(const char *name, uint32_t *out_id, uint64_t *out_sequence)
{
	int end = 0;

	return sscanf(name, "s%u.%" SCNu64 "%n", out_id, out_sequence, &end) == 2 && !name[end];
}

static int list_file(const char *name, void *context)
{
	struct retirement *retirement = context;
	struct file_name *file;
	uint32_t id;

	if (strlen(name) >= FILE_NAME_BYTES)
		return 0; /* not a file of kymo */
	if (!grow((void **)&retirement->files, &retirement->room, retirement->count,
		  sizeof(*retirement->files)))
		return -ENOMEM;
	file = &retirement->files[retirement->count++];
	strcpy(file->name, name);
	if (!parse_segment_name(name, &id, &file->sequence))
		file->sequence = 0;
	return 0;
}

static int compare_sequences(const void *a, const void *b)
{
	uint64_t one = ((const struct file_name *)a)->sequence;
	uint64_t other = ((const struct file_name *)b)->sequence;

	return one < other ? -1 : one > other;
}

static uint64_t rows_published(int live_fd, const char *head_name)
{
	int fd = openat(live_fd, head_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	uint64_t rows = 0;

	if (fd >= 0 && !archive_read_exactly(fd, &rows, sizeof(rows), LIVE_WORD(head)))
		rows = 0;
	if (fd >= 0)
		close(fd);
	return rows;
}

/* The last segment of a stream has rows that are not in its totals yet, so it is never removed for
   the budget. */
static bool is_last_segment(const struct retirement *retirement, uint32_t id, uint64_t sequence)
{
	for (size_t i = 0; i < retirement->count; i++) {
		uint64_t other_sequence;
		uint32_t other;

		if (parse_segment_name(retirement->files[i].name, &other, &other_sequence) &&
		    other == id && other_sequence > sequence)
			return false;
	}
	return true;
}

/* "s<id>.head" or "s<id>.totals" */
static bool parse_head_or_totals(const char *name, uint32_t *out_id)
{
	int end = 0;

	return archive_parse_head_name(name, out_id) ||
	       (sscanf(name, "s%u.totals%n", out_id, &end) == 1 && end && !name[end]);
}

/* Each thread of a collector takes a stream of zones and records none: files that are made on disk
   for nothing. */
static bool is_without_rows(const struct retirement *retirement, const char *name)
{
	struct kymo_stream_live live;
	char head[FILE_NAME_BYTES];
	uint32_t id;
	bool empty;
	int fd;

	if (!retirement->collector || !parse_head_or_totals(name, &id))
		return false;
	snprintf(head, sizeof(head), "s%u.head", id);
	fd = openat(retirement->live_fd, head, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	empty = fd >= 0 && archive_read_exactly(fd, &live, sizeof(live), KYMO_LIVE_OFFSET) &&
		!live.head && !live.segment_next;
	for (size_t i = 0; i < sizeof(live.dropped) / sizeof(live.dropped[0]); i++)
		empty = empty && !live.dropped[i];
	if (fd >= 0)
		close(fd);
	return empty;
}

static int retire_rule(const struct retirement *retirement, uint32_t id)
{
	char name[32];
	int fd, rule = -1;

	snprintf(name, sizeof(name), "s%u.head", id);
	fd = openat(retirement->live_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	rule = archive_rule(retirement->archive, fd);
	close(fd);
	return rule;
}

static int retire_file(struct retirement *retirement, const char *name)
{
	uint64_t bytes = 0, sequence;
	uint32_t id;
	int rc;

	if (!strcmp(name, "control"))
		return 0; /* copied last: it marks the process as complete */
	if (is_without_rows(retirement, name))
		return 0;
	rc = copy_file(retirement->live_fd, retirement->disk_fd, name, COPY_THIN, &bytes);
	if (rc == -ENOENT || rc == -EINVAL || rc == -ELOOP)
		return 0; /* missing, or not a regular file */
	if (rc)
		return rc;
	if (parse_segment_name(name, &id, &sequence)) {
		if (is_last_segment(retirement, id, sequence))
			archive_count_bytes(retirement->archive, bytes);
		else
			archive_account(retirement->archive, retirement->process->name, id,
					sequence, bytes, retire_rule(retirement, id));
	}
	if (archive_parse_head_name(name, &id) && !retirement->collector)
		retirement->archive->recorded_rows += rows_published(retirement->live_fd, name);
	return 0;
}

/* Segments are copied in order, because the disk budget removes them in the order of arrival. */
static int retire_files(struct retirement *retirement)
{
	int rc = archive_for_each_name(retirement->live_fd, list_file, retirement);

	if (retirement->count)
		qsort(retirement->files, retirement->count, sizeof(*retirement->files),
		      compare_sequences);
	for (size_t i = 0; !rc && i < retirement->count; i++)
		rc = retire_file(retirement, retirement->files[i].name);
	free(retirement->files);
	return rc;
}

static int unlink_file(const char *name, void *context)
{
	unlinkat(*(int *)context, name, 0);
	return 0;
}

static void remove_live(struct archive *archive, struct archive_process *process, int live_fd)
{
	char gone[ARCHIVE_NAME_BYTES + 8];

	snprintf(gone, sizeof(gone), ".%s", process->name);
	if (renameat(archive->live_fd, process->name, archive->live_fd, gone))
		return;
	archive_for_each_name(live_fd, unlink_file, &live_fd);
	spare_segments_remove(live_fd);
	unlinkat(archive->live_fd, gone, AT_REMOVEDIR);
}

static void write_word(int fd, const void *word, size_t bytes, size_t at)
{
	ssize_t done = pwrite(fd, word, bytes, (off_t)at);

	(void)done; /* a failure only leaves the control page incomplete */
}

/* `ended` is written last: it marks the other fields as valid. */
static void mark_ended(int control_fd, const int *wstatus)
{
	uint32_t ended = 0, two = 2, yes = 1;
	uint64_t ticks = 0, now = kymo__ticks();

	if (!archive_read_exactly(control_fd, &ended, sizeof(ended),
				  offsetof(struct kymo_control, ended)) ||
	    !archive_read_exactly(control_fd, &ticks, sizeof(ticks),
				  offsetof(struct kymo_control, ended_ticks)))
		return;
	if (!ticks)
		write_word(control_fd, &now, sizeof(now),
			   offsetof(struct kymo_control, ended_ticks));
	if (wstatus) {
		write_word(control_fd, wstatus, sizeof(*wstatus),
			   offsetof(struct kymo_control, wstatus));
		write_word(control_fd, &yes, sizeof(yes),
			   offsetof(struct kymo_control, wstatus_known));
	}
	if (wstatus || !ended)
		write_word(control_fd, &two, sizeof(two), offsetof(struct kymo_control, ended));
}

static int retire(struct archive *archive, struct archive_process *process)
{
	struct retirement retirement = { .archive = archive, .process = process, .disk_fd = -1 };
	uint64_t rows_before = archive->recorded_rows, bytes;
	int rc;

	retirement.live_fd = archive_open_directory(archive->live_fd, process->name);
	if (retirement.live_fd < 0)
		return retirement.live_fd == -ENOENT ? 0 : retirement.live_fd;
	if (archive_open_control(archive, process))
		mark_ended(process->control_fd, NULL);
	retirement.collector = archive_is_collector(archive, process);
	retirement.disk_fd = archive_open_on_disk(archive, process->name);
	rc = retirement.disk_fd < 0 ? retirement.disk_fd : retire_files(&retirement);
	if (!rc)
		rc = copy_file(retirement.live_fd, retirement.disk_fd, "control", COPY_THIN,
			       &bytes);
	if (rc == -ENOENT)
		rc = 0; /* it died before it had one */
	if (!rc)
		remove_live(archive, process, retirement.live_fd);
	else
		archive->recorded_rows = rows_before;
	if (!rc && retirement.collector && process->pid != archive->self)
		archive->recorded_processes--;
	if (retirement.disk_fd >= 0)
		close(retirement.disk_fd);
	close(retirement.live_fd);
	return rc;
}

static bool retire_or_report(struct archive *archive, size_t index)
{
	int rc = retire(archive, &archive->processes[index]);

	if (rc)
		archive_disk_failed(archive, rc);
	else
		archive_drop_process(archive, index);
	return !rc;
}

void archive_retire_dead(struct archive *archive)
{
	size_t i = 0;

	archive_for_each_name(archive->live_fd, archive_notice, archive);
	while (i < archive->process_count) {
		struct archive_process *process = &archive->processes[i];

		archive_open_control(archive, process); /* sets process->foreign */
		if (process->pid == archive->self || archive_process_alive(process) ||
		    !retire_or_report(archive, i))
			i++;
	}
}

void archive_mark_target(struct archive *archive, pid_t pid, uint64_t starttime, int wstatus)
{
	struct archive_process *last = NULL;

	archive_for_each_name(archive->live_fd, archive_notice, archive);
	for (size_t i = 0; i < archive->process_count; i++) {
		struct archive_process *process = &archive->processes[i];

		if (process->pid == pid && process->starttime == starttime &&
		    (!last || archive_life_of(process) > archive_life_of(last)))
			last = process;
	}
	if (last && archive_open_control(archive, last))
		mark_ended(last->control_fd, &wstatus);
}

void archive_retire_self(struct archive *archive)
{
	for (size_t i = 0; i < archive->process_count; i++)
		if (archive->processes[i].pid == archive->self) {
			retire_or_report(archive, i);
			return;
		}
}
