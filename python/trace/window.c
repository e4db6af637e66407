/*
 * The window of --skip and --take, --from and --to. libkymo reports each step and mark, made by
 * Python, C or torch. The reporting thread may not be a Python thread, and it must never wait for
 * the GIL (its holder may wait for that thread). So the state is atomic, and its effect is applied
 * at once by a thread that has the GIL, else soon by Python's main thread.
 */
#include <string.h>

#include <kymo/atomic.h>

#include "trace.h"

#include "record/record.h"

enum state { BEFORE, INSIDE, AFTER };

static struct window {
	PyObject *change; /* called with True and False; owned */
	bool of_steps;
	uint64_t skip, take; /* take 0: to the end */
	char *from, *to; /* NULL: from the start, to the end */
	/* Atomic, from here on. */
	uint64_t begun;
	uint32_t state;
} window;
static bool is_on; /* the last argument of `change`; guarded by the GIL */

static bool has_gil(void)
{
	PyThreadState *mine = PyGILState_GetThisThreadState();

#if PY_VERSION_HEX >= 0x030D0000
	return mine && mine == PyThreadState_GetUnchecked();
#else
	return mine && mine == _PyThreadState_UncheckedGet();
#endif
}

static int window_follow(void *unused)
{
	bool wanted = kymo__load_acquire(&window.state) == INSIDE;
	struct error_kept kept = error_keep();
	PyObject *done;

	(void)unused;
	if (window.change && wanted != is_on) {
		is_on = wanted;
		done = PyObject_CallFunction(window.change, "O", wanted ? Py_True : Py_False);
		Py_XDECREF(done);
	}
	error_back(kept);
	return 0;
}

static bool move(enum state from, enum state to)
{
	uint32_t expected = from;

	if (!kymo__cas_acq_rel(&window.state, &expected, to))
		return false;
	if (Py_IsInitialized() && has_gil())
		window_follow(NULL);
	else if (Py_IsInitialized())
		Py_AddPendingCall(window_follow, NULL);
	return true;
}

static void window_look(bool begins, bool ends)
{
	if (!(ends && move(INSIDE, AFTER)) && begins)
		move(BEFORE, INSIDE);
}

static void step_moment(enum kymo__moment what)
{
	bool began = what == KYMO__STEP_BEGAN;
	uint64_t begun = kymo__add_fetch_relaxed(&window.begun, began);
	uint64_t last = window.skip + window.take;

	window_look(began && begun > window.skip, window.take && begun + !began > last);
}

static bool is_called(const char *wanted, const char *name)
{
	return wanted && name && !strcmp(wanted, name);
}

static void on_moment(enum kymo__moment what, const char *name)
{
	if (window.of_steps && what != KYMO__MARKED)
		step_moment(what);
	else if (!window.of_steps && what == KYMO__MARKED)
		window_look(is_called(window.from, name), is_called(window.to, name));
}

static char *copy_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* window(change, skip, take, from, to): the values of the command line; None if not given. */
PyObject *window_open(PyObject *module, PyObject *args)
{
	PyObject *change, *skip, *take;
	const char *from, *to;

	(void)module;
	if (!PyArg_ParseTuple(args, "OOOzz:window", &change, &skip, &take, &from, &to))
		return NULL;
	if (window.change)
		Py_RETURN_NONE; /* already open */
	window.of_steps = skip != Py_None || take != Py_None;
	window.skip = skip == Py_None ? 0 : PyLong_AsUnsignedLongLong(skip);
	window.take = take == Py_None ? 0 : PyLong_AsUnsignedLongLong(take);
	if (PyErr_Occurred())
		return NULL;
	window.from = copy_of(from);
	window.to = copy_of(to);
	window.change = Py_NewRef(change);
	kymo__on_moment(on_moment);
	window_look(!window.of_steps && !window.from, false);
	window_follow(NULL); /* since 3.15 Py_IsInitialized() is false while site is imported */
	Py_RETURN_NONE;
}

/* At Python's end: C code may still make steps. */
PyObject *window_close(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	kymo__on_moment(NULL);
	Py_RETURN_NONE;
}
