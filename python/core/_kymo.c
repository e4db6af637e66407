/*
 * kymo for CPython 3.10 to 3.15: the regions, marks, counters, steps and tables of libkymo under
 * Python names. Arguments of a wrong type raise TypeError, whether recording is on or off; a
 * failure to record never raises.
 *
 * One translation unit in parts, so that entering and leaving a region is fully inlined and the
 * extension exports one symbol. Each part includes those above it:
 *
 *	held.h       open zones of a thread
 *	arguments.h  texts and arguments
 *	region.h     region, phase, decorated functions
 *	rows.h       mark, record, step
 *	table.h      table
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "table.h"

/* ---- on and off, keep --------------------------------------------------------------------- */

PyDoc_STRVAR(enable_doc,
	     "enable($module, /)\n--\n\n"
	     "Starts recording, like KYMO=on. Returns True, or False with a RuntimeWarning if\n"
	     "recording cannot start (KYMO=off, or no room). The program continues either way.");

static PyObject *kymo_py_enable(PyObject *module, PyObject *unused)
{
	struct kymo_error err = { 0 };
	int rc = kymo_enable(&err);

	(void)module, (void)unused;
	/* KYMO=off is the user's choice: no warning. */
	if (rc && rc != -EPERM && PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%s", err.text))
		return NULL;
	return PyBool_FromLong(rc == 0);
}

PyDoc_STRVAR(disable_doc, "disable($module, /)\n--\n\n"
			  "Stops recording. The recording is kept; enable() continues it.");

static PyObject *kymo_py_disable(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	kymo_disable();
	Py_RETURN_NONE;
}

PyDoc_STRVAR(enabled_doc, "enabled($module, /)\n--\n\n"
			  "Returns whether this process is recorded now.");

static PyObject *kymo_py_enabled(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	return PyBool_FromLong(kymo_enabled());
}

PyDoc_STRVAR(directory_doc, "directory($module, /)\n--\n\n"
			    "The directory of this process's part of the recording, or None while "
			    "there is none. Its parent\n"
			    "directory is the recording of all processes.");

static PyObject *kymo_py_directory(PyObject *module, PyObject *unused)
{
	const char *path = kymo_directory();

	(void)module, (void)unused;
	if (!path || !*path)
		Py_RETURN_NONE;
	return PyUnicode_DecodeFSDefault(path);
}

PyDoc_STRVAR(snapshot_doc, "snapshot($module, path, /)\n--\n\n"
			   "Writes the current recording of this process to one file. An existing "
			   "file is replaced\n"
			   "atomically. Raises kymo.Error with the reason on failure.");

static PyObject *kymo_py_snapshot(PyObject *module, PyObject *path)
{
	struct kymo_error err = { 0 };
	PyObject *bytes = NULL;
	int rc;

	if (!PyUnicode_FSConverter(path, &bytes))
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = kymo_snapshot(PyBytes_AS_STRING(bytes), &err);
	Py_END_ALLOW_THREADS Py_DECREF(bytes);
	if (rc)
		return PyErr_Format(region_state_of(module)->error, "%s", err.text);
	Py_RETURN_NONE;
}

/* ---- the module -------------------------------------------------------------------------- */

#define WITH_KEYWORDS(name) \
	{ \
#name, (PyCFunction)(void (*)(void))kymo_py_##name, METH_FASTCALL | METH_KEYWORDS, \
			name##_doc \
	}
#define WITHOUT(name) \
	{ \
#name, kymo_py_##name, METH_NOARGS, name##_doc \
	}
#define WITH_ONE(name) \
	{ \
#name, kymo_py_##name, METH_O, name##_doc \
	}

static PyMethodDef module_methods[] = {
	WITH_ONE(region),	    WITH_ONE(phase),
	WITH_KEYWORDS(mark),	    WITH_KEYWORDS(signpost),
	WITH_KEYWORDS(record),	    WITH_KEYWORDS(step),
	WITH_KEYWORDS(step_end),    WITHOUT(current_step),
	WITH_KEYWORDS(thread_name), WITHOUT(enable),
	WITHOUT(disable),	    WITHOUT(enabled),
	WITHOUT(directory),	    WITH_ONE(snapshot),
	WITH_KEYWORDS(_mark_last),  { NULL },
};

static int _kymo_add_type(PyObject *module, const char *name, PyType_Spec *spec, PyObject **out)
{
	*out = PyType_FromModuleAndSpec(module, spec, NULL);
	return *out ? PyModule_AddObjectRef(module, name, *out) : -1;
}

static int _kymo_module_exec(PyObject *module)
{
	struct module_state *state = region_state_of(module);

	if (held_init()) {
		PyErr_SetString(PyExc_ImportError, "kymo: no thread key or no memory left");
		return -1;
	}
	kymo__poll_promised();
	state->regions = PyDict_New();
	state->error = PyErr_NewExceptionWithDoc(
		"kymo.Error", "The error of a kymo call: what failed, why, and what to do.", NULL,
		NULL);
	if (!state->regions || !state->error ||
	    PyModule_AddObjectRef(module, "Error", state->error) ||
	    _kymo_add_type(module, "Region", &region_spec, &state->region_type) ||
	    _kymo_add_type(module, "Function", &function_spec, &state->function_type) ||
	    _kymo_add_type(module, "Table", &table_spec, &state->table_type) || make_phases(state))
		return -1;
	return PyModule_AddStringConstant(module, "__version__", KYMO_VERSION);
}

static int _kymo_module_traverse(PyObject *module, visitproc visit, void *arg)
{
	struct module_state *state = region_state_of(module);

	Py_VISIT(state->regions);
	for (int i = 0; i < KYMO_PHASE_COUNT; i++)
		Py_VISIT(state->phases[i]);
	Py_VISIT(state->region_type);
	Py_VISIT(state->function_type);
	Py_VISIT(state->table_type);
	Py_VISIT(state->error);
	return 0;
}

static int _kymo_module_clear(PyObject *module)
{
	struct module_state *state = region_state_of(module);

	Py_CLEAR(state->regions);
	for (int i = 0; i < KYMO_PHASE_COUNT; i++)
		Py_CLEAR(state->phases[i]);
	Py_CLEAR(state->region_type);
	Py_CLEAR(state->function_type);
	Py_CLEAR(state->table_type);
	Py_CLEAR(state->error);
	return 0;
}

static PyModuleDef_Slot module_slots[] = {
	{ Py_mod_exec, _kymo_module_exec },
#if PY_VERSION_HEX >= 0x030C0000
	/* One GIL for all interpreters: held.h relies on it. */
	{ Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED },
#endif
	{ 0, NULL },
};

static PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "kymo._kymo",
	.m_doc = "libkymo for Python; import kymo instead.",
	.m_size = sizeof(struct module_state),
	.m_methods = module_methods,
	.m_slots = module_slots,
	.m_traverse = _kymo_module_traverse,
	.m_clear = _kymo_module_clear,
};

PyMODINIT_FUNC PyInit__kymo(void)
{
	return PyModuleDef_Init(&module_def);
}
