/*
 * kymo._gc: garbage collections as zones named by generation, with the number of collected objects
 * as value. CPython calls gc.callbacks before and after each collection; ours is a C function,
 * which no profiler or debugger of the program sees.
 *
 * libkymo is not linked but opened, once collections have taken a millisecond of CPU time: a Python
 * that hardly collects makes no recording. Nothing here raises. A program that removes our callback
 * from gc.callbacks or replaces the list has its way: its collections are not recorded.
 *
 * As the one extension that every recorded Python loads, it also keeps room for the mark of an
 * uncaught exception: the traceback of a MemoryError holds what has used up all memory.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../core/poll.h"

/* Of loop/uvloop.c, in the library that kymo run injects: a collection may be the first call after
   an import of uvloop. */
void loop_uvloop_look(void) __attribute__((weak));

#define WORTH_NS 1000000u
#define GENERATIONS 3
#define WANTED (KYMO_ON_ZONES | KYMO_ON_GC)
#define LIBRARY "libkymo.so.0"
/* To load kymo._kymo and libkymo, and to map the streams of a mark: 15 MB on x86_64. */
#define ROOM_BYTES (24u << 20)
#define ROOM_SHARE 16 /* of a limited address space */

/* The functions used of libkymo. Set once, with the GIL; regions are per process. */
static struct {
	bool tried, there;
	const volatile uint32_t **on;
	int (*enable)(struct kymo_error *err);
	uint32_t (*name)(const char *name, size_t name_bytes, const char *file, size_t file_bytes,
			 uint32_t line, enum kymo_source source, uint32_t instance);
	int (*start)(struct kymo_region *region);
	int (*stop)(struct kymo_region *region);
	void (*value)(uint64_t value);
	void (*poll)(void);
	const uint32_t *followed;
	struct kymo_region regions[GENERATIONS];
} kymo;

/* Per interpreter: it runs one collection at a time. */
struct state {
	PyObject *callback;
	uint64_t began_ns, taken_ns; /* until libkymo is opened */
	struct kymo_region *open; /* NULL: none */
};

static struct state *gc_state_of(PyObject *module)
{
	return PyModule_GetState(module);
}

/* ---- libkymo ----------------------------------------------------------------------------- */

static bool find_symbols(void *library)
{
	const struct {
		const char *name;
		void *at;
	} rows[] = {
		{ "kymo__on", &kymo.on },	    { "kymo_enable", &kymo.enable },
		{ "kymo_name_full", &kymo.name },   { "kymo_region_start", &kymo.start },
		{ "kymo_region_stop", &kymo.stop }, { "kymo_zone_value", &kymo.value },
		{ "kymo_poll", &kymo.poll },	    { "kymo__memory_followed", &kymo.followed },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *symbol = dlsym(library, rows[i].name);

		if (!symbol)
			return false;
		memcpy(rows[i].at, &symbol, sizeof(symbol));
	}
	return true;
}

/* By the id of a name: a region object belongs to C code. */
static void name_regions(void)
{
	for (int i = 0; i < GENERATIONS; i++) {
		char text[32];
		int bytes = snprintf(text, sizeof(text), "gc (generation %d)", i);

		kymo.regions[i].id = kymo.name(text, (size_t)bytes, NULL, 0, 0, KYMO_SOURCE_PYTHON,
					       0);
	}
}

/* As poll_program(), but without linking libkymo. */
static void gc_hear(void)
{
	static bool loaded; /* guarded by the GIL */

	if (!kymo.there || kymo__memory_wanted(**kymo.on) == *kymo.followed)
		return;
	if (!loaded) {
		loaded = true;
		poll_load();
	}
	kymo.poll();
}

/* Loading it starts recording if KYMO asks for it; if only KYMO_GC does, recording is started
   here. */
static void gc_open_library(void)
{
	const char *word = getenv("KYMO");
	void *library;

	kymo.tried = true;
	library = dlopen(LIBRARY, RTLD_NOW);
	if (!library || !find_symbols(library) || ((!word || !*word) && kymo.enable(NULL)))
		return;
	name_regions();
	kymo.there = true;
	gc_hear();
	kymo.poll(); /* tells the collector that this process polls */
}

static bool gc_is_on(void)
{
	return kymo.there && (**kymo.on & WANTED) == WANTED;
}

/* ---- a collection ------------------------------------------------------------------------ */

/* CPU time of this thread: time spent waiting for a CPU is not collection. */
static uint64_t gc_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* -1: no such number. */
static long gc_number_of(PyObject *info, const char *key)
{
	PyObject *value = PyDict_GetItemString(info, key); /* borrowed; clears errors */
	long number = value && PyLong_Check(value) ? PyLong_AsLong(value) : -1;

	PyErr_Clear();
	return number;
}

static void gc_end_zone(struct state *state)
{
	if (state->open)
		kymo.stop(state->open);
	state->open = NULL;
}

static bool gc_is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030d0000
	return Py_IsFinalizing();
#else
	return _Py_IsFinalizing();
#endif
}

static void collection_begins(struct state *state, PyObject *info)
{
	long generation = gc_number_of(info, "generation");

	if (loop_uvloop_look)
		loop_uvloop_look();

	if (!kymo.tried) {
		state->began_ns = gc_now_ns();
		return;
	}
	gc_end_zone(state); /* left open if its end was missed */
	gc_hear();
	/* The last collection of an interpreter may not call back at its end. */
	if (!gc_is_on() || gc_is_finalizing() || generation < 0 || generation >= GENERATIONS ||
	    !kymo.regions[generation].id)
		return;
	state->open = &kymo.regions[generation];
	kymo.start(state->open);
}

static void collection_ends(struct state *state, PyObject *info)
{
	long collected;

	if (!kymo.tried && state->began_ns) {
		state->taken_ns += gc_now_ns() - state->began_ns;
		if (state->taken_ns >= WORTH_NS)
			gc_open_library();
		return;
	}
	if (!state->open)
		return;
	collected = gc_number_of(info, "collected");
	if (collected >= 0)
		kymo.value((uint64_t)collected);
	gc_end_zone(state);
}

static PyObject *on_collection(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	if (count == 2 && PyUnicode_Check(args[0]) && PyDict_Check(args[1])) {
		if (!PyUnicode_CompareWithASCIIString(args[0], "start"))
			collection_begins(gc_state_of(module), args[1]);
		else if (!PyUnicode_CompareWithASCIIString(args[0], "stop"))
			collection_ends(gc_state_of(module), args[1]);
	}
	Py_RETURN_NONE;
}

static PyMethodDef callback_def = { "kymo_gc", (PyCFunction)(void (*)(void))on_collection,
				    METH_FASTCALL, NULL };

/* ---- room for the last mark --------------------------------------------------------------- */

/* Mapped, never touched: it takes addresses, no memory. Guarded by the GIL. */
static struct {
	void *base; /* NULL: none */
	size_t bytes;
} room;

/* A program whose addresses are limited needs them itself. */
static size_t room_within_limit(int resource)
{
	struct rlimit limit;
	size_t most = ROOM_BYTES;

	if (!getrlimit(resource, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur / ROOM_SHARE < most)
		most = (size_t)(limit.rlim_cur / ROOM_SHARE);
	return most & ~(size_t)4095;
}

PyDoc_STRVAR(keep_room_doc,
	     "keep_room($module, /)\n--\n\nReserves addresses for the last mark of a "
	     "program that runs out of memory.");

static PyObject *gc_keep_room(PyObject *module, PyObject *unused)
{
	size_t addresses = room_within_limit(RLIMIT_AS), data = room_within_limit(RLIMIT_DATA);
	long base;

	(void)module;
	(void)unused;
	if (room.base)
		Py_RETURN_NONE;
	room.bytes = addresses < data ? addresses : data;
	/* Writable, because RLIMIT_DATA counts only such pages. Not by mmap(), which kymo run
	   --memory records as an allocation of the program. */
	base = syscall(SYS_mmap, NULL, room.bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	room.base = base == -1 ? NULL : (void *)base;
	Py_RETURN_NONE;
}

PyDoc_STRVAR(give_room_doc, "give_room($module, /)\n--\n\nReturns what keep_room() has reserved.");

static PyObject *gc_give_room(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	if (room.base)
		syscall(SYS_munmap, room.base, room.bytes);
	room.base = NULL;
	Py_RETURN_NONE;
}

/* ---- the module -------------------------------------------------------------------------- */

/* gc.callbacks, borrowed from the module gc; NULL and an exception: not a list. */
static PyObject *gc_callbacks(void)
{
	PyObject *gc = PyImport_ImportModule("gc"), *list;

	if (!gc)
		return NULL;
	list = PyObject_GetAttrString(gc, "callbacks");
	Py_DECREF(gc);
	if (list && !PyList_Check(list)) {
		Py_DECREF(list);
		PyErr_SetString(PyExc_TypeError, "gc.callbacks is not a list");
		return NULL;
	}
	return list;
}

PyDoc_STRVAR(
	arm_doc,
	"arm($module, /)\n--\n\nRecords collections from now on. Repeated calls have no effect.");

static PyObject *gc_arm(PyObject *module, PyObject *unused)
{
	struct state *state = gc_state_of(module);
	PyObject *list = gc_callbacks();
	int there;

	(void)unused;
	if (!list)
		return NULL;
	if (!state->callback)
		state->callback = PyCFunction_New(&callback_def, module);
	there = state->callback ? PySequence_Contains(list, state->callback) : -1;
	if (!there)
		there = PyList_Append(list, state->callback);
	Py_DECREF(list);
	if (there < 0)
		return NULL;
	Py_RETURN_NONE;
}

PyDoc_STRVAR(disarm_doc, "disarm($module, /)\n--\n\nRemoves the callback from gc.callbacks.");

static PyObject *gc_disarm(PyObject *module, PyObject *unused)
{
	struct state *state = gc_state_of(module);
	PyObject *list = gc_callbacks();
	Py_ssize_t at;

	(void)unused;
	if (!list)
		return NULL;
	at = state->callback ? PySequence_Index(list, state->callback) : -1;
	PyErr_Clear();
	if (at >= 0)
		PyList_SetSlice(list, at, at + 1, NULL);
	gc_end_zone(state);
	Py_DECREF(list);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "arm", gc_arm, METH_NOARGS, arm_doc },
	{ "disarm", gc_disarm, METH_NOARGS, disarm_doc },
	{ "keep_room", gc_keep_room, METH_NOARGS, keep_room_doc },
	{ "give_room", gc_give_room, METH_NOARGS, give_room_doc },
	{ NULL },
};

static int gc_module_traverse(PyObject *module, visitproc visit, void *arg)
{
	Py_VISIT(gc_state_of(module)->callback);
	return 0;
}

static int gc_module_clear(PyObject *module)
{
	Py_CLEAR(gc_state_of(module)->callback);
	return 0;
}

static PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
	{ Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED },
#endif
	{ 0, NULL },
};

static PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "kymo._gc",
	.m_doc = "Records garbage collections as zones.",
	.m_size = sizeof(struct state),
	.m_methods = methods,
	.m_slots = slots,
	.m_traverse = gc_module_traverse,
	.m_clear = gc_module_clear,
};

PyMODINIT_FUNC PyInit__gc(void)
{
	return PyModuleDef_Init(&definition);
}
