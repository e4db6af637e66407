#include "collect/python/pytasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "collect/native/process_memory.h"

#define TRIES 6
#define DEEPEST 1000 /* coroutines of a task */
#define HEAD_BYTES 192 /* of a task */
#define GENERATOR_BYTES 192 /* of a generator, up to the variables of its frame */
#define WRAPPED 16 /* offset of the wrapped object in an awaitable that only delegates */
#define TYPES_KNOWN 64
#define BASES_MOST 32
#define HEIGHT_MOST 65536 /* of the stack of a frame, in words */

enum kind { KIND_OTHER, KIND_TASK, KIND_GENERATOR, KIND_WRAPPER };

/* A cache: there are few types and many objects. */
struct known_type {
	uint64_t address;
	enum kind kind;
};

struct reader {
	struct pystack *stack;
	const struct pymemory *memory;
	const struct pylayout *layout;
	struct known_type types[TYPES_KNOWN];
	size_t type_count;
	uint64_t loop, loop_ident; /* the last loop and the ident of its thread */
	uint64_t now_ns;
};

/* A coroutine, generator or asynchronous generator of a task. */
struct link {
	uint64_t address;
	unsigned char bytes[GENERATOR_BYTES];
	/* the word on top of its stack, which is what it waits for; 0: nothing */
	uint64_t top_at, top;
};

struct chain {
	unsigned char head[HEAD_BYTES]; /* of the task */
	struct link *links; /* outermost first */
	size_t count, room;
	enum pytasks_state state;
};

/* ---- types ----------------------------------------------------------------------------------- */

static bool type_name(const struct reader *reader, uint64_t type, char *out, size_t out_bytes)
{
	uint64_t name = process_memory_pointer(reader->memory->pid,
					       type + (uint64_t)reader->layout->type_name);
	ssize_t got = name ? process_memory_read_some(reader->memory->pid, name, out, out_bytes)
			   : -1;

	return got > 0 && memchr(out, '\0', (size_t)got);
}

static enum kind kind_by_name(const struct reader *reader, uint64_t type)
{
	static const struct {
		const char *name;
		enum kind kind;
	} rows[] = {
		{ "coroutine", KIND_GENERATOR },
		{ "generator", KIND_GENERATOR },
		{ "async_generator", KIND_GENERATOR },
		{ "async_generator_asend", KIND_WRAPPER },
		{ "async_generator_athrow", KIND_WRAPPER },
		{ "anext_awaitable", KIND_WRAPPER },
		{ "coroutine_wrapper", KIND_WRAPPER },
		{ "_asyncio.Task", KIND_TASK },
	};
	char name[64];

	if (type_name(reader, type, name, sizeof(name)))
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (!strcmp(rows[i].name, name))
				return rows[i].kind;
	return KIND_OTHER;
}

/* asyncio's Task may have subclasses; the other types cannot. */
static enum kind kind_of_type(const struct reader *reader, uint64_t type)
{
	enum kind kind = kind_by_name(reader, type);

	for (int i = 0; kind == KIND_OTHER && i < BASES_MOST; i++) {
		type = process_memory_pointer(reader->memory->pid,
					      type + (uint64_t)reader->layout->type_base);
		if (!type)
			break;
		if (kind_by_name(reader, type) == KIND_TASK)
			kind = KIND_TASK;
	}
	return kind;
}

static enum kind kind_of(struct reader *reader, uint64_t object)
{
	uint64_t type = object && object % 8 == 0
				? process_memory_pointer(
					  reader->memory->pid,
					  object + (uint64_t)reader->layout->object_type)
				: 0;
	struct known_type *known;

	if (!type || type % 8)
		return KIND_OTHER;
	for (size_t i = 0; i < reader->type_count; i++)
		if (reader->types[i].address == type)
			return reader->types[i].kind;
	if (reader->type_count == TYPES_KNOWN)
		reader->type_count = 0;
	known = &reader->types[reader->type_count++];
	*known = (struct known_type){ type, kind_of_type(reader, type) };
	return known->kind;
}

/* ---- the chain of coroutines ----------------------------------------------------------------- */

static size_t pytasks_head_bytes(const struct pylayout *layout)
{
	return (size_t)layout->task_name + 8;
}

static size_t generator_bytes(const struct pylayout *layout)
{
	return (size_t)(layout->gen_frame + layout->frame_localsplus);
}

static int8_t pytasks_state_of(const struct reader *reader, const struct link *link)
{
	return (int8_t)link->bytes[reader->layout->gen_frame_state];
}

/* States are in the order of a generator's life; not started is the lowest. */
static bool has_begun(const struct reader *reader, const struct link *link)
{
	return pytasks_state_of(reader, link) > reader->layout->gen_created;
}

/* True if it awaits another object rather than yields, by its state or its next instruction. */
static bool is_waiting(const struct reader *reader, const struct link *link)
{
	const struct pylayout *layout = reader->layout;
	unsigned char next[2];

	if (layout->minor >= 13)
		return pytasks_state_of(reader, link) >= layout->gen_awaiting &&
		       pytasks_state_of(reader, link) < layout->gen_executing;
	return has_begun(reader, link) &&
	       !process_memory_read(
		       reader->memory->pid,
		       process_memory_word(link->bytes, layout->gen_frame + layout->frame_instr) +
			       2,
		       next, sizeof(next)) &&
	       (next[1] & 3) >= 2; /* RESUME: 2 after `yield from`, 3 after `await` */
}

/* The address of what it awaits, on its stack; 0: inconsistent. It is on top; since 3.15 the index
   of an iterator is above it. */
static uint64_t pytasks_top_of(const struct reader *reader, const struct link *link)
{
	const struct pylayout *layout = reader->layout;
	uint64_t frame = link->address + (uint64_t)layout->gen_frame;
	int32_t height;

	if (layout->frame_stackpointer >= 0) {
		uint64_t end = process_memory_word(link->bytes,
						   layout->gen_frame + layout->frame_stackpointer);

		if (end <= frame || end - frame >= 8ull * HEIGHT_MOST || end % 8)
			return 0;
		return end - (layout->minor >= 15 ? 16 : 8);
	}
	height = process_memory_int(link->bytes, layout->gen_frame + layout->frame_stacktop);
	if (height <= 0 || height > HEIGHT_MOST)
		return 0;
	return frame + (uint64_t)layout->frame_localsplus + 8ull * (uint64_t)(height - 1);
}

static struct link *add_link(struct chain *chain, uint64_t address)
{
	if (!grow((void **)&chain->links, &chain->room, chain->count, sizeof(*chain->links)))
		return NULL;
	memset(&chain->links[chain->count], 0, sizeof(*chain->links));
	chain->links[chain->count].address = address;
	return &chain->links[chain->count++];
}

/* Reads one link; *out_next is what it waits for. False: the task is running or changing. */
static bool follow_one(struct reader *reader, struct chain *chain, uint64_t address,
		       uint64_t *out_next)
{
	struct link *link = add_link(chain, address);

	*out_next = 0;
	if (!link || process_memory_read(reader->memory->pid, address, link->bytes,
					 generator_bytes(reader->layout))) {
		chain->state = PYTASKS_MISSED;
		return false;
	}
	if (pytasks_state_of(reader, link) >= reader->layout->gen_executing) {
		chain->state = pytasks_state_of(reader, link) == reader->layout->gen_executing
				       ? PYTASKS_RUNNING
				       : PYTASKS_MISSED;
		return false;
	}
	if (!has_begun(reader, link)) {
		chain->state = chain->count == 1 ? PYTASKS_NEW : PYTASKS_MISSED;
		return chain->count == 1;
	}
	link->top_at = is_waiting(reader, link) ? pytasks_top_of(reader, link) : 0;
	if (link->top_at)
		link->top = process_memory_pointer(reader->memory->pid, link->top_at);
	*out_next = pyobj_reference(reader->memory, link->top);
	return true;
}

static void pytasks_follow(struct reader *reader, struct chain *chain)
{
	uint64_t object = process_memory_word(chain->head, reader->layout->task_coroutine);

	chain->count = 0;
	chain->state = PYTASKS_SUSPENDED;
	for (int i = 0; object && i < DEEPEST; i++) {
		enum kind kind = kind_of(reader, object);

		if (kind == KIND_WRAPPER)
			object = process_memory_pointer(reader->memory->pid, object + WRAPPED);
		else if (kind != KIND_GENERATOR || !follow_one(reader, chain, object, &object))
			break;
	}
}

/* ---- the check ------------------------------------------------------------------------------- */

struct again {
	unsigned char bytes[GENERATOR_BYTES];
	uint64_t top;
};

static bool add_again(const struct reader *reader, struct process_memory_batch *batch,
		      const struct link *link, struct again *again)
{
	return process_memory_batch_add(batch, link->address, again->bytes,
					generator_bytes(reader->layout)) &&
	       (!link->top_at || process_memory_batch_add(batch, link->top_at, &again->top, 8));
}

/* Reference counts and weak references, before the frame state, may change at any time. */
static bool pytasks_is_same(const struct reader *reader, const struct link *link,
			    const struct again *again)
{
	size_t from = (size_t)reader->layout->gen_frame_state;

	return again->top == link->top && !memcmp(again->bytes + from, link->bytes + from,
						  generator_bytes(reader->layout) - from);
}

static bool is_same_head(const struct reader *reader, const unsigned char *one,
			 const unsigned char *other)
{
	const struct pylayout *layout = reader->layout;

	return process_memory_word(one, layout->task_coroutine) ==
		       process_memory_word(other, layout->task_coroutine) &&
	       process_memory_word(one, layout->task_waiter) ==
		       process_memory_word(other, layout->task_waiter) &&
	       process_memory_int(one, layout->task_state) ==
		       process_memory_int(other, layout->task_state);
}

/* Reads the links forwards and backwards in one system call. */
static bool pytasks_is_steady(const struct reader *reader, uint64_t task, const struct chain *chain)
{
	struct process_memory_batch batch = { 0 };
	struct again *again = calloc(2 * chain->count + 1, sizeof(*again));
	unsigned char head[HEAD_BYTES];
	bool ok = again != NULL;

	for (size_t i = 0; ok && i < chain->count; i++)
		ok = add_again(reader, &batch, &chain->links[i], &again[i]);
	if (ok)
		ok = process_memory_batch_add(&batch, task, head,
					      pytasks_head_bytes(reader->layout));
	for (size_t i = chain->count; ok && i-- > 0;)
		ok = add_again(reader, &batch, &chain->links[i], &again[chain->count + i]);
	ok = ok && !process_memory_batch_read(&batch, reader->memory->pid);
	for (size_t i = 0; ok && i < batch.count; i++)
		ok = batch.parts[i].ok;
	ok = ok && is_same_head(reader, head, chain->head);
	for (size_t i = 0; ok && i < 2 * chain->count; i++)
		ok = pytasks_is_same(reader, &chain->links[i % chain->count], &again[i]);
	process_memory_batch_fini(&batch);
	free(again);
	return ok;
}

/* ---- one task -------------------------------------------------------------------------------- */

/* Fills the function and the line; false: not a code object. */
static bool locate(struct reader *reader, const struct link *link, struct pystack_frame *frame)
{
	const struct pylayout *layout = reader->layout;
	const unsigned char *bytes = link->bytes + layout->gen_frame;
	struct pycode_wanted wanted = {
		.address = process_memory_word(bytes, layout->frame_code) & ~7ull, .used = true
	};
	int64_t unit;

	if (process_memory_read(reader->memory->pid, wanted.address, wanted.head,
				pycode_head_bytes(layout)))
		return false;
	pycode_resolve(&reader->stack->codes, reader->memory, &wanted, 1, reader->now_ns);
	*frame = (struct pystack_frame){ .address = link->address + (uint64_t)layout->gen_frame,
					 .code_address = wanted.address,
					 .instruction = process_memory_word(bytes,
									    layout->frame_instr),
					 .code = wanted.code,
					 .owner = 1 };
	unit = (int64_t)(frame->instruction - frame->code_address -
			 (uint64_t)layout->code_adaptive) /
	       2;
	if (!wanted.code || unit < -1 || unit > (int64_t)wanted.code->units)
		return false;
	frame->line = pycode_line(wanted.code, unit);
	return true;
}

static bool pytasks_take_frames(struct reader *reader, const struct chain *chain,
				struct pytasks_one *task)
{
	task->frames = calloc(chain->count + 1, sizeof(*task->frames));
	for (size_t i = 0; task->frames && i < chain->count; i++)
		if (!locate(reader, &chain->links[chain->count - 1 - i], &task->frames[i]))
			return false;
	task->frame_count = task->frames ? chain->count : 0;
	return task->frames != NULL;
}

/* Since 3.12 a task without a name has only a number until its name is read. */
static void pytasks_take_name(const struct reader *reader, const struct chain *chain,
			      struct pytasks_one *task)
{
	uint64_t name = process_memory_word(chain->head, reader->layout->task_name);
	struct buf number = { 0 };
	char type[16];

	if (!name || !pyobj_type(reader->memory, name, type, sizeof(type)))
		return;
	if (!strcmp(type, "int")) {
		pyobj_repr(reader->memory, name, &number, 32);
		snprintf(task->name, sizeof(task->name), "Task-%s", buf_get(&number));
		buf_fini(&number);
	} else {
		pyobj_text(reader->memory, name, task->name, sizeof(task->name));
	}
}

static uint64_t thread_of_loop(struct reader *reader, uint64_t loop)
{
	struct buf number = { 0 };
	uint64_t ident;

	if (loop == reader->loop)
		return reader->loop_ident;
	ident = pyobj_attribute(reader->memory, loop, "_thread_id");
	if (ident)
		pyobj_repr(reader->memory, ident, &number, 32);
	reader->loop = loop;
	reader->loop_ident = strtoull(buf_get(&number), NULL, 10);
	buf_fini(&number);
	return reader->loop_ident;
}

static void pytasks_describe(struct reader *reader, const struct chain *chain,
			     struct pytasks_one *task)
{
	uint64_t loop = process_memory_word(chain->head, reader->layout->task_loop);

	task->state = chain->state;
	task->waiter = chain->state == PYTASKS_SUSPENDED
			       ? process_memory_word(chain->head, reader->layout->task_waiter)
			       : 0;
	pytasks_take_name(reader, chain, task);
	if (!task->ident)
		task->ident = thread_of_loop(reader, loop);
	if (task->waiter)
		pyobj_type(reader->memory, task->waiter, task->waits_for, sizeof(task->waits_for));
}

/* False: not a task, or ended. */
static bool read_task(struct reader *reader, struct chain *chain, struct pytasks_one *task)
{
	const struct pylayout *layout = reader->layout;

	if (kind_of(reader, task->address) != KIND_TASK)
		return false;
	for (int i = 0; i < TRIES; i++) {
		if (process_memory_read(reader->memory->pid, task->address, chain->head,
					pytasks_head_bytes(layout)) ||
		    process_memory_int(chain->head, layout->task_state))
			return false;
		free(task->frames);
		task->frames = NULL;
		pytasks_follow(reader, chain);
		if (chain->state == PYTASKS_RUNNING)
			break;
		if (chain->state != PYTASKS_MISSED && pytasks_take_frames(reader, chain, task) &&
		    pytasks_is_steady(reader, task->address, chain))
			break;
		task->frame_count = 0;
		chain->state = PYTASKS_MISSED;
	}
	pytasks_describe(reader, chain, task);
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int pytasks_by_name(const void *a, const void *b)
{
	const struct pytasks_one *one = a, *other = b;
	int order = strverscmp(one->name, other->name);

	if (order)
		return order;
	return one->address < other->address ? -1 : one->address > other->address;
}

static void drop_doubles(struct pytasks *tasks)
{
	size_t kept = 0;

	for (size_t i = 0; i < tasks->count; i++) {
		if (kept && tasks->all[kept - 1].address == tasks->all[i].address)
			free(tasks->all[i].frames);
		else
			tasks->all[kept++] = tasks->all[i];
	}
	tasks->count = kept;
}

static void pytasks_read_all(struct reader *reader, const struct pytasks_found *found,
			     struct pytasks *out)
{
	struct chain chain = { 0 };

	for (size_t i = 0; i < found->count && !out->cut; i++) {
		struct pytasks_one *task = &out->all[out->count];

		out->cut = process_memory_late();
		if (out->cut)
			break;
		task->address = found->all[i].address;
		task->ident = found->all[i].ident;
		if (read_task(reader, &chain, task)) {
			out->count++;
			out->cut = out->count == PYTASKS_MOST;
		} else {
			free(task->frames);
			memset(task, 0, sizeof(*task));
		}
	}
	free(chain.links);
}

bool pytasks_read(struct pystack *stack, struct pytasks *out)
{
	struct reader reader = { .stack = stack,
				 .memory = &stack->memory,
				 .layout = &stack->python.layout,
				 .now_ns = clock_monotonic_ns() };
	struct pytasks_found found = { 0 };
	bool ok = pytasks_find(stack, &found);
	size_t room = found.count < PYTASKS_MOST ? found.count + 1 : PYTASKS_MOST;

	memset(out, 0, sizeof(*out));
	if (found.count)
		out->all = calloc(room, sizeof(*out->all));
	if (out->all && pytasks_head_bytes(reader.layout) <= HEAD_BYTES &&
	    generator_bytes(reader.layout) <= GENERATOR_BYTES) {
		pytasks_read_all(&reader, &found, out);
		if (out->count)
			qsort(out->all, out->count, sizeof(*out->all), pytasks_by_name);
		drop_doubles(out);
		ok = ok && pytasks_connect(&stack->memory, out);
	}
	free(found.all);
	return ok && (out->all || !found.count);
}

void pytasks_free(struct pytasks *tasks)
{
	for (size_t i = 0; i < tasks->count; i++)
		free(tasks->all[i].frames);
	free(tasks->all);
	free(tasks->links);
	memset(tasks, 0, sizeof(*tasks));
}
