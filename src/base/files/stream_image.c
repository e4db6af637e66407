/*
 * Reads words that another process is writing. Only by pread(): a mapping of a file that gets
 * truncated would raise SIGBUS. The kernel copies an aligned word of 8 bytes by one load in
 * practice, but does not guarantee it (and `rep movsb` might not), so each word is read until two
 * reads agree: head only grows, and the smaller of two consecutive reads is certainly published;
 * floor moves once in 1,024 rows, and two equal reads are its value.
 */
#include "base/files/stream_image.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <kymo/atomic.h>

#include "base/page_memory.h"

#define ATTEMPTS 12 /* to copy a ring that is being overwritten */
#define LOOKS 64
#define HEAD_AT (KYMO_LIVE_OFFSET + offsetof(struct kymo_stream_live, head))
#define FLOOR_AT (KYMO_LIVE_OFFSET + offsetof(struct kymo_stream_live, floor))

struct stream_files {
	struct readat head, ring, totals;
};

void stream_image_say(const struct stream_image_sink *sink, const char *format, ...)
{
	char sentence[512];
	va_list args;

	if (!sink || !sink->say)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	sink->say(sink->context, sentence);
}

static int cannot(const struct stream_image *copy, const char *why, struct kymo_error *err)
{
	return error_set(err, EPROTO, "%s is damaged: %s; its rows are skipped", copy->label, why);
}

/* ---- words ------------------------------------------------------------------------------- */

static bool read_head(const struct readat *file, uint64_t *out)
{
	uint64_t first, second;

	for (int look = 0; look < LOOKS; look++) {
		if (!readat_all(file, HEAD_AT, &first, sizeof(first)) ||
		    !readat_all(file, HEAD_AT, &second, sizeof(second)))
			return false;
		if (first <= second) {
			kymo__fence_acquire();
			*out = first;
			return true;
		}
	}
	return false;
}

static bool read_floor(const struct readat *file, uint64_t *out)
{
	uint64_t first, second = 0;

	kymo__fence_acquire();
	for (int look = 0; look < LOOKS; look++) {
		if (!readat_all(file, FLOOR_AT, &first, sizeof(first)) ||
		    !readat_all(file, FLOOR_AT, &second, sizeof(second)))
			return false;
		if (first == second)
			break;
	}
	kymo__fence_acquire();
	*out = second;
	return true;
}

/* Until two reads are equal, if the program leaves time for it; it only shows the moment. */
static void read_open_stack(struct stream_image *copy, const struct readat *file)
{
	struct kymo_open_stack again;

	memset(&copy->open, 0, sizeof(copy->open));
	if (!copy->head.has_open_stack)
		return;
	for (int look = 0; look < 4; look++) {
		if (!readat_all(file, KYMO_OPEN_OFFSET, &copy->open, sizeof(copy->open)) ||
		    !readat_all(file, KYMO_OPEN_OFFSET, &again, sizeof(again))) {
			memset(&copy->open, 0, sizeof(copy->open));
			return;
		}
		if (!memcmp(&copy->open, &again, sizeof(again)))
			return;
	}
}

/* ---- checks ------------------------------------------------------------------------------ */

static int check_head(const struct stream_image *copy, uint32_t id, struct kymo_error *err)
{
	const struct kymo_stream_head *head = &copy->head;

	if (head->id != id)
		return cannot(copy, "its header belongs to another stream", err);
	if (!head->row_bytes || head->row_bytes > KYMO_ROW_BYTES_MAX || head->row_bytes % 8)
		return cannot(copy, "an impossible row length", err);
	if (head->column_count > KYMO_COLUMNS_MAX)
		return cannot(copy, "too many columns", err);
	if (head->cap_rows > STREAM_IMAGE_ROWS_MAX / head->row_bytes)
		return cannot(copy, "an impossible ring length", err);
	return 0;
}

static int check_live(const struct stream_image *copy, struct kymo_error *err)
{
	if (copy->live.head >= STREAM_IMAGE_ROWS_MAX)
		return cannot(copy, "an impossible number of rows", err);
	for (int cause = 0; cause < KYMO_DROP_CAUSE_COUNT; cause++)
		if (copy->live.dropped[cause] >= STREAM_IMAGE_ROWS_MAX)
			return cannot(copy, "an impossible number of dropped rows", err);
	return 0;
}

static bool totals_wanted(const struct stream_image *copy)
{
	return copy->head.has_totals && copy->head.row_bytes == sizeof(struct kymo_zone_row);
}

/* ---- rings ------------------------------------------------------------------------------- */

static int add_one_run(struct stream_image *copy, const struct stream_image_run *run)
{
	void *runs = page_memory_grow(copy->runs, &copy->run_room_bytes,
				      (copy->run_count + 1) * sizeof(*run));

	if (!runs)
		return -ENOMEM;
	copy->runs = runs;
	copy->runs[copy->run_count++] = *run;
	copy->kept += run->rows;
	return 0;
}

/* A descriptor belongs to the first part; the others open the file for each read. */
static void forget_file(struct stream_image_run *run)
{
	const struct readat none = READAT_NONE;

	if (run->file.owned)
		run->file = none;
}

/* A row of which any byte is stored counts: the end of the last one may be zeros. */
int stream_image_add_run(struct stream_image *copy, const struct stream_image_run *run,
			 const struct readat *file, uint64_t at)
{
	const uint64_t row = copy->head.row_bytes, end = at + run->rows * row;
	uint64_t from, to, done = 0;
	struct stream_image_run part = *run;
	bool added = false;
	int rc = 0;

	for (uint64_t next = at; !rc && readat_stored(file, next, end, &from, &to);) {
		const uint64_t first = (from - at) / row > done ? (from - at) / row : done;

		done = (to - at + row - 1) / row;
		next = at + done * row;
		part.first_row = run->first_row + first;
		part.rows = done - first;
		part.offset = run->offset + first * row;
		if (run->memory)
			part.memory = run->memory + first * row;
		rc = add_one_run(copy, &part);
		added = added || !rc;
		forget_file(&part);
	}
	return added ? 0 : rc ? rc : -ENODATA;
}

/* Slots that the file holds completely: it grows until the ring is complete. */
static uint64_t slots_there(const struct stream_image *copy, const struct readat *ring)
{
	uint64_t size = readat_size(ring);
	uint64_t slots = size > sizeof(struct kymo_segment_head)
				 ? (size - sizeof(struct kymo_segment_head)) / copy->head.row_bytes
				 : 0;

	return slots < copy->head.cap_rows ? slots : copy->head.cap_rows;
}

/* Copies slots [from, to); lowers *there if the file ends earlier. */
static void copy_slots(struct stream_image *copy, const struct readat *ring, uint64_t from,
		       uint64_t to, uint64_t *there)
{
	const size_t row = copy->head.row_bytes;
	size_t got;

	if (to > *there)
		to = *there;
	if (from >= to)
		return;
	got = readat_copy_stored(ring, sizeof(struct kymo_segment_head) + from * row,
				 copy->ring + from * row, (to - from) * row);
	if (got < (to - from) * row)
		*there = from + got / row;
}

/* Rows [from, to), into their slots in the ring. */
static void copy_rows(struct stream_image *copy, const struct readat *ring, uint64_t from,
		      uint64_t to, uint64_t *there)
{
	const uint64_t cap = copy->head.cap_rows;

	if (from >= to)
		return;
	if (from % cap < (to - 1) % cap + 1 && to - from <= cap) {
		copy_slots(copy, ring, from % cap, (to - 1) % cap + 1, there);
		return;
	}
	copy_slots(copy, ring, from % cap, cap, there);
	copy_slots(copy, ring, 0, to % cap, there);
}

/* Rows [from, to) that are copied, as runs. */
static void add_ring_runs(struct stream_image *copy, const struct readat *ring, uint64_t from,
			  uint64_t to, uint64_t there)
{
	const uint64_t cap = copy->head.cap_rows;

	while (from < to) {
		uint64_t slot = from % cap;
		uint64_t rows = to - from < cap - slot ? to - from : cap - slot;
		uint64_t whole = slot >= there ? 0 : rows < there - slot ? rows : there - slot;
		const struct stream_image_run run = { .first_row = from,
						      .rows = whole,
						      .memory = copy->ring +
								slot * copy->head.row_bytes,
						      .file = READAT_NONE };

		if (whole && stream_image_add_run(copy, &run, ring,
						  sizeof(struct kymo_segment_head) +
							  slot * copy->head.row_bytes) == -ENOMEM)
			return;
		from += rows;
	}
}

/* With room for the file to grow meanwhile; untouched pages cost nothing. */
static int make_ring(struct stream_image *copy, uint64_t there, struct kymo_error *err)
{
	uint64_t slots = there > SIZE_MAX / 4 / copy->head.row_bytes
				 ? there
				 : there * 2 + 8 * KYMO_RING_SEGMENT_ROWS;

	if (slots > copy->head.cap_rows)
		slots = copy->head.cap_rows;
	if (copy->ring_bytes >= slots * copy->head.row_bytes && copy->ring)
		return 0;
	page_memory_give(copy->ring, copy->ring_bytes);
	copy->ring_bytes = slots * copy->head.row_bytes;
	copy->ring = page_memory_take(copy->ring_bytes);
	return copy->ring ? 0 : error_set(err, ENOMEM, "no memory for the rows of %s", copy->label);
}

enum attempt { ATTEMPT_DONE, ATTEMPT_OVERTAKEN, ATTEMPT_ROWS_ONLY, ATTEMPT_FAILED };

/*
 * R1-R3 of the protocol, in three steps: most of the rows; then the totals, whose slots take
 * longest to read; then the rows written meanwhile. So few rows are written between reading the
 * totals' state and the second read of floor that the rows not yet in the totals still exist.
 */
static enum attempt try_ring(struct stream_image *copy, const struct stream_files *files,
			     struct kymo_error *err, struct kymo_error *totals_err)
{
	const uint64_t cap = copy->head.cap_rows;
	uint64_t head, floor, later_head, later_floor, there, were_there;

	copy->run_count = 0;
	copy->kept = 0;
	if (!read_head(&files->head, &head) || !read_floor(&files->head, &floor))
		return cannot(copy, "its header is truncated", err), ATTEMPT_FAILED;
	if (floor > head)
		return cannot(copy, "its floor is above its head", err), ATTEMPT_OVERTAKEN;
	if (head - floor > cap)
		return cannot(copy, "it holds more rows than fit", err), ATTEMPT_FAILED;
	copy->left_out = head - floor > copy->rows_most ? head - floor - copy->rows_most : 0;
	floor += copy->left_out;
	there = were_there = slots_there(copy, &files->ring);
	if (make_ring(copy, there, err))
		return ATTEMPT_FAILED;
	copy_rows(copy, &files->ring, floor, head, &there);
	if (totals_wanted(copy) &&
	    totals_image_take(&copy->totals, &files->head, &files->totals, copy->label, totals_err))
		totals_image_free(&copy->totals);
	if (!read_head(&files->head, &later_head) || later_head < head)
		return cannot(copy, "its head moved backwards", err), ATTEMPT_FAILED;
	/* The file may have grown meanwhile. */
	if (there == were_there)
		there = slots_there(copy, &files->ring);
	if (later_head - head > cap || there > copy->ring_bytes / copy->head.row_bytes)
		return ATTEMPT_OVERTAKEN;
	copy_rows(copy, &files->ring, head, later_head, &there);
	if (!read_floor(&files->head, &later_floor))
		return cannot(copy, "its header is truncated", err), ATTEMPT_FAILED;
	if (later_floor < floor)
		later_floor = floor;
	if (later_floor > later_head || later_head - later_floor > cap)
		return cannot(copy, "its floor does not fit its head", err), ATTEMPT_OVERTAKEN;
	copy->live.head = later_head;
	copy->live.floor = later_floor;
	add_ring_runs(copy, &files->ring, later_floor, later_head, there);
	if (!copy->kept && later_head)
		return ATTEMPT_OVERTAKEN;
	return copy->totals.image && copy->totals.from < later_floor ? ATTEMPT_ROWS_ONLY
								     : ATTEMPT_DONE;
}

/* Its rows count only if its head is valid. */
static void check_ring_file(const struct stream_image *copy, struct readat *ring,
			    const struct stream_image_sink *sink)
{
	struct kymo_segment_head head;
	struct kymo_error why = { 0 };
	char label[sizeof(copy->label) + 2];
	int rc;

	snprintf(label, sizeof(label), "%s.0", copy->label);
	if (!readat_size(ring))
		return; /* not started */
	rc = readat_head(ring, KYMO_MAGIC_SEGMENT, &head, sizeof(head), label, &why);
	if (!rc && (head.stream_id != copy->head.id || head.row_bytes != copy->head.row_bytes))
		rc = error_set(&why, EPROTO, "%s is damaged: its header belongs to another stream",
			       label);
	if (!rc)
		return;
	if (rc != -ENODATA)
		stream_image_say(sink, "%s", why.text);
	readat_close(ring);
}

/* A reader that loses every race gets further after a pause. */
static void rest_before(int attempt)
{
	struct timespec pause = { 0, 100000L << (attempt < 6 ? attempt : 6) };

	if (attempt)
		nanosleep(&pause, NULL);
}

static int take_ring(struct stream_image *copy, const struct stream_files *files,
		     const struct stream_image_sink *sink, struct kymo_error *err)
{
	enum attempt last = ATTEMPT_OVERTAKEN;
	struct kymo_error why = { 0 }, totals_why = { 0 };

	for (int i = 0; i < ATTEMPTS && last != ATTEMPT_DONE && last != ATTEMPT_FAILED; i++) {
		why.text[0] = totals_why.text[0] = '\0';
		rest_before(i);
		last = try_ring(copy, files, &why, &totals_why);
	}
	if (last == ATTEMPT_FAILED || (last == ATTEMPT_OVERTAKEN && why.text[0])) {
		if (err)
			*err = why;
		return -EPROTO;
	}
	if (last == ATTEMPT_OVERTAKEN) {
		/* They are newer than the rows. */
		totals_image_free(&copy->totals);
		error_set(&totals_why, EAGAIN,
			  "%s changes faster than it can be read: its totals are not exact",
			  copy->label);
	}
	if (totals_why.text[0])
		stream_image_say(sink, "%s", totals_why.text);
	if (copy->left_out)
		stream_image_say(sink,
				 "%s: the oldest %llu rows are left out: the recording needs more "
				 "memory than kymo takes for one; read it on a larger machine",
				 copy->label, (unsigned long long)copy->left_out);
	if (copy->live.head - copy->live.floor > copy->kept)
		stream_image_say(
			sink,
			"%s: %llu rows cannot be read: the file s%u.0 is truncated, missing, has "
			"holes, or changes faster than it can be read",
			copy->label,
			(unsigned long long)(copy->live.head - copy->live.floor - copy->kept),
			copy->head.id);
	return 0;
}

/* ---- chains ------------------------------------------------------------------------------ */

static int take_chain(struct stream_image *copy, const struct stream_files *files,
		      const struct stream_image_sink *sink, struct kymo_error *err)
{
	struct kymo_error why = { 0 };

	if (totals_wanted(copy) &&
	    totals_image_take(&copy->totals, &files->head, &files->totals, copy->label, &why)) {
		totals_image_free(&copy->totals);
		stream_image_say(sink, "%s", why.text);
	}
	if (!read_head(&files->head, &copy->live.head))
		return cannot(copy, "its header is truncated", err);
	return 0;
}

/* ---- all of it --------------------------------------------------------------------------- */

static void open_one(const struct stream_image *copy, uint32_t id, const char *what,
		     struct readat *out)
{
	char path[RUN_FILES_PATH_BYTES * 2];

	snprintf(path, sizeof(path), "%s/s%u.%s", copy->process, id, what);
	if (run_files_file(copy->source, path, out, NULL)) {
		const struct readat none = READAT_NONE;

		*out = none;
	}
}

static int take_head(struct stream_image *copy, uint32_t id, const struct stream_files *files,
		     struct kymo_error *err)
{
	int rc = readat_head(&files->head, KYMO_MAGIC_STREAM, &copy->head, sizeof(copy->head),
			     copy->label, err);

	if (!rc)
		rc = check_head(copy, id, err);
	if (!rc && !readat_all(&files->head, KYMO_LIVE_OFFSET, &copy->live, sizeof(copy->live)))
		rc = cannot(copy, "its header is truncated", err);
	return rc ? rc : check_live(copy, err);
}

/* Rows of a ring and totals stay in memory; rows of chains stay in their files. */
static void charge(const struct stream_image *copy, const struct stream_image_sink *sink)
{
	uint64_t bytes = sizeof(*copy) + copy->totals.stored_bytes;

	if (!sink || !sink->room_bytes)
		return;
	if (copy->head.cap_rows)
		bytes += copy->kept * copy->head.row_bytes;
	*sink->room_bytes -= bytes < *sink->room_bytes ? bytes : *sink->room_bytes;
}

static int check_room(struct stream_image *copy, const struct stream_image_sink *sink,
		      struct kymo_error *err)
{
	const uint64_t room = sink && sink->room_bytes ? *sink->room_bytes : UINT64_MAX;

	copy->rows_most = room / copy->head.row_bytes;
	if (room >= sizeof(*copy))
		return 0;
	return error_set(err, ENOMEM,
			 "%s is left out: the recording needs more memory than kymo takes for one",
			 copy->label);
}

int stream_image_take(struct stream_image *copy, const struct run_files *source,
		      const char *process, uint32_t id, const struct stream_image_sink *sink,
		      struct kymo_error *err)
{
	struct stream_files files = { READAT_NONE, READAT_NONE, READAT_NONE };
	int rc;

	memset(copy, 0, sizeof(*copy));
	copy->source = source;
	snprintf(copy->process, sizeof(copy->process), "%s", process);
	snprintf(copy->label, sizeof(copy->label), "%s/s%u", process, id);
	open_one(copy, id, "head", &files.head);
	rc = take_head(copy, id, &files, err);
	if (!rc)
		rc = check_room(copy, sink, err);
	if (!rc && totals_wanted(copy))
		open_one(copy, id, "totals", &files.totals);
	if (!rc && copy->head.cap_rows) {
		open_one(copy, id, "0", &files.ring);
		check_ring_file(copy, &files.ring, sink);
		rc = take_ring(copy, &files, sink, err);
	} else if (!rc) {
		rc = take_chain(copy, &files, sink, err);
	}
	if (!rc)
		rc = check_live(copy, err);
	if (!rc)
		read_open_stack(copy, &files.head);
	if (!rc)
		charge(copy, sink);
	readat_close(&files.head);
	readat_close(&files.ring);
	readat_close(&files.totals);
	if (rc)
		stream_image_free(copy);
	return rc;
}

static uint64_t rows_of_run(const struct stream_image *copy, const struct stream_image_run *run,
			    uint64_t at, uint64_t count, unsigned char *out)
{
	const size_t row = copy->head.row_bytes;
	struct readat file = run->file;
	char path[RUN_FILES_PATH_BYTES * 2];
	size_t got;

	if (run->memory) {
		memcpy(out, run->memory + at * row, (size_t)count * row);
		return count;
	}
	if (file.fd < 0 && !file.memory) {
		snprintf(path, sizeof(path), "%s/s%u.%llu", copy->process, copy->head.id,
			 (unsigned long long)run->sequence);
		if (run_files_file(copy->source, path, &file, NULL))
			return 0;
	} else {
		file.owned = false;
	}
	got = readat_copy(&file, run->offset + at * row, out, (size_t)count * row);
	readat_close(&file);
	return got / row;
}

uint64_t stream_image_rows(const struct stream_image *copy, uint64_t first, uint64_t count,
			   void *out)
{
	unsigned char *to = out;
	uint64_t done = 0;

	for (size_t i = 0; i < copy->run_count && done < count; i++) {
		const struct stream_image_run *run = &copy->runs[i];
		uint64_t at = first + done, part, got;

		if (at < run->first_row)
			break;
		if (at - run->first_row >= run->rows)
			continue;
		part = run->rows - (at - run->first_row);
		if (part > count - done)
			part = count - done;
		got = rows_of_run(copy, run, at - run->first_row, part,
				  to + done * copy->head.row_bytes);
		done += got;
		if (got < part)
			break;
	}
	return done;
}

void stream_image_total(struct stream_image *copy, const struct stream_image_sink *sink)
{
	struct kymo_zone_row rows[KYMO_BATCH_ROWS];
	struct totals_image *totals = &copy->totals;
	const uint64_t head = copy->live.head;

	if (!totals->image)
		return;
	while (totals->from < head) {
		uint64_t want = head - totals->from < KYMO_BATCH_ROWS ? head - totals->from
								      : KYMO_BATCH_ROWS;
		uint64_t got = stream_image_rows(copy, totals->from, want, rows);

		if (!got) {
			stream_image_say(sink,
					 "%s: the exact totals lack %llu rows that were not folded "
					 "yet and cannot be read",
					 copy->label, (unsigned long long)(head - totals->from));
			break;
		}
		totals_image_fold(totals, rows, totals->from, got);
	}
	if (totals->unsettled)
		stream_image_say(
			sink,
			"%s: %u totals changed faster than they could be read; they are not exact",
			copy->label, totals->unsettled);
	if (!totals_image_finish(totals, head))
		stream_image_say(
			sink, "%s: the totals hold more rows than were written; they are damaged",
			copy->label);
}

void stream_image_free(struct stream_image *copy)
{
	for (size_t i = 0; i < copy->run_count; i++)
		readat_close(&copy->runs[i].file);
	page_memory_give(copy->runs, copy->run_room_bytes);
	page_memory_give(copy->ring, copy->ring_bytes);
	totals_image_free(&copy->totals);
	memset(copy, 0, sizeof(*copy));
}
