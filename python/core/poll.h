/*
 * Applies the requests of `kymo config`: in calls from Python, with the GIL and outside of signal
 * handlers, where modules may be loaded. For all extensions of kymo.
 */
#ifndef KYMO_PYTHON_POLL_H
#define KYMO_PYTHON_POLL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "record/adapter.h"

/* Loads the extension that resolves Python lines first; without it there are only C functions.
   Saves and restores the program's own exception. */
static inline void poll_load(void)
{
	PyObject *kind, *value, *trace, *module, *loaded = NULL;

	PyErr_Fetch(&kind, &value, &trace);
	module = PyImport_ImportModule("kymo._auto");
	if (module)
		loaded = PyObject_CallMethod(module, "extension", "s", "_memory");
	Py_XDECREF(loaded);
	Py_XDECREF(module);
	PyErr_Restore(kind, value, trace);
}

static inline void poll_now(void)
{
	static bool loaded; /* guarded by the GIL */

	if (!loaded) {
		loaded = true;
		poll_load();
	}
	kymo_poll();
}

/* Two loads if there is nothing to do. */
static inline void poll_program(void)
{
	if (KYMO__UNLIKELY(kymo__memory_wanted(kymo__is_on(UINT32_MAX)) != kymo__memory_followed))
		poll_now();
}

#endif
