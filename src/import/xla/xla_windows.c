#include "import/xla/xla_windows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/dir_names.h"
#include "base/files/run_files.h"
#include "base/files/xla_window.h"
#include "base/grow.h"
#include "base/intern.h"
#include "import/recording_writer.h"
#include "import/xla/xspace.h"

#define CLOCK_LEEWAY_NS 1000000000.0 /* an operation further outside of its window is left out */

struct added_name {
	struct xspace_text text, module;
};

/* A process of the recording, while zones are added to it. */
struct addition {
	const struct xla_window *first; /* the process is that of this window */
	struct writer_process process;
	struct kymo_names_head names;
	struct kymo_text_head text;
	struct kymo_threads_head threads;
	struct added_name *new_names;
	struct kymo_thread_entry *new_threads;
	size_t name_count, name_room, thread_count, thread_room;
	struct intern name_index;
	uint64_t zones;
	char folder[NAME_MAX + 1]; /* of the process; "": not found */
	uint32_t life;
};

/* ---- the process ---------------------------------------------------------------------------- */

/* The last life of the process that wrote the window. */
static int look_for_process(const char *name, void *context)
{
	struct addition *addition = context;
	struct run_files_process found;

	if (run_files_is_process(name, &found) && found.pid == addition->first->pid &&
	    found.starttime == addition->first->starttime && found.life >= addition->life) {
		addition->life = found.life;
		snprintf(addition->folder, sizeof(addition->folder), "%s", name);
	}
	return 0;
}

static int look_for_stream(const char *name, void *context)
{
	struct writer_process *process = context;
	struct run_files_item item;

	if (run_files_parse(name, &item) == RUN_FILES_HEAD && item.id >= process->stream_count)
		process->stream_count = item.id + 1;
	return 0;
}

static int xla_windows_read_head(int dir, const char *name, const char *magic, void *out,
				 size_t bytes)
{
	int fd = openat(dir, name, RUN_FILES_OPEN_FLAGS);
	ssize_t got = fd < 0 ? -1 : pread(fd, out, bytes, 0);

	if (fd >= 0)
		close(fd);
	return got == (ssize_t)bytes && !memcmp(out, magic, 8) ? 0 : -EINVAL;
}

/* -ENOENT: it is not here, or it still runs. */
static int open_process(int recording, struct addition *addition)
{
	struct kymo_control control;
	int dir;

	dir_names_each(recording, look_for_process, addition);
	if (!addition->folder[0])
		return -ENOENT;
	dir = openat(recording, addition->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	addition->process.dir = dir;
	if (dir < 0 ||
	    xla_windows_read_head(dir, "control", KYMO_MAGIC_CONTROL, &control, sizeof(control)) ||
	    !control.ended)
		return -ENOENT;
	if (xla_windows_read_head(dir, "names", KYMO_MAGIC_NAMES, &addition->names, 64) ||
	    xla_windows_read_head(dir, "text", KYMO_MAGIC_TEXT, &addition->text, 64) ||
	    xla_windows_read_head(dir, "threads", KYMO_MAGIC_THREADS, &addition->threads, 64))
		return -EINVAL;
	dir_names_each(dir, look_for_stream, &addition->process);
	return 0;
}

/* ---- names and threads ---------------------------------------------------------------------- */

static bool texts_agree(struct xspace_text a, struct xspace_text b)
{
	return a.bytes == b.bytes && (!a.bytes || !memcmp(a.at, b.at, a.bytes));
}

static bool xla_windows_same_name(const void *owner, uint32_t number, const void *key)
{
	const struct added_name *have = &((const struct addition *)owner)->new_names[number];
	const struct added_name *want = key;

	return texts_agree(have->text, want->text) && texts_agree(have->module, want->module);
}

/* 0: the table is full. */
static uint32_t xla_windows_add_name(struct addition *addition, const struct xspace_op *op)
{
	const struct added_name name = { op->name, op->module };
	uint64_t hash = intern_hash(intern_hash(0, op->name.at, op->name.bytes),
				    op->module.bytes ? op->module.at : "", op->module.bytes);
	uint32_t number = intern_find(&addition->name_index, hash, xla_windows_same_name, addition,
				      &name);

	if (number != INTERN_NONE)
		return (uint32_t)addition->names.count + number;
	if (addition->names.count + addition->name_count >= KYMO_NAMES_MAX ||
	    !grow((void **)&addition->new_names, &addition->name_room, addition->name_count,
		  sizeof(name)))
		return 0;
	number = intern_add(&addition->name_index, hash);
	if (number == INTERN_NONE)
		return 0;
	addition->new_names[addition->name_count++] = name;
	return (uint32_t)addition->names.count + number;
}

/* "tf_XLAEigen/1 (XLA)", "GPU:0 XLA Ops (XLA)". The profiler does not tell the kernel's number. */
static uint32_t xla_windows_add_thread(struct addition *addition, const struct xspace_line *line,
				       uint64_t ticks)
{
	const char prefix[] = "/device:";
	const bool device = line->plane.bytes > 8 && !memcmp(line->plane.at, prefix, 8);
	struct kymo_thread_entry entry = { .ready = 1, .started_ticks = ticks };
	char name[KYMO_THREAD_NAME_BYTES];

	snprintf(name, sizeof(name), "%.*s%s%.*s", device ? (int)line->plane.bytes - 8 : 0,
		 device ? line->plane.at + 8 : "", device ? " " : "", (int)line->name.bytes,
		 line->name.bytes ? line->name.at : "");
	snprintf(entry.name, sizeof(entry.name), "%.33s (XLA)", name);
	for (size_t i = 0; i < addition->thread_count; i++)
		if (!strcmp(addition->new_threads[i].name, entry.name))
			return (uint32_t)(addition->threads.count + i);
	if (addition->threads.count + addition->thread_count >= KYMO_THREADS_MAX ||
	    !grow((void **)&addition->new_threads, &addition->thread_room, addition->thread_count,
		  sizeof(entry)))
		return 0;
	addition->new_threads[addition->thread_count] = entry;
	return (uint32_t)(addition->threads.count + addition->thread_count++);
}

static int xla_windows_write_at(int fd, const void *bytes, size_t count, uint64_t offset)
{
	return pwrite(fd, bytes, count, (off_t)offset) == (ssize_t)count ? 0 : -EIO;
}

static int put_texts(const struct addition *addition, int names, int text)
{
	uint64_t used = addition->text.used;
	int rc = 0;

	for (size_t i = 0; i < addition->name_count && !rc; i++) {
		const struct added_name *name = &addition->new_names[i];
		struct kymo_name_entry entry = { .ready = 1,
						 .source = KYMO_SOURCE_XLA,
						 .text_offset = used,
						 .name_bytes = name->text.bytes,
						 .file_bytes = name->module.bytes };

		if (used + name->text.bytes + name->module.bytes > KYMO_TEXT_BYTES_MAX)
			return -ENOSPC;
		rc = xla_windows_write_at(text, name->text.at, name->text.bytes, used);
		if (!rc && name->module.bytes)
			rc = xla_windows_write_at(text, name->module.at, name->module.bytes,
						  used + name->text.bytes);
		if (!rc)
			rc = xla_windows_write_at(names, &entry, sizeof(entry),
						  sizeof(struct kymo_names_head) +
							  (addition->names.count + i) *
								  sizeof(entry));
		used += name->text.bytes + name->module.bytes;
	}
	if (!rc)
		rc = xla_windows_write_at(text, &used, sizeof(used),
					  offsetof(struct kymo_text_head, used));
	return rc;
}

/* Entries first, then their number. */
static int put_tables(struct addition *addition)
{
	const int dir = addition->process.dir, flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
	int names = openat(dir, "names", flags), text = openat(dir, "text", flags);
	int threads = openat(dir, "threads", flags);
	uint64_t count = addition->names.count + addition->name_count;
	int rc = names < 0 || text < 0 || threads < 0 ? -EACCES : put_texts(addition, names, text);

	if (!rc)
		rc = xla_windows_write_at(names, &count, sizeof(count),
					  offsetof(struct kymo_names_head, count));
	if (!rc)
		rc = xla_windows_write_at(threads, addition->new_threads,
					  addition->thread_count * sizeof(*addition->new_threads),
					  sizeof(struct kymo_threads_head) +
						  addition->threads.count *
							  sizeof(*addition->new_threads));
	count = addition->threads.count + addition->thread_count;
	if (!rc)
		rc = xla_windows_write_at(threads, &count, sizeof(count),
					  offsetof(struct kymo_threads_head, count));
	if (names >= 0)
		close(names);
	if (text >= 0)
		close(text);
	if (threads >= 0)
		close(threads);
	return rc;
}

/* ---- zones ---------------------------------------------------------------------------------- */

static void add_ops(struct addition *addition, const struct xla_window *window,
		    const struct xspace *space)
{
	const double length_ns = (double)(int64_t)(window->end_realtime_ns -
						   window->begin_realtime_ns);
	const double rate = (double)(int64_t)(window->end_ticks - window->begin_ticks) / length_ns;

	for (size_t i = 0; i < space->op_count; i++) {
		const struct xspace_op *op = &space->ops[i];
		const double after_ns = (double)(op->start_ns - (int64_t)window->begin_realtime_ns);
		const uint64_t ticks = window->begin_ticks + (uint64_t)(int64_t)(after_ns * rate);
		struct kymo_zone_row *row;
		uint32_t name, thread;

		if (after_ns < -CLOCK_LEEWAY_NS || after_ns > length_ns + CLOCK_LEEWAY_NS)
			continue;
		name = xla_windows_add_name(addition, op);
		thread = xla_windows_add_thread(addition, &space->lines[op->line], ticks);
		if (!name || !thread)
			continue;
		row = writer_process_row(&addition->process, SCHEMA_ZONES);
		row->start_ticks = ticks;
		row->duration_ticks = (uint64_t)((double)op->duration_ns * rate);
		row->name = name;
		row->thread = thread;
		row->depth = (uint16_t)op->depth;
		row->step = window->step;
		addition->zones++;
	}
}

static bool is_plausible(const struct xla_window *window)
{
	return window->end_realtime_ns > window->begin_realtime_ns &&
	       window->end_ticks > window->begin_ticks &&
	       window->end_ticks - window->begin_ticks < UINT64_C(1) << 60;
}

/* All windows of the process of the first one. The texts stay in `bytes`. */
static int add_windows(int recording, const unsigned char *bytes, size_t count, size_t first,
		       uint64_t *zones)
{
	struct addition addition = { .first = (const void *)(bytes + first), .process.dir = -1 };
	struct xspace space;
	int rc = open_process(recording, &addition);

	for (size_t at = first; !rc && at < count;) {
		const struct xla_window *window = (const void *)(bytes + at);

		if (window->pid == addition.first->pid &&
		    window->starttime == addition.first->starttime && is_plausible(window)) {
			/* of a damaged one, what was read before */
			if (xspace_read(&space, window + 1, (size_t)window->bytes) != -ENOMEM)
				add_ops(&addition, window, &space);
			xspace_free(&space);
		}
		at += sizeof(*window) + (size_t)xla_window_padded(window->bytes);
	}
	if (!rc && addition.zones)
		rc = put_tables(&addition);
	if (!rc && addition.zones)
		rc = writer_streams_end(&addition.process);
	if (!rc)
		*zones += addition.zones;
	writer_process_discard(&addition.process);
	intern_fini(&addition.name_index);
	free(addition.new_names);
	free(addition.new_threads);
	return rc == -ENOENT ? 0 : rc;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Bytes up to the first damage. */
static size_t valid_bytes(const unsigned char *bytes, size_t count)
{
	size_t at = 0;

	while (count - at >= sizeof(struct xla_window)) {
		const struct xla_window *window = (const void *)(bytes + at);
		const size_t rest = count - at - sizeof(*window);

		if (memcmp(window->magic, XLA_WINDOW_MAGIC, sizeof(window->magic)) ||
		    window->bytes > rest || xla_window_padded(window->bytes) > rest)
			break;
		at += sizeof(*window) + (size_t)xla_window_padded(window->bytes);
	}
	return at;
}

/* Whether an earlier window is of the same process. */
static bool was_before(const unsigned char *bytes, size_t at)
{
	const struct xla_window *window = (const void *)(bytes + at);

	for (size_t other = 0; other < at;) {
		const struct xla_window *earlier = (const void *)(bytes + other);

		if (earlier->pid == window->pid && earlier->starttime == window->starttime)
			return true;
		other += sizeof(*earlier) + (size_t)xla_window_padded(earlier->bytes);
	}
	return false;
}

static int add_all(int recording, const unsigned char *bytes, size_t count, uint64_t *zones)
{
	int rc = 0;

	for (size_t at = 0; at < count && !rc;) {
		const struct xla_window *window = (const void *)(bytes + at);

		if (!was_before(bytes, at))
			rc = add_windows(recording, bytes, count, at, zones);
		at += sizeof(*window) + (size_t)xla_window_padded(window->bytes);
	}
	return rc;
}

int xla_windows_add(const char *recording, int file, uint64_t *out_zones, struct kymo_error *err)
{
	struct stat status;
	void *bytes;
	int dir, rc = 0;

	*out_zones = 0;
	if (fstat(file, &status) || status.st_size < (off_t)sizeof(struct xla_window))
		return 0;
	/* A copy: a program that still runs may write. */
	bytes = malloc((size_t)status.st_size);
	dir = open(recording, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!bytes || dir < 0)
		rc = bytes ? -errno : -ENOMEM;
	else if (pread(file, bytes, (size_t)status.st_size, 0) != status.st_size)
		rc = -EIO;
	else
		rc = add_all(dir, bytes, valid_bytes(bytes, (size_t)status.st_size), out_zones);
	if (dir >= 0)
		close(dir);
	free(bytes);
	return rc ? error_set(err, -rc, "the operations of XLA are not in %s: %s", recording,
			      strerror(-rc))
		  : 0;
}
