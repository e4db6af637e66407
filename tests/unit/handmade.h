/*
 * Recordings made by hand, from the structs of the format: files in memory that can be opened
 * there, or written to a directory. Every field of a row is a function of its number, so that a row
 * read back tells whether it is whole.
 */
#ifndef KYMO_TESTS_HANDMADE_H
#define KYMO_TESTS_HANDMADE_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fold.h"
#include "base/format.h"
#include "base/files/run_files.h"
#include "store/recording_inside.h"

#define HANDMADE_FILES 64
#define HANDMADE_PAGES (KYMO_CONTROL_BYTES > 16384 ? KYMO_CONTROL_BYTES : 16384)
#define HANDMADE_CAP 4096u /* of rings: 3 segments kept and one being written */
#define HANDMADE_EPOCH 1000000000ull

struct handmade {
	struct run_files_blob files[HANDMADE_FILES];
	size_t count;
};

static inline void *handmade_file(struct handmade *made, const char *path, size_t bytes)
{
	struct run_files_blob *file = &made->files[made->count++];

	for (size_t i = 0; i < sizeof(file->path) - 1 && path[i]; i++)
		file->path[i] = path[i];
	file->data = calloc(1, bytes ? bytes : 1);
	file->bytes = bytes;
	return (void *)(uintptr_t)file->data;
}

static inline void *handmade_in(struct handmade *made, const char *process, const char *name,
				size_t bytes)
{
	char path[RUN_FILES_PATH_BYTES * 2];

	snprintf(path, sizeof(path), "%s/%s", process, name);
	return handmade_file(made, path, bytes);
}

static inline struct run_files_blob *handmade_find(struct handmade *made, const char *path)
{
	for (size_t i = 0; i < made->count; i++)
		if (!strcmp(made->files[i].path, path))
			return &made->files[i];
	return NULL;
}

static inline void handmade_head(void *at, const char *magic, uint32_t bytes)
{
	struct kymo_file_head *head = at;

	memcpy(head->magic, magic, 8);
	head->version = KYMO_FORMAT_VERSION;
	head->head_bytes = bytes;
}

static inline void handmade_free(struct handmade *made)
{
	for (size_t i = 0; i < made->count; i++)
		free((void *)(uintptr_t)made->files[i].data);
	made->count = 0;
}

/* ---- a run and a process ------------------------------------------------------------------ */

static inline struct kymo_run_file *handmade_run(struct handmade *made)
{
	struct kymo_run_file *run = handmade_file(made, "run", sizeof(*run));

	handmade_head(run, KYMO_MAGIC_RUN, sizeof(*run));
	run->clock_kind = KYMO_CLOCK_TSC;
	run->epoch = (struct kymo_clock_pair){ HANDMADE_EPOCH, HANDMADE_EPOCH,
					       1700000000000000000ull, 20 };
	run->target_pid = 4000000;
	run->target_starttime = 77;
	strcpy(run->boot_id, "not-this-one");
	strcpy(run->program, "train.py");
	memcpy(run->argv, "python\0train.py\0--name\0it's me\0", 32);
	return run;
}

/* Two ticks to a nanosecond. */
static inline struct kymo_control *handmade_control(struct handmade *made, const char *process,
						    int32_t pid)
{
	struct kymo_control *control = handmade_in(made, process, "control", KYMO_CONTROL_BYTES);

	handmade_head(control, KYMO_MAGIC_CONTROL, sizeof(*control));
	control->clock_kind = KYMO_CLOCK_TSC;
	control->pid = pid;
	control->starttime = 77;
	control->rank = control->ranks = -1;
	control->pairs[0] = (struct kymo_clock_pair){ HANDMADE_EPOCH, HANDMADE_EPOCH,
						      1700000000000000000ull, 20 };
	control->pairs[1] = (struct kymo_clock_pair){ HANDMADE_EPOCH + 20000000000ull,
						      HANDMADE_EPOCH + 10000000000ull,
						      1700000010000000000ull, 20 };
	control->pair_count = 2;
	strcpy(control->program, "train.py");
	memcpy(control->argv, "python\0train.py\0", 17);
	return control;
}

static inline void handmade_names(struct handmade *made, const char *process,
				  const char *const *names)
{
	size_t count = 0, bytes = sizeof(struct kymo_text_head);
	struct kymo_names_head *head;
	struct kymo_name_entry *entry;
	struct kymo_text_head *text;

	for (const char *const *name = names; *name; name++, count++)
		bytes += strlen(*name) + 4;
	head = handmade_in(made, process, "names", sizeof(*head) + (count + 1) * sizeof(*entry));
	text = handmade_in(made, process, "text", bytes);
	handmade_head(head, KYMO_MAGIC_NAMES, sizeof(*head));
	handmade_head(text, KYMO_MAGIC_TEXT, sizeof(*text));
	head->count = count + 1;
	text->used = sizeof(*text);
	entry = (struct kymo_name_entry *)(head + 1);
	for (size_t i = 0; i < count; i++) {
		*++entry = (struct kymo_name_entry){ .ready = 1,
						     .text_offset = text->used,
						     .name_bytes = (uint32_t)strlen(names[i]),
						     .file_bytes = 4,
						     .line = 7 };
		memcpy((char *)text + text->used, names[i], strlen(names[i]));
		memcpy((char *)text + text->used + strlen(names[i]), "f.py", 4);
		text->used += strlen(names[i]) + 4;
	}
}

static inline void handmade_threads(struct handmade *made, const char *process, int32_t tid)
{
	struct kymo_threads_head *head = handmade_in(
		made, process, "threads", sizeof(*head) + 2 * sizeof(struct kymo_thread_entry));
	struct kymo_thread_entry *entry = (struct kymo_thread_entry *)(head + 1) + 1;

	handmade_head(head, KYMO_MAGIC_THREADS, sizeof(*head));
	head->count = 2;
	*entry = (struct kymo_thread_entry){ .ready = 1,
					     .tid = tid,
					     .started_ticks = HANDMADE_EPOCH };
	strcpy(entry->name, "main");
}

/* ---- rows --------------------------------------------------------------------------------- */

/* Zones of three depths, the inner ones ending first; names 1, 2 and 3. */
static inline struct kymo_zone_row handmade_row(uint64_t number)
{
	return (struct kymo_zone_row){ .start_ticks = HANDMADE_EPOCH + number * 100,
				       .duration_ticks = number * 7919 % 5003 + 1,
				       .name = 1 + (uint32_t)(number % 3),
				       .thread = 1,
				       .depth = (uint16_t)(2 - number % 3),
				       .step = (uint32_t)number };
}

static inline int handmade_row_is(const struct kymo_zone_row *row, uint64_t number)
{
	const struct kymo_zone_row expected = handmade_row(number);

	return !memcmp(row, &expected, sizeof(expected));
}

static inline struct kymo_stream_head *handmade_stream(struct handmade *made, const char *process,
						       uint32_t id, const char *table,
						       uint32_t row_bytes)
{
	static const struct kymo_column_desc columns[] = {
		{ "start_ns", KYMO_TIME, 0, 8, "" }, { "duration_ns", KYMO_DURATION, 8, 8, "" },
		{ "name", KYMO_NAME, 16, 4, "" },    { "thread", KYMO_THREAD, 20, 4, "" },
		{ "depth", KYMO_U16, 24, 2, "" },    { "flags", KYMO_U16, 26, 2, "" },
		{ "step", KYMO_U32, 28, 4, "" },
	};
	char name[32];
	struct kymo_stream_head *head;

	snprintf(name, sizeof(name), "s%u.head", id);
	head = handmade_in(made, process, name, KYMO_HEAD_FILE_BYTES);
	handmade_head(head, KYMO_MAGIC_STREAM, sizeof(*head));
	strcpy(head->table, table);
	head->id = id;
	head->row_bytes = row_bytes;
	head->column_count = sizeof(columns) / sizeof(columns[0]);
	memcpy(head->columns, columns, sizeof(columns));
	return head;
}

static inline struct kymo_stream_live *handmade_live(struct kymo_stream_head *head)
{
	return (struct kymo_stream_live *)(void *)((char *)head + KYMO_LIVE_OFFSET);
}

static inline struct kymo_open_stack *handmade_open(struct kymo_stream_head *head)
{
	return (struct kymo_open_stack *)(void *)((char *)head + KYMO_OPEN_OFFSET);
}

static inline struct kymo_zone_row *handmade_segment(struct handmade *made, const char *process,
						     uint32_t id, uint64_t sequence,
						     uint64_t first_row, uint64_t rows)
{
	struct kymo_segment_head *head;
	char name[32];

	snprintf(name, sizeof(name), "s%u.%llu", id, (unsigned long long)sequence);
	head = handmade_in(made, process, name,
			   sizeof(*head) + rows * sizeof(struct kymo_zone_row));
	handmade_head(head, KYMO_MAGIC_SEGMENT, sizeof(*head));
	head->stream_id = id;
	head->row_bytes = sizeof(struct kymo_zone_row);
	head->sequence = sequence;
	head->first_row = first_row;
	head->rows = rows;
	return (struct kymo_zone_row *)(void *)(head + 1);
}

/* A ring of zones that was written up to `written`; floor as the protocol moves it. */
static inline struct kymo_stream_head *handmade_ring(struct handmade *made, const char *process,
						     uint32_t id, uint64_t written)
{
	struct kymo_stream_head *head = handmade_stream(made, process, id, "trace.zones",
							sizeof(struct kymo_zone_row));
	struct kymo_zone_row *rows = handmade_segment(made, process, id, 0, 0, HANDMADE_CAP);

	head->cap_rows = HANDMADE_CAP;
	head->has_open_stack = 1;
	handmade_live(head)->thread = 1;
	for (uint64_t n = 0; n < written; n++) {
		if (n >= HANDMADE_CAP && n % KYMO_RING_SEGMENT_ROWS == 0)
			handmade_live(head)->floor = n + KYMO_RING_SEGMENT_ROWS - HANDMADE_CAP;
		rows[n % HANDMADE_CAP] = handmade_row(n);
	}
	handmade_live(head)->head = written;
	return head;
}

/* A chain of `segments` segments of `each` rows, from number `first_segment` on, written up to
   `written`. */
static inline struct kymo_stream_head *handmade_chain(struct handmade *made, const char *process,
						      uint32_t id, uint64_t first_segment,
						      uint64_t segments, uint64_t each,
						      uint64_t written)
{
	struct kymo_stream_head *head = handmade_stream(made, process, id, "trace.zones",
							sizeof(struct kymo_zone_row));

	head->keep = KYMO_KEEP_ALL;
	head->has_open_stack = 1;
	handmade_live(head)->thread = 1;
	handmade_live(head)->head = written;
	handmade_live(head)->segment_first = first_segment;
	handmade_live(head)->segment_next = first_segment + segments;
	for (uint64_t s = first_segment; s < first_segment + segments; s++) {
		struct kymo_zone_row *rows = handmade_segment(made, process, id, s, s * each, each);

		for (uint64_t i = 0; i < each; i++)
			rows[i] = handmade_row(s * each + i);
	}
	return head;
}

/* Totals of three names that hold rows [0, upto). */
static inline void handmade_totals(struct handmade *made, const char *process,
				   struct kymo_stream_head *head, uint64_t upto)
{
	struct kymo_totals_head *totals;
	char name[32], *base;

	snprintf(name, sizeof(name), "s%u.totals", head->id);
	totals = handmade_in(made, process, name, kymo_totals_slot_offset(4));
	base = (char *)totals;
	handmade_head(totals, KYMO_MAGIC_TOTALS, sizeof(*totals));
	head->has_totals = 1;
	totals->count = 3;
	for (uint32_t slot = 0; slot < 3; slot++)
		((struct kymo_totals_slot *)(void *)(base + kymo_totals_slot_offset(slot)))->name =
			slot + 1;
	for (uint64_t n = 0; n < upto; n++) {
		const struct kymo_zone_row row = handmade_row(n);
		struct kymo_totals_slot *slot = (void *)(base +
							 kymo_totals_slot_offset(row.name - 1));
		uint64_t child = fold_child(handmade_live(head)->child_at[0], &row);

		fold_resume(slot, (uint64_t *)(void *)(slot + 1), 0, n, row.duration_ticks, child);
	}
	handmade_live(head)->fold_state = upto << 1;
	handmade_live(head)->histogram_upto = upto;
}

/* What the totals must be, worked out another way. */
struct handmade_sums {
	uint64_t count, sum, child, min, max;
	double square;
	uint64_t histogram[KYMO_HIST_BUCKETS];
};

static inline void handmade_expected(uint64_t upto, struct handmade_sums sums[4])
{
	memset(sums, 0, 4 * sizeof(sums[0]));
	for (uint64_t n = 0; n < upto; n++) {
		struct kymo_zone_row row = handmade_row(n);
		struct handmade_sums *sum = &sums[row.name];

		sum->min = !sum->count || row.duration_ticks < sum->min ? row.duration_ticks
									: sum->min;
		sum->max = row.duration_ticks > sum->max ? row.duration_ticks : sum->max;
		sum->count++;
		sum->sum += row.duration_ticks;
		sum->square += (double)row.duration_ticks * (double)row.duration_ticks;
		/* Rows come as inner, middle, outer: a row's child is the one before it, unless it
		   is the innermost. */
		sum->child += n % 3 ? handmade_row(n - 1).duration_ticks : 0;
		sum->histogram[hist_bucket(row.duration_ticks)]++;
	}
}

/* ---- a whole one -------------------------------------------------------------------------- */

static const char *const handmade_words[] = { "inner", "middle", "outer", NULL };

/* One process, p10-77, with a ring that has wrapped. */
static inline struct kymo_stream_head *handmade_small(struct handmade *made, uint64_t written)
{
	struct kymo_stream_head *head;

	handmade_run(made);
	handmade_control(made, "p10-77", 10);
	handmade_names(made, "p10-77", handmade_words);
	handmade_threads(made, "p10-77", 11);
	head = handmade_ring(made, "p10-77", 0, written);
	handmade_totals(made, "p10-77", head, written / 256 * 256);
	return head;
}

/* A tiny one that has everything: a ring, a chain, totals, open zones, losses. */
static inline void handmade_all(struct handmade *made)
{
	struct kymo_open_stack *open = handmade_open(handmade_small(made, 40));
	struct kymo_control *control =
		(void *)(uintptr_t)handmade_find(made, "p10-77/control")->data;

	handmade_find(made, "p10-77/s0.0")->bytes = sizeof(struct kymo_segment_head) +
						    48 * sizeof(struct kymo_zone_row);
	open->depth = 2;
	open->entries[0] = (struct kymo_open_entry){ HANDMADE_EPOCH + 2000, 3, 0 };
	open->entries[1] = (struct kymo_open_entry){ HANDMADE_EPOCH + 4000, 1, 0 };
	strcpy(control->lost[20].table, "app.requests");
	control->lost[20].dropped[0] = 9;
	handmade_chain(made, "p10-77", 1, 0, 2, 20, 30);
}

static inline int handmade_open_memory(struct handmade *made, struct recording **out,
				       struct kymo_error *err)
{
	struct run_files source;

	run_files_open_blobs(&source, made->files, made->count);
	*out = NULL;
	return inside_open(&source, "in memory", 1, out, err);
}

/* Files whose path begins with `which` ("": all). */
static inline void handmade_write_some(const struct handmade *made, const char *directory,
				       const char *which)
{
	char path[KYMO_PATH_BYTES];

	mkdir(directory, 0700);
	for (size_t i = 0; i < made->count; i++) {
		const struct run_files_blob *file = &made->files[i];
		const char *slash = strchr(file->path, '/');
		int fd;

		if (strncmp(file->path, which, strlen(which)))
			continue;
		if (slash) {
			snprintf(path, sizeof(path), "%s/%.*s", directory,
				 (int)(slash - file->path), file->path);
			mkdir(path, 0700);
		}
		snprintf(path, sizeof(path), "%s/%s", directory, file->path);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || write(fd, file->data, file->bytes) != (ssize_t)file->bytes)
			abort();
		close(fd);
	}
}

static inline void handmade_write(const struct handmade *made, const char *directory)
{
	handmade_write_some(made, directory, "");
}

/* A directory of its own for a test, on tmpfs; removed by handmade_rm(). */
static inline char *handmade_mkdir(char path[64])
{
	strcpy(path, "/dev/shm/kymo-unit-XXXXXX");
	if (!mkdtemp(path)) {
		strcpy(path, "/tmp/kymo-unit-XXXXXX");
		if (!mkdtemp(path))
			abort();
	}
	return path;
}

static inline void handmade_rm(const char *path)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	if (system(command))
		abort();
}

/* Reads every row of every stream and every field that points somewhere; returns the rows. */
static inline uint64_t handmade_walk(const struct recording *recording)
{
	unsigned char row[KYMO_ROW_BYTES_MAX];
	uint64_t rows = 0, sink = 0;

	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		if (stream->emitted != stream->kept + stream->overwritten + stream->dropped_total)
			abort();
		for (size_t c = 0; c < stream->chunk_count; c++)
			for (uint64_t at = 0; at < stream->chunks[c].rows; at++)
				rows += store_read_rows(stream, &stream->chunks[c], at, 1, row);
		for (size_t z = 0; z < stream->open_count; z++)
			sink += recording->names[stream->open_zones[z].name].text_bytes +
				(uint64_t)recording->threads[stream->open_zones[z].thread].tid;
		for (size_t t = 0; t < stream->total_count; t++) {
			sink += recording->names[stream->totals[t].name].line;
			for (uint32_t b = 0; stream->totals[t].histogram && b < KYMO_HIST_BUCKETS;
			     b++)
				sink += stream->totals[t].histogram[b];
		}
	}
	for (size_t i = 0; i < recording->name_count; i++)
		sink += strlen(recording->names[i].text) + strlen(recording->names[i].file);
	for (size_t i = 0; i < recording->thread_count; i++)
		sink += strlen(recording->threads[i].name);
	for (size_t i = 0; i < recording->process_count; i++)
		sink += strlen(recording->processes[i].command) +
			strlen(recording->processes[i].program);
	for (size_t i = 0; i < recording->problem_count; i++)
		sink += strlen(recording->problems[i]);
	return sink == UINT64_MAX ? 0 : rows;
}

#endif
