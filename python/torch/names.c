/*
 * Module names. A module is looked up by its address and its caller, so a shared module has a name
 * under each parent. A module that no other module calls is named after its owner, if one is found
 * (owners.c), as in a training_step() that calls self.head(x). Addresses are reused: a weak
 * reference drops the entries of a freed module. No object of the program is kept alive, and no
 * Python code of it runs: only dictionaries are read.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "torch.h"

/* ---- entries ---- */

/* 24 bytes a slot: the table competes with the program for the cache. */
struct slot {
	PyObject *module;
	uint64_t parent; /* serial; 0: a root */
	struct entry *entry; /* NULL: empty */
};

static struct slot *slots;
static size_t slot_count, slots_used;
static struct entry *free_entries;
static struct entry *fixed_entries;
static uint32_t last_serial;
static char selection[128];
static struct entry no_room = { .text = "?", .path = "", .selected = true };

static size_t names_slot_at(PyObject *module, uint64_t parent)
{
	uint64_t hash = ((uint64_t)(uintptr_t)module >> 4) * 0x9e3779b97f4a7c15u;

	hash ^= parent * 0xff51afd7ed558ccdu;
	return (size_t)(hash >> 20) & (slot_count - 1);
}

static struct slot *slot_find(PyObject *module, uint64_t parent)
{
	size_t at;

	if (!slot_count)
		return NULL;
	for (at = names_slot_at(module, parent); slots[at].entry; at = (at + 1) & (slot_count - 1))
		if (slots[at].module == module && slots[at].parent == parent)
			break;
	return &slots[at];
}

static bool slots_grow(void)
{
	size_t old_count = slot_count;
	struct slot *old = slots, *larger;

	if (slots_used * 2 < slot_count)
		return true;
	larger = calloc(slot_count ? slot_count * 2 : 256, sizeof(*larger));
	if (!larger)
		return slots_used + 1 < slot_count;
	slots = larger;
	slot_count = slot_count ? slot_count * 2 : 256;
	for (size_t i = 0; i < old_count; i++)
		if (old[i].entry)
			*slot_find(old[i].module, old[i].parent) = old[i];
	free(old);
	return true;
}

/* Empties it and moves up later slots that would no longer be found. */
static void slot_remove(struct slot *slot)
{
	size_t hole = (size_t)(slot - slots), at = hole;

	slots_used--;
	for (;;) {
		size_t home;

		slots[hole].entry = NULL;
		do {
			at = (at + 1) & (slot_count - 1);
			if (!slots[at].entry)
				return;
			home = names_slot_at(slots[at].module, slots[at].parent);
		} while (hole <= at ? hole < home && home <= at : hole < home || home <= at);
		slots[hole] = slots[at];
		hole = at;
	}
}

static struct entry *names_entry_take(void)
{
	struct entry *entry = free_entries;

	if (entry)
		free_entries = entry->next;
	else
		entry = malloc(sizeof(*entry));
	if (entry)
		memset(entry, 0, sizeof(*entry));
	return entry;
}

static bool is_selected(const char *text)
{
	return !selection[0] || !fnmatch(selection, text, 0);
}

/* The class name without its package. */
static const char *class_of(PyObject *module)
{
	const char *dot = strrchr(Py_TYPE(module)->tp_name, '.');

	return dot ? dot + 1 : Py_TYPE(module)->tp_name;
}

/* class_name takes the place of a file, because "layers.0" alone says little. NULL: not a module,
   or the name is the class. */
static void entry_name(struct entry *entry, const char *class_name)
{
	entry->name = kymo_name_full(entry->text, strlen(entry->text), class_name,
				     class_name ? strlen(class_name) : 0, 0, KYMO_SOURCE_TORCH,
				     entry->instance);
	entry->selected = is_selected(entry->text);
}

void names_select(const char *pattern)
{
	snprintf(selection, sizeof(selection), "%s", pattern);
	for (size_t i = 0; i < slot_count; i++)
		if (slots[i].entry)
			slots[i].entry->selected = is_selected(slots[i].entry->text);
	for (struct entry *entry = fixed_entries; entry; entry = entry->next)
		entry->selected = is_selected(entry->text);
}

struct entry *names_fixed(const char *text)
{
	struct entry *entry = fixed_entries;

	while (entry && strcmp(entry->text, text))
		entry = entry->next;
	if (entry)
		return entry;
	entry = names_entry_take();
	if (!entry)
		return &no_room;
	entry->text = strdup(text);
	entry->path = "";
	entry->root = entry;
	if (!entry->text)
		entry->text = "?";
	entry_name(entry, NULL);
	entry->next = fixed_entries;
	fixed_entries = entry;
	return entry;
}

/* ---- modules that are alive ---- */

struct module {
	PyObject *object; /* its address */
	PyObject *weakref;
	struct entry *first, *last;
};

static struct module *modules; /* by address, open addressing; object NULL: empty */
static size_t module_room, module_used;

static size_t module_at(PyObject *object)
{
	return (size_t)(((uint64_t)(uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u >> 20) &
	       (module_room - 1);
}

static struct module *module_find(PyObject *object)
{
	size_t at;

	if (!module_room)
		return NULL;
	for (at = module_at(object); modules[at].object; at = (at + 1) & (module_room - 1))
		if (modules[at].object == object)
			break;
	return &modules[at];
}

static bool modules_grow(void)
{
	size_t old_room = module_room;
	struct module *old = modules, *larger;

	if (module_used * 2 < module_room)
		return true;
	larger = calloc(module_room ? module_room * 2 : 256, sizeof(*larger));
	if (!larger)
		return false;
	modules = larger;
	module_room = module_room ? module_room * 2 : 256;
	for (size_t i = 0; i < old_room; i++)
		if (old[i].object)
			*module_find(old[i].object) = old[i];
	free(old);
	return true;
}

static void module_remove(struct module *module)
{
	size_t hole = (size_t)(module - modules), at = hole;

	module_used--;
	for (;;) {
		size_t home;

		modules[hole].object = NULL;
		do {
			at = (at + 1) & (module_room - 1);
			if (!modules[at].object)
				return;
			home = module_at(modules[at].object);
		} while (hole <= at ? hole < home && home <= at : hole < home || home <= at);
		modules[hole] = modules[at];
		hole = at;
	}
}

size_t names_count(void)
{
	return module_used;
}

static void entries_drop(struct entry *entry)
{
	for (struct entry *next; entry; entry = next) {
		next = entry->next;
		slot_remove(slot_find(entry->module, entry->parent));
		free(entry->path);
		free(entry->text);
		entry->path = entry->text = NULL;
		entry->next = free_entries;
		free_entries = entry;
	}
}

static PyObject *module_died(PyObject *address, PyObject *weakref)
{
	PyObject *object = PyLong_AsVoidPtr(address);
	struct module *module = module_find(object);

	if (module && module->object && module->weakref == weakref) {
		struct entry *entries = module->first;

		module_remove(module);
		entries_drop(entries);
		Py_DECREF(weakref);
	}
	Py_RETURN_NONE;
}

static PyMethodDef died_method = { "module_died", module_died, METH_O, NULL };

/* Watches for its end. NULL: impossible, so it gets no name of its own. */
static struct module *module_add(PyObject *object)
{
	PyObject *address = PyLong_FromVoidPtr(object);
	PyObject *callback = address ? PyCFunction_New(&died_method, address) : NULL;
	PyObject *weakref = callback ? PyWeakref_NewRef(object, callback) : NULL;
	struct module *module = NULL;

	Py_XDECREF(address);
	Py_XDECREF(callback);
	if (weakref && modules_grow()) {
		module = module_find(object);
		*module = (struct module){ object, weakref, NULL, NULL };
		module_used++;
	} else {
		Py_XDECREF(weakref);
	}
	PyErr_Clear();
	return module;
}

struct entry *names_first(PyObject *object)
{
	struct module *module = module_find(object);

	return module && module->object ? module->first : NULL;
}

/* ---- new names ---- */

/* The class name without its package; "Net#2" for the second one alive. */
static void name_root(struct entry *entry, PyObject *module)
{
	const char *dot = strrchr(Py_TYPE(module)->tp_name, '.');
	const char *word = dot ? dot + 1 : Py_TYPE(module)->tp_name;
	size_t bytes = strlen(word);
	uint32_t number = 1;
	char text[300];

	snprintf(text, sizeof(text), "%.250s", word);
	for (size_t i = 0; i < slot_count; i++) {
		const struct entry *other = slots[i].entry;

		if (!other || other->root != other)
			continue;
		if (other->instance == entry->instance) {
			entry->instance++;
			i = SIZE_MAX; /* restart */
		}
	}
	for (size_t i = 0; i < slot_count; i++) {
		const struct entry *other = slots[i].entry;

		if (other && other->root == other && !strcmp(other->text, text)) {
			snprintf(text, sizeof(text), "%.*s#%u", (int)(bytes < 250 ? bytes : 250),
				 word, ++number);
			i = SIZE_MAX;
		}
	}
	entry->root = entry;
	entry->path = strdup("");
	entry->text = strdup(text);
}

static void name_child(struct entry *entry, PyObject *module, const struct entry *parent,
		       PyObject *parent_module)
{
	const char *word = class_of(module);
	char inside[PATH_BYTES] = "", path[2 * PATH_BYTES];
	int budget = PATHS_BUDGET;

	if (!paths_find(parent_module, module, &budget, inside))
		snprintf(inside, sizeof(inside), "%.250s", word);
	snprintf(path, sizeof(path), "%s%s%s", parent->path,
		 parent->path[0] && inside[0] ? "." : "", inside);
	entry->root = parent->root;
	entry->instance = parent->instance;
	entry->path = strdup(path);
	entry->text = strdup(path[0] ? path : word); /* a wrapped module: its class */
}

/* caller: serial of the module that calls it; 0: none, and `parent` is its owner, or NULL. */
static struct entry *entry_make(PyObject *module, const struct entry *parent,
				PyObject *parent_module, uint32_t caller)
{
	struct module *alive = module_find(module);
	struct entry *entry;
	struct slot *slot;

	if (!alive || !alive->object)
		alive = module_add(module);
	entry = alive && slots_grow() ? names_entry_take() : NULL;
	if (!entry)
		return &no_room;
	if (parent)
		name_child(entry, module, parent, parent_module);
	else
		name_root(entry, module);
	if (!entry->path || !entry->text) {
		free(entry->path);
		free(entry->text);
		entry->next = free_entries;
		free_entries = entry;
		return &no_room;
	}
	entry->serial = ++last_serial;
	entry->module = module;
	entry->parent = caller;
	entry->alone = parent && !caller;
	entry_name(entry, parent ? class_of(module) : NULL);
	entry->model = parent ? parent->model : entry->name; /* a root may be gone by now */
	slot = slot_find(module, entry->parent);
	*slot = (struct slot){ module, entry->parent, entry };
	slots_used++;
	if (alive->last)
		alive->last->next = entry;
	else
		alive->first = entry;
	alive->last = entry;
	return entry;
}

/* Called by no other module: named after its owner, which has an entry but may never have a row. */
static struct entry *alone_make(PyObject *module)
{
	PyObject *owner = owners_find(module);
	struct slot *slot = owner ? slot_find(owner, 0) : NULL;
	struct entry *above, *entry;

	if (!owner)
		return entry_make(module, NULL, NULL, 0);
	above = slot && slot->entry ? slot->entry : entry_make(owner, NULL, NULL, 0);
	entry = entry_make(module, above, owner, 0);
	Py_DECREF(owner);
	return entry;
}

struct entry *names_find(PyObject *module, const struct entry *parent, PyObject *parent_module)
{
	struct slot *slot = slot_find(module, parent ? parent->serial : 0);

	if (KYMO__LIKELY(slot && slot->entry))
		return slot->entry;
	return parent ? entry_make(module, parent, parent_module, parent->serial)
		      : alone_make(module);
}
