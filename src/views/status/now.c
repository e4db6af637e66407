#include "views/status/now.h"

#include <string.h>

#include "base/buf.h"
#include "views/term/format.h"

#define REST_COLUMNS 56 /* of a line with two zones, without their names */

static const struct store_column *column_of(const struct store_stream *stream, uint32_t type)
{
	for (uint32_t i = 0; i < stream->column_count; i++)
		if (stream->columns[i].type == type)
			return &stream->columns[i];
	return NULL;
}

static uint64_t now_word_at(const unsigned char *row, const struct store_column *column)
{
	uint64_t word;

	memcpy(&word, row + column->offset, sizeof(word)); /* inside the row: checked on opening */
	return word;
}

/* When its last row was written; -1: unknown. */
static int64_t last_ns(const struct recording *recording, const struct store_stream *stream)
{
	const struct store_column *time = column_of(stream, KYMO_TIME),
				  *span = column_of(stream, KYMO_DURATION);
	const struct store_clock *clock = &recording->processes[stream->process].clock;
	const struct store_chunk *chunk;
	unsigned char row[KYMO_ROW_BYTES_MAX];
	uint64_t ticks;

	if (!time || !stream->chunk_count || stream->row_bytes > sizeof(row))
		return -1;
	chunk = &stream->chunks[stream->chunk_count - 1];
	if (!chunk->rows || store_read_rows(stream, chunk, chunk->rows - 1, 1, row) != 1)
		return -1;
	ticks = now_word_at(row, time);
	return store_clock_ns(clock, ticks + (span ? now_word_at(row, span) : 0));
}

static void look_at_rows(const struct recording *recording, const struct store_stream *stream,
			 struct now *out)
{
	int64_t last = last_ns(recording, stream);
	int64_t age = recording->processes[stream->process].ended_ns - last;

	if (last < 0)
		return;
	age = age < 0 ? 0 : age;
	if (out->last_row_age_ns < 0 || age < out->last_row_age_ns)
		out->last_row_age_ns = age;
}

static void now_look_at_zones(const struct recording *recording, const struct store_stream *stream,
			      struct now *out)
{
	int64_t now_ns = recording->processes[stream->process].ended_ns;
	const struct store_open_zone *first, *last;

	if (!stream->open_count)
		return;
	first = &stream->open_zones[0];
	last = &stream->open_zones[stream->open_count - 1];
	if (out->longest[0] && now_ns - first->start_ns <= out->longest_age_ns)
		return;
	snprintf(out->longest, sizeof(out->longest), "%s", recording->names[first->name].text);
	out->longest_age_ns = now_ns > first->start_ns ? now_ns - first->start_ns : 0;
	out->innermost[0] = '\0';
	if (last == first)
		return;
	snprintf(out->innermost, sizeof(out->innermost), "%s", recording->names[last->name].text);
	out->innermost_age_ns = now_ns > last->start_ns ? now_ns - last->start_ns : 0;
}

void now_look(const struct recording *recording, struct now *out)
{
	*out = (struct now){ .known = true, .from_outside = true, .last_row_age_ns = -1 };
	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->processes[i].role == KYMO_ROLE_TARGET)
			out->from_outside = false;
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		const struct store_process *process = &recording->processes[stream->process];

		/* Rows of the collector do not show what the program does. */
		if (process->state != STORE_LIVE ||
		    (process->role != KYMO_ROLE_TARGET && !out->from_outside))
			continue;
		look_at_rows(recording, stream, out);
		now_look_at_zones(recording, stream, out);
	}
}

static size_t now_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void now_add_zone(struct buf *line, const char *name, size_t columns, int64_t age_ns,
			 const struct text_style *style)
{
	text_fit(line, name[0] ? name : "?", columns, 0, style);
	buf_print(line, " for %s", format_clock((double)age_ns, style->utf8).text);
}

/* The names share the rest of the line; the innermost one gets more. */
static void now_add_zones(struct buf *line, const struct now *now, const struct text_style *style)
{
	size_t room = style->columns > 70 ? (size_t)style->columns - REST_COLUMNS : 20;
	size_t inner = now_least(text_width(now->innermost, strlen(now->innermost)), room * 3 / 5);

	buf_text(line, "in ");
	now_add_zone(line, now->longest, now_least(room - inner, strlen(now->longest) + 1),
		     now->longest_age_ns, style);
	if (now->innermost[0]) {
		buf_text(line, " > ");
		now_add_zone(line, now->innermost, inner, now->innermost_age_ns, style);
	}
	buf_text(line, "; ");
}

void now_print(const struct now *now, const struct text_style *style, FILE *out)
{
	struct buf line = { 0 };

	buf_text(&line, now->from_outside ? "  recorded from outside; " : "  ");
	if (now->longest[0])
		now_add_zones(&line, now, style);
	else if (!now->from_outside)
		buf_text(&line, "no zone open; ");
	if (now->last_row_age_ns < 0)
		buf_text(&line, "no row yet");
	else
		buf_print(&line, "last row %s ago",
			  format_clock((double)now->last_row_age_ns, style->utf8).text);
	fprintf(out, "%s\n", buf_get(&line));
	buf_fini(&line);
}
