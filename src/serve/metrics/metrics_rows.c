#include "serve/metrics/metrics_rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/schema.h"
#include "serve/metrics/metrics_regions.h"
#include "views/status/now.h"

#define ROWS_AT_ONCE 1024
#define METRICS_OTHERS (-2)

/* A stream of steps, found again at the next look. */
struct metrics_stream {
	int32_t pid;
	uint64_t starttime;
	uint32_t id;
	char host[64];
	uint64_t next_row;
};

static const double metrics_bounds[METRICS_BUCKETS] = { 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005,
							0.01,	0.02,	0.05,	0.1,   0.2,   0.5,
							1,	2,	5,	10,    20,    50,
							100,	200,	500,	1000 };

/* ---- steps ---------------------------------------------------------------------------------- */

static struct metrics_steps *steps_of(struct metrics_rows *rows, int32_t rank)
{
	for (size_t i = 0; i < rows->step_count; i++)
		if (rows->steps[i].rank == rank)
			return &rows->steps[i];
	if (rows->step_count >= METRICS_RANKS && rank != METRICS_OTHERS)
		return steps_of(rows, METRICS_OTHERS);
	if (!grow_short((void **)&rows->steps, rows->step_count, sizeof(*rows->steps)))
		return NULL;
	rows->steps[rows->step_count] = (struct metrics_steps){ .rank = rank };
	return &rows->steps[rows->step_count++];
}

static void count_step(struct metrics_steps *steps, const struct schema_step_row *row,
		       const struct store_clock *clock)
{
	double seconds = (double)store_clock_span_ns(clock, row->duration_ticks) / 1e9;
	size_t bucket = 0;

	while (bucket < METRICS_BUCKETS && seconds > metrics_bounds[bucket])
		bucket++;
	steps->buckets[bucket]++;
	steps->count++;
	steps->sum_s += seconds;
	for (int i = 0; i < KYMO_PHASE_COUNT; i++)
		steps->phase_s[i] += (double)store_clock_span_ns(clock, row->phase_ticks[i]) / 1e9;
}

static struct metrics_stream *metrics_find_stream(struct metrics_rows *rows,
						  const struct store_process *process, uint32_t id)
{
	const char *host = process->host ? process->host : "";
	struct metrics_stream *found;

	for (size_t i = 0; i < rows->stream_count; i++) {
		found = &rows->streams[i];
		if (found->pid == process->pid && found->id == id &&
		    found->starttime == process->control.starttime &&
		    !strncmp(found->host, host, sizeof(found->host) - 1))
			return found;
	}
	if (!grow_short((void **)&rows->streams, rows->stream_count, sizeof(*rows->streams)))
		return NULL;
	found = &rows->streams[rows->stream_count++];
	*found = (struct metrics_stream){ .pid = process->pid,
					  .starttime = process->control.starttime,
					  .id = id };
	snprintf(found->host, sizeof(found->host), "%s", host);
	return found;
}

static int metrics_read_chunk(struct metrics_steps *steps, const struct store_clock *clock,
			      const struct store_stream *stream, const struct store_chunk *chunk,
			      uint64_t *next_row)
{
	struct schema_step_row *rows = malloc(ROWS_AT_ONCE * sizeof(*rows));
	uint64_t at = *next_row > chunk->first_row ? *next_row - chunk->first_row : 0, got = 1;

	if (!rows)
		return -ENOMEM;
	for (; at < chunk->rows && got; at += got) {
		uint64_t wanted = chunk->rows - at < ROWS_AT_ONCE ? chunk->rows - at : ROWS_AT_ONCE;

		got = store_read_rows(stream, chunk, at, wanted, rows);
		for (uint64_t i = 0; i < got; i++)
			count_step(steps, &rows[i], clock);
	}
	if (chunk->first_row + at > *next_row)
		*next_row = chunk->first_row + at;
	free(rows);
	return 0;
}

static int metrics_read_stream(struct metrics_rows *rows, const struct recording *recording,
			       const struct store_stream *stream)
{
	const struct store_process *process = &recording->processes[stream->process];
	struct metrics_stream *known = metrics_find_stream(rows, process, stream->id);
	struct metrics_steps *steps = steps_of(rows, process->rank < 0 ? -1 : process->rank);
	int rc = known && steps ? 0 : -ENOMEM;

	for (size_t i = 0; i < stream->chunk_count && !rc; i++)
		rc = metrics_read_chunk(steps, &process->clock, stream, &stream->chunks[i],
					&known->next_row);
	return rc;
}

static bool is_of_steps(const struct store_stream *stream)
{
	return !strcmp(stream->table, "trace.steps");
}

int metrics_rows_read(struct metrics_rows *rows, const struct recording *recording)
{
	int rc = 0;

	for (size_t i = 0; i < recording->stream_count && !rc; i++) {
		const struct store_stream *stream = &recording->streams[i];

		if (is_of_steps(stream) && !stream->without_file &&
		    stream->row_bytes == sizeof(struct schema_step_row))
			rc = metrics_read_stream(rows, recording, stream);
	}
	return rc;
}

/* ---- samples -------------------------------------------------------------------------------- */

/* The labels of the run, with one more or two; the caller frees them. */
static struct buf with_labels(const char *labels, const char *key, const char *value)
{
	struct buf out = { 0 };

	buf_text(&out, labels);
	if (value)
		openmetrics_label(&out, key, value);
	return out;
}

static void write_histogram(const struct metrics_steps *steps, const char *labels, struct buf *out)
{
	uint64_t below = 0;

	for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
		char bound[24] = "+Inf";
		struct buf with;

		if (i < METRICS_BUCKETS)
			snprintf(bound, sizeof(bound), metrics_bounds[i] < 1 ? "%g" : "%.1f",
				 metrics_bounds[i]);
		below += steps->buckets[i];
		with = with_labels(labels, "le", bound);
		openmetrics_part(out, OPENMETRICS_STEP, "_bucket", buf_get(&with), (double)below);
		buf_fini(&with);
	}
	openmetrics_part(out, OPENMETRICS_STEP, "_count", labels, (double)steps->count);
	openmetrics_part(out, OPENMETRICS_STEP, "_sum", labels, steps->sum_s);
}

static void metrics_write_steps(const struct metrics_steps *steps, const char *run, struct buf *out)
{
	static const char *const phases[KYMO_PHASE_COUNT] = {
		[KYMO_PHASE_DATA] = "data",
		[KYMO_PHASE_FORWARD] = "forward",
		[KYMO_PHASE_BACKWARD] = "backward",
		[KYMO_PHASE_OPTIMIZER] = "optimizer"
	};
	char rank[16];
	struct buf labels;

	snprintf(rank, sizeof(rank), "%d", steps->rank);
	labels = with_labels(run, "rank",
			     steps->rank == METRICS_OTHERS ? "others"
			     : steps->rank < 0		   ? NULL
							   : rank);
	write_histogram(steps, buf_get(&labels), &out[OPENMETRICS_STEP]);
	for (int i = 0; i < KYMO_PHASE_COUNT; i++) {
		struct buf with = with_labels(buf_get(&labels), "phase", phases[i]);

		if (steps->phase_s[i] > 0)
			openmetrics_sample(&out[OPENMETRICS_PHASE], OPENMETRICS_PHASE,
					   buf_get(&with), steps->phase_s[i]);
		buf_fini(&with);
	}
	buf_fini(&labels);
}

static void metrics_write_table(const struct recording *recording, size_t first, const char *run,
				struct buf *out)
{
	const char *table = recording->streams[first].table;
	double emitted = 0, overwritten = 0, dropped = 0;
	struct buf labels = with_labels(run, "table", table), with;

	for (size_t i = first; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		if (strcmp(stream->table, table) != 0)
			continue;
		emitted += (double)stream->emitted;
		overwritten += (double)stream->overwritten;
		dropped += (double)stream->dropped_total;
	}
	if (is_of_steps(&recording->streams[first]))
		openmetrics_sample(&out[OPENMETRICS_STEPS], OPENMETRICS_STEPS, run, emitted);
	openmetrics_sample(&out[OPENMETRICS_ROWS], OPENMETRICS_ROWS, buf_get(&labels), emitted);
	with = with_labels(buf_get(&labels), "cause", "overwritten");
	openmetrics_sample(&out[OPENMETRICS_LOST], OPENMETRICS_LOST, buf_get(&with), overwritten);
	buf_fini(&with);
	with = with_labels(buf_get(&labels), "cause", "dropped");
	openmetrics_sample(&out[OPENMETRICS_LOST], OPENMETRICS_LOST, buf_get(&with), dropped);
	buf_fini(&with);
	buf_fini(&labels);
}

static void metrics_write_tables(const struct recording *recording, const char *run,
				 struct buf *out)
{
	for (size_t i = 0; i < recording->stream_count; i++) {
		size_t before = 0;

		while (strcmp(recording->streams[before].table, recording->streams[i].table) != 0)
			before++;
		if (before == i)
			metrics_write_table(recording, i, run, out);
	}
}

static void metrics_write_now(const struct recording *recording, const char *run, struct buf *out)
{
	struct now now = { 0 };
	double processes = 0;

	for (size_t i = 0; i < recording->process_count; i++)
		processes += recording->processes[i].state == STORE_LIVE &&
			     recording->processes[i].role != KYMO_ROLE_COLLECTOR;
	openmetrics_sample(&out[OPENMETRICS_PROCESSES], OPENMETRICS_PROCESSES, run, processes);
	now_look(recording, &now);
	if (!recording->live || !now.known)
		return;
	if (now.last_row_age_ns >= 0)
		openmetrics_sample(&out[OPENMETRICS_AGE], OPENMETRICS_AGE, run,
				   (double)now.last_row_age_ns / 1e9);
	if (now.longest[0]) {
		struct buf with = with_labels(run, "zone", now.longest);

		openmetrics_sample(&out[OPENMETRICS_OPEN], OPENMETRICS_OPEN, buf_get(&with),
				   (double)now.longest_age_ns / 1e9);
		buf_fini(&with);
	}
}

void metrics_rows_write(const struct metrics_rows *rows, const struct recording *recording,
			const char *labels, struct buf out[OPENMETRICS_COUNT])
{
	metrics_write_now(recording, labels, out);
	for (size_t i = 0; i < rows->step_count; i++)
		metrics_write_steps(&rows->steps[i], labels, out);
	metrics_write_tables(recording, labels, out);
	metrics_regions_write(recording, labels, out);
}

void metrics_rows_fini(struct metrics_rows *rows)
{
	free(rows->steps);
	free(rows->streams);
	*rows = (struct metrics_rows){ 0 };
}
