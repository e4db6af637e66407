/* Finds the tasks of asyncio: in sets of weak references until 3.13, in lists since 3.14. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/python/pytasks.h"
#include "collect/native/process_memory.h"

#define SET_ENTRIES_MOST (1u << 20)
#define FOUND_MOST (4u * PYTASKS_MOST) /* of all lists */
#define ENTRY_BYTES 16 /* of a set: key, hash */

static bool pytasks_find_add(struct pytasks_found *found, uint64_t address, uint64_t ident)
{
	if (!address || address % 8)
		return true;
	if (!grow((void **)&found->all, &found->room, found->count, sizeof(*found->all)))
		return false;
	found->all[found->count].address = address;
	found->all[found->count++].ident = ident;
	return true;
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* The entries of a set in one block; NULL: not a readable set. */
static uint64_t *read_set(const struct pymemory *memory, uint64_t set, size_t *out_count)
{
	const struct pylayout *layout = memory->layout;
	uint64_t mask = process_memory_pointer(memory->pid, set + (uint64_t)layout->set_mask);
	uint64_t table = process_memory_pointer(memory->pid, set + (uint64_t)layout->set_table);
	uint64_t *entries;

	if (!table || mask >= SET_ENTRIES_MOST)
		return NULL;
	*out_count = (size_t)mask + 1;
	entries = malloc(*out_count * ENTRY_BYTES);
	if (entries && process_memory_read(memory->pid, table, entries, *out_count * ENTRY_BYTES)) {
		free(entries);
		entries = NULL;
	}
	return entries;
}

static bool add_set(const struct pymemory *memory, uint64_t set, struct pytasks_found *found)
{
	size_t count;
	uint64_t *entries = set ? read_set(memory, set, &count) : NULL;
	bool ok = true;

	for (size_t i = 0; entries && ok && i < count; i++)
		ok = pytasks_find_add(found, entries[2 * i], 0);
	free(entries);
	return ok;
}

/* A weakref.WeakSet: its attribute "data" is a set of references. */
static bool add_weak_set(const struct pymemory *memory, uint64_t weak, struct pytasks_found *found)
{
	uint64_t set = weak ? pyobj_attribute(memory, weak, "data") : 0;
	size_t count;
	uint64_t *entries = set ? read_set(memory, set, &count) : NULL;
	struct process_memory_batch batch = { 0 };
	bool ok = true;

	for (size_t i = 0; entries && ok && i < count; i++) {
		uint64_t reference = entries[2 * i];

		entries[2 * i] = 0;
		if (reference && reference % 8 == 0)
			ok = process_memory_batch_add(
				&batch, reference + (uint64_t)memory->layout->weakref_object,
				&entries[2 * i], 8);
	}
	if (entries && ok && !process_memory_batch_read(&batch, memory->pid))
		for (size_t i = 0; ok && i < batch.count; i++)
			ok = !batch.parts[i].ok ||
			     pytasks_find_add(found, *(uint64_t *)batch.parts[i].out, 0);
	process_memory_batch_fini(&batch);
	free(entries);
	return ok;
}

static bool add_module(const struct pymemory *memory, uint64_t interpreter,
		       struct pytasks_found *found)
{
	const struct pylayout *layout = memory->layout;
	uint64_t modules = process_memory_pointer(memory->pid,
						  interpreter + (uint64_t)layout->interp_modules);
	uint64_t module = modules ? pyobj_dict_get(memory, modules, "asyncio.tasks") : 0;
	uint64_t dict = module ? process_memory_pointer(memory->pid,
							module + (uint64_t)layout->module_dict)
			       : 0;

	if (!dict)
		return true;
	return add_weak_set(memory,
			    pyobj_dict_get(memory, dict,
					   layout->minor <= 11 ? "_all_tasks" : "_scheduled_tasks"),
			    found) &&
	       (layout->minor <= 11 ||
		add_set(memory, pyobj_dict_get(memory, dict, "_eager_tasks"), found));
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A circular list of nodes, each embedded in a task; the head is not in a task. */
static bool add_list(const struct pymemory *memory, uint64_t head, uint64_t ident,
		     struct pytasks_found *found)
{
	uint64_t node = process_memory_pointer(memory->pid, head);
	size_t steps = 0;
	bool ok = true;

	/* A damaged list may lead back to one of its nodes; tasks found twice count once. */
	for (; ok && node && node != head && steps <= PYTASKS_MOST && found->count < FOUND_MOST;
	     steps++) {
		ok = pytasks_find_add(found, node - (uint64_t)memory->layout->task_node, ident);
		node = process_memory_pointer(memory->pid, node);
	}
	return ok;
}

bool pytasks_find(struct pystack *stack, struct pytasks_found *out)
{
	const struct pylayout *layout = &stack->python.layout;
	bool ok = true;

	for (size_t i = 0; ok && layout->thread_tasks >= 0 && i < stack->thread_count; i++)
		ok = add_list(&stack->memory,
			      stack->threads[i].state + (uint64_t)layout->thread_tasks,
			      stack->threads[i].ident, out);
	for (size_t i = 0; ok && i < pystack_interpreter_count(stack); i++) {
		uint64_t interpreter = pystack_interpreter(stack, i);

		ok = add_module(&stack->memory, interpreter, out);
		if (ok && layout->interp_tasks >= 0) /* of threads that have ended */
			ok = add_list(&stack->memory, interpreter + (uint64_t)layout->interp_tasks,
				      0, out);
	}
	return ok;
}
