#include "lake/lake_cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* ---- the list ------------------------------------------------------------------------------- */

static struct lake_cursor *cursor_find(struct lake_cursors *cursors, const char *table,
				       const char *key)
{
	for (size_t i = 0; i < cursors->count; i++)
		if (!strcmp(cursors->list[i].key, key) && !strcmp(cursors->list[i].table, table))
			return &cursors->list[i];
	return NULL;
}

static struct lake_cursor *cursor_add(struct lake_cursors *cursors, const char *table,
				      const char *key)
{
	struct lake_cursor *cursor;

	if (!grow((void **)&cursors->list, &cursors->room, cursors->count, sizeof(*cursor)))
		return NULL;
	cursor = &cursors->list[cursors->count++];
	memset(cursor, 0, sizeof(*cursor));
	snprintf(cursor->key, sizeof(cursor->key), "%s", key);
	snprintf(cursor->table, sizeof(cursor->table), "%s", table);
	return cursor;
}

int lake_cursors_init(struct lake_cursors *cursors, const struct recording *recording)
{
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		const struct store_process *process = &recording->processes[stream->process];
		struct lake_cursor *cursor;
		char key[64];

		if (stream->without_file)
			continue;
		snprintf(key, sizeof(key), "%d.%" PRIu64 ".%" PRIu32, (int)process->pid,
			 process->control.starttime, stream->id);
		cursor = cursor_add(cursors, stream->table, key);
		if (!cursor)
			return -ENOMEM;
		cursor->stream = stream;
	}
	return 0;
}

void lake_cursors_fini(struct lake_cursors *cursors)
{
	free(cursors->list);
	memset(cursors, 0, sizeof(*cursors));
}

int lake_cursors_set(struct lake_cursors *cursors, const char *key, const char *table,
		     uint64_t next, uint64_t in_lake, uint64_t lost)
{
	struct lake_cursor *cursor = cursor_find(cursors, table, key);

	if (!cursor)
		cursor = cursor_add(cursors, table, key);
	if (!cursor)
		return -ENOMEM;
	cursor->next = next;
	cursor->in_lake = in_lake;
	cursor->lost = lost;
	return 0;
}

int lake_cursors_take(struct lake_cursors *cursors, const char *table, const char *text)
{
	char key[64];
	uint64_t next, in_lake, lost;
	int used, rc = 0;

	while (*text && !rc) {
		used = 0;
		if (sscanf(text, "%63[0-9.]=%" SCNu64 ":%" SCNu64 ":%" SCNu64 ";%n", key, &next,
			   &in_lake, &lost, &used) != 4 ||
		    !used)
			return -EINVAL;
		rc = lake_cursors_set(cursors, key, table, next, in_lake, lost);
		text += used;
	}
	return rc;
}

void lake_cursors_put(const struct lake_cursors *cursors, const char *table, struct buf *out)
{
	for (size_t i = 0; i < cursors->count; i++) {
		const struct lake_cursor *c = &cursors->list[i];

		if (!strcmp(c->table, table) && c->to > c->next)
			buf_print(out, "%s=%" PRIu64 ":%" PRIu64 ":%" PRIu64 ";", c->key, c->to,
				  c->in_lake + c->window_rows, c->lost + c->window_lost);
	}
}

uint64_t lake_cursors_at(const struct lake_cursors *cursors, const char *table)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < cursors->count; i++)
		if (!strcmp(cursors->list[i].table, table))
			sum += cursors->list[i].next;
	return sum;
}

/* ---- the window ----------------------------------------------------------------------------- */

static uint64_t head_of(const struct store_stream *stream)
{
	return stream->kept + stream->overwritten;
}

/* The rows of a chunk that are in [from, to). */
static bool cut(const struct store_stream *stream, const struct store_chunk *chunk, uint64_t from,
		uint64_t to, struct store_chunk *out)
{
	uint64_t end = chunk->first_row + chunk->rows;
	uint64_t first = chunk->first_row > from ? chunk->first_row : from;
	uint64_t last = end < to ? end : to;
	uint64_t skip = first - chunk->first_row;

	if (first >= last)
		return false;
	*out = *chunk;
	out->first_row = first;
	out->rows = last - first;
	out->offset += skip * stream->row_bytes;
	if (out->memory)
		out->memory += skip * stream->row_bytes;
	return true;
}

static struct store_stream *lake_cursor_stream(struct recording *recording,
					       const struct store_stream *stream)
{
	return &recording->streams[stream - recording->streams];
}

static int lake_cursor_narrow(struct lake_cursor *cursor, struct recording *recording)
{
	struct store_stream *stream = lake_cursor_stream(recording, cursor->stream);
	struct store_chunk *chunks = calloc(stream->chunk_count + 1, sizeof(*chunks));
	size_t count = 0;

	if (!chunks)
		return -ENOMEM;
	cursor->window_rows = 0;
	for (size_t i = 0; i < stream->chunk_count; i++)
		if (cut(stream, &stream->chunks[i], cursor->next, cursor->to, &chunks[count]))
			cursor->window_rows += chunks[count++].rows;
	cursor->window_lost = cursor->to - cursor->next - cursor->window_rows;
	cursor->narrowed = true;
	cursor->chunks = stream->chunks;
	cursor->chunk_count = stream->chunk_count;
	stream->chunks = chunks;
	stream->chunk_count = count;
	return 0;
}

void lake_cursors_whole(struct lake_cursors *cursors, const char *table)
{
	for (size_t i = 0; i < cursors->count; i++) {
		struct lake_cursor *c = &cursors->list[i];

		if (strcmp(c->table, table) != 0 || !c->stream)
			continue;
		c->next = head_of(c->stream);
		c->in_lake = c->stream->kept;
		c->lost = c->stream->overwritten;
	}
}

static uint64_t waiting(const struct lake_cursor *cursor)
{
	uint64_t head = cursor->stream ? head_of(cursor->stream) : 0;

	return head > cursor->next ? head - cursor->next : 0;
}

int64_t lake_window_open(struct lake_cursors *cursors, struct recording *recording,
			 const char *table, uint64_t most,
			 bool (*wanted)(const void *context, const struct store_stream *stream),
			 const void *context)
{
	uint64_t all = 0, rows = 0;

	for (size_t i = 0; i < cursors->count; i++) {
		struct lake_cursor *c = &cursors->list[i];

		c->to = c->next;
		if (!strcmp(c->table, table) && c->stream && wanted(context, c->stream))
			all += waiting(c);
	}
	for (size_t i = 0; i < cursors->count; i++) {
		struct lake_cursor *c = &cursors->list[i];

		if (strcmp(c->table, table) || !c->stream)
			continue;
		if (wanted(context, c->stream)) {
			double share = all > most ? (double)most / (double)all : 1;
			uint64_t part = (uint64_t)((double)waiting(c) * share) + 1;

			c->to = c->next + (part < waiting(c) ? part : waiting(c));
		}
		if (lake_cursor_narrow(c, recording))
			return -ENOMEM;
		rows += c->to - c->next;
	}
	return (int64_t)rows;
}

void lake_window_close(struct lake_cursors *cursors, struct recording *recording, const char *table,
		       bool done)
{
	for (size_t i = 0; i < cursors->count; i++) {
		struct lake_cursor *c = &cursors->list[i];
		struct store_stream *stream;

		if (!c->narrowed || strcmp(c->table, table) != 0)
			continue;
		stream = lake_cursor_stream(recording, c->stream);
		free(stream->chunks);
		stream->chunks = c->chunks;
		stream->chunk_count = c->chunk_count;
		c->narrowed = false;
		if (!done)
			continue;
		c->next = c->to;
		c->in_lake += c->window_rows;
		c->lost += c->window_lost;
	}
}
