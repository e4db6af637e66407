#include "serve/feed_steps.h"

#include <errno.h>
#include <stdlib.h>

#include "base/schema.h"
#include "store/parallel.h"

#define ROWS_AT_ONCE 4096
#define STREAMS_AT_ONCE 64 /* maps of their own before they are joined */

/* A stream that is read into a map of its own, without a lock. */
struct feed_steps_part {
	struct feed_steps *of;
	uint64_t first_row;
	struct step_map map;
	int rc;
};

static int feed_steps_chunk(struct step_map *map, struct feed_steps *of,
			    const struct store_chunk *chunk)
{
	struct schema_step_row *rows = malloc(ROWS_AT_ONCE * sizeof(*rows));
	const struct store_clock *clock = &of->process->clock;
	uint64_t at = of->next_row > chunk->first_row ? of->next_row - chunk->first_row : 0;
	uint64_t got = 1;
	int rc = 0;

	if (!rows)
		return -ENOMEM;
	for (; at < chunk->rows && got && !rc; at += got) {
		uint64_t wanted = chunk->rows - at < ROWS_AT_ONCE ? chunk->rows - at : ROWS_AT_ONCE;

		got = store_read_rows(of->stream, chunk, at, wanted, rows);
		if (got && !map->rank_count)
			rc = step_map_expect(map, of->process->rank, rows[0].step,
					     of->stream->kept);
		for (uint64_t i = 0; i < got && !rc; i++)
			rc = step_map_add(map, of->process->rank, rows[i].step,
					  store_clock_ns(clock, rows[i].start_ticks),
					  store_clock_span_ns(clock, rows[i].duration_ticks));
	}
	if (chunk->first_row + at > of->next_row)
		of->next_row = chunk->first_row + at;
	free(rows);
	return rc;
}

static int feed_steps_stream(struct step_map *map, struct feed_steps *of)
{
	const struct store_stream *stream = of->stream;
	int rc = 0;

	for (size_t i = 0; i < stream->chunk_count && !rc; i++)
		if (stream->chunks[i].first_row + stream->chunks[i].rows > of->next_row)
			rc = feed_steps_chunk(map, of, &stream->chunks[i]);
	return rc;
}

static void feed_steps_part(size_t i, void *context)
{
	struct feed_steps_part *part = (struct feed_steps_part *)context + i;

	part->rc = feed_steps_stream(&part->map, part->of);
}

/* Steps that found no room in their own map are read again, into the common one. */
static int feed_steps_join(struct step_map *map, struct feed_steps_part *part)
{
	if (part->rc || !part->map.hidden)
		return part->rc ? part->rc : step_map_join(map, &part->map);
	part->of->next_row = part->first_row;
	return feed_steps_stream(map, part->of);
}

static int feed_steps_some(struct step_map *map, struct feed_steps *list, size_t count,
			   struct feed_steps_part *parts)
{
	/* Together they take no more memory than the map may. */
	uint64_t room = (STEP_MAP_STEPS_MOST - map->cells) / count;
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		parts[i] = (struct feed_steps_part){ .of = &list[i],
						     .first_row = list[i].next_row,
						     .map.cells = STEP_MAP_STEPS_MOST - room };
	parallel_each(count, feed_steps_part, parts);
	for (size_t i = 0; i < count; i++) {
		rc = rc ? rc : feed_steps_join(map, &parts[i]);
		step_map_fini(&parts[i].map);
	}
	return rc;
}

int feed_steps_read(struct step_map *map, struct feed_steps *list, size_t count)
{
	struct feed_steps_part *parts = calloc(STREAMS_AT_ONCE, sizeof(*parts));
	int rc = parts ? 0 : -ENOMEM;

	for (size_t from = 0; from < count && !rc; from += STREAMS_AT_ONCE)
		rc = feed_steps_some(
			map, list + from,
			count - from < STREAMS_AT_ONCE ? count - from : STREAMS_AT_ONCE, parts);
	free(parts);
	return rc;
}
