#include "store/clocks/clock_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/schema.h"

#define CALLS_MAX ((size_t)1 << 20) /* rows that are read of all ranks together */
#define CALLS_LEAST 64u /* of each stream, however many there are */
#define READ_ROWS 256u
#define TIME_MAX ((int64_t)1 << 60) /* beyond it, sums could overflow: damage */

enum { ENQUEUE, START, END, SEQ, GROUP, MEMBERS, OP, FLAGS, COLUMNS };

/* False: the stream lacks one, or has it in another form. */
static bool clock_calls_columns(const struct store_stream *stream, uint32_t at[COLUMNS])
{
	static const struct {
		const char *name;
		uint32_t type;
	} wanted[COLUMNS] = {
		[ENQUEUE] = { "enqueue_ns", KYMO_TIME },
		[START] = { "start_ns", KYMO_TIME },
		[END] = { "end_ns", KYMO_TIME },
		[SEQ] = { "seq", KYMO_U64 },
		[GROUP] = { "group_name", KYMO_NAME },
		[MEMBERS] = { "members", KYMO_NAME },
		[OP] = { "op", KYMO_NAME },
		[FLAGS] = { "flags", KYMO_U32 },
	};
	int found = 0;

	for (uint32_t i = 0; i < stream->column_count; i++)
		for (int k = 0; k < COLUMNS; k++)
			if (!strcmp(stream->columns[i].name, wanted[k].name) &&
			    stream->columns[i].type == wanted[k].type) {
				at[k] = stream->columns[i].offset;
				found |= 1 << k;
			}
	return found == (1 << COLUMNS) - 1;
}

static uint64_t word_at(const unsigned char *row, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, row + offset, sizeof(word));
	return word;
}

static uint32_t half_at(const unsigned char *row, uint32_t offset)
{
	uint32_t half;

	memcpy(&half, row + offset, sizeof(half));
	return half;
}

static uint32_t name_at(const struct store_process *process, const unsigned char *row,
			uint32_t offset)
{
	uint32_t name = half_at(row, offset);

	return name < process->name_count ? process->name_of[name] : 0;
}

/* Operations that end only after all ranks have arrived; a broadcast or reduce may end earlier. */
static bool is_joint(const struct recording *recording, uint32_t op)
{
	static const char *const joint[] = { "all_reduce", "all_gather", "reduce_scatter",
					     "all_to_all", "barrier" };

	for (size_t i = 0; i < sizeof(joint) / sizeof(joint[0]); i++)
		if (op < recording->name_count &&
		    !strncmp(recording->names[op].text, joint[i], strlen(joint[i])))
			return true;
	return false;
}

bool clock_calls_is_time(int64_t ns)
{
	return ns > -TIME_MAX && ns < TIME_MAX;
}

static void take_call(struct clock_calls *calls, const struct recording *recording,
		      const struct store_process *process, const unsigned char *row,
		      const uint32_t at[COLUMNS])
{
	const uint32_t flags = half_at(row, at[FLAGS]);
	const uint32_t needed = SCHEMA_COLLECTIVE_END | SCHEMA_COLLECTIVE_SEQ;
	const uint32_t arrived = SCHEMA_COLLECTIVE_START | SCHEMA_COLLECTIVE_ENQUEUE;
	const uint32_t without = SCHEMA_COLLECTIVE_P2P | SCHEMA_COLLECTIVE_FAILED;
	struct clock_call call = { .domain = process->domain,
				   .key = { .seq = word_at(row, at[SEQ]),
					    .group = name_at(process, row, at[GROUP]),
					    .members = name_at(process, row, at[MEMBERS]),
					    .op = name_at(process, row, at[OP]),
					    .attempt = process->attempt > 0 ? process->attempt
									    : 0 } };

	if ((flags & needed) != needed || !(flags & arrived) || flags & without ||
	    !is_joint(recording, call.key.op))
		return;
	call.arrival_ns = store_clock_ns(
		&process->clock,
		word_at(row, at[flags & SCHEMA_COLLECTIVE_START ? START : ENQUEUE]));
	call.end_ns = store_clock_ns(&process->clock, word_at(row, at[END]));
	if (!clock_calls_is_time(call.arrival_ns) || !clock_calls_is_time(call.end_ns) ||
	    call.end_ns < call.arrival_ns)
		return;
	if (!grow((void **)&calls->list, &calls->room, calls->count, sizeof(call)))
		calls->no_memory = true;
	else
		calls->list[calls->count++] = call;
}

/* Rows in blocks that are spread evenly: ranks of one job have nearly the same calls at the same
   places of their streams. */
static void clock_calls_read_stream(struct clock_calls *calls, const struct recording *recording,
				    const struct store_stream *stream, size_t most)
{
	unsigned char *rows = malloc((size_t)READ_ROWS * stream->row_bytes);
	uint64_t blocks = stream->kept / READ_ROWS + 1, every = blocks * READ_ROWS / most + 1;
	uint32_t at[COLUMNS];
	uint64_t number = 0;

	if (!rows || !clock_calls_columns(stream, at)) {
		free(rows);
		return;
	}
	for (size_t c = 0; c < stream->chunk_count; c++)
		for (uint64_t from = 0; from < stream->chunks[c].rows;
		     from += READ_ROWS, number++) {
			uint64_t got = number % every ? 0
						      : store_read_rows(stream, &stream->chunks[c],
									from, READ_ROWS, rows);

			for (uint64_t i = 0; i < got && !calls->no_memory; i++)
				take_call(calls, recording, &recording->processes[stream->process],
					  rows + i * stream->row_bytes, at);
		}
	free(rows);
}

int clock_calls_compare_keys(const struct clock_call_key *a, const struct clock_call_key *b)
{
	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->members != b->members)
		return a->members < b->members ? -1 : 1;
	if (a->attempt != b->attempt)
		return a->attempt < b->attempt ? -1 : 1;
	return a->op < b->op ? -1 : a->op > b->op;
}

static int clock_calls_compare(const void *left, const void *right)
{
	const struct clock_call *a = left, *b = right;
	int order = clock_calls_compare_keys(&a->key, &b->key);

	return order ? order : a->domain < b->domain ? -1 : a->domain > b->domain;
}

/* Ranks of a host have one clock: its last arrival and its first end are the tightest. */
static void merge_hosts(struct clock_calls *calls)
{
	size_t kept = 0;

	for (size_t i = 0; i < calls->count; i++) {
		struct clock_call *last = kept ? &calls->list[kept - 1] : NULL,
				  *next = &calls->list[i];

		if (!last || clock_calls_compare(last, next)) {
			calls->list[kept++] = *next;
			continue;
		}
		if (next->arrival_ns > last->arrival_ns)
			last->arrival_ns = next->arrival_ns;
		if (next->end_ns < last->end_ns)
			last->end_ns = next->end_ns;
	}
	calls->count = kept;
}

static bool is_collectives(const struct store_stream *stream)
{
	return !strcmp(stream->table, "dist.collectives") && stream->kept && stream->row_bytes;
}

void clock_calls_read(struct clock_calls *calls, const struct recording *recording)
{
	size_t streams = 0, most;

	for (size_t i = 0; i < recording->stream_count; i++)
		streams += is_collectives(&recording->streams[i]);
	most = streams ? CALLS_MAX / streams : 0;
	for (size_t i = 0; i < recording->stream_count; i++)
		if (is_collectives(&recording->streams[i]))
			clock_calls_read_stream(calls, recording, &recording->streams[i],
						most > CALLS_LEAST ? most : CALLS_LEAST);
	if (calls->count)
		qsort(calls->list, calls->count, sizeof(*calls->list), clock_calls_compare);
	merge_hosts(calls);
}
