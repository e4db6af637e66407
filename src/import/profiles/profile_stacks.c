#include "import/profiles/profile_stacks.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/grow.h"

static bool same_profile_node(const void *owner, uint32_t number, const void *key)
{
	const struct profile_node *node =
		&((const struct profile_stacks *)owner)->nodes.list[number + 1];
	const struct profile_node *wanted = key;

	return node->parent == wanted->parent && node->frame == wanted->frame;
}

uint32_t profile_stacks_node(struct profile_stacks *stacks, uint32_t parent, uint32_t frame)
{
	const struct profile_node wanted = { .parent = parent, .frame = frame };
	const uint64_t hash = intern_hash_number(1, (uint64_t)parent << 32 | frame);
	uint32_t number = intern_find(&stacks->index, hash, same_profile_node, stacks, &wanted);
	struct profile_node *node;

	if (number != INTERN_NONE)
		return number + 1;
	if (stacks->nodes.count >= PROFILE_NODES_MOST ||
	    (!stacks->nodes.count && !TRACE_ADD(&stacks->nodes)))
		return 0;
	node = TRACE_ADD(&stacks->nodes);
	if (!node)
		return 0;
	number = intern_add(&stacks->index, hash);
	if (number == INTERN_NONE) {
		stacks->nodes.count--;
		return 0;
	}
	*node = wanted;
	return number + 1;
}

void profile_stacks_fini(struct profile_stacks *stacks)
{
	free(stacks->nodes.list);
	intern_fini(&stacks->index);
	memset(stacks, 0, sizeof(*stacks));
}

/* ---- frames -------------------------------------------------------------------------------- */

/* The digits before `end`, behind a colon. Returns the colon; NULL: there is none. */
static const char *line_before(const char *text, const char *end, int64_t *line)
{
	const char *at = end;
	int64_t unit = 1;

	*line = 0;
	for (; at > text && isdigit((unsigned char)at[-1]) && unit < 1000000000; unit *= 10)
		*line += (*--at - '0') * unit;
	return at < end && at > text && at[-1] == ':' ? at - 1 : NULL;
}

static struct json_text text_part(const char *from, const char *end)
{
	return (struct json_text){ .at = from, .bytes = (uint32_t)(end - from) };
}

void profile_frame_split(struct trace *trace, struct profile_frame *frame, bool of_kymo)
{
	char plain[KYMO_NAME_BYTES_MAX + 1];
	const char *kept, *open, *end, *colon;
	size_t bytes;
	int64_t line;

	if (frame->file.bytes)
		return;
	bytes = json_text_plain(&frame->name, plain, sizeof(plain));
	open = strrchr(plain, '(');
	if (bytes < 4 || plain[bytes - 1] != ')' || !open || open < plain + 2 || open[-1] != ' ')
		return;
	kept = trace_keep(trace, plain, bytes);
	if (!kept)
		return;
	open = kept + (open - plain);
	end = kept + bytes - 1;
	colon = line_before(open + 1, end, &line);
	if ((!colon && !of_kymo) || open + 1 == (colon ? colon : end))
		return;
	frame->name = text_part(kept, open - 1);
	frame->file = text_part(open + 1, colon ? colon : end);
	frame->line = colon ? line : 0;
}

static bool file_ends(const struct json_text *file, const char *with)
{
	const size_t bytes = strlen(with);

	return file->bytes > bytes && !memcmp(file->at + file->bytes - bytes, with, bytes);
}

bool profile_frame_is_python(const struct profile_frame *frame)
{
	static const char *const names[] = { "<string>", "<stdin>", "<frozen " };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (frame->file.bytes >= strlen(names[i]) &&
		    !memcmp(frame->file.at, names[i], strlen(names[i])))
			return true;
	return file_ends(&frame->file, ".py") || file_ends(&frame->file, ".pyx") ||
	       JSON_TEXT_IS(&frame->name, "<module>");
}

uint32_t profile_frame_node(struct trace *trace, uint32_t parent, const struct profile_frame *frame)
{
	static const struct json_text unknown = { .at = "?", .bytes = 1 };
	const struct json_text *name = frame->name.bytes ? &frame->name : &unknown;
	const bool python = profile_frame_is_python(frame);
	const uint32_t source = python ? KYMO_SOURCE_PYTHON : KYMO_SOURCE_C;
	const struct json_text *module = frame->module.bytes ? &frame->module : &frame->file;
	struct trace_frame *node;

	if ((!trace->frames.count && !TRACE_ADD(&trace->frames)) ||
	    trace->frames.count >= PROFILE_NODES_MOST)
		return 0;
	node = TRACE_ADD(&trace->frames);
	if (!node)
		return 0;
	node->parent = parent;
	node->name = frame->file.bytes ? trace_name_place(trace, source, name, &frame->file, 0)
				       : trace_name(trace, TRACE_CLASS_COUNT, source, name);
	node->line = frame->line > 0 && frame->line < UINT32_MAX ? (uint32_t)frame->line : 0;
	node->module = python || !module->bytes
			       ? 0
			       : trace_name(trace, TRACE_CLASS_COUNT, KYMO_SOURCE_C, module);
	return (uint32_t)(trace->frames.count - 1);
}
