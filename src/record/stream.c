/*
 * Streams: single-writer rings (flight) or chains of segments (keep=all) of fixed-width rows, each
 * in its own files. They belong to a pool; a thread takes one per table at its first row and
 * returns it when it ends, and the rows continue where the last tenant stopped. base/format.h has
 * the protocol with readers.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/atomic.h>
#include <kymo/pool.h>

#include "record/record.h"

#define STREAMS_MAX 16384u
#define RING_ROWS_USUAL 10000u
#define RING_ROWS_MOST 100000000u
/* Wider rows (settings and the like) are few: the file grows in small steps. */
#define WIDE_ROW_BYTES 128u
#define RETRY_MS 10 /* between attempts to get room; rows in between are dropped and counted */

static struct kymo__stream *streams[STREAMS_MAX];
static uint32_t stream_count;
static uint64_t spare_ids; /* a pool: numbers whose files could not be created, to be retried */
static uint32_t next_spare[STREAMS_MAX];

static uint32_t *spare_next(uint32_t id)
{
	return &next_spare[id];
}

static uint32_t *stream_next_free(uint32_t id)
{
	return &streams[id]->next_free;
}

static void file_name(char out[48], uint32_t id, const char *what, uint64_t sequence)
{
	if (what)
		snprintf(out, 48, "s%u.%s", id, what);
	else
		snprintf(out, 48, "s%u.%llu", id, (unsigned long long)sequence);
}

/* ---- creating a stream ---- */

/* The number for a new stream; STREAMS_MAX: too many. */
static uint32_t id_take(void)
{
	uint32_t id;

	if (kymo__pool_pop(&spare_ids, spare_next, &id))
		return id;
	id = kymo__load_relaxed(&stream_count);
	do {
		if (id >= STREAMS_MAX)
			return STREAMS_MAX;
	} while (!kymo__cas_relaxed(&stream_count, &id, id + 1));
	return id;
}

static void fill_head(struct kymo__stream *stream)
{
	struct kymo_stream_head *head = (struct kymo_stream_head *)(void *)stream->head.base;
	const struct kymo_table *table = stream->table;

	memcpy(head->table, table->name, sizeof(head->table));
	head->id = stream->id;
	head->row_bytes = table->row_bytes;
	head->column_count = table->column_count;
	head->keep = stream->cap_rows ? KYMO_KEEP_FLIGHT : KYMO_KEEP_ALL;
	head->cap_rows = stream->cap_rows;
	head->has_totals = stream->totals.base != NULL;
	head->has_open_stack = table->index == SCHEMA_ZONES;
	memcpy(head->columns, table->columns, sizeof(head->columns));
	kymo__mapfile_begun(head, KYMO_MAGIC_STREAM, sizeof(*head));
}

/* As configured now, possibly from outside; 0: a chain. */
static uint64_t ring_cap(const struct kymo_table *table)
{
	const struct kymo_control *control = kymo__process.control;
	uint64_t rows = kymo__load_relaxed(&control->ring_rows);

	if (kymo__load_relaxed(&control->keep) == KYMO_KEEP_ALL)
		return 0;
	if (!rows || rows > RING_ROWS_MOST)
		rows = RING_ROWS_USUAL;
	if (rows < table->ring_rows)
		rows = table->ring_rows < RING_ROWS_MOST ? table->ring_rows : RING_ROWS_MOST;
	rows = (rows + KYMO_RING_SEGMENT_ROWS - 1) / KYMO_RING_SEGMENT_ROWS;
	return (rows + 1) * KYMO_RING_SEGMENT_ROWS;
}

static void close_files(struct kymo__stream *stream)
{
	kymo__mapfile_close(&stream->head);
	kymo__mapfile_close(&stream->data);
	kymo__totals_close(stream);
}

static int open_files(struct kymo__stream *stream)
{
	char name[48];
	int rc;

	file_name(name, stream->id, "head", 0);
	rc = kymo__mapfile_create(&stream->head, name, KYMO_HEAD_FILE_BYTES, KYMO_HEAD_FILE_BYTES);
	if (rc)
		return rc;
	stream->live = (struct kymo_stream_live *)(void *)(stream->head.base + KYMO_LIVE_OFFSET);
	stream->open = (struct kymo_open_stack *)(void *)(stream->head.base + KYMO_OPEN_OFFSET);
	stream->cap_rows = ring_cap(stream->table);
	if (stream->table->index == SCHEMA_ZONES && kymo__process.totals)
		rc = kymo__totals_open(stream);
	if (!rc)
		fill_head(stream);
	return rc;
}

/* Leaves no files, so that a full disk may be retried indefinitely. */
static void unmake(struct kymo__stream *stream, uint32_t id)
{
	char name[48];

	close_files(stream);
	file_name(name, id, "head", 0);
	kymo__unlink(name);
	file_name(name, id, "totals", 0);
	kymo__unlink(name);
	munmap(stream, sizeof(*stream));
}

static struct kymo__stream *stream_make(struct kymo_table *table)
{
	uint32_t id = id_take();
	struct kymo__stream *stream;
	void *map;

	if (id == STREAMS_MAX)
		return NULL;
	map = mmap(NULL, sizeof(*stream), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	if (map != MAP_FAILED) {
		stream = map;
		stream->id = id;
		stream->table = table;
		if (!open_files(stream)) {
			kymo__store_release(&streams[id], stream);
			return stream;
		}
		unmake(stream, id);
	}
	kymo__pool_push(&spare_ids, id, spare_next);
	return NULL;
}

/* ---- the pool ---- */

struct kymo__stream *kymo__stream_take(struct kymo_table *table, uint32_t thread)
{
	struct kymo__stream *stream;
	uint32_t id;

	stream = kymo__pool_pop(&table->free_streams, stream_next_free, &id) ? streams[id]
									     : stream_make(table);
	if (stream)
		kymo__store_relaxed(&stream->live->thread, thread);
	return stream;
}

void kymo__stream_give(struct kymo__stream *stream)
{
	if (stream->totals.base)
		kymo__totals_fold(stream, stream->live->head);
	stream->open->depth = 0;
	kymo__store_relaxed(&stream->live->thread, 0);
	kymo__pool_push(&stream->table->free_streams, stream->id, stream_next_free);
}

bool kymo__stream_at(uint32_t index, const struct kymo__stream **out)
{
	if (index >= kymo__load_acquire(&stream_count) || index >= STREAMS_MAX)
		return false;
	*out = kymo__load_acquire(&streams[index]);
	return true;
}

void kymo__streams_forget(void)
{
	uint32_t count = stream_count < STREAMS_MAX ? stream_count : STREAMS_MAX;

	for (uint32_t i = 0; i < count; i++) {
		if (!streams[i])
			continue;
		close_files(streams[i]);
		kymo__ranges_forget(streams[i]);
		munmap(streams[i], sizeof(*streams[i]));
		streams[i] = NULL;
	}
	for (uint32_t i = 0; i < KYMO_TABLES_MAX; i++)
		kymo__tables[i].free_streams = 0;
	stream_count = 0;
	spare_ids = 0;
}

/* ---- room for rows ---- */

static size_t segment_bytes(const struct kymo__stream *stream, uint64_t rows)
{
	return sizeof(struct kymo_segment_head) + rows * stream->table->row_bytes;
}

static void fill_segment_head(struct kymo__stream *stream, uint64_t first_row, uint64_t rows,
			      uint64_t sequence)
{
	struct kymo_segment_head *head = (struct kymo_segment_head *)(void *)stream->data.base;

	head->stream_id = stream->id;
	head->row_bytes = stream->table->row_bytes;
	head->sequence = sequence;
	head->first_row = first_row;
	head->rows = rows;
	kymo__mapfile_begun(head, KYMO_MAGIC_SEGMENT, sizeof(*head));
}

/* The file of a ring starts small and grows until the ring is complete. */
static int ring_make_room(struct kymo__stream *stream, uint64_t slot)
{
	size_t whole = segment_bytes(stream, stream->cap_rows);
	uint64_t batch = stream->table->row_bytes > WIDE_ROW_BYTES ? KYMO_BATCH_ROWS
								   : KYMO_RING_SEGMENT_ROWS;
	uint64_t rows = (slot / batch + 1) * batch;
	char name[48];
	int rc;

	file_name(name, stream->id, NULL, 0);
	if (stream->data.base)
		return kymo__mapfile_grow(&stream->data, name, segment_bytes(stream, rows));
	rc = kymo__mapfile_create(&stream->data, name, whole, segment_bytes(stream, rows));
	if (!rc)
		fill_segment_head(stream, 0, stream->cap_rows, 0);
	return rc;
}

static char *ring_turn(struct kymo__stream *stream, uint64_t head)
{
	uint64_t slot = head % stream->cap_rows;

	if (segment_bytes(stream, slot + 1) > stream->data.allocated &&
	    ring_make_room(stream, slot))
		return NULL;
	if (head >= stream->cap_rows && head % KYMO_RING_SEGMENT_ROWS == 0) {
		/* W1: before any row of the segment is overwritten; pairs with the second look at
		   floor in readers. */
		kymo__store_relaxed(&stream->live->floor,
				    head + KYMO_RING_SEGMENT_ROWS - stream->cap_rows);
		kymo__fence_release();
	}
	return stream->data.base + sizeof(struct kymo_segment_head) +
	       slot * stream->table->row_bytes;
}

/* Most tables have few rows, and a page that is allocated, zeroed, mapped and copied without a row
   costs microseconds. Zones are many, and a new segment is what a slow zone waits for. */
static uint64_t first_segment_rows(const struct kymo_table *table)
{
	uint64_t rows = KYMO_SEGMENT_BYTES_FIRST / table->row_bytes;

	if (table->index == SCHEMA_ZONES || rows > KYMO_SEGMENT_ROWS_MIN)
		return KYMO_SEGMENT_ROWS_MIN;
	return rows > KYMO_BATCH_ROWS ? rows - rows % KYMO_BATCH_ROWS : KYMO_BATCH_ROWS;
}

/* Twice the last one's, but small enough that the budget holds more than a few segments. */
static uint64_t next_segment_rows(const struct kymo__stream *stream)
{
	uint64_t first = first_segment_rows(stream->table);
	uint64_t rows = stream->segment_rows ? stream->segment_rows * 2 : first;
	uint64_t least = first < KYMO_RING_SEGMENT_ROWS ? first : KYMO_RING_SEGMENT_ROWS;
	uint64_t most = kymo__process.budget_bytes / 16 / stream->table->row_bytes;

	most -= most % KYMO_BATCH_ROWS;
	if (most > KYMO_SEGMENT_ROWS_LARGEST)
		most = KYMO_SEGMENT_ROWS_LARGEST;
	if (rows > most)
		rows = most;
	return rows > least ? rows : least;
}

/* Drops the oldest rows to make room, then tries less. 0: no room at all. */
static uint64_t rows_that_fit(const struct kymo__stream *stream)
{
	uint64_t rows = next_segment_rows(stream);

	while (!kymo__room_for(segment_bytes(stream, rows), segment_bytes(stream, rows))) {
		if (kymo__streams_evict())
			continue;
		if (rows <= KYMO_RING_SEGMENT_ROWS)
			return 0;
		rows = (rows / 2 + KYMO_BATCH_ROWS - 1) / KYMO_BATCH_ROWS * KYMO_BATCH_ROWS;
	}
	return rows;
}

static int chain_next_segment(struct kymo__stream *stream, uint64_t head)
{
	uint64_t sequence = kymo__load_relaxed(&stream->live->segment_next);
	uint64_t rows = rows_that_fit(stream);
	size_t bytes = segment_bytes(stream, rows);
	struct kymo__mapfile fresh = { 0 }, old = stream->data;
	char name[48];
	int rc;

	if (!rows)
		return -ENOSPC;
	file_name(name, stream->id, NULL, sequence);
	rc = kymo__mapfile_create(&fresh, name, bytes, bytes);
	if (rc)
		return rc;
	stream->data = fresh;
	fill_segment_head(stream, head, rows, sequence);
	stream->segment_first_row = head;
	stream->segment_rows = rows;
	/* Seals the previous one; pairs with the acquire of readers and of the mover. */
	kymo__store_release(&stream->live->segment_next, sequence + 1);
	kymo__mapfile_close(&old);
	return 0;
}

static char *chain_turn(struct kymo__stream *stream, uint64_t head)
{
	if (head - stream->segment_first_row >= stream->segment_rows &&
	    chain_next_segment(stream, head))
		return NULL;
	return stream->data.base + sizeof(struct kymo_segment_head) +
	       (head - stream->segment_first_row) * stream->table->row_bytes;
}

char *kymo__stream_turn(struct kymo__stream *stream)
{
	uint64_t head = kymo__load_relaxed(&stream->live->head);
	uint64_t now = kymo__ticks();
	int kept_errno = errno; /* the program's */
	char *row = NULL;

	if (stream->totals.base)
		kymo__totals_fold(stream, head);
	if (now >= stream->retry_ticks || kymo__load_relaxed(&kymo__process.ending))
		row = stream->cap_rows ? ring_turn(stream, head) : chain_turn(stream, head);
	errno = kept_errno;
	if (!row) {
		if (now >= stream->retry_ticks)
			stream->retry_ticks = now + RETRY_MS * kymo__process.ticks_per_ms;
		kymo__fetch_add_relaxed(&stream->live->dropped[KYMO_DROP_FULL], 1);
		stream->next = stream->limit = NULL;
		return NULL;
	}
	stream->retry_ticks = 0;
	stream->next = row;
	stream->limit = row + (KYMO_BATCH_ROWS - head % KYMO_BATCH_ROWS) * stream->table->row_bytes;
	kymo__process_tick(now);
	return row;
}

/* ---- freeing segments ---- */

static uint64_t sealed_segments(const struct kymo__stream *stream, uint64_t *out_first)
{
	uint64_t next = kymo__load_acquire(&stream->live->segment_next);

	*out_first = kymo__load_acquire(&stream->live->segment_first);
	return next > *out_first + 1 ? next - 1 - *out_first : 0;
}

bool kymo__streams_evict(void)
{
	uint32_t count = kymo__load_relaxed(&stream_count);
	struct kymo__stream *fattest = NULL;
	uint64_t most = 0, first, fattest_first = 0;
	char name[48];

	for (uint32_t i = 0; i < count && i < STREAMS_MAX; i++) {
		struct kymo__stream *stream = kymo__load_acquire(&streams[i]);
		uint64_t sealed = stream && !stream->cap_rows ? sealed_segments(stream, &first) : 0;

		if (sealed > most) {
			most = sealed;
			fattest = stream;
			fattest_first = first;
		}
	}
	if (!fattest)
		return false;
	/* The one that raises it owns the file: another thread, or the mover. */
	if (kymo__cas_acq_rel(&fattest->live->segment_first, &fattest_first, fattest_first + 1)) {
		file_name(name, fattest->id, NULL, fattest_first);
		kymo__unlink(name);
	}
	return true;
}
