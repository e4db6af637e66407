#include "loop.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

#define LIBRARY "libkymo.so.0"
#define FIRST_LEAST_TICKS 100000u /* below 10 ms for any counter of at least 10 MHz */
#define RATE_AFTER_NS 20000000u /* the rate is exact enough for all later calls */
#define TASK_PREFIX "Task-" /* of names that asyncio gives */

uint64_t loop_least_ticks;

/* ---- libkymo ------------------------------------------------------------------------------- */

/* The functions used of libkymo. Set once, under the lock. */
static struct {
	pthread_mutex_t lock;
	bool tried, there;
	const volatile uint32_t **on;
	int (*enable)(struct kymo_error *err);
	uint32_t (*name)(const char *name, size_t name_bytes, const char *file, size_t file_bytes,
			 uint32_t line, enum kymo_source source, uint32_t instance);
	int (*append)(enum schema_id table, const void *row);
	uint64_t (**slow_clock)(void);
} library = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool loop_find_symbols(void *handle)
{
	const struct {
		const char *name;
		void *at;
	} rows[] = {
		{ "kymo__on", &library.on },
		{ "kymo_enable", &library.enable },
		{ "kymo_name_full", &library.name },
		{ "kymo__append", &library.append },
		{ "kymo__slow_clock", &library.slow_clock },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *symbol = dlsym(handle, rows[i].name);

		if (!symbol)
			return false;
		memcpy(rows[i].at, &symbol, sizeof(symbol));
	}
	return true;
}

/* Loading it starts recording if KYMO asks for it. */
static void loop_open_library(void)
{
	const char *word = getenv("KYMO");
	void *handle = dlopen(LIBRARY, RTLD_NOW);

	library.there = handle && loop_find_symbols(handle) &&
			((word && *word) || !library.enable(NULL));
}

static bool loop_is_on(void)
{
	/* Another interpreter may hold it, also in the process that this one was forked from. */
	if (pthread_mutex_trylock(&library.lock))
		return false;
	if (!library.tried)
		loop_open_library();
	library.tried = true;
	pthread_mutex_unlock(&library.lock);
	return library.there && **library.on & KYMO_ON_ZONES;
}

/* ---- time ---------------------------------------------------------------------------------- */

static struct {
	uint64_t ticks, ns;
} first; /* when the module was armed */

static uint64_t loop_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void loop_stall_begin(void)
{
	if (loop_least_ticks)
		return;
	first.ns = loop_now_ns();
	first.ticks = loop_ticks();
	loop_least_ticks = FIRST_LEAST_TICKS;
}

/* Adjusts the limit of the hot path once the rate is known. */
static uint64_t ns_of_ticks(uint64_t taken_ticks)
{
	uint64_t past_ns = loop_now_ns() - first.ns, past_ticks = loop_ticks() - first.ticks;
	double ns_per_tick = past_ticks ? (double)past_ns / (double)past_ticks : 0;

	if (past_ns > RATE_AFTER_NS && loop_least_ticks == FIRST_LEAST_TICKS && ns_per_tick > 0)
		loop_least_ticks = (uint64_t)(LOOP_STALL_NS / ns_per_tick);
	return (uint64_t)((double)taken_ticks * ns_per_tick);
}

/* The recording's clock may be another one; its ticks are nanoseconds. */
static void set_times(struct schema_loop_stall_row *row, uint64_t began_ticks, uint64_t taken_ticks)
{
	row->start_ticks = began_ticks;
	row->duration_ticks = taken_ticks;
	if (*library.slow_clock) {
		row->duration_ticks = ns_of_ticks(taken_ticks);
		row->start_ticks = (*library.slow_clock)() - row->duration_ticks;
	}
}

/* ---- objects ------------------------------------------------------------------------------- */

/* An attribute of an object that has no __getattr__ of its own; a new reference, or NULL without an
   exception. */
static PyObject *plain_attribute(PyObject *object, const char *name)
{
	PyObject *found = NULL;

	if (object && Py_TYPE(object)->tp_getattro == PyObject_GenericGetAttr)
		found = PyObject_GetAttrString(object, name);
	PyErr_Clear();
	return found;
}

static bool loop_ends_with(PyObject *text, const char *end)
{
	Py_ssize_t bytes;
	const char *utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &bytes)
							 : NULL;
	size_t end_bytes = strlen(end);

	PyErr_Clear();
	return utf8 && (size_t)bytes >= end_bytes &&
	       !memcmp(utf8 + (size_t)bytes - end_bytes, end, end_bytes);
}

/* The Python function that calls is asyncio's Handle._run, so that this is a callback of a loop. */
static bool is_called_by_handle(void)
{
	PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
	PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
	bool is = code && !PyUnicode_CompareWithASCIIString(code->co_name, "_run") &&
		  loop_ends_with(code->co_filename, "asyncio/events.py");

	Py_XDECREF(code);
	return is;
}

/* The running loop of this thread, as asyncio knows it; a new reference, or NULL. */
static PyObject *running_loop(void)
{
	PyObject *modules = PyImport_GetModuleDict();
	PyObject *module = modules ? PyDict_GetItemString(modules, "_asyncio")
				   : NULL; /* borrowed */
	PyObject *loop = module ? PyObject_CallMethod(module, "_get_running_loop", NULL) : NULL;

	PyErr_Clear();
	return loop;
}

/* Callbacks that the loop will run in this round or the next; -1: not known. */
static int32_t count_ready(void)
{
	PyObject *loop = running_loop(), *ready = plain_attribute(loop, "_ready");
	bool is_deque = ready && !strcmp(Py_TYPE(ready)->tp_name, "collections.deque");
	Py_ssize_t count = is_deque ? PyObject_Size(ready) : -1;

	PyErr_Clear();
	Py_XDECREF(ready);
	Py_XDECREF(loop);
	return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

/* ---- what ran ------------------------------------------------------------------------------ */

static uint32_t name_of_text(PyObject *text)
{
	Py_ssize_t bytes = 0;
	const char *utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &bytes)
							 : NULL;

	PyErr_Clear();
	return utf8 ? library.name(utf8, (size_t)bytes, NULL, 0, 0, KYMO_SOURCE_PYTHON, 0) : 0;
}

static void name_code(PyObject *code, struct schema_loop_stall_row *row)
{
	PyObject *name;

	if (!code || !PyCode_Check(code))
		return;
	name = plain_attribute(code, "co_qualname"); /* since 3.11 */
	if (!name)
		name = plain_attribute(code, "co_name");
	row->coroutine = name_of_text(name);
	row->file = name_of_text(((PyCodeObject *)code)->co_filename);
	row->line = (uint32_t)((PyCodeObject *)code)->co_firstlineno;
	Py_XDECREF(name);
}

/* Names that asyncio generates carry no information, and there may be very many. */
static void name_task(PyObject *task, struct schema_loop_stall_row *row)
{
	PyObject *name = plain_attribute(task, "_name"), *method;

	method = name ? NULL : plain_attribute(task, "get_name"); /* of _asyncio.Task, in C */
	if (method && PyCFunction_Check(method))
		name = PyObject_CallObject(method, NULL);
	PyErr_Clear();
	if (name && PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) < 128) {
		PyObject *prefix = PyUnicode_FromString(TASK_PREFIX);

		if (prefix && PyUnicode_Tailmatch(name, prefix, 0, PY_SSIZE_T_MAX, -1) == 0)
			row->task = name_of_text(name);
		PyErr_Clear();
		Py_XDECREF(prefix);
	}
	Py_XDECREF(method);
	Py_XDECREF(name);
}

/* True if the object is a task, whose coroutine ran. */
static bool describe_task(PyObject *task, struct schema_loop_stall_row *row)
{
	static const char *const codes[] = { "cr_code", "gi_code", "ag_code" };
	PyObject *coroutine = plain_attribute(task, "_coro"), *code = NULL;

	for (size_t i = 0; coroutine && !code && i < sizeof(codes) / sizeof(codes[0]); i++)
		code = plain_attribute(coroutine, codes[i]);
	name_code(code, row);
	if (coroutine)
		name_task(task, row);
	Py_XDECREF(code);
	Py_XDECREF(coroutine);
	return coroutine != NULL;
}

static void describe(PyObject *callback, struct schema_loop_stall_row *row)
{
	PyObject *self = NULL, *inner = NULL;

	if (PyFunction_Check(callback)) {
		name_code(PyFunction_GET_CODE(callback), row);
		return;
	}
	if (!strcmp(Py_TYPE(callback)->tp_name, "functools.partial"))
		inner = plain_attribute(callback, "func");
	else
		self = plain_attribute(callback, "__self__");
	if (!(self && describe_task(self, row))) {
		if (PyMethod_Check(callback))
			inner = Py_NewRef(PyMethod_GET_FUNCTION(callback));
		if (inner && PyFunction_Check(inner))
			name_code(PyFunction_GET_CODE(inner), row);
	}
	Py_XDECREF(self);
	Py_XDECREF(inner);
}

/* ---- stalls -------------------------------------------------------------------------------- */

void loop_stall_flush(struct loop_thread *thread)
{
	if (!thread->pending)
		return;
	thread->pending = false;
	if (thread->pid == getpid())
		library.append(SCHEMA_LOOP_STALLS, &thread->row);
}

void loop_stall_before(struct loop_thread *thread)
{
	PyObject *kind, *value, *trace;
	int32_t ready;

	PyErr_Fetch(&kind, &value, &trace);
	if (is_called_by_handle()) {
		thread->nested = thread->depth;
		ready = thread->pending ? count_ready() : -1;
		if (ready >= thread->row.ready)
			thread->row.ready = ready + 1; /* this one was ready, too */
	}
	loop_stall_flush(thread);
	PyErr_Restore(kind, value, trace);
}

void loop_stall_after(struct loop_thread *thread, uint64_t began_ticks, uint64_t taken_ticks,
		      PyObject *callback, enum schema_loop_kind kind)
{
	PyObject *error, *value, *trace;
	bool is_asyncio = kind == SCHEMA_LOOP_ASYNCIO;

	if (ns_of_ticks(taken_ticks) < LOOP_STALL_NS || thread->nested > thread->depth)
		return;
	PyErr_Fetch(&error, &value, &trace);
	if ((!is_asyncio || is_called_by_handle()) && loop_is_on()) {
		loop_stall_flush(thread);
		memset(&thread->row, 0, sizeof(thread->row));
		set_times(&thread->row, began_ticks, taken_ticks);
		thread->row.kind = (uint16_t)kind;
		thread->row.ready = is_asyncio ? count_ready() : -1;
		if (callback)
			describe(callback, &thread->row);
		thread->pending = true;
		thread->pid = getpid();
		if (!is_asyncio)
			loop_stall_flush(thread);
	}
	PyErr_Restore(error, value, trace);
}
