/* The costliest functions of a small recording, from the rows of its stack samples: as
   facts_functions.sql, without the start of DuckDB. */
#include "views/verdicts/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/schema.h"
#include "collect/backtrace/own_code.h"
#include "collect/native/demangle.h"
#include "views/verdicts/where.h"

#define NODES_MOST 65536u /* a recording with more is not small */

struct frame {
	uint32_t parent, name, line, module; /* names: indices of the recording's */
	bool known, own;
	bool worker; /* a process begins here */
	bool import; /* Python's import machinery */
};

struct place {
	uint32_t name, line, stamp; /* stamp: the last stack that had it */
	uint64_t samples;
	double time, running, total;
};

struct sampled {
	const struct recording *recording;
	const char *frames, *samples, *source; /* tables, and how the sampler is called */
	uint32_t process; /* that wrote them */
	struct frame *nodes; /* of that process */
	size_t node_count;
	struct place *places; /* by function and line */
	size_t place_count, place_room;
	uint32_t stack; /* counts stacks from 1 */
	uint64_t imports; /* samples in imports */
	bool strong; /* some own code has a file of its own */
};

static uint64_t facts_samples_load(const struct store_stream *stream, const unsigned char *row,
				   const char *name)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < stream->column_count; i++)
		if (!strcmp(stream->columns[i].name, name) && stream->columns[i].bytes <= 8) {
			memcpy(&value, row + stream->columns[i].offset, stream->columns[i].bytes);
			return value;
		}
	return 0;
}

/* Every row of a table that the process wrote; stops if each() returns false. */
static bool each_row_of(struct sampled *sampled, const char *table,
			bool (*each)(struct sampled *, const struct store_stream *,
				     const unsigned char *))
{
	unsigned char row[KYMO_ROW_BYTES_MAX];

	for (size_t i = 0; i < sampled->recording->stream_count; i++) {
		const struct store_stream *stream = &sampled->recording->streams[i];

		if (stream->process != sampled->process || strcmp(stream->table, table) != 0 ||
		    stream->row_bytes > sizeof(row))
			continue;
		for (size_t c = 0; c < stream->chunk_count; c++)
			for (uint64_t at = 0; at < stream->chunks[c].rows; at++)
				if (store_read_rows(stream, &stream->chunks[c], at, 1, row) != 1 ||
				    !each(sampled, stream, row))
					return false;
	}
	return true;
}

/* ---- frames --------------------------------------------------------------------------------- */

static uint32_t facts_samples_name(const struct sampled *sampled, uint64_t name)
{
	const struct store_process *process = &sampled->recording->processes[sampled->process];

	return name < process->name_count ? process->name_of[name] : 0;
}

static bool is_own_frame(const struct sampled *sampled, const struct frame *frame)
{
	const struct recording *recording = sampled->recording;
	const struct store_name *name = &recording->names[frame->name];
	const struct store_name *module = &recording->names[frame->module];

	if (!frame->module)
		return own_code_is(name->file, name->file_bytes, recording->run.cwd);
	return (frame->line || !own_code_is_linked(name->text, name->text_bytes)) &&
	       !own_code_is_recorder(name->text, name->text_bytes) &&
	       own_code_is_native(module->text, module->text_bytes, name->file,
				  frame->line ? name->file_bytes : 0, recording->run.cwd);
}

static bool is_strong(const struct sampled *sampled, const struct frame *frame)
{
	const struct store_name *name = &sampled->recording->names[frame->name];

	return frame->module || !own_code_is_weak(name->file, name->file_bytes);
}

static bool facts_samples_add_frame(struct sampled *sampled, const struct store_stream *stream,
				    const unsigned char *row)
{
	uint64_t node = facts_samples_load(stream, row, "node");
	uint64_t parent = facts_samples_load(stream, row, "parent");
	const struct store_name *name;
	struct frame *frame;

	if (node >= NODES_MOST)
		return false;
	if (!grow_zeroed((void **)&sampled->nodes, &sampled->node_count, node + 1,
			 sizeof(*sampled->nodes)))
		return false;
	frame = &sampled->nodes[node];
	frame->parent = parent < node ? (uint32_t)parent : 0; /* so that every stack ends */
	frame->name = facts_samples_name(sampled, facts_samples_load(stream, row, "name"));
	frame->line = (uint32_t)facts_samples_load(stream, row, "lineno");
	frame->module = facts_samples_name(sampled, facts_samples_load(stream, row, "module"));
	frame->known = true;
	frame->own = is_own_frame(sampled, frame);
	name = &sampled->recording->names[frame->name];
	frame->import = !strcmp(name->text, "_find_and_load");
	frame->worker = own_code_is_worker(name->text, name->text_bytes, name->file,
					   name->file_bytes);
	sampled->strong |= frame->own && is_strong(sampled, frame);
	return true;
}

/* ---- samples -------------------------------------------------------------------------------- */

static struct place *facts_samples_place(struct sampled *sampled, const struct frame *frame)
{
	struct place *place;

	for (size_t i = 0; i < sampled->place_count; i++)
		if (sampled->places[i].name == frame->name &&
		    sampled->places[i].line == frame->line)
			return &sampled->places[i];
	if (!grow((void **)&sampled->places, &sampled->place_room, sampled->place_count,
		  sizeof(*sampled->places)))
		return NULL;
	place = &sampled->places[sampled->place_count++];
	*place = (struct place){ .name = frame->name, .line = frame->line };
	return place;
}

/* What a program of a few lines imports is most of it, and says nothing about its functions. */
static bool is_in_import(const struct sampled *sampled, uint64_t node)
{
	while (node && node < sampled->node_count && !sampled->nodes[node].import)
		node = sampled->nodes[node].parent;
	return node && node < sampled->node_count;
}

static bool has_text(const struct sampled *sampled, uint64_t number, const char *wanted)
{
	const struct store_name *name =
		&sampled->recording->names[facts_samples_name(sampled, number)];

	return name->text_bytes == strlen(wanted) && !memcmp(name->text, wanted, name->text_bytes);
}

/* A native sample of a thread that waits for work of others, as in native_idle.sql. */
static bool is_idle(const struct sampled *sampled, const struct store_stream *stream,
		    const unsigned char *row)
{
	static const char *const kinds[] = { "a condition variable", "another thread", "a barrier",
					     "a semaphore" };
	uint64_t waits_for = facts_samples_load(stream, row, "waits_for");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (has_text(sampled, waits_for, kinds[i]))
			return true;
	return has_text(sampled, facts_samples_load(stream, row, "activity"), "wait");
}

static bool count_sample(struct sampled *sampled, const struct store_stream *stream,
			 const unsigned char *row)
{
	uint64_t node = facts_samples_load(stream, row, "node");
	double weight = (double)(facts_samples_load(stream, row, "weight_ns") & INT64_MAX);
	bool native = strcmp(sampled->source, "python") != 0, self = true;
	bool waits = native && facts_samples_load(stream, row, "flags") & SCHEMA_NATIVE_WAITING;
	bool running = native ? !waits : facts_samples_load(stream, row, "state") == 'R';

	if (waits && is_idle(sampled, stream, row))
		return true;
	sampled->stack++;
	if (is_in_import(sampled, node)) {
		sampled->imports++;
		return true;
	}
	for (; node && node < sampled->node_count; node = sampled->nodes[node].parent) {
		const struct frame *frame = &sampled->nodes[node];
		struct place *place;

		if (!frame->known || frame->worker)
			break;
		if (!frame->own || (sampled->strong && !is_strong(sampled, frame)))
			continue;
		place = facts_samples_place(sampled, frame);
		if (!place)
			return false;
		if (self) {
			place->samples++;
			place->time += weight;
			place->running += running ? weight : 0;
		}
		place->total += place->stamp == sampled->stack ? 0 : weight;
		place->stamp = sampled->stack;
		self = false;
	}
	return true;
}

/* Each process numbers its frames by itself. */
static bool count_all(struct sampled *sampled)
{
	bool ok = true;

	for (int counts = 0; counts < 2 && ok; counts++)
		for (uint32_t i = 0; i < sampled->recording->process_count && ok; i++) {
			sampled->process = i;
			free(sampled->nodes);
			sampled->nodes = NULL;
			sampled->node_count = 0;
			ok = each_row_of(sampled, sampled->frames, facts_samples_add_frame) &&
			     (!counts || each_row_of(sampled, sampled->samples, count_sample));
		}
	return ok;
}

/* ---- functions ------------------------------------------------------------------------------ */

/* Generators and lambdas count with the function that they stand in. */
static bool are_one_function(const struct sampled *sampled, uint32_t a, uint32_t b)
{
	const struct store_name *x = &sampled->recording->names[a];
	const struct store_name *y = &sampled->recording->names[b];
	size_t bytes = where_outer_bytes(x->text);

	return a == b || (bytes == where_outer_bytes(y->text) && !memcmp(x->text, y->text, bytes) &&
			  !strcmp(x->file, y->file));
}

/* The time of a function with all that it calls: a generator runs inside its function. */
static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Lines of a function count together; the costliest one is kept. */
static void merge_lines(struct sampled *sampled)
{
	for (size_t i = 0; i < sampled->place_count; i++) {
		struct place *kept = &sampled->places[i];
		double most = kept->time;

		for (size_t k = i + 1; k < sampled->place_count; k++) {
			struct place *other = &sampled->places[k];

			if (!are_one_function(sampled, other->name, kept->name))
				continue;
			if (other->time > most) {
				most = other->time;
				kept->line = other->line;
			}
			kept->samples += other->samples;
			kept->time += other->time;
			kept->running += other->running;
			kept->total = other->name == kept->name ? kept->total + other->total
								: larger(kept->total, other->total);
			*other = sampled->places[--sampled->place_count];
			k--;
		}
	}
}

static int facts_samples_by_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->time < y->time   ? 1
	       : x->time > y->time ? -1
				   : (x->name > y->name) - (x->name < y->name);
}

static void name_function(const struct sampled *sampled, const struct place *place, char *out,
			  size_t out_bytes)
{
	const struct store_name *name = &sampled->recording->names[place->name];
	char *plain = name->source == KYMO_SOURCE_C ? demangle(name->text) : NULL;
	const char *text = plain ? plain : name->text, *file = facts_place(name->file);
	int bytes = (int)where_outer_bytes(text);

	if (!file[0])
		snprintf(out, out_bytes, "%.*s", bytes, text);
	else if (!place->line)
		snprintf(out, out_bytes, "%.*s (%s)", bytes, text, file);
	else
		snprintf(out, out_bytes, "%.*s (%s:%u)", bytes, text, file, place->line);
	free(plain);
}

static void take_functions(struct sampled *sampled, struct facts *out)
{
	merge_lines(sampled);
	if (sampled->place_count)
		qsort(sampled->places, sampled->place_count, sizeof(*sampled->places),
		      facts_samples_by_time);
	for (size_t i = 0; i < sampled->place_count; i++) {
		const struct place *place = &sampled->places[i];
		struct facts_function *function = &out->functions[out->function_count];

		out->function_samples += place->samples;
		out->function_time += place->time;
		if (out->function_count == FACTS_FUNCTIONS || !place->samples)
			continue;
		name_function(sampled, place, function->name, sizeof(function->name));
		snprintf(function->source, sizeof(function->source), "%s", sampled->source);
		function->samples = place->samples;
		function->time = place->time;
		function->running = place->running;
		function->total = place->total;
		out->function_count++;
	}
}

void facts_store_functions(const struct recording *recording, struct facts *out)
{
	struct sampled python = { .recording = recording,
				  .frames = "python.frames",
				  .samples = "python.samples",
				  .source = "python" };
	struct sampled native = { .recording = recording,
				  .frames = "native.frames",
				  .samples = "native.samples",
				  .source = "native" };
	struct sampled *used = facts_rows_of(out, "python.samples").kept ? &python : &native;

	if (count_all(used))
		take_functions(used, out);
	out->import_samples = used->imports;
	free(used->nodes);
	free(used->places);
}
