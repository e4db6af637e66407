/*
 * Writes snapshots. Each stream is copied by the readers' protocol (base/files/stream_image.h) and
 * written in the simplest valid form: rows in segments, no ring, totals that include every row.
 */
#include "record/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/atomic_file.h"
#include "base/clock.h"
#include "base/page_memory.h"
#include "base/files/paths.h"
#include "base/files/snapshot_format.h"
#include "base/files/run_files.h"
#include "base/files/stream_image.h"
#include "record/record.h"
#include "record/snapshot_file.h"

#define HELD_FILES 32 /* descriptors used briefly inside the program */

/* ---- streams ----------------------------------------------------------------------------- */

/* The memory of a call, in pages: the calling thread may have a small stack. */
struct work {
	const struct kymo__choice *choice; /* NULL: everything */
	struct run_files source;
	struct run_files_list processes, files;
	struct stream_image stream;
	struct kymo_run_file run;
	struct kymo_control control;
	union {
		unsigned char bytes[64u << 10];
		struct kymo_stream_live live;
		struct kymo_stream_head head;
	};
	struct safe_dir directory; /* of the snapshot, with its name */
	char aside[NAME_MAX + 64]; /* in it */
};

static void write_head(struct snapshot_file *writer, struct work *work)
{
	const struct stream_image *copy = &work->stream;
	const struct totals_image *totals = &copy->totals;
	char name[RUN_FILES_PATH_BYTES];

	snprintf(name, sizeof(name), "s%u.head", copy->head.id);
	kymo__snapshot_file_begin(writer, copy->process, name);
	work->head = copy->head;
	work->head.cap_rows = 0;
	work->head.has_totals = totals->image != NULL;
	kymo__snapshot_file_add(writer, &work->head, sizeof(work->head));
	kymo__snapshot_file_add_zeros(writer, KYMO_LIVE_OFFSET - sizeof(work->head));
	work->live = copy->live;
	work->live.fold_state = copy->live.head << 1;
	work->live.histogram_upto = copy->live.head;
	work->live.untotalled = totals->untotalled;
	work->live.segment_first = copy->run_count ? copy->runs[0].sequence : 0;
	work->live.segment_next = copy->run_count ? copy->runs[copy->run_count - 1].sequence + 1
						  : 0;
	if (work->choice) {
		work->live.segment_first = 0;
		work->live.segment_next = 1;
	}
	memcpy(work->live.child_at[0], totals->child_at, sizeof(work->live.child_at[0]));
	kymo__snapshot_file_add(writer, &work->live, sizeof(work->live));
	kymo__snapshot_file_add_zeros(writer,
				      KYMO_OPEN_OFFSET - KYMO_LIVE_OFFSET - sizeof(work->live));
	kymo__snapshot_file_add(writer, &copy->open, sizeof(copy->open));
	kymo__snapshot_file_add_zeros(writer,
				      KYMO_HEAD_FILE_BYTES - KYMO_OPEN_OFFSET - sizeof(copy->open));
	kymo__snapshot_file_end(writer);
}

static void write_totals(struct snapshot_file *writer, const struct stream_image *copy)
{
	const struct totals_image *totals = &copy->totals;
	struct kymo_totals_head head = { .count = totals->count };
	char name[RUN_FILES_PATH_BYTES];

	if (!totals->image)
		return;
	memcpy(head.file.magic, KYMO_MAGIC_TOTALS, sizeof(head.file.magic));
	head.file.version = KYMO_FORMAT_VERSION;
	head.file.head_bytes = sizeof(head);
	snprintf(name, sizeof(name), "s%u.totals", copy->head.id);
	kymo__snapshot_file_begin(writer, copy->process, name);
	kymo__snapshot_file_add(writer, &head, sizeof(head));
	kymo__snapshot_file_add(writer, totals->image + sizeof(head),
				(size_t)kymo_totals_slot_offset(totals->count) - sizeof(head));
	kymo__snapshot_file_end(writer);
}

static void begin_segment(struct snapshot_file *writer, const struct stream_image *copy,
			  uint64_t sequence, uint64_t first_row, uint64_t rows)
{
	struct kymo_segment_head head = { .stream_id = copy->head.id,
					  .row_bytes = copy->head.row_bytes,
					  .sequence = sequence,
					  .first_row = first_row,
					  .rows = rows };
	char name[RUN_FILES_PATH_BYTES];

	memcpy(head.file.magic, KYMO_MAGIC_SEGMENT, sizeof(head.file.magic));
	head.file.version = KYMO_FORMAT_VERSION;
	head.file.head_bytes = sizeof(head);
	snprintf(name, sizeof(name), "s%u.%llu", copy->head.id, (unsigned long long)sequence);
	kymo__snapshot_file_begin(writer, copy->process, name);
	kymo__snapshot_file_add(writer, &head, sizeof(head));
}

/* A segment that disappears meanwhile ends early; readers use the actual length. */
static void snapshot_write_run(struct snapshot_file *writer, struct work *work,
			       const struct stream_image_run *run, uint64_t sequence)
{
	const struct stream_image *copy = &work->stream;
	const uint64_t most = sizeof(work->bytes) / copy->head.row_bytes;

	begin_segment(writer, copy, sequence, run->first_row, run->rows);
	for (uint64_t done = 0; done < run->rows;) {
		uint64_t part = run->rows - done < most ? run->rows - done : most;
		uint64_t got = stream_image_rows(copy, run->first_row + done, part, work->bytes);

		kymo__snapshot_file_add(writer, work->bytes, (size_t)got * copy->head.row_bytes);
		done += got;
		if (got < part)
			break;
	}
	kymo__snapshot_file_end(writer);
}

/* Writes contiguous rows and adds them to the totals, whose next row is the first of them. */
static void add_chosen(struct snapshot_file *writer, struct work *work, const unsigned char *rows,
		       uint64_t count)
{
	struct totals_image *totals = &work->stream.totals;

	kymo__snapshot_file_add(writer, rows, count * work->stream.head.row_bytes);
	if (totals->image)
		totals_image_fold(totals, (const struct kymo_zone_row *)(const void *)rows,
				  totals->from, count);
}

/* Passes contiguous rows to the choice; writer NULL: only shows them. Returns the number chosen. */
static uint64_t choose_among(struct snapshot_file *writer, struct work *work,
			     const unsigned char *rows, uint64_t count)
{
	const struct kymo__choice *choice = work->choice;
	const uint64_t bytes = work->stream.head.row_bytes;
	uint64_t chosen = 0, first = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (choice->row(choice->context, rows + i * bytes, writer != NULL)) {
			chosen++;
			continue;
		}
		if (writer)
			add_chosen(writer, work, rows + first * bytes, i - first);
		first = i + 1;
	}
	if (writer)
		add_chosen(writer, work, rows + first * bytes, count - first);
	return chosen;
}

static bool wants_segment(struct work *work, const struct stream_image_run *run)
{
	const struct kymo__choice *choice = work->choice;

	return !choice->segment || !run->rows ||
	       !stream_image_rows(&work->stream, run->first_row + run->rows - 1, 1, work->bytes) ||
	       choice->segment(choice->context, work->bytes);
}

/* The same for a run of rows, which are in memory or must be read. */
static uint64_t choose_rows(struct snapshot_file *writer, struct work *work,
			    const struct stream_image_run *run)
{
	const uint64_t most = sizeof(work->bytes) / work->stream.head.row_bytes;
	uint64_t chosen = 0;

	if (!wants_segment(work, run))
		return 0;
	if (run->memory)
		return choose_among(writer, work, run->memory, run->rows);
	for (uint64_t done = 0, got; done < run->rows; done += got) {
		uint64_t part = run->rows - done < most ? run->rows - done : most;

		got = stream_image_rows(&work->stream, run->first_row + done, part, work->bytes);
		chosen += choose_among(writer, work, work->bytes, got);
		if (got < part)
			break;
	}
	return chosen;
}

/* The number of rows before the oldest one that are missing. */
static uint64_t rows_missed(struct work *work)
{
	const struct stream_image *copy = &work->stream;
	const struct kymo__choice *choice = work->choice;
	uint64_t oldest = copy->run_count ? copy->runs[0].first_row : copy->live.head;

	if (!oldest || !stream_image_rows(copy, oldest, 1, work->bytes))
		return oldest;
	return choice->misses(choice->context, work->bytes) ? oldest : 0;
}

/* Totals of the chosen rows alone, in place of those of the whole stream. None where rows of the
   choice are missing: totals are exact. */
static void begin_totals(struct work *work, uint64_t missed)
{
	struct totals_image *totals = &work->stream.totals;
	bool wanted = totals->image && !missed;

	totals_image_free(totals);
	if (wanted && totals_image_begin(totals))
		totals_image_free(totals);
}

/* Rows are renumbered: first the missing ones, then the chosen ones, whose number is known at the
   end. */
static void write_chosen(struct snapshot_file *writer, struct work *work)
{
	struct stream_image *copy = &work->stream;
	uint64_t chosen = 0, missed;

	if (!work->choice->stream(work->choice->context, &copy->head))
		return;
	for (size_t i = 0; i < copy->run_count; i++)
		choose_rows(NULL, work, &copy->runs[i]);
	missed = rows_missed(work);
	begin_totals(work, missed);
	begin_segment(writer, copy, 0, missed, copy->live.head);
	for (size_t i = 0; i < copy->run_count; i++)
		chosen += choose_rows(writer, work, &copy->runs[i]);
	kymo__snapshot_file_end(writer);
	copy->live.head = missed + chosen;
	copy->live.floor = missed;
	if (!work->choice->keeps_open)
		memset(&copy->open, 0, sizeof(copy->open));
	write_head(writer, work);
	write_totals(writer, copy);
}

static void write_whole(struct snapshot_file *writer, struct work *work)
{
	struct stream_image *copy = &work->stream;

	stream_image_total(copy, NULL);
	write_head(writer, work);
	write_totals(writer, copy);
	for (size_t i = 0; i < copy->run_count; i++)
		snapshot_write_run(writer, work, &copy->runs[i],
				   copy->head.cap_rows ? i : copy->runs[i].sequence);
}

static void snapshot_write_stream(struct snapshot_file *writer, struct work *work,
				  const char *process, uint32_t id)
{
	struct stream_image *copy = &work->stream;
	struct run_files_list files = { 0 };
	size_t open_files = HELD_FILES;
	int rc = stream_image_take(copy, &work->source, process, id, NULL, NULL);

	/* Unreadable files are skipped; lack of memory is an error. */
	if (rc == -ENOMEM)
		writer->error = rc;
	if (rc)
		return;
	if (!copy->head.cap_rows) {
		run_files_list_all(&work->source, process, &files);
		stream_image_segments(copy, &files, &open_files, NULL);
		run_files_list_free(&files);
	}
	if (work->choice)
		write_chosen(writer, work);
	else
		write_whole(writer, work);
	stream_image_free(copy);
}

/* ---- the other files --------------------------------------------------------------------- */

static void snapshot_copy_range(struct snapshot_file *writer, struct work *work,
				const struct readat *file, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes;) {
		size_t part = bytes - at < sizeof(work->bytes) ? (size_t)(bytes - at)
							       : sizeof(work->bytes);
		size_t got = readat_copy(file, at, work->bytes, part);

		kymo__snapshot_file_add(writer, work->bytes, got);
		at += got;
		if (got < part)
			break;
	}
}

/* names, text and threads begin alike: a head of 64 bytes whose first word is the used size of the
   rest. */
static void snapshot_write_table(struct snapshot_file *writer, struct work *work,
				 const char *process, const char *name, uint64_t entry_bytes)
{
	struct readat file = READAT_NONE;
	struct kymo_names_head head;
	char path[RUN_FILES_PATH_BYTES * 2];
	uint64_t size, bytes;

	snprintf(path, sizeof(path), "%s/%s", process, name);
	if (run_files_file(&work->source, path, &file, NULL))
		return;
	size = readat_size(&file);
	bytes = size;
	if (readat_all(&file, 0, &head, sizeof(head)) && head.count < size / entry_bytes)
		bytes = entry_bytes > 1 ? sizeof(head) + head.count * entry_bytes : head.count;
	kymo__snapshot_file_begin(writer, process, name);
	snapshot_copy_range(writer, work, &file, bytes < size ? bytes : size);
	kymo__snapshot_file_end(writer);
	readat_close(&file);
}

static bool runs_now(const struct kymo_control *control)
{
	struct stat ns;

	return !control->ended && control->starttime && !stat("/proc/self/ns/pid", &ns) &&
	       control->pid_namespace == (uint64_t)ns.st_ino &&
	       paths_starttime(control->pid) == control->starttime;
}

static void write_control(struct snapshot_file *writer, struct work *work, const char *process)
{
	struct readat file = READAT_NONE;
	char path[RUN_FILES_PATH_BYTES * 2];
	size_t bytes;

	snprintf(path, sizeof(path), "%s/control", process);
	if (run_files_file(&work->source, path, &file, NULL))
		return;
	memset(&work->control, 0, sizeof(work->control));
	bytes = readat_copy(&file, 0, &work->control, sizeof(work->control));
	kymo__snapshot_file_begin(writer, process, "control");
	kymo__snapshot_file_add(writer, &work->control, bytes);
	kymo__snapshot_file_end(writer)->was_running = runs_now(&work->control);
	readat_close(&file);
}

static void write_process(struct snapshot_file *writer, struct work *work, const char *process)
{
	run_files_list_all(&work->source, process, &work->files);
	for (size_t i = 0; i < work->files.count && !writer->error; i++)
		if (work->files.items[i].kind == RUN_FILES_HEAD)
			snapshot_write_stream(writer, work, process, work->files.items[i].id);
	/* After the rows: a name is published before the row that uses it. And the entries before
	   their text. */
	snapshot_write_table(writer, work, process, "names", sizeof(struct kymo_name_entry));
	snapshot_write_table(writer, work, process, "text", 1);
	snapshot_write_table(writer, work, process, "threads", sizeof(struct kymo_thread_entry));
	write_control(writer, work, process);
}

/* The other directory is not part of a snapshot: it has no peer. */
static void snapshot_write_run_file(struct snapshot_file *writer, struct work *work)
{
	struct readat file = READAT_NONE;
	size_t bytes;

	memset(&work->run, 0, sizeof(work->run));
	if (run_files_file(&work->source, "run", &file, NULL))
		return;
	bytes = readat_copy(&file, 0, &work->run, sizeof(work->run));
	readat_close(&file);
	memset(work->run.peer, 0, sizeof(work->run.peer));
	work->run.boot_id[sizeof(work->run.boot_id) - 1] = '\0';
	if (work->choice && work->choice->epoch)
		work->run.epoch = *work->choice->epoch;
	kymo__snapshot_file_begin(writer, NULL, "run");
	kymo__snapshot_file_add(writer, &work->run, bytes);
	kymo__snapshot_file_end(writer);
}

/* ---- all of it --------------------------------------------------------------------------- */

static bool same_boot(const struct kymo_run_file *run)
{
	char id[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd < 0 ? -1 : read(fd, id, sizeof(id) - 1);

	if (fd >= 0)
		close(fd);
	if (bytes <= 0)
		return false;
	id[strcspn(id, "\n")] = '\0';
	return !strcmp(id, run->boot_id);
}

static void write_end(struct snapshot_file *writer, const struct work *work)
{
	struct kymo_snapshot_head head = { .count = writer->count };
	struct kymo_clock_pair now = { 0 };

	kymo__snapshot_file_add_zeros(writer, (size_t)(-writer->at & 63));
	head.toc_offset = writer->at;
	kymo__snapshot_file_add(writer, writer->entries, writer->count * sizeof(*writer->entries));
	kymo__snapshot_file_flush(writer);
	memcpy(head.file.magic, KYMO_MAGIC_SNAPSHOT, sizeof(head.file.magic));
	head.file.version = KYMO_FORMAT_VERSION;
	head.file.head_bytes = sizeof(head);
	head.taken_realtime_ns = clock_realtime_ns();
	if (same_boot(&work->run)) {
		clock_take_pair(&now);
		head.taken_ticks = work->run.clock_kind == KYMO_CLOCK_MONOTONIC ? now.monotonic_ns
										: now.ticks;
		head.taken_monotonic_ns = now.monotonic_ns;
	}
	kymo__snapshot_file_write_at(writer, (const char *)&head, sizeof(head), 0);
	if (!writer->error && fsync(writer->fd))
		writer->error = -errno;
}

static int open_aside(struct snapshot_file *writer, struct work *work)
{
	for (int try = 0; try < 100; try++) {
		int length = snprintf(work->aside, sizeof(work->aside), ".%s.%d.%d.part",
				      work->directory.name, (int)getpid(), try);

		if (length < 0 || (size_t)length >= sizeof(work->aside))
			return -ENAMETOOLONG;
		writer->fd = openat(work->directory.fd, work->aside,
				    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (writer->fd >= 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int snapshot_write_all(struct snapshot_file *writer, struct work *work,
			      const char *const *processes)
{
	int rc;

	kymo__snapshot_file_add_zeros(writer, sizeof(struct kymo_snapshot_head));
	snapshot_write_run_file(writer, work);
	for (; processes && *processes && !writer->error; processes++)
		write_process(writer, work, *processes);
	if (!processes) {
		rc = run_files_processes(&work->source, &work->processes);
		if (rc && !writer->error)
			writer->error = rc;
		for (size_t i = 0; i < work->processes.count && !writer->error; i++)
			write_process(writer, work, work->processes.items[i].name);
	}
	write_end(writer, work);
	return writer->error;
}

static int write_aside_and_rename(struct snapshot_file *writer, struct work *work,
				  const char *const *processes, const char *path,
				  struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	int rc = safe_dir_parent(&work->directory, path, 0, &why);

	if (!rc)
		rc = open_aside(writer, work);
	if (rc)
		return error_set(
			err, -rc,
			"cannot write the snapshot %s: %s; choose a file in a writable directory",
			path, safe_dir_reason(rc, &why));
	rc = snapshot_write_all(writer, work, processes);
	/* Some file systems report a full disk only here. */
	if (close(writer->fd) && !rc)
		rc = -errno;
	rc = atomic_file_publish(work->directory.fd, work->aside, work->directory.name, rc);
	if (!rc)
		return 0;
	return error_set(err, -rc,
			 "cannot write the snapshot %s: %s; an existing file is unchanged", path,
			 strerror(-rc));
}

static int snapshot_write_snapshot(const char *run_dir, const char *const *processes,
				   const struct kymo__choice *choice, const char *path,
				   struct kymo_error *err)
{
	struct snapshot_file writer = { .fd = -1, .most = INT64_MAX };
	struct work *work = page_memory_take(sizeof(*work));
	struct rlimit limit;
	int rc;

	writer.buffer = page_memory_take(SNAPSHOT_FILE_BUFFER_BYTES);
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		writer.most = limit.rlim_cur;
	if (!work || !writer.buffer) {
		rc = error_set(err, ENOMEM, "out of memory for the snapshot %s", path);
	} else {
		work->directory.fd = -1;
		work->choice = choice;
		rc = run_files_open(&work->source, run_dir, err);
		if (!rc && run_files_is_snapshot(&work->source))
			rc = error_set(err, EINVAL, "%s is already a snapshot; copy it", run_dir);
		if (!rc)
			rc = write_aside_and_rename(&writer, work, processes, path, err);
		safe_dir_close(&work->directory);
		run_files_close(&work->source);
		run_files_list_free(&work->processes);
		run_files_list_free(&work->files);
	}
	page_memory_give(writer.entries, writer.room_bytes);
	page_memory_give(writer.buffer, SNAPSHOT_FILE_BUFFER_BYTES);
	page_memory_give(work, sizeof(*work));
	return rc;
}

int kymo__snapshot_write(const char *run_dir, const char *const *processes, const char *path,
			 struct kymo_error *err)
{
	return snapshot_write_snapshot(run_dir, processes, NULL, path, err);
}

int kymo__snapshot_write_chosen(const char *run_dir, const struct kymo__choice *choice,
				const char *path, struct kymo_error *err)
{
	return snapshot_write_snapshot(run_dir, NULL, choice, path, err);
}

static int write_own(const char *path, const struct kymo__choice *choice, struct kymo_error *err)
{
	const char *directory = kymo_directory();
	const char *slash = strrchr(directory, '/');
	char run[KYMO_PATH_BYTES];
	const char *processes[2] = { NULL, NULL };

	if (!path || !*path)
		return error_set(err, EINVAL, "a snapshot needs a file name");
	if (!slash || (size_t)(slash - directory) >= sizeof(run))
		return error_set(
			err, ENODATA,
			"cannot write %s: this process does not record; call kymo_enable() first",
			path);
	memcpy(run, directory, (size_t)(slash - directory));
	run[slash - directory] = '\0';
	processes[0] = slash + 1;
	return snapshot_write_snapshot(run, processes, choice, path, err);
}

int kymo_snapshot(const char *path, struct kymo_error *err)
{
	return write_own(path, NULL, err);
}

int kymo__snapshot_choose(const struct kymo__choice *choice, const char *path,
			  struct kymo_error *err)
{
	return write_own(path, choice, err);
}
