/* The streams of a process: from images (base/files/stream_image.h) to the store's description. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/schema.h"
#include "store/recording_inside.h"

#define STALE_ROWS 1024 /* how far back to search the row of a zone that only seems open */

/* Reopens a segment whose descriptor is not held. */
struct reopen {
	const struct run_files *source;
	char path[RUN_FILES_PATH_BYTES * 2];
};

/* ---- copying ----------------------------------------------------------------------------- */

static struct stream_image *open_stream_add_copy(struct recording *recording)
{
	struct inside *inside = inside_of(recording);
	void *copies = inside_grow(recording, inside->copies, inside->copy_count,
				   &inside->copy_room, sizeof(*inside->copies));

	if (!copies)
		return NULL;
	inside->copies = copies;
	return &inside->copies[inside->copy_count];
}

static void copy_one(struct recording *recording, const char *directory, uint32_t id)
{
	struct inside *inside = inside_of(recording);
	const struct stream_image_sink sink = { inside_hear, recording, &inside->room_bytes };
	struct stream_image *copy = open_stream_add_copy(recording);
	struct kymo_error err = { 0 };
	int rc = copy ? stream_image_take(copy, &inside->source, directory, id, &sink, &err) : 0;

	if (rc && rc != -ENODATA) /* a stream that was being created is empty */
		inside_say(recording, "%s", err.text);
	if (copy && !rc)
		inside->copy_count++;
}

/* Segments without a head: their content is unknown. */
static void say_orphans(struct recording *recording, const char *directory,
			const struct run_files_list *files)
{
	size_t orphans = 0;

	for (size_t i = 0, head = 0; i < files->count; i++) {
		const struct run_files_item *item = &files->items[i];

		if (item->kind != RUN_FILES_SEGMENT)
			continue;
		while (head < files->count && (files->items[head].kind < RUN_FILES_HEAD ||
					       (files->items[head].kind == RUN_FILES_HEAD &&
						files->items[head].id < item->id)))
			head++;
		orphans += head == files->count || files->items[head].kind != RUN_FILES_HEAD ||
			   files->items[head].id != item->id;
	}
	if (orphans)
		inside_say(recording,
			   "%s: %zu segment files have no header file and cannot be read",
			   directory, orphans);
}

void open_stream_copy(struct recording *recording, uint32_t process, const char *directory)
{
	struct inside *inside = inside_of(recording);
	const struct stream_image_sink sink = { inside_hear, recording, &inside->room_bytes };
	struct run_files_list files = { 0 };
	size_t first = inside->copy_count;
	bool chains = false;

	(void)process;
	if (run_files_list_all(&inside->source, directory, &files))
		inside_say(recording, "%s cannot be listed; some of its rows may be missing",
			   directory);
	say_orphans(recording, directory, &files);
	for (size_t i = 0; i < files.count; i++)
		if (files.items[i].kind == RUN_FILES_HEAD)
			copy_one(recording, directory, files.items[i].id);
	for (size_t i = first; i < inside->copy_count; i++)
		chains = chains || !inside->copies[i].head.cap_rows;
	/* Again, now that all heads are known: see base/files/stream_image.h. */
	if (chains && run_files_list_all(&inside->source, directory, &files))
		inside_say(recording, "%s cannot be listed again; some of its rows may be missing",
			   directory);
	for (size_t i = first; i < inside->copy_count; i++) {
		stream_image_segments(&inside->copies[i], &files, &inside->open_files, &sink);
		stream_image_total(&inside->copies[i], &sink);
	}
	run_files_list_free(&files);
}

/* ---- columns ----------------------------------------------------------------------------- */

/* "schema.table", NUL-terminated. */
static bool is_table_name(const char *text, size_t room)
{
	size_t bytes = strnlen(text, room);
	const char *dot = memchr(text, '.', bytes);

	return bytes < room && dot && schema_is_word(text, (size_t)(dot - text)) &&
	       schema_is_word(dot + 1, bytes - (size_t)(dot + 1 - text));
}

static bool is_twice(const struct store_stream *stream, const char *name)
{
	for (uint32_t i = 0; i < stream->column_count; i++)
		if (!strcasecmp(stream->columns[i].name, name))
			return true;
	return false;
}

static bool column_is_sound(const struct store_stream *stream,
			    const struct kymo_column_desc *column)
{
	size_t bytes = schema_type_bytes(column->type);
	size_t name_bytes = strnlen(column->name, sizeof(column->name));

	if (column->type == KYMO_TEXT)
		bytes = column->bytes;
	return bytes && name_bytes < sizeof(column->name) &&
	       schema_is_word(column->name, name_bytes) && !is_twice(stream, column->name) &&
	       column->offset <= stream->row_bytes && bytes <= stream->row_bytes - column->offset;
}

static void read_columns(struct recording *recording, struct store_stream *stream,
			 const struct stream_image *copy)
{
	uint32_t refused = 0;

	for (uint32_t i = 0; i < copy->head.column_count; i++) {
		const struct kymo_column_desc *from = &copy->head.columns[i];
		struct store_column *to = &stream->columns[stream->column_count];

		if (!column_is_sound(stream, from)) {
			refused++;
			continue;
		}
		memcpy(to->name, from->name, sizeof(to->name));
		to->type = from->type;
		to->offset = from->offset;
		to->bytes = from->type == KYMO_TEXT ? from->bytes
						    : (uint32_t)schema_type_bytes(from->type);
		memcpy(to->unit, from->unit, sizeof(to->unit) - 1);
		stream->column_count++;
	}
	if (refused)
		inside_say(recording,
			   "%s: %u columns of %s are damaged or of a newer kymo and are skipped",
			   copy->label, refused, stream->table);
}

/* ---- rows -------------------------------------------------------------------------------- */

static const void *how_to_reopen(struct recording *recording, const struct stream_image *copy,
				 const struct stream_image_run *run)
{
	struct reopen *reopen;

	if (run->memory || run->file.memory || run->file.fd >= 0)
		return NULL;
	reopen = arena_take(&inside_of(recording)->arena, sizeof(*reopen));
	if (!reopen)
		return NULL;
	reopen->source = copy->source;
	snprintf(reopen->path, sizeof(reopen->path), "%s/s%u.%llu", copy->process, copy->head.id,
		 (unsigned long long)run->sequence);
	return reopen;
}

static void set_chunks(struct recording *recording, struct store_stream *stream,
		       const struct stream_image *copy)
{
	stream->chunks = arena_take(&inside_of(recording)->arena,
				    copy->run_count * sizeof(*stream->chunks));
	if (!stream->chunks) {
		inside_of(recording)->no_memory = true;
		return;
	}
	for (size_t i = 0; i < copy->run_count; i++) {
		const struct stream_image_run *run = &copy->runs[i];
		struct store_chunk *chunk = &stream->chunks[stream->chunk_count++];

		chunk->first_row = run->first_row;
		chunk->rows = run->rows;
		chunk->memory = run->memory;
		if (run->file.memory)
			chunk->memory = run->file.memory + run->file.offset + run->offset;
		chunk->fd = run->file.fd;
		chunk->offset = run->file.offset + run->offset;
		chunk->reopen = how_to_reopen(recording, copy, run);
	}
}

/* Some descriptors are held while the recording is open; other files are opened for each read. */
uint64_t store_read_rows(const struct store_stream *stream, const struct store_chunk *chunk,
			 uint64_t at, uint64_t count, void *out)
{
	const uint64_t row = stream->row_bytes;
	struct readat file = { .fd = chunk->fd, .whole = true };
	uint64_t got;

	if (at >= chunk->rows)
		return 0;
	if (count > chunk->rows - at)
		count = chunk->rows - at;
	if (chunk->memory) {
		memcpy(out, chunk->memory + at * row, (size_t)(count * row));
		return count;
	}
	if (chunk->fd < 0 && chunk->reopen) {
		const struct reopen *reopen = chunk->reopen;

		if (run_files_file(reopen->source, reopen->path, &file, NULL))
			return 0;
	}
	got = readat_copy(&file, chunk->offset + at * row, out, (size_t)(count * row)) / row;
	readat_close(&file);
	return got;
}

/* ---- totals ------------------------------------------------------------------------------ */

static uint32_t name_index(const struct store_process *process, uint32_t local)
{
	return local < process->name_count ? process->name_of[local] : 0;
}

static void set_total(const struct totals_image *totals, uint32_t slot,
		      const struct store_process *process, struct store_total *out)
{
	const struct kymo_totals_half *half = totals_image_half(totals, slot);

	out->name = name_index(process, totals_image_slot(totals, slot)->name);
	out->count = half->count;
	out->sum_ticks = half->sum_ticks;
	out->child_ticks = half->child_ticks;
	out->min_ticks = half->min_ticks;
	out->max_ticks = half->max_ticks;
	out->square_ticks = (double)half->square_low +
			    (double)half->square_high * 18446744073709551616.0;
	out->histogram = totals_image_histogram(totals, slot);
}

static void set_totals(struct recording *recording, struct store_stream *stream,
		       const struct stream_image *copy)
{
	const struct totals_image *totals = &copy->totals;

	if (!totals->image)
		return;
	stream->untotalled = totals->untotalled;
	if (stream->untotalled)
		inside_say(recording,
			   "%s: %llu rows are missing in trace.regions: the limit of %u names with "
			   "totals per stream was reached",
			   copy->label, (unsigned long long)stream->untotalled,
			   KYMO_TOTALS_MAX - 1);
	stream->totals = arena_take(&inside_of(recording)->arena,
				    totals->count * sizeof(*stream->totals));
	if (!stream->totals) {
		inside_of(recording)->no_memory = true;
		return;
	}
	for (uint32_t slot = 0; slot < totals->count; slot++)
		if (totals_image_half(totals, slot)->count)
			set_total(totals, slot, &recording->processes[stream->process],
				  &stream->totals[stream->total_count++]);
}

/* ---- open zones -------------------------------------------------------------------------- */

/*
 * The inline code raises the depth before it fills the entry, so that a signal handler pushes above
 * it. A process that died in between left the entry of the previous zone, which has ended: its row
 * exists.
 */
static bool open_stream_has_ended(const struct stream_image *copy,
				  const struct kymo_open_entry *entry)
{
	struct kymo_zone_row rows[64];
	uint64_t head = copy->live.head;
	uint64_t from = head > STALE_ROWS ? head - STALE_ROWS : 0;

	if (copy->head.row_bytes != sizeof(rows[0]))
		return false;
	if (copy->run_count && from < copy->runs[0].first_row)
		from = copy->runs[0].first_row;
	while (from < head) {
		uint64_t got = stream_image_rows(copy, from, head - from < 64 ? head - from : 64,
						 rows);

		for (uint64_t i = 0; i < got; i++)
			if (rows[i].start_ticks == entry->start_ticks &&
			    rows[i].name == entry->name)
				return true;
		if (!got)
			break;
		from += got;
	}
	return false;
}

static void add_open_zone(const struct store_process *process, struct store_stream *stream,
			  uint32_t name, uint32_t thread, uint32_t depth, uint64_t start_ticks)
{
	stream->open_zones[stream->open_count++] = (struct store_open_zone){
		.name = name_index(process, name),
		.thread = thread < process->thread_count ? process->thread_of[thread] : 0,
		.depth = depth,
		.start_ns = store_clock_ns(&process->clock, start_ticks)
	};
}

/* Ranges outlive the thread that began them. */
static void add_open_ranges(const struct store_process *process, struct store_stream *stream,
			    const struct kymo_open_stack *open)
{
	for (uint32_t i = 0; i < KYMO_RANGES_MAX; i++)
		if (open->ranges[i].name)
			add_open_zone(process, stream, open->ranges[i].name, open->ranges[i].thread,
				      i, open->ranges[i].start_ticks);
}

static uint32_t count_open_ranges(const struct kymo_open_stack *open)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < KYMO_RANGES_MAX; i++)
		count += open->ranges[i].name != 0;
	return count;
}

static void set_open_zones(struct recording *recording, struct store_stream *stream,
			   const struct stream_image *copy)
{
	const struct store_process *process = &recording->processes[stream->process];
	const struct kymo_open_stack *open = &copy->open;
	uint32_t depth = open->depth < KYMO_OPEN_MAX ? open->depth : KYMO_OPEN_MAX;
	uint32_t count = count_open_ranges(open);

	/* Without a tenant no zone is open. A program that ended inside a zone has left it open,
	   which is reported. */
	if (!copy->live.thread)
		depth = 0;
	if (!depth && !count)
		return;
	stream->open_zones = arena_take(&inside_of(recording)->arena,
					(depth + count) * sizeof(*stream->open_zones));
	if (!stream->open_zones)
		return;
	stream->open_deeper = depth ? open->depth - depth : 0;
	for (uint32_t i = 0; i < depth; i++) {
		const struct kymo_open_entry *entry = &open->entries[i];

		if (entry->name && (i + 1 != open->depth || !open_stream_has_ended(copy, entry)))
			add_open_zone(process, stream, entry->name, copy->live.thread, i,
				      entry->start_ticks);
	}
	add_open_ranges(process, stream, open);
}

/* ---- the last known moment --------------------------------------------------------------- */

static int64_t end_of_row(const struct store_stream *stream, const struct store_clock *clock,
			  const unsigned char *row)
{
	int64_t at = INT64_MIN, span = 0;

	for (uint32_t i = 0; i < stream->column_count; i++) {
		const struct store_column *column = &stream->columns[i];
		uint64_t ticks;

		if (column->type != KYMO_TIME && column->type != KYMO_DURATION)
			continue;
		memcpy(&ticks, row + column->offset, sizeof(ticks));
		if (column->type == KYMO_TIME && store_clock_ns(clock, ticks) > at)
			at = store_clock_ns(clock, ticks);
		if (column->type == KYMO_DURATION && store_clock_span_ns(clock, ticks) > span)
			span = store_clock_span_ns(clock, ticks);
	}
	return at > INT64_MAX - span ? INT64_MAX : at + span;
}

static void note_end(struct recording *recording, const struct store_stream *stream,
		     const struct stream_image *copy)
{
	struct store_process *process = &recording->processes[stream->process];
	unsigned char row[KYMO_ROW_BYTES_MAX];
	int64_t end;

	if (!copy->live.head || stream_image_rows(copy, copy->live.head - 1, 1, row) != 1)
		return;
	end = end_of_row(stream, &process->clock, row);
	if (end > process->ended_ns && end <= inside_of(recording)->latest_ns)
		process->ended_ns = end;
}

/* ---- streams ----------------------------------------------------------------------------- */

static struct store_stream *open_stream_add_stream(struct recording *recording, uint32_t process)
{
	struct inside *inside = inside_of(recording);
	struct store_stream *streams = inside_grow(recording, recording->streams,
						   recording->stream_count, &inside->stream_room,
						   sizeof(*streams));

	if (!streams)
		return NULL;
	recording->streams = streams;
	memset(&streams[recording->stream_count], 0, sizeof(*streams));
	streams[recording->stream_count].process = process;
	return &streams[recording->stream_count];
}

static void set_counts(struct store_stream *stream, uint64_t head, uint64_t kept,
		       const uint64_t *dropped)
{
	for (int cause = 0; cause < KYMO_DROP_CAUSE_COUNT; cause++) {
		stream->dropped[cause] = dropped[cause];
		stream->dropped_total += dropped[cause];
	}
	stream->kept = kept;
	stream->overwritten = head - kept;
	stream->emitted = head + stream->dropped_total;
}

static void open_stream_describe_one(struct recording *recording, uint32_t process,
				     const struct stream_image *copy)
{
	struct store_stream *stream;

	if (!is_table_name(copy->head.table, sizeof(copy->head.table))) {
		inside_say(recording,
			   "%s is damaged: its table name is invalid; its rows are skipped",
			   copy->label);
		return;
	}
	stream = open_stream_add_stream(recording, process);
	if (!stream)
		return;
	memcpy(stream->table, copy->head.table, sizeof(stream->table));
	stream->id = copy->head.id;
	stream->row_bytes = copy->head.row_bytes;
	stream->keep = copy->head.keep;
	set_counts(stream, copy->live.head, copy->kept, copy->live.dropped);
	read_columns(recording, stream, copy);
	set_chunks(recording, stream, copy);
	set_totals(recording, stream, copy);
	set_open_zones(recording, stream, copy);
	note_end(recording, stream, copy);
	recording->stream_count++;
}

/* Rows of a table that never got a stream, or not for that thread. */
static void describe_lost(struct recording *recording, uint32_t process)
{
	for (uint32_t table = 1; table < KYMO_TABLES_MAX; table++) {
		const struct kymo_control *control = &recording->processes[process].control;
		struct store_stream *stream;
		uint64_t lost = 0;

		for (int cause = 0; cause < KYMO_DROP_CAUSE_COUNT; cause++)
			lost |= control->lost[table].dropped[cause];
		if (!lost ||
		    !is_table_name(control->lost[table].table, sizeof(control->lost[table].table)))
			continue;
		if (lost >= STREAM_IMAGE_ROWS_MAX) {
			inside_say(recording,
				   "process %d: the number of lost rows of %s is impossible and is "
				   "ignored",
				   (int)control->pid, control->lost[table].table);
			continue;
		}
		stream = open_stream_add_stream(recording, process);
		if (!stream)
			return;
		memcpy(stream->table, control->lost[table].table,
		       sizeof(control->lost[table].table));
		stream->keep = control->keep;
		stream->without_file = true;
		set_counts(stream, 0, 0, control->lost[table].dropped);
		recording->stream_count++;
	}
}

void open_stream_describe(struct recording *recording, uint32_t process, size_t first_copy)
{
	const struct inside *inside = inside_of(recording);

	for (size_t i = first_copy; i < inside->copy_count; i++)
		open_stream_describe_one(recording, process, &inside->copies[i]);
	describe_lost(recording, process);
}
