/*
 * asyncio tasks as threads of their own. A task gets an entry of the thread table under its name;
 * while one of its steps runs, the thread's rows carry that entry. Depth continues from the event
 * loop, and all rows stay in the thread's one stream, so totals and open zones are unaffected.
 */
#include "trace.h"

#include "../core/text.h"
#include "record/adapter.h"

#define LANES_MAX 4096u /* further tasks share one entry: steps of a thread never overlap */

static PyObject *running_loop; /* a C function of asyncio; NULL: not imported yet */
static PyObject *current_task; /* likewise, from 3.12 on; before, the dict it reads */
static PyObject *lanes; /* int of Task * -> (name, int of the thread entry) */
static uint32_t lane_count, shared_lane;

/* Set in the child of a fork, where objects must not be touched; see tasks_lane_of(). */
static bool forgotten;

void tasks_forget(void)
{
	forgotten = true;
	lane_count = 0;
	shared_lane = 0;
}

#if PY_VERSION_HEX >= 0x030C0000
#define CURRENT "current_task"
#else
#define CURRENT "_current_tasks"
#endif

static PyObject *attribute_of(const char *module, const char *name)
{
	PyObject *modules = PyImport_GetModuleDict();
	PyObject *found = modules ? PyDict_GetItemString(modules, module) : NULL;

	return found ? PyObject_GetAttrString(found, name) : NULL;
}

/* Without asyncio's C code there are no tasks: its Python code would itself be traced. */
static bool ready(void)
{
	if (forgotten && lanes)
		PyDict_Clear(lanes);
	forgotten = false;
	if (current_task)
		return true;
	if (!lanes)
		lanes = PyDict_New();
	Py_XSETREF(running_loop, attribute_of("asyncio.events", "_get_running_loop"));
	if (!lanes || !running_loop || !PyCFunction_Check(running_loop))
		return false;
	current_task = attribute_of("asyncio.tasks", CURRENT);
	if (current_task && !PyCFunction_Check(current_task) && !PyDict_Check(current_task))
		Py_CLEAR(current_task);
	return current_task != NULL;
}

/* NULL or None: no task is running. */
static PyObject *task_take(void)
{
	PyObject *loop = PyObject_CallNoArgs(running_loop);
	PyObject *task = NULL;

	if (loop && loop != Py_None && PyDict_Check(current_task)) {
		task = PyDict_GetItemWithError(current_task, loop);
		Py_XINCREF(task);
	} else if (loop && loop != Py_None) {
		task = PyObject_CallOneArg(current_task, loop);
	}
	Py_XDECREF(loop);
	return task;
}

static uint32_t tasks_lane_make(PyObject *name)
{
	struct text text;
	uint32_t lane = 0;

	if (lane_count >= LANES_MAX) {
		gaps_add(GAP_TASKS, kymo_ticks());
		if (!shared_lane)
			shared_lane = kymo__thread_entry("more tasks");
		return shared_lane;
	}
	if (text_take(name, &text))
		return 0;
	lane = kymo__thread_entry(text.bytes);
	text_release(&text);
	lane_count += lane != 0;
	return lane;
}

/* A new task at a reused address has another name object, because the old one is held here. With
   the same object it is a task of the same name, and may share the entry. */
static uint32_t tasks_lane_of(PyObject *task, PyObject *name)
{
	PyObject *key = PyLong_FromVoidPtr(task);
	PyObject *known = key ? PyDict_GetItemWithError(lanes, key) : NULL;
	PyObject *value;
	uint32_t lane;

	if (known && PyTuple_GET_ITEM(known, 0) == name) {
		lane = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(known, 1));
	} else {
		lane = key ? tasks_lane_make(name) : 0;
		value = lane ? Py_BuildValue("(Ok)", name, (unsigned long)lane) : NULL;
		if (PyDict_GET_SIZE(lanes) > 4 * (Py_ssize_t)LANES_MAX)
			PyDict_Clear(lanes);
		if (value)
			PyDict_SetItem(lanes, key, value);
		Py_XDECREF(value);
	}
	Py_XDECREF(key);
	return lane;
}

uint32_t tasks_current(void)
{
	PyObject *task = NULL, *name = NULL;
	struct error_kept kept;
	uint32_t lane = 0;

	kept = error_keep();
	if (ready())
		task = task_take();
	if (task && task != Py_None)
		name = PyObject_CallMethod(task, "get_name", NULL);
	if (name && PyUnicode_Check(name))
		lane = tasks_lane_of(task, name);
	Py_XDECREF(name);
	Py_XDECREF(task);
	error_back(kept);
	return lane;
}
