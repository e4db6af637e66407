#include "collect/sample/slow_zones.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "base/schema.h"
#include "record/record.h"

#define LOOK_AGAIN_NS 200000000ull
#define SEGMENT_ROWS_MOST (1ull << 32) /* more than any segment has */

void slow_zones_init(struct slow_zones *zones, const char *run_dir, pid_t pid, uint64_t starttime)
{
	memset(zones, 0, sizeof(*zones));
	zones->control_fd = -1;
	if (run_dir && run_dir[0])
		paths_process(run_dir, pid, starttime, zones->dir, sizeof(zones->dir));
}

static int open_in(const struct slow_zones *zones, const char *name)
{
	char path[KYMO_PATH_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s", zones->dir, name);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

static bool slow_zones_read_at(int fd, void *out, size_t bytes, size_t offset)
{
	return fd >= 0 && pread(fd, out, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool is_open(struct slow_zones *zones)
{
	if (zones->control_fd < 0 && zones->dir[0])
		zones->control_fd = open_in(zones, "control");
	return zones->control_fd >= 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool slow_zones_is_known(const struct slow_zones *zones, uint32_t id)
{
	for (size_t i = 0; i < zones->stream_count; i++)
		if (zones->streams[i].id == id)
			return true;
	return false;
}

static void slow_zones_add_stream(struct slow_zones *zones, const char *name, uint32_t id)
{
	struct slow_zones_stream *stream = &zones->streams[zones->stream_count];
	struct kymo_stream_head head;
	int fd;

	if (zones->stream_count == SLOW_STREAMS || slow_zones_is_known(zones, id))
		return;
	fd = open_in(zones, name);
	if (!slow_zones_read_at(fd, &head, sizeof(head), 0) ||
	    memcmp(head.file.magic, KYMO_MAGIC_STREAM, 8) != 0 ||
	    (!head.has_open_stack && strncmp(head.table, "trace.marks", sizeof(head.table)) != 0)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	memset(stream, 0, sizeof(*stream));
	stream->fd = fd;
	stream->id = id;
	stream->zones = head.has_open_stack;
	stream->ring = head.keep != KYMO_KEEP_ALL;
	zones->stream_count++;
}

static void find_streams(struct slow_zones *zones, uint64_t now_ns)
{
	struct dirent *entry;
	DIR *directory;

	if (!zones->dir[0] || (zones->searched_ns && now_ns - zones->searched_ns < LOOK_AGAIN_NS))
		return;
	zones->searched_ns = now_ns;
	directory = opendir(zones->dir);
	while (directory && (entry = readdir(directory))) {
		char *end;
		unsigned long id = entry->d_name[0] == 's' ? strtoul(entry->d_name + 1, &end, 10)
							   : 0;

		if (entry->d_name[0] == 's' && !strcmp(end, ".head"))
			slow_zones_add_stream(zones, entry->d_name, (uint32_t)id);
	}
	if (directory)
		closedir(directory);
}

/* ---- names and ages -------------------------------------------------------------------------- */

static void zone_name(const struct slow_zones *zones, uint32_t id, char *out, size_t out_bytes)
{
	int names = open_in(zones, "names"), text = open_in(zones, "text");
	struct kymo_name_entry entry;

	snprintf(out, out_bytes, "?");
	if (id < KYMO_NAMES_MAX &&
	    slow_zones_read_at(names, &entry, sizeof(entry),
			       sizeof(struct kymo_names_head) + (size_t)id * sizeof(entry)) &&
	    entry.ready && entry.text_offset < KYMO_TEXT_BYTES_MAX) {
		size_t bytes = entry.name_bytes < out_bytes ? entry.name_bytes : out_bytes - 1;

		if (slow_zones_read_at(text, out, bytes, entry.text_offset))
			out[kymo__utf8_cut(out, bytes, bytes)] = '\0';
	}
	if (names >= 0)
		close(names);
	if (text >= 0)
		close(text);
}

/* Uses the first clock pair of the process, which is as old as its recording, so the rate is
   exact. */
static uint64_t slow_zones_age_ns(struct slow_zones *zones, uint64_t start_ticks)
{
	struct kymo_clock_pair first, now;
	double per_tick;

	if (!is_open(zones) || !slow_zones_read_at(zones->control_fd, &first, sizeof(first),
						   offsetof(struct kymo_control, pairs)))
		return 0;
	clock_init();
	clock_take_pair(&now);
	if (now.ticks <= first.ticks || now.monotonic_ns <= first.monotonic_ns ||
	    now.ticks < start_ticks)
		return 0;
	per_tick = (double)(now.monotonic_ns - first.monotonic_ns) /
		   (double)(now.ticks - first.ticks);
	return (uint64_t)((double)(now.ticks - start_ticks) * per_tick);
}

static bool read_open(const struct slow_zones_stream *stream, struct kymo_open_stack *open)
{
	if (!stream->zones ||
	    !slow_zones_read_at(stream->fd, open, sizeof(*open), KYMO_OPEN_OFFSET))
		return false;
	if (open->depth > KYMO_OPEN_MAX)
		open->depth = KYMO_OPEN_MAX;
	return open->depth > 0;
}

/* ---- slow zones, steps and marks ------------------------------------------------------------- */

/* Reports the innermost slow zone. The zones around it are older but less specific. */
static bool check_zones(struct slow_zones *zones, struct slow_zones_stream *stream,
			uint64_t limit_ns, char *cause, size_t cause_bytes)
{
	struct kymo_open_stack open;
	char name[128];
	bool found = false;

	if (!limit_ns || !read_open(stream, &open))
		return false;
	for (uint32_t i = 0; i < open.depth; i++) {
		const struct kymo_open_entry *entry = &open.entries[i];
		uint64_t age;

		if (!entry->name)
			continue;
		if (stream->reported_start[i] != entry->start_ticks) {
			stream->reported_start[i] = entry->start_ticks;
			stream->again_ns[i] = limit_ns;
		}
		age = slow_zones_age_ns(zones, entry->start_ticks);
		if (age < stream->again_ns[i])
			continue;
		while (stream->again_ns[i] <= age)
			stream->again_ns[i] *= 2;
		zone_name(zones, entry->name, name, sizeof(name));
		snprintf(cause, cause_bytes, "slow zone: %s", name);
		found = true;
	}
	return found;
}

/* Reads row `row` of a stream of marks from its segment; false: not available. */
static bool read_mark(const struct slow_zones *zones, const struct slow_zones_stream *stream,
		      uint64_t sequence, uint64_t row, struct schema_mark_row *out)
{
	struct kymo_segment_head head;
	char name[64];
	uint64_t slot;
	bool ok = false;
	int fd;

	snprintf(name, sizeof(name), "s%" PRIu32 ".%" PRIu64, stream->id, sequence);
	fd = open_in(zones, name);
	if (slow_zones_read_at(fd, &head, sizeof(head), 0) && head.row_bytes == sizeof(*out) &&
	    head.rows && row >= head.first_row) {
		slot = stream->ring ? row % head.rows : row - head.first_row;
		ok = slot < head.rows && slot < SEGMENT_ROWS_MOST &&
		     slow_zones_read_at(fd, out, sizeof(*out), sizeof(head) + slot * sizeof(*out));
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Reports the last of the new marks. If its name cannot be read, the cause is "mark". */
static bool check_marks(const struct slow_zones *zones, struct slow_zones_stream *stream,
			char *cause, size_t cause_bytes)
{
	uint64_t before = stream->marks, last;
	struct kymo_stream_live live;
	struct schema_mark_row row;
	char name[128];

	if (stream->zones || !slow_zones_read_at(stream->fd, &live, sizeof(live), KYMO_LIVE_OFFSET))
		return false;
	stream->marks = live.head;
	if (live.head <= before)
		return false;
	last = stream->ring || !live.segment_next ? 0 : live.segment_next - 1;
	snprintf(cause, cause_bytes, "mark");
	/* A new segment may exist before its first row. */
	if (read_mark(zones, stream, last, live.head - 1, &row) ||
	    (last && read_mark(zones, stream, last - 1, live.head - 1, &row))) {
		zone_name(zones, row.name, name, sizeof(name));
		snprintf(cause, cause_bytes, "mark: %s", name);
	}
	return true;
}

static bool check_step(struct slow_zones *zones, uint64_t limit_ns, uint64_t now_ns, char *cause,
		       size_t cause_bytes)
{
	uint32_t step;

	if (!limit_ns || !is_open(zones) ||
	    !slow_zones_read_at(zones->control_fd, &step, sizeof(step),
				offsetof(struct kymo_control, step)))
		return false;
	if (step != zones->step || !zones->step_since_ns) {
		zones->step = step;
		zones->step_since_ns = now_ns;
		zones->step_again_ns = limit_ns;
		return false;
	}
	if (!step || now_ns - zones->step_since_ns < zones->step_again_ns)
		return false;
	zones->step_again_ns *= 2;
	snprintf(cause, cause_bytes, "slow step: %" PRIu32, step);
	return true;
}

bool slow_zones_look(struct slow_zones *zones, uint64_t limit_ns, char *cause, size_t cause_bytes)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool found;

	find_streams(zones, now_ns);
	found = check_step(zones, limit_ns, now_ns, cause, cause_bytes);
	for (size_t i = 0; i < zones->stream_count; i++) {
		struct slow_zones_stream *stream = &zones->streams[i];

		found |= check_zones(zones, stream, limit_ns, cause, cause_bytes) |
			 check_marks(zones, stream, cause, cause_bytes);
	}
	return found;
}

/* ---- the open zone of a thread --------------------------------------------------------------- */

static pid_t tid_of(const struct slow_zones *zones, uint32_t thread)
{
	struct kymo_thread_entry entry = { 0 };
	int fd = open_in(zones, "threads");
	bool ok = thread && thread < KYMO_THREADS_MAX &&
		  slow_zones_read_at(fd, &entry, sizeof(entry),
				     sizeof(struct kymo_threads_head) +
					     (size_t)thread * sizeof(entry));

	if (fd >= 0)
		close(fd);
	return ok && entry.ready ? entry.tid : 0;
}

bool slow_zones_open_zone(struct slow_zones *zones, pid_t tid, char *name, size_t name_bytes,
			  uint64_t *out_age_ns)
{
	struct kymo_open_stack open;

	find_streams(zones, clock_monotonic_ns());
	for (size_t i = 0; i < zones->stream_count; i++) {
		struct slow_zones_stream *stream = &zones->streams[i];
		uint32_t thread;

		if (!read_open(stream, &open) ||
		    !slow_zones_read_at(stream->fd, &thread, sizeof(thread),
					KYMO_LIVE_OFFSET +
						offsetof(struct kymo_stream_live, thread)) ||
		    tid_of(zones, thread) != tid)
			continue;
		for (uint32_t k = open.depth; k-- > 0;)
			if (open.entries[k].name) {
				zone_name(zones, open.entries[k].name, name, name_bytes);
				*out_age_ns = slow_zones_age_ns(zones, open.entries[k].start_ticks);
				return true;
			}
	}
	return false;
}

void slow_zones_fini(struct slow_zones *zones)
{
	for (size_t i = 0; i < zones->stream_count; i++)
		close(zones->streams[i].fd);
	if (zones->control_fd >= 0)
		close(zones->control_fd);
	zones->stream_count = 0;
	zones->control_fd = -1;
}
