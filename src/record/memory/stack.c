/*
 * Call sites. A stack is a path of nodes, each with a frame and its caller's node: native frames up
 * to the interpreter, then Python's. A known stack is found by one lookup; its names are resolved
 * once.
 */
#include "record/memory/memory.h"

#include <string.h>

#include <kymo/atomic.h>

#include "base/format.h"
#include "base/schema.h"
#include "record/adapter.h"

#define FRAMES_MOST 128
#define SLOTS (MEMORY_NODES * 2u) /* of the nodes by parent and key */
#define KNOWN (1u << 16) /* stacks by the hash of all their frames */
#define TEXT_BYTES (8u << 20)
#define NO_ROOM 1u

static struct memory_node nodes[MEMORY_NODES];
static uint32_t node_count = 2; /* 0 is none, 1 is for stacks without room */
static uint32_t slots[SLOTS];
static struct {
	uint64_t mixed, node;
} known[KNOWN];

/* Texts for queries in the program: name and file, each NUL-terminated; by the name's id. */
static char text[TEXT_BYTES];
static uint32_t text_used = 1;
static uint32_t text_of[KYMO_NAMES_MAX];

/* Names of frames by key: many nodes share one frame below different callers. */
#define NAMED (1u << 14)
static struct {
	uint64_t mixed, name; /* its id, and the line in the upper bits */
} named[NAMED];

static const struct kymo_memory_python *python;

void kymo_memory_python(const struct kymo_memory_python *how)
{
	kymo__store_release(&python, how);
}

struct memory_node *memory_node(uint32_t node)
{
	return node && node < memory_node_count() ? &nodes[node] : NULL;
}

uint32_t memory_node_count(void)
{
	uint32_t count = kymo__load_acquire(&node_count);

	return count < MEMORY_NODES ? count : MEMORY_NODES;
}

static uint64_t stack_mix(uint64_t a, uint64_t b)
{
	uint64_t hash = (a ^ (b << 32 | b >> 32)) * 0x9E3779B97F4A7C15ull;

	return (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9ull;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void stack_keep_text(uint32_t name, const char *function, size_t function_bytes,
			    const char *file, size_t file_bytes)
{
	uint32_t bytes = (uint32_t)(function_bytes + file_bytes + 2), at;

	if (!name || name >= KYMO_NAMES_MAX || kymo__load_relaxed(&text_of[name]))
		return;
	at = kymo__fetch_add_relaxed(&text_used, bytes);
	if (at > TEXT_BYTES - bytes) {
		kymo__fetch_sub_relaxed(&text_used, bytes);
		return;
	}
	memcpy(text + at, function, function_bytes);
	memcpy(text + at + function_bytes + 1, file, file_bytes);
	kymo__store_release(&text_of[name], at);
}

/* The id of a frame's name, and its line. */
static uint32_t stack_name_of(const struct kymo_memory_frame_key *frame, uint32_t *line)
{
	const struct kymo_memory_python *how = python;
	char made[512], file[1024];
	const char *name = made;
	size_t name_bytes = sizeof(made), file_bytes = sizeof(file);
	bool is_python = frame->code && how;
	uint32_t id;

	*line = 0;
	if (frame->key == 1 && !frame->code) { /* memory that did not come from an allocator */
		name = "mmap";
		file_bytes = 0;
		name_bytes = 4;
	} else if (is_python) {
		*line = how->name(frame, made, &name_bytes, file, &file_bytes);
	} else {
		name = memory_symbol(frame->key - 1, made, sizeof(made), file, sizeof(file));
		name_bytes = strnlen(name, KYMO_NAME_BYTES_MAX);
		file_bytes = strlen(file);
	}
	id = kymo_name_full(name, name_bytes, file, file_bytes, 0,
			    is_python ? KYMO_SOURCE_PYTHON : KYMO_SOURCE_C, 0);
	stack_keep_text(id, name, name_bytes, file, file_bytes);
	return id;
}

static uint32_t name_known(const struct kymo_memory_frame_key *frame, uint32_t *line)
{
	uint32_t at = (uint32_t)(frame->key * 0x9E3779B97F4A7C15ull >> 50);
	uint64_t both = kymo__load_relaxed(&named[at].name);

	if (!both || kymo__load_relaxed(&named[at].mixed) != (frame->key ^ both)) {
		both = stack_name_of(frame, line);
		both |= (uint64_t)*line << 32;
		kymo__store_relaxed(&named[at].name, both);
		kymo__store_relaxed(&named[at].mixed, frame->key ^ both);
	}
	*line = (uint32_t)(both >> 32);
	return (uint32_t)both;
}

void memory_stack_forget_names(void)
{
	for (uint32_t i = 0; i < NAMED; i++)
		kymo__store_relaxed(&named[i].name, 0);
}

static void out_text(char *out, size_t out_bytes, const char *in)
{
	size_t bytes = strnlen(in, out_bytes - 1);

	memcpy(out, in, bytes);
	out[bytes] = '\0';
}

uint32_t kymo_memory_frame(uint32_t node, char *name, size_t name_bytes, char *file,
			   size_t file_bytes, uint32_t *line)
{
	const struct memory_node *one = memory_node(node);
	const char *function = one && one->name < KYMO_NAMES_MAX ? text + text_of[one->name] : "";

	out_text(name, name_bytes, function);
	out_text(file, file_bytes, function + strlen(function) + 1);
	*line = one ? one->line : 0;
	return one ? one->parent : 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static uint32_t node_make(uint32_t parent, const struct kymo_memory_frame_key *frame)
{
	uint32_t index = kymo__fetch_add_relaxed(&node_count, 1);
	struct memory_node *node;

	if (index >= MEMORY_NODES) {
		kymo__store_relaxed(&node_count, MEMORY_NODES);
		return NO_ROOM;
	}
	node = &nodes[index];
	node->key = frame->key;
	node->parent = parent;
	node->name = name_known(frame, &node->line);
	return index;
}

/* The node of that frame below its caller's. Two threads may create it twice; both are valid. */
static uint32_t stack_node_of(uint32_t parent, const struct kymo_memory_frame_key *frame)
{
	uint32_t at = (uint32_t)(stack_mix(parent + 1ull, frame->key) >> 45) % SLOTS, made;

	for (unsigned i = 0; i < 64; i++, at = (at + 1) % SLOTS) {
		uint32_t index = kymo__load_acquire(&slots[at]);

		if (!index) {
			made = node_make(parent, frame);
			if (made != NO_ROOM)
				kymo__cas_release(&slots[at], &index, made);
			return made;
		}
		if (nodes[index].key == frame->key && nodes[index].parent == parent)
			return index;
	}
	return NO_ROOM;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static uint32_t stack_intern(const struct kymo_memory_frame_key *frames, size_t count)
{
	uint32_t node = 0;

	for (size_t i = count; i-- > 0 && node != NO_ROOM;)
		node = stack_node_of(node, &frames[i]);
	return node ? node : NO_ROOM;
}

struct stack {
	const struct memory_place *caller;
	uintptr_t stop_start, stop_end; /* native frames end there */
	size_t python_count;
	struct kymo_memory_frame_key python[FRAMES_MOST - MEMORY_NATIVE_MOST - 1];
	bool mapped;
};

/* By unwind tables; without tables, only the caller. */
static size_t native_of(const struct stack *stack, uintptr_t *out)
{
	size_t count = memory_unwind(stack->caller->sp ? stack->caller : NULL, out,
				     MEMORY_NATIVE_MOST, stack->stop_start, stack->stop_end);

	if (!count)
		out[count++] = stack->caller->pc;
	return count;
}

static __attribute__((noinline)) uint32_t intern_stack(const struct stack *stack)
{
	struct kymo_memory_frame_key frames[FRAMES_MOST];
	uintptr_t addresses[MEMORY_NATIVE_MOST];
	size_t native_count = native_of(stack, addresses), count = 0;

	if (stack->mapped)
		frames[count++] = (struct kymo_memory_frame_key){ .key = 1 };
	for (size_t i = 0; i < native_count; i++)
		frames[count++] = (struct kymo_memory_frame_key){ .key = addresses[i] };
	memcpy(frames + count, stack->python, stack->python_count * sizeof(frames[0]));
	return stack_intern(frames, count + stack->python_count);
}

static __attribute__((noinline)) uint64_t hash_by_tables(const struct stack *stack)
{
	uintptr_t addresses[MEMORY_NATIVE_MOST];

	return memory_walk_hash(addresses, native_of(stack, addresses));
}

static uint64_t stack_hash_of(const struct stack *stack, uint64_t native)
{
	uint64_t hash = native + stack->mapped;

	for (size_t i = 0; i < stack->python_count; i++)
		hash = hash * 0xD1342543DE82EF95ull + stack->python[i].key;
	return stack_mix(hash, stack->python_count);
}

/* The node of a stack with that hash. */
static uint32_t stack_find(const struct stack *stack, uint64_t hash)
{
	uint32_t at = (uint32_t)(hash >> 48);
	uint64_t node = kymo__load_relaxed(&known[at].node);

	if (node && kymo__load_relaxed(&known[at].mixed) == (hash ^ node))
		return (uint32_t)node;
	node = intern_stack(stack);
	kymo__store_relaxed(&known[at].node, node);
	kymo__store_relaxed(&known[at].mixed, hash ^ node);
	return (uint32_t)node;
}

static void stack_take_python(struct stack *stack)
{
	const struct kymo_memory_python *how = kymo__load_acquire(&python);

	stack->stop_start = stack->stop_end = stack->python_count = 0;
	if (!how)
		return;
	stack->stop_start = how->eval_start;
	stack->stop_end = how->eval_end;
	stack->python_count = how->walk(stack->python,
					sizeof(stack->python) / sizeof(stack->python[0]));
}

uint32_t memory_stack(bool mapped, const struct memory_place *caller)
{
	struct memory_walk *walk;
	struct stack stack;
	uint64_t hash;

	stack.mapped = mapped;
	stack.caller = caller;
	stack_take_python(&stack);
	walk = memory_walk(caller, stack.stop_start, stack.stop_end);
	hash = stack_hash_of(&stack, walk ? walk->hash : hash_by_tables(&stack));
	if (!walk)
		return stack_find(&stack, hash);
	if (!walk->stack_node || walk->stack_hash != hash) {
		walk->stack_node = stack_find(&stack, hash);
		walk->stack_hash = hash;
	}
	return walk->stack_node;
}

void memory_stack_write(uint32_t index)
{
	uint32_t generation = memory_generation();

	for (unsigned i = 0; index && i < FRAMES_MOST; i++, index = nodes[index].parent) {
		struct memory_node *node = &nodes[index];
		struct schema_frame_row row = { index, node->parent, node->name, node->line };

		if (kymo__load_relaxed(&node->written) == generation)
			return;
		if (kymo__append(SCHEMA_ALLOC_FRAMES, &row))
			return;
		kymo__store_relaxed(&node->written, generation);
	}
}
