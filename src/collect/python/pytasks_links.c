/*
 * Finds which task waits for which. A task has callbacks for its end: the waiting task itself
 * (`await task`), a task group, which has its parent, or a function that holds the future on which
 * the other task waits (gather, wait, wait_for, shield).
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/python/pytasks.h"
#include "collect/native/process_memory.h"

#define CALLBACKS_MOST 64 /* of a task that are read */
#define HELD_MOST 64 /* objects held by a callback */
#define CELL_VALUE 16

struct place {
	uint64_t key; /* the address of a task, or of the future it waits for */
	uint32_t task;
};

struct connecting {
	const struct pymemory *memory;
	struct pytasks *tasks;
	struct place *by_address, *by_waiter;
	size_t waiter_count, link_room;
	uint32_t awaited; /* the task whose callbacks are read */
	bool failed; /* out of memory */
};

static int compare_places(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	if (one->key != other->key)
		return one->key < other->key ? -1 : 1;
	return one->task < other->task ? -1 : one->task > other->task;
}

/* The first entry with that key, or its insertion point. */
static size_t pytasks_links_find(const struct place *places, size_t count, uint64_t key)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (places[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void connect_to(struct connecting *c, uint32_t waiting)
{
	struct pytasks *tasks = c->tasks;

	for (size_t i = tasks->link_count; i > 0 && tasks->links[i - 1].awaited == c->awaited; i--)
		if (tasks->links[i - 1].waiting == waiting)
			return;
	if (waiting == c->awaited)
		return;
	if (!grow((void **)&tasks->links, &c->link_room, tasks->link_count,
		  sizeof(*tasks->links))) {
		c->failed = true;
		return;
	}
	tasks->links[tasks->link_count++] = (struct pytasks_link){ waiting, c->awaited };
}

static void connect_task(struct connecting *c, uint64_t address)
{
	size_t at = pytasks_links_find(c->by_address, c->tasks->count, address);

	if (address && at < c->tasks->count && c->by_address[at].key == address)
		connect_to(c, c->by_address[at].task);
}

static void connect_future(struct connecting *c, uint64_t future)
{
	size_t at = pytasks_links_find(c->by_waiter, c->waiter_count, future);

	for (; future && at < c->waiter_count && c->by_waiter[at].key == future; at++)
		connect_to(c, c->by_waiter[at].task);
}

/* ---- objects held by a callback -------------------------------------------------------------- */

static void each_held(struct connecting *c, uint64_t tuple, bool cells)
{
	const struct pymemory *memory = c->memory;
	uint64_t held[HELD_MOST];
	uint64_t count = process_memory_pointer(memory->pid,
						tuple + (uint64_t)memory->layout->var_size);

	if (!tuple || count > HELD_MOST ||
	    process_memory_read(memory->pid, tuple + (uint64_t)memory->layout->tuple_item, held,
				count * 8))
		return;
	for (uint64_t i = 0; i < count; i++)
		connect_future(c, cells ? process_memory_pointer(memory->pid, held[i] + CELL_VALUE)
					: held[i]);
}

static void from_builtin(struct connecting *c, uint64_t callback)
{
	connect_task(
		c, process_memory_pointer(c->memory->pid,
					  callback + (uint64_t)c->memory->layout->cfunction_self));
}

/* A method of a task group. */
static void from_method(struct connecting *c, uint64_t callback)
{
	uint64_t group = process_memory_pointer(
		c->memory->pid, callback + (uint64_t)c->memory->layout->method_self);

	if (group)
		connect_task(c, pyobj_attribute(c->memory, group, "_parent_task"));
}

static void from_function(struct connecting *c, uint64_t callback)
{
	each_held(c,
		  process_memory_pointer(c->memory->pid,
					 callback + (uint64_t)c->memory->layout->function_closure),
		  true);
}

static void from_partial(struct connecting *c, uint64_t callback)
{
	each_held(c,
		  process_memory_pointer(c->memory->pid,
					 callback + (uint64_t)c->memory->layout->partial_args),
		  false);
}

static void from_callback(struct connecting *c, uint64_t callback)
{
	static const struct {
		const char *type;
		void (*look)(struct connecting *c, uint64_t callback);
	} rows[] = {
		{ "builtin_function_or_method", from_builtin },
		{ "method", from_method },
		{ "function", from_function },
		{ "functools.partial", from_partial },
	};
	char type[64];

	if (!callback || !pyobj_type(c->memory, callback, type, sizeof(type)))
		return;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].type, type))
			rows[i].look(c, callback);
}

/* ---- the callbacks of a task ----------------------------------------------------------------- */

/* The remaining callbacks: a list of (function, context). */
static void pytasks_links_from_list(struct connecting *c, uint64_t list)
{
	const struct pymemory *memory = c->memory;
	uint64_t pairs[CALLBACKS_MOST];
	uint64_t count = process_memory_pointer(memory->pid,
						list + (uint64_t)memory->layout->var_size);
	uint64_t items = process_memory_pointer(memory->pid,
						list + (uint64_t)memory->layout->list_item);
	char type[16];

	if (!pyobj_type(memory, list, type, sizeof(type)) || strcmp(type, "list") != 0)
		return;
	if (count > CALLBACKS_MOST)
		count = CALLBACKS_MOST;
	if (!items || process_memory_read(memory->pid, items, pairs, count * 8))
		return;
	for (uint64_t i = 0; i < count; i++)
		from_callback(
			c, process_memory_pointer(memory->pid,
						  pairs[i] + (uint64_t)memory->layout->tuple_item));
}

static void pytasks_links_look_at(struct connecting *c, uint32_t task)
{
	const struct pylayout *layout = c->memory->layout;
	uint64_t address = c->tasks->all[task].address;
	uint64_t list;

	c->awaited = task;
	from_callback(c, process_memory_pointer(c->memory->pid,
						address + (uint64_t)layout->task_callback));
	list = process_memory_pointer(c->memory->pid, address + (uint64_t)layout->task_callbacks);
	if (list)
		pytasks_links_from_list(c, list);
}

bool pytasks_connect(const struct pymemory *memory, struct pytasks *tasks)
{
	struct connecting c = { .memory = memory, .tasks = tasks };

	c.by_address = calloc(tasks->count + 1, sizeof(*c.by_address));
	c.by_waiter = calloc(tasks->count + 1, sizeof(*c.by_waiter));
	c.failed = !c.by_address || !c.by_waiter;
	for (size_t i = 0; !c.failed && i < tasks->count; i++) {
		c.by_address[i] = (struct place){ tasks->all[i].address, (uint32_t)i };
		if (tasks->all[i].waiter)
			c.by_waiter[c.waiter_count++] = (struct place){ tasks->all[i].waiter,
									(uint32_t)i };
	}
	if (!c.failed) {
		qsort(c.by_address, tasks->count, sizeof(*c.by_address), compare_places);
		qsort(c.by_waiter, c.waiter_count, sizeof(*c.by_waiter), compare_places);
	}
	for (size_t i = 0; !c.failed && i < tasks->count; i++)
		pytasks_links_look_at(&c, (uint32_t)i);
	free(c.by_address);
	free(c.by_waiter);
	return !c.failed;
}
