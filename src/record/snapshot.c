/*
 * The snapshot's writer. Each stream is copied by the protocol of readers (base/streamcopy.h) and written in the simplest
 * form that readers know: rows in segments, no ring, totals that hold every row.
 */
#include "record/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pages.h"
#include "base/paths.h"
#include "base/snapshot_format.h"
#include "base/source.h"
#include "base/streamcopy.h"
#include "record/record.h"

#define BUFFER_BYTES (256u << 10)
#define HELD_FILES 32 /* descriptors of the program that we take for a moment */

/* ---- one file after another -------------------------------------------------------------- */

struct writer {
	int fd;
	int error; /* the first one, negative; all later calls do nothing */
	uint64_t at; /* where the next byte goes */
	uint64_t
		most; /* RLIMIT_FSIZE: beyond it the kernel would send a signal, to a program that is not ours */
	char *buffer;
	size_t buffered;
	struct kymo_snapshot_entry *entries;
	size_t count, room_bytes;
	struct kymo_snapshot_entry
		nowhere; /* what end_file() fills when there was no memory for an entry */
};

static void write_at(struct writer *writer, const char *bytes, size_t count, uint64_t at)
{
	if (count > writer->most || at > writer->most - count)
		writer->error = writer->error ? writer->error : -EFBIG;
	while (count && !writer->error) {
		ssize_t done = pwrite(writer->fd, bytes, count, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			writer->error = done ? -errno : -EIO;
			break;
		}
		bytes += done;
		count -= (size_t)done;
		at += (uint64_t)done;
	}
}

static void flush(struct writer *writer)
{
	write_at(writer, writer->buffer, writer->buffered, writer->at - writer->buffered);
	writer->buffered = 0;
}

static void add(struct writer *writer, const void *bytes, size_t count)
{
	const char *from = bytes;

	while (count && !writer->error) {
		size_t room = BUFFER_BYTES - writer->buffered;
		size_t part = count < room ? count : room;

		memcpy(writer->buffer + writer->buffered, from, part);
		writer->buffered += part;
		writer->at += part;
		from += part;
		count -= part;
		if (writer->buffered == BUFFER_BYTES)
			flush(writer);
	}
}

static void add_zeros(struct writer *writer, size_t count)
{
	static const char zeros[256];

	for (; count > sizeof(zeros); count -= sizeof(zeros))
		add(writer, zeros, sizeof(zeros));
	add(writer, zeros, count);
}

static void begin_file(struct writer *writer, const char *process, const char *name)
{
	void *entries;
	struct kymo_snapshot_entry *entry;
	int length;

	add_zeros(writer, (size_t)(-writer->at & 63));
	entries = pages_grow(writer->entries, &writer->room_bytes,
			     (writer->count + 1) * sizeof(*entry));
	if (!entries) {
		writer->error = writer->error ? writer->error : -ENOMEM;
		return;
	}
	writer->entries = entries;
	entry = &writer->entries[writer->count++];
	memset(entry, 0, sizeof(*entry));
	length = snprintf(entry->path, sizeof(entry->path), "%s%s%s", process ? process : "",
			  process ? "/" : "", name);
	if ((size_t)length >= sizeof(entry->path))
		writer->error = writer->error ? writer->error : -ENAMETOOLONG;
	entry->offset = writer->at;
}

static struct kymo_snapshot_entry *end_file(struct writer *writer)
{
	struct kymo_snapshot_entry *entry = writer->count ? &writer->entries[writer->count - 1]
							  : &writer->nowhere;

	entry->bytes = writer->at - entry->offset;
	return entry;
}

/* ---- streams ----------------------------------------------------------------------------- */

/* Rows that are handed over, instead of the streams of a process. */
struct given {
	const struct kymo_table *table; /* NULL: the streams are meant */
	bool (*next)(void *context, void *out_row);
	void *context;
};

/* What a call needs, in pages: the thread that calls may have a small stack. */
struct work {
	struct source source;
	struct source_list processes, files;
	struct streamcopy stream;
	struct kymo_run_file run;
	struct kymo_control control;
	union {
		unsigned char bytes[64u << 10];
		struct kymo_stream_live live;
		struct kymo_stream_head head;
	};
	char aside[KYMO_PATH_BYTES + 64];
	struct given given;
};

static void write_head(struct writer *writer, struct work *work)
{
	const struct streamcopy *copy = &work->stream;
	const struct totalscopy *totals = &copy->totals;
	char name[SOURCE_PATH_BYTES];

	snprintf(name, sizeof(name), "s%u.head", copy->head.id);
	begin_file(writer, copy->process, name);
	work->head = copy->head;
	work->head.cap_rows = 0;
	work->head.has_totals = totals->image != NULL;
	add(writer, &work->head, sizeof(work->head));
	add_zeros(writer, KYMO_LIVE_OFFSET - sizeof(work->head));
	work->live = copy->live;
	work->live.fold_state = copy->live.head << 1;
	work->live.histogram_upto = copy->live.head;
	work->live.untotalled = totals->untotalled;
	work->live.segment_first = copy->run_count ? copy->runs[0].sequence : 0;
	work->live.segment_next = copy->run_count ? copy->runs[copy->run_count - 1].sequence + 1
						  : 0;
	memcpy(work->live.child_at[0], totals->child_at, sizeof(work->live.child_at[0]));
	add(writer, &work->live, sizeof(work->live));
	add_zeros(writer, KYMO_OPEN_OFFSET - KYMO_LIVE_OFFSET - sizeof(work->live));
	add(writer, &copy->open, sizeof(copy->open));
	add_zeros(writer, KYMO_HEAD_FILE_BYTES - KYMO_OPEN_OFFSET - sizeof(copy->open));
	end_file(writer);
}

static void write_totals(struct writer *writer, const struct streamcopy *copy)
{
	const struct totalscopy *totals = &copy->totals;
	struct kymo_totals_head head = { .count = totals->count };
	char name[SOURCE_PATH_BYTES];

	if (!totals->image)
		return;
	memcpy(head.file.magic, KYMO_MAGIC_TOTALS, sizeof(head.file.magic));
	head.file.version = KYMO_FORMAT_VERSION;
	head.file.head_bytes = sizeof(head);
	snprintf(name, sizeof(name), "s%u.totals", copy->head.id);
	begin_file(writer, copy->process, name);
	add(writer, &head, sizeof(head));
	add(writer, totals->image + sizeof(head),
	    (size_t)kymo_totals_slot_offset(totals->count) - sizeof(head));
	end_file(writer);
}

/* A segment that went away meanwhile ends early; readers believe the length that is there. */
static void write_run(struct writer *writer, struct work *work, const struct streamcopy_run *run,
		      uint64_t sequence)
{
	const struct streamcopy *copy = &work->stream;
	const uint64_t most = sizeof(work->bytes) / copy->head.row_bytes;
	struct kymo_segment_head head = { .stream_id = copy->head.id,
					  .row_bytes = copy->head.row_bytes,
					  .sequence = sequence,
					  .first_row = run->first_row,
					  .rows = run->rows };
	char name[SOURCE_PATH_BYTES];

	memcpy(head.file.magic, KYMO_MAGIC_SEGMENT, sizeof(head.file.magic));
	head.file.version = KYMO_FORMAT_VERSION;
	head.file.head_bytes = sizeof(head);
	snprintf(name, sizeof(name), "s%u.%llu", copy->head.id, (unsigned long long)sequence);
	begin_file(writer, copy->process, name);
	add(writer, &head, sizeof(head));
	for (uint64_t done = 0; done < run->rows;) {
		uint64_t part = run->rows - done < most ? run->rows - done : most;
		uint64_t got = streamcopy_rows(copy, run->first_row + done, part, work->bytes);

		add(writer, work->bytes, (size_t)got * copy->head.row_bytes);
		done += got;
		if (got < part)
			break;
	}
	end_file(writer);
}

static void write_stream(struct writer *writer, struct work *work, const char *process, uint32_t id)
{
	struct streamcopy *copy = &work->stream;
	struct source_list files = { 0 };
	size_t open_files = HELD_FILES;

	/* What cannot be read is left out. */
	if (streamcopy_take(copy, &work->source, process, id, NULL, NULL))
		return;
	if (!copy->head.cap_rows) {
		source_files(&work->source, process, &files);
		streamcopy_segments(copy, &files, &open_files, NULL);
		source_list_free(&files);
	}
	streamcopy_total(copy, NULL);
	write_head(writer, work);
	write_totals(writer, copy);
	for (size_t i = 0; i < copy->run_count; i++)
		write_run(writer, work, &copy->runs[i],
			  copy->head.cap_rows ? i : copy->runs[i].sequence);
	streamcopy_free(copy);
}

/* How many there are is known when all are written: the segment's head is written again. */
static uint64_t write_given_rows(struct writer *writer, struct work *work, const char *process)
{
	const struct given *given = &work->given;
	struct kymo_segment_head head = { .row_bytes = given->table->row_bytes };
	uint64_t at;

	memcpy(head.file.magic, KYMO_MAGIC_SEGMENT, sizeof(head.file.magic));
	head.file.version = KYMO_FORMAT_VERSION;
	head.file.head_bytes = sizeof(head);
	begin_file(writer, process, "s0.0");
	at = writer->at;
	add(writer, &head, sizeof(head));
	while (!writer->error && given->next(given->context, work->bytes)) {
		add(writer, work->bytes, given->table->row_bytes);
		head.rows++;
	}
	end_file(writer);
	flush(writer);
	write_at(writer, (const char *)&head, sizeof(head), at);
	return head.rows;
}

static void write_given(struct writer *writer, struct work *work, const char *process)
{
	const struct kymo_table *table = work->given.table;
	uint64_t rows = write_given_rows(writer, work, process);

	begin_file(writer, process, "s0.head");
	memset(&work->head, 0, sizeof(work->head));
	memcpy(work->head.file.magic, KYMO_MAGIC_STREAM, sizeof(work->head.file.magic));
	work->head.file.version = KYMO_FORMAT_VERSION;
	work->head.file.head_bytes = sizeof(work->head);
	memcpy(work->head.table, table->name, sizeof(work->head.table));
	work->head.row_bytes = table->row_bytes;
	work->head.column_count = table->column_count;
	work->head.keep = KYMO_KEEP_ALL;
	memcpy(work->head.columns, table->columns, sizeof(work->head.columns));
	add(writer, &work->head, sizeof(work->head));
	add_zeros(writer, KYMO_LIVE_OFFSET - sizeof(work->head));
	memset(&work->live, 0, sizeof(work->live));
	work->live.head = rows;
	work->live.segment_next = 1;
	add(writer, &work->live, sizeof(work->live));
	add_zeros(writer, KYMO_HEAD_FILE_BYTES - KYMO_LIVE_OFFSET - sizeof(work->live));
	end_file(writer);
}

/* ---- the other files --------------------------------------------------------------------- */

static void copy_range(struct writer *writer, struct work *work, const struct readat *file,
		       uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes;) {
		size_t part = bytes - at < sizeof(work->bytes) ? (size_t)(bytes - at)
							       : sizeof(work->bytes);
		size_t got = readat_copy(file, at, work->bytes, part);

		add(writer, work->bytes, got);
		at += got;
		if (got < part)
			break;
	}
}

/* names, text and threads begin alike: a head of 64 bytes whose first word says how much of the rest is used. */
static void write_table(struct writer *writer, struct work *work, const char *process,
			const char *name, uint64_t entry_bytes)
{
	struct readat file = READAT_NONE;
	struct kymo_names_head head;
	char path[SOURCE_PATH_BYTES * 2];
	uint64_t size, bytes;

	snprintf(path, sizeof(path), "%s/%s", process, name);
	if (source_file(&work->source, path, &file, NULL))
		return;
	size = readat_size(&file);
	bytes = size;
	if (readat_all(&file, 0, &head, sizeof(head)) && head.count < size / entry_bytes)
		bytes = entry_bytes > 1 ? sizeof(head) + head.count * entry_bytes : head.count;
	begin_file(writer, process, name);
	copy_range(writer, work, &file, bytes < size ? bytes : size);
	end_file(writer);
	readat_close(&file);
}

static bool runs_now(const struct kymo_control *control)
{
	struct stat ns;

	return !control->ended && control->starttime && !stat("/proc/self/ns/pid", &ns) &&
	       control->pid_namespace == (uint64_t)ns.st_ino &&
	       paths_starttime(control->pid) == control->starttime;
}

static void write_control(struct writer *writer, struct work *work, const char *process)
{
	struct readat file = READAT_NONE;
	char path[SOURCE_PATH_BYTES * 2];
	size_t bytes;

	snprintf(path, sizeof(path), "%s/control", process);
	if (source_file(&work->source, path, &file, NULL))
		return;
	memset(&work->control, 0, sizeof(work->control));
	bytes = readat_copy(&file, 0, &work->control, sizeof(work->control));
	begin_file(writer, process, "control");
	add(writer, &work->control, bytes);
	end_file(writer)->was_running = runs_now(&work->control);
	readat_close(&file);
}

static void write_process(struct writer *writer, struct work *work, const char *process)
{
	if (work->given.table)
		write_given(writer, work, process);
	else
		source_files(&work->source, process, &work->files);
	for (size_t i = 0; i < work->files.count && !writer->error; i++)
		if (work->files.items[i].kind == SOURCE_HEAD)
			write_stream(writer, work, process, work->files.items[i].id);
	/* After the rows: a name is published before the row that uses it. And the entries before their text. */
	write_table(writer, work, process, "names", sizeof(struct kymo_name_entry));
	write_table(writer, work, process, "text", 1);
	write_table(writer, work, process, "threads", sizeof(struct kymo_thread_entry));
	write_control(writer, work, process);
}

/* The other half stays where it is; the snapshot has none. */
static void write_run_file(struct writer *writer, struct work *work)
{
	struct readat file = READAT_NONE;
	size_t bytes;

	memset(&work->run, 0, sizeof(work->run));
	if (source_file(&work->source, "run", &file, NULL))
		return;
	bytes = readat_copy(&file, 0, &work->run, sizeof(work->run));
	readat_close(&file);
	memset(work->run.peer, 0, sizeof(work->run.peer));
	work->run.boot_id[sizeof(work->run.boot_id) - 1] = '\0';
	begin_file(writer, NULL, "run");
	add(writer, &work->run, bytes);
	end_file(writer);
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

static void write_end(struct writer *writer, const struct work *work)
{
	struct kymo_snapshot_head head = { .count = writer->count };
	struct kymo_clock_pair now = { 0 };

	add_zeros(writer, (size_t)(-writer->at & 63));
	head.toc_offset = writer->at;
	add(writer, writer->entries, writer->count * sizeof(*writer->entries));
	flush(writer);
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
	write_at(writer, (const char *)&head, sizeof(head), 0);
	if (!writer->error && fsync(writer->fd))
		writer->error = -errno;
}

static int open_aside(struct writer *writer, struct work *work, const char *path)
{
	const char *slash = strrchr(path, '/');
	int directory = slash ? (int)(slash - path) + 1 : 0;

	for (int try = 0; try < 100; try++) {
		int length = snprintf(work->aside, sizeof(work->aside), "%.*s.%s.%d.%d.part",
				      directory, path, path + directory, (int)getpid(), try);

		if (length < 0 || (size_t)length >= sizeof(work->aside))
			return -ENAMETOOLONG;
		writer->fd = open(work->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
				  0600);
		if (writer->fd >= 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int write_all(struct writer *writer, struct work *work, const char *const *processes)
{
	int rc;

	add_zeros(writer, sizeof(struct kymo_snapshot_head));
	write_run_file(writer, work);
	for (; processes && *processes && !writer->error; processes++)
		write_process(writer, work, *processes);
	if (!processes) {
		rc = source_processes(&work->source, &work->processes);
		if (rc && !writer->error)
			writer->error = rc;
		for (size_t i = 0; i < work->processes.count && !writer->error; i++)
			write_process(writer, work, work->processes.items[i].name);
	}
	write_end(writer, work);
	return writer->error;
}

static int write_aside_and_rename(struct writer *writer, struct work *work,
				  const char *const *processes, const char *path,
				  struct kymo_error *err)
{
	int rc = open_aside(writer, work, path);

	if (rc)
		return error_set(
			err, -rc,
			"cannot write the snapshot %s: %s; name a file in a directory you can write",
			path, strerror(-rc));
	rc = write_all(writer, work, processes);
	/* Some file systems tell only here that there was no room. */
	if (close(writer->fd) && !rc)
		rc = -errno;
	if (!rc && rename(work->aside, path))
		rc = -errno;
	if (!rc)
		return 0;
	unlink(work->aside);
	return error_set(
		err, -rc,
		"cannot write the snapshot %s: %s; a file that was there before is untouched", path,
		strerror(-rc));
}

static int write_snapshot(const char *run_dir, const char *const *processes,
			  const struct given *given, const char *path, struct kymo_error *err)
{
	struct writer writer = { .fd = -1, .most = INT64_MAX };
	struct work *work = pages_take(sizeof(*work));
	struct rlimit limit;
	int rc;

	writer.buffer = pages_take(BUFFER_BYTES);
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		writer.most = limit.rlim_cur;
	if (!work || !writer.buffer) {
		rc = error_set(err, ENOMEM, "no memory for the snapshot %s", path);
	} else {
		if (given)
			work->given = *given;
		rc = source_open(&work->source, run_dir, err);
		if (!rc && source_is_snapshot(&work->source))
			rc = error_set(err, EINVAL, "%s is a snapshot already; copy it", run_dir);
		if (!rc)
			rc = write_aside_and_rename(&writer, work, processes, path, err);
		source_close(&work->source);
		source_list_free(&work->processes);
		source_list_free(&work->files);
	}
	pages_give(writer.entries, writer.room_bytes);
	pages_give(writer.buffer, BUFFER_BYTES);
	pages_give(work, sizeof(*work));
	return rc;
}

int kymo__snapshot_write(const char *run_dir, const char *const *processes, const char *path,
			 struct kymo_error *err)
{
	return write_snapshot(run_dir, processes, NULL, path, err);
}

static int write_own(const char *path, const struct given *given, struct kymo_error *err)
{
	const char *directory = kymo_directory();
	const char *slash = strrchr(directory, '/');
	char run[KYMO_PATH_BYTES];
	const char *processes[2] = { NULL, NULL };

	if (!path || !*path)
		return error_set(err, EINVAL, "a snapshot needs the name of a file");
	if (!slash || (size_t)(slash - directory) >= sizeof(run))
		return error_set(
			err, ENODATA,
			"there is nothing to write to %s: this process does not record; call kymo_enable() first",
			path);
	memcpy(run, directory, (size_t)(slash - directory));
	run[slash - directory] = '\0';
	processes[0] = slash + 1;
	return write_snapshot(run, processes, given, path, err);
}

int kymo_snapshot(const char *path, struct kymo_error *err)
{
	return write_own(path, NULL, err);
}

int kymo__snapshot_rows(enum schema_id table, bool (*next)(void *context, void *out_row),
			void *context, const char *path, struct kymo_error *err)
{
	const struct given given = { &kymo__tables[table], next, context };

	return write_own(path, &given, err);
}
