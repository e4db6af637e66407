#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "collect/native/process_memory.h"
#include "collect/backtrace/stacks.h"

#define LOCALS_MOST 256
#define KIND_HIDDEN 0x10
#define KIND_CELL 0xc0 /* a variable shared with an inner or outer function */
#define CELL_VALUE 16

bool stacks_is_secret(const char *name)
{
	static const char *const words[] = { "password",    "passwd",	  "secret",
					     "apikey",	    "api_key",	  "credential",
					     "private_key", "access_key", "auth" };
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(name, words[i]))
			return true;
	/* "token" and "hf_token", but not "tokens", which are model input. */
	return length >= 5 && !strcasecmp(name + length - 5, "token");
}

static char *stacks_locals_describe(const struct pymemory *memory, uint64_t value, size_t most)
{
	struct buf text = { 0 };
	char *out;

	pyobj_repr(memory, value, &text, most);
	out = strdup(buf_get(&text));
	buf_fini(&text);
	return out;
}

static void add_local(const struct pymemory *memory, struct stacks_frame *frame, uint64_t name,
		      uint64_t value, unsigned kind, size_t most)
{
	struct stacks_local *local = &frame->locals[frame->local_count];
	char text[128];

	value = pyobj_reference(memory, value);
	if (kind & KIND_CELL && value)
		value = process_memory_pointer(memory->pid, value + CELL_VALUE);
	if (!value || kind & KIND_HIDDEN || value & 7)
		return; /* not set or hidden */
	if (pyobj_text(memory, name, text, sizeof(text)) <= 0 || text[0] == '.')
		return;
	local->name = strdup(text);
	local->value = stacks_is_secret(text) ? strdup("(not shown)")
					      : stacks_locals_describe(memory, value, most);
	if (local->name && local->value)
		frame->local_count++;
}

static bool stacks_locals_read_words(const struct pymemory *memory, uint64_t address, uint64_t *out,
				     size_t count)
{
	return !process_memory_read(memory->pid, address, out, count * 8);
}

void stacks_read_locals(const struct pymemory *memory, const struct pystack_frame *from,
			struct stacks_frame *frame, size_t most)
{
	const struct pylayout *layout = memory->layout;
	const unsigned char *head = from->code->head;
	uint64_t names[LOCALS_MOST], values[LOCALS_MOST], again;
	unsigned char kinds[LOCALS_MOST];
	int32_t count;

	memcpy(&count, head + layout->code_nlocalsplus, 4);
	if (count <= 0 || count > LOCALS_MOST ||
	    !stacks_locals_read_words(memory,
				      process_memory_word(head, layout->code_localsplusnames) +
					      (uint64_t)layout->tuple_item,
				      names, (size_t)count) ||
	    process_memory_read(memory->pid,
				process_memory_word(head, layout->code_localspluskinds) +
					(uint64_t)layout->bytes_value,
				kinds, (size_t)count) ||
	    !stacks_locals_read_words(memory, from->address + (uint64_t)layout->frame_localsplus,
				      values, (size_t)count))
		return;
	/* If the frame still belongs to the function, the values did, too. */
	again = process_memory_pointer(memory->pid, from->address + (uint64_t)layout->frame_code);
	frame->locals = calloc((size_t)count, sizeof(*frame->locals));
	if (!frame->locals || (again & ~7ull) != from->code_address)
		return;
	for (int32_t i = 0; i < count; i++)
		add_local(memory, frame, names[i], values[i], kinds[i], most);
}
