
#include "tables/scan/costs.h"

#include <string.h>

#include "base/schema.h"

#define ROWS_MOST 256 /* at the end of a stream; every source is among them */

/* Sources that measure themselves; the last one is for those unknown to this version. */
static const char *const words[] = { "collector", "sampler", "native",	 "python", "line",
				     "torch",	  "device",  "triggers", "other" };
#define WORDS (sizeof(words) / sizeof(words[0]))

struct costs {
	double events[WORDS], total_ns[WORDS];
	bool known[WORDS];
};

/* A stream named kymo.costs may have any columns; only those of our schema are read. */
static bool costs_is_ours(const struct store_stream *stream)
{
	const struct schema_table *table = schema_get(SCHEMA_OVERHEAD);

	if (strcmp(stream->table, table->name) != 0 ||
	    stream->column_count != table->column_count || stream->row_bytes < table->row_bytes ||
	    stream->row_bytes > KYMO_ROW_BYTES_MAX)
		return false;
	for (uint32_t i = 0; i < stream->column_count; i++)
		if (strcmp(stream->columns[i].name, table->columns[i].name) != 0 ||
		    stream->columns[i].type != (uint32_t)table->columns[i].type ||
		    stream->columns[i].offset != table->columns[i].offset)
			return false;
	return true;
}

static size_t costs_word_of(const char *source, size_t bytes)
{
	for (size_t i = 0; i + 1 < WORDS; i++)
		if (strlen(words[i]) == bytes && !memcmp(words[i], source, bytes))
			return i;
	return WORDS - 1;
}

/* Backwards: the first row of a source that is found is its last. */
static void read_stream(const struct store_stream *stream, struct costs *out)
{
	const struct store_chunk *chunk = stream->chunk_count
						  ? &stream->chunks[stream->chunk_count - 1]
						  : NULL;
	unsigned char bytes[KYMO_ROW_BYTES_MAX];
	bool seen[WORDS] = { false };
	struct schema_cost_row row;

	for (uint64_t i = 0; chunk && i < chunk->rows && i < ROWS_MOST; i++) {
		size_t word;

		if (store_read_rows(stream, chunk, chunk->rows - 1 - i, 1, bytes) != 1)
			return;
		memcpy(&row, bytes, sizeof(row));
		word = costs_word_of(row.source, strnlen(row.source, sizeof(row.source)));
		if (seen[word])
			continue;
		seen[word] = out->known[word] = true;
		out->events[word] += (double)row.events;
		out->total_ns[word] += (double)row.cost_ns;
	}
}

static void costs_add_row(struct meta_rows *rows, const char *source, double events,
			  double total_ns, double run_ns)
{
	struct meta_cell *row = meta_add(rows);

	meta_text(&row[0], source);
	if (events > 9e18 || total_ns > 9e18)
		return; /* no real value is this large */
	meta_number(&row[1], (int64_t)events);
	if (events > 0)
		meta_tenths(&row[2], total_ns / events);
	meta_number(&row[3], (int64_t)total_ns);
	if (run_ns > 0)
		meta_real(&row[4], 100.0 * total_ns / run_ns);
}

void costs_fill(struct meta_rows *rows, const struct recording *recording)
{
	struct costs costs = { 0 };

	for (size_t i = 0; i < recording->stream_count; i++)
		if (costs_is_ours(&recording->streams[i]))
			read_stream(&recording->streams[i], &costs);
	for (size_t i = 0; i < WORDS; i++)
		if (costs.known[i])
			costs_add_row(rows, words[i], costs.events[i], costs.total_ns[i],
				      (double)recording->duration_ns);
}
