#include "collect/move/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/atomic_file.h"
#include "collect/move/archive_inside.h"
#include "collect/move/copy.h"

#define FIRST_NS 1000000000ull
#define PERIOD_NS 10000000000ull
#define SHARE 100 /* of the time, at most 1 / SHARE */
#define ATTEMPTS 20 /* to copy totals between two folds */

/* A header as it is in its file. */
struct head_image {
	union {
		struct kymo_stream_head head;
		unsigned char first_page[KYMO_LIVE_OFFSET];
	};
	union {
		struct kymo_stream_live live;
		unsigned char second_page[KYMO_OPEN_OFFSET - KYMO_LIVE_OFFSET];
	};
	unsigned char open[KYMO_HEAD_FILE_BYTES - KYMO_OPEN_OFFSET];
};
_Static_assert(sizeof(struct head_image) == KYMO_HEAD_FILE_BYTES, "as in the file");

struct mirrored {
	int live_fd, disk_fd; /* the two directories of a process */
	int error; /* a negative errno of the disk */
};

static bool mirror_read(int directory, const char *name, void *out, size_t bytes, uint64_t at)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	bool read = fd >= 0 && archive_read_exactly(fd, out, bytes, at);

	if (fd >= 0)
		close(fd);
	return read;
}

/* A file that has not grown, by a count in its header, is not copied again. */
static void mirror_counted(struct mirrored *process, const char *name, size_t count_at)
{
	uint64_t live = 0, disk = 0, bytes;
	int rc;

	if (!mirror_read(process->live_fd, name, &live, sizeof(live), count_at))
		return;
	if (mirror_read(process->disk_fd, name, &disk, sizeof(disk), count_at) && disk == live)
		return;
	rc = copy_file(process->live_fd, process->disk_fd, name, COPY_THIN, &bytes);
	if (rc && rc != -ENOENT && rc != -EINVAL && rc != -ELOOP)
		process->error = rc;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Copies the totals of a moment without a fold; *out is the state at that moment. False: not within
   the attempts, and there is no copy. */
static bool mirror_totals(struct mirrored *process, uint32_t id, const char *head_name,
			  struct kymo_stream_live *out)
{
	struct kymo_stream_live after;
	char name[32];
	uint64_t bytes;

	snprintf(name, sizeof(name), "s%u.totals", id);
	for (int i = 0; i < ATTEMPTS; i++) {
		if (!mirror_read(process->live_fd, head_name, out, sizeof(*out),
				 KYMO_LIVE_OFFSET) ||
		    copy_file(process->live_fd, process->disk_fd, name, COPY_THIN, &bytes) ||
		    !mirror_read(process->live_fd, head_name, &after, sizeof(after),
				 KYMO_LIVE_OFFSET))
			break;
		if (out->fold_state == after.fold_state &&
		    out->histogram_upto == after.histogram_upto)
			return true;
	}
	unlinkat(process->disk_fd, name, 0);
	return false;
}

static void mirror_set_totals(struct head_image *head, const struct kymo_stream_live *state)
{
	head->live.fold_state = state->fold_state;
	head->live.histogram_upto = state->histogram_upto;
	memcpy(head->live.child_at, state->child_at, sizeof(state->child_at));
	head->live.untotalled = state->untotalled;
}

/* Those that are still in the live directory: usually the last one. */
static void mirror_segments(struct mirrored *process, uint32_t id, const struct head_image *head)
{
	uint64_t first = head->head.cap_rows ? 0 : head->live.segment_first;
	uint64_t next = head->head.cap_rows ? 1 : head->live.segment_next;

	if (next > first && next - first > 4)
		first = next - 4; /* the mover is behind; it copies the others */
	for (uint64_t sequence = first; sequence < next; sequence++) {
		char name[48];
		uint64_t bytes;
		int rc;

		snprintf(name, sizeof(name), "s%u.%" PRIu64, id, sequence);
		rc = copy_file(process->live_fd, process->disk_fd, name, COPY_THIN, &bytes);
		if (rc && rc != -ENOENT && rc != -EINVAL && rc != -ELOOP)
			process->error = rc;
	}
}

static bool mirror_is_same(const struct mirrored *process, const char *head_name,
			   const struct head_image *head)
{
	struct head_image old;

	return mirror_read(process->disk_fd, head_name, &old, sizeof(old), 0) &&
	       old.live.head == head->live.head && !memcmp(old.open, head->open, sizeof(old.open));
}

/* In the order totals, head, rows: the head is never below the rows that the totals hold, and never
   above the copied rows. */
static int mirror_stream(const char *head_name, void *context)
{
	struct mirrored *process = context;
	struct kymo_stream_live state;
	struct head_image head;
	uint64_t floor;
	uint32_t id;
	bool totals;
	int rc;

	if (!archive_parse_head_name(head_name, &id) ||
	    !mirror_read(process->live_fd, head_name, &head, sizeof(head), 0) ||
	    mirror_is_same(process, head_name, &head))
		return 0;
	totals = head.head.has_totals && mirror_totals(process, id, head_name, &state);
	if (!mirror_read(process->live_fd, head_name, &head, sizeof(head), 0))
		return 0;
	mirror_segments(process, id, &head);
	if (head.head.cap_rows &&
	    mirror_read(process->live_fd, head_name, &floor, sizeof(floor), LIVE_WORD(floor)) &&
	    floor <= head.live.head)
		head.live.floor = floor;
	head.head.has_totals = totals;
	if (totals)
		mirror_set_totals(&head, &state);
	rc = atomic_file_put(process->disk_fd, head_name, &head, sizeof(head));
	if (rc)
		process->error = rc;
	return process->error ? 1 : 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Names and threads come last: rows refer to names that were published before them. */
static int mirror_process(struct archive *archive, const struct archive_process *of)
{
	struct mirrored process = { -1, -1, 0 };
	uint64_t bytes;

	process.live_fd = archive_open_directory(archive->live_fd, of->name);
	if (process.live_fd < 0)
		return 0;
	process.disk_fd = archive_open_on_disk(archive, of->name);
	if (process.disk_fd < 0)
		process.error = process.disk_fd;
	else
		archive_for_each_name(process.live_fd, mirror_stream, &process);
	if (!process.error) {
		mirror_counted(&process, "text", offsetof(struct kymo_text_head, used));
		mirror_counted(&process, "names", offsetof(struct kymo_names_head, count));
		mirror_counted(&process, "threads", offsetof(struct kymo_threads_head, count));
		copy_file(process.live_fd, process.disk_fd, "control", COPY_THIN, &bytes);
	}
	if (process.disk_fd >= 0)
		close(process.disk_fd);
	close(process.live_fd);
	return process.error;
}

void mirror_refresh(struct mirror *mirror, struct archive *archive)
{
	uint64_t began_ns = clock_monotonic_ns(), took_ns;

	if (!mirror->next_ns)
		mirror->next_ns = began_ns + FIRST_NS;
	if (began_ns < mirror->next_ns || archive->retry_ns)
		return;
	for (size_t i = 0; i < archive->process_count; i++) {
		int rc = mirror_process(archive, &archive->processes[i]);

		if (rc) {
			archive_disk_failed(archive, rc);
			break;
		}
	}
	took_ns = clock_monotonic_ns() - began_ns;
	mirror->next_ns = began_ns + took_ns +
			  (took_ns * SHARE > PERIOD_NS ? took_ns * SHARE : PERIOD_NS);
}
