/*
 * Writes a recording byte by byte, as base/format.h says, without libkymo: with a clock of 1 ns a
 * tick that begins at MAKE_EPOCH, so that a test knows every number of the answer.
 *
 *	struct make make;
 *	make_run(&make, directory);
 *	make_process(&make, 100, -1);
 *	uint32_t name = make_name(&make, "step", "train.py", 7, KYMO_SOURCE_PYTHON, 0);
 *	uint32_t thread = make_thread(&make, 101, "main");
 *	make_stream(&make, schema_find("trace.zones"), rows, 3, sizeof(rows[0]));
 *	make_process_end(&make);
 */
#ifndef KYMO_TESTS_TABLES_MAKE_H
#define KYMO_TESTS_TABLES_MAKE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/schema.h"

#define MAKE_EPOCH UINT64_C(5000000000) /* ticks */
#define MAKE_UNIX UINT64_C(1700000000000000000) /* realtime of the epoch */
#define MAKE_NAMES_MAX 20000u
#define MAKE_THREADS_MAX 64u

struct make {
	char run[512];
	char process[600];
	int32_t pid, rank;
	uint32_t next_stream;
	struct kymo_name_entry *names;
	uint32_t name_count;
	char *text;
	uint64_t text_used, text_room;
	struct kymo_thread_entry threads[MAKE_THREADS_MAX];
	uint32_t thread_count;
	struct kymo_control control;
	bool no_totals; /* claims that rows are in totals, of which there are none: opens faster */
	/* For the next make_stream(), reset by it. */
	const struct kymo_open_entry *open;
	uint32_t open_count, open_thread;
	uint64_t overwritten, dropped[KYMO_DROP_CAUSE_COUNT];
};

static inline void make_die(const char *path)
{
	perror(path);
	abort();
}

static inline void make_file(const char *directory, const char *name, const void *head,
			     size_t head_bytes, const void *rest, size_t rest_bytes)
{
	char path[700];
	const char *bytes = rest;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, head, head_bytes) != (ssize_t)head_bytes)
		make_die(path);
	while (rest_bytes) {
		ssize_t done = write(fd, bytes, rest_bytes);

		if (done <= 0)
			make_die(path);
		bytes += done;
		rest_bytes -= (size_t)done;
	}
	close(fd);
}

static inline void make_head(struct kymo_file_head *head, const char *magic, size_t bytes)
{
	memcpy(head->magic, magic, strlen(magic) + 1);
	head->version = KYMO_FORMAT_VERSION;
	head->head_bytes = (uint32_t)bytes;
}

static inline void make_run(struct make *make, const char *directory)
{
	struct kymo_run_file *run = calloc(1, sizeof(*run));

	memset(make, 0, sizeof(*make));
	snprintf(make->run, sizeof(make->run), "%s", directory);
	if (mkdir(directory, 0700) && access(directory, F_OK))
		make_die(directory);
	make_head(&run->file, KYMO_MAGIC_RUN, sizeof(*run));
	run->clock_kind = KYMO_CLOCK_MONOTONIC;
	run->supervised = 1;
	run->epoch = (struct kymo_clock_pair){ MAKE_EPOCH, MAKE_EPOCH, MAKE_UNIX, 40 };
	run->target_pid = 100;
	run->target_starttime = 7;
	run->ended = 1;
	run->target_wstatus = 9; /* SIGKILL */
	run->ended_realtime_ns = MAKE_UNIX + 60000000000u;
	run->keep = KYMO_KEEP_ALL;
	strcpy(run->kymo_version, "0.1.0");
	strcpy(run->host, "box");
	strcpy(run->boot_id, "00000000-0000-0000-0000-000000000000");
	strcpy(run->program, "made");
	memcpy(run->argv, "made\0--fast\0", 13);
	strcpy(run->cwd, "/somewhere");
	make_file(directory, "run", run, sizeof(*run), NULL, 0);
	free(run);
}

static inline void make_process(struct make *make, int32_t pid, int32_t rank)
{
	struct kymo_control *control = &make->control;

	make->pid = pid;
	make->rank = rank;
	make->next_stream = 1;
	make->name_count = 1;
	make->thread_count = 1;
	memset(make->threads, 0, sizeof(make->threads));
	make->text_used = sizeof(struct kymo_text_head);
	make->text_room = 1 << 20;
	make->text = calloc(1, make->text_room);
	make->names = calloc(MAKE_NAMES_MAX, sizeof(make->names[0]));
	snprintf(make->process, sizeof(make->process), "%s/p%d-7", make->run, pid);
	if (mkdir(make->process, 0700))
		make_die(make->process);
	memset(control, 0, sizeof(*control));
	make_head(&control->file, KYMO_MAGIC_CONTROL, sizeof(*control));
	control->clock_kind = KYMO_CLOCK_MONOTONIC;
	control->pid = pid;
	control->ppid = 1;
	control->starttime = 7;
	control->rank = rank;
	control->ranks = rank < 0 ? -1 : 2;
	control->keep = KYMO_KEEP_ALL;
	control->ended = 2;
	control->wstatus_known = 1;
	control->wstatus = 3 << 8;
	control->ended_ticks = MAKE_EPOCH + 60000000000u;
	control->own_cost_ticks = 30;
	control->pairs[0] = (struct kymo_clock_pair){ MAKE_EPOCH, MAKE_EPOCH, MAKE_UNIX, 40 };
	control->pair_count = 1;
	strcpy(control->program, "made");
	memcpy(control->argv, "made\0--fast\0", 13);
}

static inline uint32_t make_name(struct make *make, const char *name, const char *file,
				 uint32_t line, uint32_t source, uint32_t instance)
{
	struct kymo_name_entry *entry = &make->names[make->name_count];
	size_t name_bytes = strlen(name), file_bytes = file ? strlen(file) : 0;

	while (make->text_used + name_bytes + file_bytes > make->text_room) {
		make->text_room *= 2;
		make->text = realloc(make->text, make->text_room);
	}
	entry->ready = 1;
	entry->source = source;
	entry->text_offset = make->text_used;
	entry->name_bytes = (uint32_t)name_bytes;
	entry->file_bytes = (uint32_t)file_bytes;
	entry->line = line;
	entry->instance = instance;
	memcpy(make->text + make->text_used, name, name_bytes);
	memcpy(make->text + make->text_used + name_bytes, file ? file : "", file_bytes);
	make->text_used += name_bytes + file_bytes;
	return make->name_count++;
}

static inline uint32_t make_thread(struct make *make, int32_t tid, const char *name)
{
	struct kymo_thread_entry *entry = &make->threads[make->thread_count];

	entry->ready = 1;
	entry->tid = tid;
	entry->started_ticks = MAKE_EPOCH + 10;
	snprintf(entry->name, sizeof(entry->name), "%.39s", name);
	return make->thread_count++;
}

static inline void make_stream_head(struct make *make, const struct schema_table *table,
				    uint64_t rows, uint64_t segments)
{
	static unsigned char page[KYMO_HEAD_FILE_BYTES] __attribute__((aligned(4096)));
	struct kymo_stream_head *head = (void *)page;
	struct kymo_stream_live *live = (void *)(page + KYMO_LIVE_OFFSET);
	struct kymo_open_stack *open = (void *)(page + KYMO_OPEN_OFFSET);
	char name[64];

	memset(page, 0, sizeof(page));
	make_head(&head->file, KYMO_MAGIC_STREAM, sizeof(*head));
	snprintf(head->table, sizeof(head->table), "%s", table->name);
	head->id = make->next_stream;
	head->row_bytes = (uint32_t)table->row_bytes;
	head->column_count = (uint32_t)table->column_count;
	head->keep = KYMO_KEEP_ALL;
	head->has_totals = !strcmp(table->name, "trace.zones");
	head->has_open_stack = head->has_totals;
	for (size_t i = 0; i < table->column_count; i++) {
		struct kymo_column_desc *column = &head->columns[i];
		size_t bytes = schema_type_bytes(table->columns[i].type);

		snprintf(column->name, sizeof(column->name), "%s", table->columns[i].name);
		column->type = table->columns[i].type;
		column->offset = (uint32_t)table->columns[i].offset;
		column->bytes = (uint32_t)(bytes ? bytes : table->columns[i].bytes);
	}
	live->head = make->overwritten + rows;
	live->segment_next = segments;
	memcpy(live->dropped, make->dropped, sizeof(live->dropped));
	live->thread = make->open_thread;
	/* Nothing is folded yet: readers make the totals from the rows. */
	live->fold_state = make->no_totals ? live->head << 1 : 0;
	live->histogram_upto = make->no_totals ? live->head : 0;
	open->depth = make->open_count;
	for (uint32_t i = 0; i < make->open_count; i++)
		open->entries[i] = make->open[i];
	snprintf(name, sizeof(name), "s%u.head", make->next_stream);
	make_file(make->process, name, page, sizeof(page), NULL, 0);
}

static inline void make_totals(struct make *make)
{
	struct kymo_totals_head head = { .count = 0 };
	char name[64];

	make_head(&head.file, KYMO_MAGIC_TOTALS, sizeof(head));
	snprintf(name, sizeof(name), "s%u.totals", make->next_stream);
	make_file(make->process, name, &head, sizeof(head), NULL, 0);
}

/* Rows as one sealed chain of segments; `per_segment` 0: all in one. */
static inline void make_stream_cut(struct make *make, const struct schema_table *table,
				   const void *rows, uint64_t count, uint64_t per_segment)
{
	uint64_t sequence = 0;
	char name[64];

	per_segment = per_segment ? per_segment : count ? count : 1;
	for (uint64_t at = 0; at < count || !sequence; at += per_segment, sequence++) {
		uint64_t some = count - at < per_segment ? count - at : per_segment;
		struct kymo_segment_head head = { .stream_id = make->next_stream,
						  .row_bytes = (uint32_t)table->row_bytes,
						  .sequence = sequence,
						  .first_row = make->overwritten + at,
						  .rows = some ? some : 1 };

		make_head(&head.file, KYMO_MAGIC_SEGMENT, sizeof(head));
		snprintf(name, sizeof(name), "s%u.%llu", make->next_stream,
			 (unsigned long long)sequence);
		make_file(make->process, name, &head, sizeof(head),
			  (const char *)rows + at * table->row_bytes, some * table->row_bytes);
	}
	make_stream_head(make, table, count, sequence);
	if (!strcmp(table->name, "trace.zones"))
		make_totals(make);
	make->next_stream++;
	make->open_count = make->open_thread = 0;
	make->overwritten = 0;
	memset(make->dropped, 0, sizeof(make->dropped));
}

static inline void make_stream(struct make *make, const struct schema_table *table,
			       const void *rows, uint64_t count)
{
	make_stream_cut(make, table, rows, count, 0);
}

static inline void make_process_end(struct make *make)
{
	struct kymo_names_head names = { .count = make->name_count };
	struct kymo_threads_head threads = { .count = make->thread_count };
	struct kymo_text_head text = { .used = make->text_used };

	make_head(&names.file, KYMO_MAGIC_NAMES, sizeof(names));
	make_head(&threads.file, KYMO_MAGIC_THREADS, sizeof(threads));
	make_head(&text.file, KYMO_MAGIC_TEXT, sizeof(text));
	make_file(make->process, "names", &names, sizeof(names), make->names,
		  make->name_count * sizeof(make->names[0]));
	make_file(make->process, "text", &text, sizeof(text), make->text + sizeof(text),
		  make->text_used - sizeof(text));
	make_file(make->process, "threads", &threads, sizeof(threads), make->threads,
		  make->thread_count * sizeof(make->threads[0]));
	make_file(make->process, "control", &make->control, sizeof(make->control), NULL, 0);
	free(make->names);
	free(make->text);
	make->names = NULL;
	make->text = NULL;
}

#endif
