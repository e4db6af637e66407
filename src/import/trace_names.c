/* Names of a trace: each distinct text is looked at once, whatever the number of its events. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "import/trace.h"

#define TEXT_BLOCK (1u << 20)

/* Kernels that communicate, where no argument shows it. The library's own names; a kernel with
   "allreduce" in its name may well be computation. */
static const char *const comm_kernels[] = {
	"nccl*",
	"rccl*",
	"mscclKernel*",
	"*::all_reduce_*",
	"*cross_device_reduce*",
	"*one_shot_all_reduce*",
	"*two_shot_all_reduce*",
	"*multimem_all_reduce*",
	"*deep_ep::*",
	"*nvshmem*",
	"oneccl*",
	NULL,
};

const char *trace_keep(struct trace *trace, const char *bytes, size_t count)
{
	size_t block = count + 1 > TEXT_BLOCK ? count + 1 : TEXT_BLOCK;
	char *kept;

	if (trace->texts_room - trace->texts_used < count + 1) {
		/* The first bytes of a block point to the block before it. */
		char *texts = malloc(block + sizeof(char *));

		if (!texts)
			return NULL;
		memcpy(texts, &trace->texts, sizeof(char *));
		trace->texts = texts;
		trace->texts_used = sizeof(char *);
		trace->texts_room = block + sizeof(char *);
	}
	kept = trace->texts + trace->texts_used;
	if (count) /* bytes of an absent text are NULL */
		memcpy(kept, bytes, count);
	kept[count] = '\0';
	trace->texts_used += count + 1;
	return kept;
}

/* ---- what a name tells --------------------------------------------------------------------- */

static bool matches_any(const char *const *patterns, const char *text)
{
	for (; patterns && *patterns; patterns++)
		if (!fnmatch(*patterns, text, 0))
			return true;
	return false;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static uint32_t names_flags_of(const struct trace *trace, enum trace_class class, const char *text)
{
	switch (class) {
	case TRACE_CLASS_RUNTIME:
		return (strstr(text, "Synchronize") ? TRACE_NAME_SYNC : 0u) |
		       (strstr(text, "GraphLaunch") ? TRACE_NAME_GRAPH : 0u);
	case TRACE_CLASS_KERNEL:
		return matches_any(comm_kernels, text) || matches_any(trace->options->comm, text)
			       ? TRACE_NAME_COMM
			       : 0u;
	case TRACE_CLASS_ANNOTATION:
		if (begins(text, "ProfilerStep#"))
			return TRACE_NAME_STEP;
		return begins(text, "gloo:") ? TRACE_NAME_HOST_COMM : 0u;
	case TRACE_CLASS_OPERATOR:
		if (begins(text, "ProfilerStep#")) /* old traces have no annotations */
			return TRACE_NAME_STEP;
		return !strcmp(text, "record_param_comms") ? TRACE_NAME_PARAMS : 0u;
	case TRACE_CLASS_PYTHON: return begins(text, "nn.Module: ") ? TRACE_NAME_MODULE : 0u;
	default: return strcmp(text, "[memory]") ? 0u : TRACE_NAME_MEMORY;
	}
}

/* The number whose digits end before `end`; returns its first digit, `end` if there is none. */
static const char *number_before(const char *text, const char *end, uint32_t *out)
{
	const char *at = end;
	unsigned long number = 0, unit = 1;

	while (at > text && isdigit((unsigned char)at[-1]) && unit < 1000000000) {
		at--;
		number += (unsigned long)(*at - '0') * unit;
		unit *= 10;
	}
	*out = (uint32_t)number;
	return at;
}

/* The function, the file and the line that a name consists of. */
struct name_place {
	const char *function, *file;
	size_t function_bytes, file_bytes;
	uint32_t line;
};

/* torch.profiler: "dir/file.py(12): function". */
static bool split_torch(const char *text, struct name_place *out)
{
	const char *close = strstr(text, "): ");
	const char *at = close ? number_before(text, close, &out->line) : NULL;

	if (!close || at == close || at <= text + 1 || at[-1] != '(' || !close[3])
		return false;
	out->function = close + 3;
	out->function_bytes = strlen(out->function);
	out->file = text;
	out->file_bytes = (size_t)(at - 1 - text);
	return true;
}

/* VizTracer: "function (dir/file.py:12)". */
static bool split_viztracer(const char *text, struct name_place *out)
{
	const size_t bytes = strlen(text);
	const char *open = strstr(text, " ("), *close = text + (bytes ? bytes - 1 : 0);
	const char *at = open ? number_before(open + 2, close, &out->line) : NULL;

	if (!open || open == text || *close != ')' || at == close || at <= open + 3 ||
	    at[-1] != ':')
		return false;
	out->function = text;
	out->function_bytes = (size_t)(open - text);
	out->file = open + 2;
	out->file_bytes = (size_t)(at - 1 - out->file);
	return true;
}

static bool keep_parts(struct trace *trace, struct trace_name *name, const struct name_place *place)
{
	const size_t bytes = place->function_bytes;
	char both[2 * KYMO_NAME_BYTES_MAX + 2];

	memcpy(both, place->function, bytes);
	if (place->file_bytes)
		memcpy(both + bytes, place->file, place->file_bytes);
	name->name.text = trace_keep(trace, both, bytes + place->file_bytes);
	name->name.text_bytes = (uint32_t)bytes;
	name->name.file_bytes = (uint32_t)place->file_bytes;
	name->name.line = place->line;
	return name->name.text;
}

static bool fill_name(struct trace *trace, struct trace_name *name, uint32_t source,
		      const char *text)
{
	struct name_place place = { .function = text };

	name->flags = names_flags_of(trace, name->class, text);
	name->name.source = source;
	if (name->flags & TRACE_NAME_MODULE) {
		name->name.source = KYMO_SOURCE_TORCH;
		place.function = text + strlen("nn.Module: ");
	}
	if (source != KYMO_SOURCE_PYTHON || name->flags & TRACE_NAME_MODULE ||
	    (!split_torch(text, &place) && !split_viztracer(text, &place)))
		place = (struct name_place){ .function = place.function,
					     .function_bytes = strlen(place.function) };
	return keep_parts(trace, name, &place);
}

/* ---- looking up ---------------------------------------------------------------------------- */

struct name_key {
	uint32_t class, source;
	const struct json_text *raw;
	const struct json_text *file; /* NULL: none of its own */
	uint32_t line;
};

static bool is_same_text(const struct json_text *a, const struct json_text *b)
{
	return a->bytes == b->bytes && a->escaped == b->escaped &&
	       (!a->bytes || !memcmp(a->at, b->at, a->bytes));
}

static bool names_same_name(const void *owner, uint32_t number, const void *key)
{
	const struct trace_name *name = &((const struct trace *)owner)->names.list[number + 1];
	const struct name_key *wanted = key;

	((struct trace *)owner)->compared++;
	return name->class == wanted->class && name->asked == wanted->source &&
	       is_same_text(&name->raw, wanted->raw) && !name->file.at == !wanted->file &&
	       (!wanted->file ||
		(is_same_text(&name->file, wanted->file) && name->name.line == wanted->line));
}

/* "text", then the file of its own. */
static bool fill_placed(struct trace *trace, struct trace_name *name, const struct name_key *key,
			const char *text)
{
	char file[KYMO_NAME_BYTES_MAX + 1];
	const struct name_place place = { .function = text,
					  .function_bytes = strlen(text),
					  .file = file,
					  .file_bytes = json_text_plain(key->file, file,
									sizeof(file)),
					  .line = key->line };

	name->file = *key->file;
	name->file.at = trace_keep(trace, key->file->at, key->file->bytes);
	name->name.source = key->source;
	return name->file.at && keep_parts(trace, name, &place);
}

static uint32_t add_name(struct trace *trace, const struct name_key *key, uint64_t hash)
{
	char text[KYMO_NAME_BYTES_MAX + 1];
	struct trace_name *name;
	uint32_t number;

	if (trace->names.count >= KYMO_NAMES_MAX ||
	    trace->text_bytes + key->raw->bytes + (key->file ? key->file->bytes : 0) >
		    KYMO_TEXT_BYTES_MAX - KYMO_NAME_BYTES_MAX)
		return trace->names_full++, 0;
	json_text_plain(key->raw, text, sizeof(text));
	name = TRACE_ADD(&trace->names);
	if (!name)
		return 0;
	number = (uint32_t)(trace->names.count - 1);
	name->class = key->class;
	name->asked = key->source;
	name->raw.at = trace_keep(trace, key->raw->at, key->raw->bytes);
	name->raw.bytes = key->raw->bytes;
	name->raw.escaped = key->raw->escaped;
	if (!name->raw.at ||
	    !(key->file ? fill_placed(trace, name, key, text)
			: fill_name(trace, name, key->source, text)) ||
	    intern_add(&trace->indexes[TRACE_INDEX_NAMES], hash) != number - 1) {
		trace->names.count--;
		return 0;
	}
	trace->text_bytes += name->name.text_bytes + name->name.file_bytes;
	return number;
}

static uint32_t name_of_key(struct trace *trace, const struct name_key *key)
{
	uint64_t hash = intern_hash(trace->seed + (key->class << 8 | key->source), key->raw->at,
				    key->raw->bytes);
	uint32_t number;

	if (key->file)
		hash = intern_hash(intern_hash_number(hash, key->line), key->file->at,
				   key->file->bytes);
	number = intern_find(&trace->indexes[TRACE_INDEX_NAMES], hash, names_same_name, trace, key);
	return number == INTERN_NONE ? add_name(trace, key, hash) : number + 1;
}

uint32_t trace_name(struct trace *trace, enum trace_class class, uint32_t source,
		    const struct json_text *raw)
{
	const struct name_key key = { .class = (uint32_t) class, .source = source, .raw = raw };

	return name_of_key(trace, &key);
}

uint32_t trace_name_place(struct trace *trace, uint32_t source, const struct json_text *raw,
			  const struct json_text *file, int64_t line)
{
	const struct name_key key = { .class = TRACE_CLASS_OWN,
				      .source = source,
				      .raw = raw,
				      .file = file,
				      .line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0 };

	return name_of_key(trace, &key);
}

uint32_t trace_name_text(struct trace *trace, uint32_t source, const char *text)
{
	const struct json_text raw = { .at = text, .bytes = (uint32_t)strlen(text) };

	return trace_name(trace, TRACE_CLASS_COUNT, source, &raw);
}
