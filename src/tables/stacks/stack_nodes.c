#include "tables/stacks/stack_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "tables/scan/dictionary.h"
#include "collect/backtrace/own_code.h"

#define READ_ROWS 4096u
#define SPARE_NODES \
	65536u /* frame numbers that may be missing; a larger gap is taken as corruption */

/* The needed columns as this stream has them; an older or foreign stream may lack some. */
enum { FRAME_NODE, FRAME_PARENT, FRAME_NAME, FRAME_LINE, FRAME_MODULE, FRAME_COLUMNS };
static const char *const frame_columns[FRAME_COLUMNS] = { "node", "parent", "name", "lineno",
							  "module" };

int32_t stack_nodes_offset(const struct store_stream *stream, const char *name, uint32_t bytes)
{
	for (uint32_t i = 0; i < stream->column_count; i++)
		if (!strcmp(stream->columns[i].name, name) && stream->columns[i].bytes == bytes)
			return (int32_t)stream->columns[i].offset;
	return -1;
}

static uint32_t stack_nodes_load(const unsigned char *row, int32_t offset)
{
	uint32_t value = 0;

	if (offset >= 0)
		memcpy(&value, row + offset, 4);
	return value;
}

uint32_t stack_nodes_name(const struct store_process *process, uint32_t name)
{
	return name < process->name_count ? process->name_of[name] : 0;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Label 0 stands for none and is not in the index, so a label has its number there + 1. */
static bool same_label(const void *labels, uint32_t number, const void *wanted)
{
	const struct stack_nodes_label *a = (const struct stack_nodes_label *)labels + number + 1;
	const struct stack_nodes_label *b = wanted;

	return a->name == b->name && a->line == b->line && a->module == b->module;
}

/* Long texts are kept here and rows refer to them, so that all samples of a stack share its
   texts. */
static bool stack_nodes_set_text(duckdb_string_t *out, const char *text, size_t bytes)
{
	char *own;

	memset(out, 0, sizeof(*out));
	out->value.inlined.length = (uint32_t)bytes;
	if (bytes <= sizeof(out->value.inlined.inlined)) {
		memcpy(out->value.inlined.inlined, text, bytes);
		return true;
	}
	own = malloc(bytes);
	if (!own)
		return false;
	memcpy(own, text, bytes);
	memcpy(out->value.pointer.prefix, text, sizeof(out->value.pointer.prefix));
	out->value.pointer.ptr = own;
	return true;
}

static void free_text(const duckdb_string_t *text)
{
	if (text->value.inlined.length > sizeof(text->value.inlined.inlined))
		free(text->value.pointer.ptr);
}

static void free_label(const struct stack_nodes_label *label)
{
	free_text(&label->text);
	free_text(&label->function);
}

static void stack_nodes_add_function(struct buf *text, const struct store_name *name)
{
	char *plain = dictionary_demangled(name);

	if (plain)
		buf_text(text, plain);
	else if (name->text_bytes)
		buf_add(text, name->text, name->text_bytes);
	else
		buf_char(text, '?'); /* the name table was full */
	free(plain);
}

/* Frames of Python in a native stack have no module. */
static bool stack_nodes_is_own(const struct stack_nodes_label *label,
			       const struct stack_nodes *callers, const struct recording *recording)
{
	const struct store_name *name = &recording->names[label->name];
	const struct store_name *module = &recording->names[label->module];

	if (label->module && !label->line && own_code_is_linked(name->text, name->text_bytes))
		return false;
	if (label->module && own_code_is_recorder(name->text, name->text_bytes))
		return false;
	if (!callers->native || (!label->module && name->source == KYMO_SOURCE_PYTHON))
		return own_code_is(name->file, name->file_bytes, recording->run.cwd);
	return own_code_is_native(module->text, label->module ? module->text_bytes : 0, name->file,
				  label->line ? name->file_bytes : 0, recording->run.cwd);
}

static bool is_weak(const struct stack_nodes_label *label, const struct recording *recording)
{
	const struct store_name *name = &recording->names[label->name];

	return !label->module && own_code_is_weak(name->file, name->file_bytes);
}

static bool stack_nodes_describe(struct stack_nodes_label *label, const struct stack_nodes *callers,
				 const struct recording *recording)
{
	const struct store_name *name = &recording->names[label->name];
	struct buf text = { 0 };
	bool ok;

	label->own = stack_nodes_is_own(label, callers, recording);
	label->worker = own_code_is_worker(name->text, name->text_bytes, name->file,
					   name->file_bytes);
	stack_nodes_add_function(&text, name);
	if (text.failed || !stack_nodes_set_text(&label->function, buf_get(&text), text.used)) {
		buf_fini(&text);
		return false;
	}
	if (name->file_bytes && (label->line || !callers->with_libraries)) {
		buf_text(&text, " (");
		buf_add(&text, name->file, name->file_bytes);
		buf_print(&text, ":%u)", label->line);
	} else if (name->file_bytes) { /* a library: its directory does not matter */
		const char *slash = memrchr(name->file, '/', name->file_bytes);
		size_t skip = slash ? (size_t)(slash + 1 - name->file) : 0;

		buf_text(&text, " (");
		buf_add(&text, name->file + skip, name->file_bytes - skip);
		buf_char(&text, ')');
	}
	ok = !text.failed && stack_nodes_set_text(&label->text, buf_get(&text), text.used);
	buf_fini(&text);
	if (!ok)
		free_text(&label->function);
	return ok;
}

/* 0 if there is no memory. */
static uint32_t label_of(struct stack_nodes *callers, const struct recording *recording,
			 uint32_t name, uint32_t line, uint32_t module)
{
	struct stack_nodes_label wanted = { .name = name, .line = line, .module = module }, *label;
	uint64_t hash = intern_hash_number(intern_hash_number(0, (uint64_t)name << 32 | line),
					   module);
	uint32_t number = intern_find(&callers->label_index, hash, same_label, callers->labels,
				      &wanted);

	if (number != INTERN_NONE)
		return number + 1;
	if (!grow((void **)&callers->labels, &callers->label_room, callers->label_count,
		  sizeof(wanted)))
		return 0;
	label = &callers->labels[callers->label_count];
	*label = wanted;
	if (!stack_nodes_describe(label, callers, recording))
		return 0;
	number = intern_add(&callers->label_index, hash);
	if (number == INTERN_NONE) {
		free_label(label);
		return 0;
	}
	callers->label_count++;
	return number + 1;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct filling {
	struct stack_nodes *callers;
	const struct recording *recording;
	const char *table;
	uint32_t process;
	uint64_t rows; /* of the process's streams */
	bool (*each)(struct filling *filling, const uint32_t frame[FRAME_COLUMNS]);
};

static bool each_row(struct filling *filling, const struct store_stream *stream,
		     unsigned char *buffer)
{
	int32_t at[FRAME_COLUMNS];

	for (int i = 0; i < FRAME_COLUMNS; i++)
		at[i] = stack_nodes_offset(stream, frame_columns[i], 4);
	for (size_t c = 0; c < stream->chunk_count; c++) {
		const struct store_chunk *chunk = &stream->chunks[c];
		uint64_t from = 0, count;

		for (; from < chunk->rows; from += count) {
			count = chunk->rows - from < READ_ROWS ? chunk->rows - from : READ_ROWS;
			count = store_read_rows(stream, chunk, from, count, buffer);
			if (!count)
				break; /* the file was truncated */
			for (uint64_t i = 0; i < count; i++) {
				const unsigned char *row = buffer + i * stream->row_bytes;
				uint32_t frame[FRAME_COLUMNS];

				for (int k = 0; k < FRAME_COLUMNS; k++)
					frame[k] = stack_nodes_load(row, at[k]);
				if (!filling->each(filling, frame))
					return false;
			}
		}
	}
	return true;
}

static bool each_frame(struct filling *filling)
{
	const struct recording *recording = filling->recording;
	bool ok = true;

	filling->rows = 0;
	for (size_t i = 0; i < recording->stream_count; i++)
		if (recording->streams[i].process == filling->process &&
		    !strcmp(recording->streams[i].table, filling->table))
			filling->rows += recording->streams[i].kept;
	for (size_t i = 0; ok && i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		unsigned char *buffer;

		if (stream->process != filling->process || strcmp(stream->table, filling->table))
			continue;
		buffer = malloc((size_t)READ_ROWS * stream->row_bytes);
		ok = buffer && each_row(filling, stream, buffer);
		free(buffer);
	}
	return ok;
}

/* Numbers are consecutive, except for lost ones. */
static bool stack_nodes_measure(struct filling *filling, const uint32_t frame[FRAME_COLUMNS])
{
	struct stack_nodes_tree *tree = &filling->callers->trees[filling->process];
	uint64_t most = filling->rows + SPARE_NODES;
	uint32_t node = frame[FRAME_NODE];

	if (!node)
		return true;
	if (!tree->count) {
		tree->first = node;
		tree->count = 1;
	} else if (node < tree->first && (uint64_t)tree->first - node + tree->count <= most) {
		tree->count += tree->first - node;
		tree->first = node;
	} else if (node >= tree->first && node - tree->first >= tree->count &&
		   (uint64_t)node - tree->first < most) {
		tree->count = node - tree->first + 1;
	}
	return true;
}

static bool stack_nodes_fill(struct filling *filling, const uint32_t frame[FRAME_COLUMNS])
{
	uint32_t node = frame[FRAME_NODE];
	struct stack_nodes_tree *tree = &filling->callers->trees[filling->process];
	const struct store_process *process = &filling->recording->processes[filling->process];
	struct stack_nodes_node *own;

	if (!node || node < tree->first || node - tree->first >= tree->count)
		return true;
	own = &tree->nodes[node - tree->first];
	/* so that every path ends */
	own->parent = frame[FRAME_PARENT] < node ? frame[FRAME_PARENT] : 0;
	own->label = label_of(filling->callers, filling->recording,
			      stack_nodes_name(process, frame[FRAME_NAME]), frame[FRAME_LINE],
			      stack_nodes_name(process, frame[FRAME_MODULE]));
	return own->label != 0;
}

static bool read_process(struct stack_nodes *callers, const struct recording *recording,
			 const char *table, uint32_t process)
{
	struct stack_nodes_tree *tree = &callers->trees[process];
	struct filling filling = {
		.callers = callers,
		.recording = recording,
		.table = table,
		.process = process,
		.each = stack_nodes_measure,
	};

	if (!each_frame(&filling))
		return false;
	if (!tree->count)
		return true;
	tree->nodes = calloc(tree->count, sizeof(*tree->nodes));
	filling.each = stack_nodes_fill;
	return tree->nodes && each_frame(&filling);
}

static void destroy(struct stack_nodes *callers)
{
	for (size_t i = 0; i < callers->tree_count; i++)
		free(callers->trees[i].nodes);
	for (size_t i = 1; i < callers->label_count; i++)
		free_label(&callers->labels[i]);
	free(callers->trees);
	free(callers->labels);
	intern_fini(&callers->label_index);
	free(callers);
}

/* Code without a file is the program's own if it has no other: a program that python -c runs, but
   not the methods that dataclasses generate. */
static void choose_own(struct stack_nodes *callers, const struct recording *recording)
{
	bool strong = false;

	for (size_t i = 1; i < callers->label_count && !strong; i++)
		strong = callers->labels[i].own && !is_weak(&callers->labels[i], recording);
	for (size_t i = 1; i < callers->label_count && strong; i++)
		callers->labels[i].own = callers->labels[i].own &&
					 !is_weak(&callers->labels[i], recording);
}

static struct stack_nodes *create(const struct recording *recording, const char *table)
{
	struct stack_nodes *callers = calloc(1, sizeof(*callers));
	bool ok;

	if (!callers)
		return NULL;
	callers->native = !strcmp(table, "native.frames");
	callers->with_libraries = callers->native || !strcmp(table, "alloc.frames");
	callers->label_count = 1;
	callers->label_room = 256;
	callers->labels = calloc(callers->label_room, sizeof(*callers->labels));
	callers->tree_count = recording->process_count;
	callers->trees = calloc(recording->process_count + 1, sizeof(*callers->trees));
	ok = callers->labels && callers->trees;
	for (uint32_t i = 0; ok && i < recording->process_count; i++)
		ok = read_process(callers, recording, table, i);
	if (ok) {
		choose_own(callers, recording);
		return callers;
	}
	if (!callers->trees)
		callers->tree_count = 0;
	if (!callers->labels)
		callers->label_count = 1;
	destroy(callers);
	return NULL;
}

/* ---- interface ------------------------------------------------------------------------------- */

/* The table of the frames; tables->callers is in the same order. */
static const char *const frame_tables[STACK_NODES_KINDS] = { "python.frames", "alloc.frames",
							     "native.frames" };

const struct stack_nodes *stack_nodes_get(struct tables *tables, enum stack_nodes_kind kind)
{
	const struct stack_nodes *callers;

	pthread_mutex_lock(&tables->dictionary_lock);
	if (!tables->callers[kind])
		tables->callers[kind] = create(tables->recording, frame_tables[kind]);
	callers = tables->callers[kind];
	pthread_mutex_unlock(&tables->dictionary_lock);
	return callers;
}

void stack_nodes_fini(struct tables *tables)
{
	for (int i = 0; i < STACK_NODES_KINDS; i++)
		if (tables->callers[i])
			destroy(tables->callers[i]);
	memset(tables->callers, 0, sizeof(tables->callers));
}

const struct stack_nodes_node *stack_nodes_find(const struct stack_nodes *callers, uint32_t process,
						uint32_t node)
{
	const struct stack_nodes_tree *tree = process < callers->tree_count
						      ? &callers->trees[process]
						      : NULL;

	if (!tree || !node || node < tree->first || node - tree->first >= tree->count ||
	    !tree->nodes[node - tree->first].label)
		return NULL;
	return &tree->nodes[node - tree->first];
}

size_t stack_nodes_way(const struct stack_nodes *callers, uint32_t process, uint32_t node,
		       duckdb_string_t *out)
{
	const struct stack_nodes_node *at = stack_nodes_find(callers, process, node);
	size_t count = 0;

	for (; at; at = stack_nodes_find(callers, process, at->parent), count++)
		if (out)
			out[count] = callers->labels[at->label].text;
	return count;
}

const struct stack_nodes_label *stack_nodes_place(const struct stack_nodes *callers,
						  uint32_t process, uint32_t node)
{
	const struct stack_nodes_node *at = stack_nodes_find(callers, process, node);

	while (at && !callers->labels[at->label].own)
		at = callers->labels[at->label].worker
			     ? NULL
			     : stack_nodes_find(callers, process, at->parent);
	return at ? &callers->labels[at->label] : NULL;
}

bool stack_nodes_is_first(const struct stack_nodes *callers, unsigned char **seen,
			  const struct stack_nodes_sample *sample)
{
	const struct stack_nodes_tree *tree = &callers->trees[sample->process];
	unsigned char **bits = &seen[sample->process];
	uint32_t at = sample->node - tree->first;
	bool before;

	if (!*bits)
		*bits = calloc(tree->count / 8u + 1, 1);
	if (!*bits)
		return false;
	before = (*bits)[at / 8] >> (at % 8) & 1;
	(*bits)[at / 8] |= (unsigned char)(1u << (at % 8));
	return !before;
}
