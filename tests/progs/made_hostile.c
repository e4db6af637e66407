/*
 * Writes recordings that claim more than they hold, or numbers at the edge of their types.
 *
 *	made_hostile DIRECTORY WORD
 *
 * A sparse file takes no room on the disk where nothing was written.
 */
#include "../unit/handmade.h"

#include "base/files/snapshot_format.h"
#include "base/hist.h"

#define PROCESS "p10-77"
#define LARGE_ROWS UINT64_C(48000000) /* 1.5 GB of zones */

static void write_at(const char *directory, const char *file, uint64_t bytes, const void *end,
		     size_t end_bytes)
{
	char path[KYMO_PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) ||
	    (end_bytes && pwrite(fd, end, end_bytes, (off_t)(bytes - end_bytes)) < 0)) {
		perror(path);
		exit(1);
	}
	close(fd);
}

static void begin(struct handmade *made)
{
	handmade_run(made);
	handmade_control(made, PROCESS, 10);
	handmade_names(made, PROCESS, handmade_words);
	handmade_threads(made, PROCESS, 11);
}

/* 32,768 real rows, 1 MB, at the beginning of a ring of 1.5 GB that is full; the last row, too. */
static void sparse_ring(struct handmade *made, const char *directory, uint32_t id)
{
	struct kymo_stream_head *head = handmade_stream(made, PROCESS, id, "trace.zones",
							sizeof(struct kymo_zone_row));
	struct kymo_zone_row *rows = handmade_segment(made, PROCESS, id, 0, 0, 32768);
	const struct kymo_zone_row last = handmade_row(LARGE_ROWS - 1);
	char name[64];

	for (uint64_t n = 0; n < 32768; n++)
		rows[n] = handmade_row(n);
	head->cap_rows = handmade_live(head)->head = LARGE_ROWS;
	handmade_live(head)->thread = 1;
	handmade_write(made, directory);
	snprintf(name, sizeof(name), PROCESS "/s%u.0", id);
	write_at(directory, name, sizeof(struct kymo_segment_head) + LARGE_ROWS * sizeof(last),
		 &last, sizeof(last));
}

/* A chain whose one segment claims 2^38 rows. */
static void sparse_segment(struct handmade *made, const char *directory)
{
	const uint64_t claimed = UINT64_C(1) << 38;
	struct kymo_stream_head *head = handmade_chain(made, PROCESS, 0, 0, 1, 1024, claimed);
	struct kymo_segment_head *segment =
		(void *)(uintptr_t)handmade_find(made, PROCESS "/s0.0")->data;

	(void)head;
	segment->rows = claimed;
	handmade_write(made, directory);
	write_at(directory, PROCESS "/s0.0",
		 sizeof(*segment) + claimed * sizeof(struct kymo_zone_row), NULL, 0);
}

/* Processes whose tables of names and threads claim to be full. */
static void sparse_tables(struct handmade *made, const char *directory)
{
	static const struct {
		const char *name;
		uint64_t bytes;
	} files[] = {
		{ "names", sizeof(struct kymo_names_head) +
				   (uint64_t)KYMO_NAMES_MAX * sizeof(struct kymo_name_entry) },
		{ "text", KYMO_TEXT_BYTES_MAX },
		{ "threads",
		  sizeof(struct kymo_threads_head) +
			  (uint64_t)KYMO_THREADS_MAX * sizeof(struct kymo_thread_entry) },
	};
	char process[32], path[128];

	handmade_run(made);
	for (int i = 0; i < 12; i++) {
		snprintf(process, sizeof(process), "p%d-77", 10 + i);
		handmade_control(made, process, 10 + i);
		handmade_names(made, process, handmade_words);
		handmade_threads(made, process, 11);
		for (int k = 0; k < 3; k++) {
			snprintf(path, sizeof(path), "%s/%s", process, files[k].name);
			((struct kymo_names_head *)(uintptr_t)handmade_find(made, path)->data)
				->count = UINT64_MAX;
		}
	}
	handmade_write(made, directory);
	for (int i = 0; i < 12; i++)
		for (int k = 0; k < 3; k++) {
			snprintf(path, sizeof(path), "p%d-77/%s", 10 + i, files[k].name);
			write_at(directory, path, files[k].bytes, "", 1);
		}
}

static void start_again(struct handmade *made)
{
	handmade_free(made);
	memset(made, 0, sizeof(*made));
}

/* Totals that claim all slots, of many streams. */
static void sparse_totals(struct handmade *made, const char *directory)
{
	char path[128];

	begin(made);
	handmade_write(made, directory);
	start_again(made);
	for (uint32_t id = 0; id < 100; id++) {
		struct kymo_stream_head *head = handmade_chain(made, PROCESS, id, 0, 1, 64, 64);

		handmade_totals(made, PROCESS, head, 64);
		snprintf(path, sizeof(path), PROCESS "/s%u.totals", id);
		((struct kymo_totals_head *)(uintptr_t)handmade_find(made, path)->data)->count =
			KYMO_TOTALS_MAX;
		handmade_write(made, directory);
		write_at(directory, path, kymo_totals_slot_offset(KYMO_TOTALS_MAX), NULL, 0);
		start_again(made);
	}
}

/* All names have the same 8 KB of text, and different lines. */
static void shared_text(struct handmade *made, const char *directory)
{
	const size_t count = KYMO_NAMES_MAX;
	struct kymo_name_entry *entry;
	struct kymo_names_head *head;
	struct kymo_text_head *text;

	handmade_run(made);
	handmade_control(made, PROCESS, 10);
	handmade_threads(made, PROCESS, 11);
	head = handmade_in(made, PROCESS, "names", sizeof(*head) + count * sizeof(*entry));
	text = handmade_in(made, PROCESS, "text", sizeof(*text) + 8192);
	handmade_head(head, KYMO_MAGIC_NAMES, sizeof(*head));
	handmade_head(text, KYMO_MAGIC_TEXT, sizeof(*text));
	head->count = count;
	text->used = sizeof(*text) + 8192;
	memset(text + 1, 'x', 8192);
	entry = (struct kymo_name_entry *)(head + 1);
	for (size_t i = 1; i < count; i++)
		entry[i] = (struct kymo_name_entry){ .ready = 1,
						     .text_offset = sizeof(*text),
						     .name_bytes = 4096,
						     .file_bytes = 4096,
						     .line = (uint32_t)i };
	handmade_write(made, directory);
}

/* A snapshot that claims a table of contents of 2^36 entries. */
static void sparse_snapshot(const char *directory)
{
	struct kymo_snapshot_head head = { .toc_offset = 4096, .count = UINT64_C(1) << 36 };

	handmade_head(&head, KYMO_MAGIC_SNAPSHOT, sizeof(head));
	mkdir(directory, 0700);
	write_at(directory, "snapshot.kymo", sizeof(head), &head, sizeof(head));
	write_at(directory, "snapshot.kymo", 4096 + head.count * sizeof(struct kymo_snapshot_entry),
		 "", 1);
}

/* A chain whose rows are numbered from `first` on, with the steps of `step`. */
static void far_rows(struct handmade *made, const char *directory, uint64_t first, uint32_t step)
{
	const uint64_t each = 1024;
	struct kymo_stream_head *head;
	struct kymo_zone_row *rows;

	begin(made);
	head = handmade_stream(made, PROCESS, 0, "trace.zones", sizeof(*rows));
	head->keep = KYMO_KEEP_ALL;
	handmade_live(head)->thread = 1;
	handmade_live(head)->head = first + each;
	handmade_live(head)->segment_first = first / each;
	handmade_live(head)->segment_next = first / each + 1;
	rows = handmade_segment(made, PROCESS, 0, first / each, first, each);
	for (uint64_t i = 0; i < each; i++) {
		rows[i] = handmade_row(i);
		rows[i].step = step + (uint32_t)i;
	}
	handmade_write(made, directory);
}

/* Pairs that jump back and forth, and rows whose times run backwards. */
static void clock_jumps(struct handmade *made, const char *directory, bool backwards)
{
	struct kymo_control *control;
	struct kymo_zone_row *rows;

	begin(made);
	control = (void *)(uintptr_t)handmade_find(made, PROCESS "/control")->data;
	for (uint32_t i = 1; !backwards && i < KYMO_CLOCK_PAIRS; i++) {
		control->pairs[i] = control->pairs[0];
		control->pairs[i].ticks += (i % 2 ? 40000000000ull : 1000ull) * i;
		control->pairs[i].monotonic_ns += (i % 2 ? 1000ull : 10000000000ull) * i;
	}
	if (!backwards)
		control->pair_count = UINT32_MAX;
	handmade_chain(made, PROCESS, 0, 0, 1, 1024, 1024);
	rows = (struct kymo_zone_row
			*)(void *)((char *)(uintptr_t)handmade_find(made, PROCESS "/s0.0")->data +
				   sizeof(struct kymo_segment_head));
	for (uint64_t i = 0; backwards && i < 1024; i++) {
		rows[i].start_ticks = i % 2 ? UINT64_MAX - i : HANDMADE_EPOCH - i * 1000000;
		rows[i].duration_ticks = i % 3 ? UINT64_MAX - i : 1;
	}
	handmade_write(made, directory);
}

static void make(struct handmade *made, const char *directory, const char *word)
{
	if (!strcmp(word, "sparse-ring") || !strcmp(word, "sparse-rings")) {
		begin(made);
		for (uint32_t id = 0; id < (word[11] ? 8 : 1); id++)
			sparse_ring(made, directory, id);
	} else if (!strcmp(word, "sparse-segment")) {
		begin(made);
		sparse_segment(made, directory);
	} else if (!strcmp(word, "sparse-tables")) {
		sparse_tables(made, directory);
	} else if (!strcmp(word, "sparse-totals")) {
		sparse_totals(made, directory);
	} else if (!strcmp(word, "shared-text")) {
		shared_text(made, directory);
	} else if (!strcmp(word, "sparse-snapshot")) {
		sparse_snapshot(directory);
	} else if (!strcmp(word, "rows-beyond-32")) {
		far_rows(made, directory, UINT64_C(1) << 32, 7);
	} else if (!strcmp(word, "rows-across-32")) {
		far_rows(made, directory, (UINT64_C(1) << 32) - 512, 7);
	} else if (!strcmp(word, "rows-near-60")) {
		far_rows(made, directory, (UINT64_C(1) << 60) - 2048, 7);
	} else if (!strcmp(word, "rows-beyond-60")) {
		far_rows(made, directory, UINT64_C(1) << 60, 7);
	} else if (!strcmp(word, "steps-near-32")) {
		far_rows(made, directory, 0, UINT32_MAX - 600);
	} else if (!strcmp(word, "clock-jumps") || !strcmp(word, "clock-backwards")) {
		clock_jumps(made, directory, word[6] == 'b');
	} else {
		fprintf(stderr, "made_hostile: unknown word %s\n", word);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct handmade made;

	if (argc != 3)
		return 2;
	make(&made, argv[1], argv[2]);
	handmade_free(&made);
	return 0;
}
