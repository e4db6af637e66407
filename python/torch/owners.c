/*
 * The owner of a module that no other module calls: a LightningModule, whose training_step() calls
 * self.head(x), is never called itself. It is searched among the variables of the running calls,
 * from the innermost outwards: their arguments and other locals, then their globals. So it is found
 * whether it was made before recording began, was copied, or was loaded from a file, and a call of
 * a known module costs nothing more. No code of the program runs, and nothing is kept.
 */
#include <string.h>

#include "torch.h"

#include <frameobject.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

#define FRAMES_MOST 64
#define VALUES_MOST 20000 /* variables looked at for one module */
#define MODULES_MOST 100000 /* modules in these: a few ms */

/* What searches that find nothing may look at in all. A program that makes a module for each call
   and has no owner for it would pay for a search each time. */
#define PATIENCE 300000

struct hunt {
	PyObject *module;
	PyTypeObject *base; /* nn.Module */
	PyObject *owner; /* a reference, or NULL */
	int modules, values; /* budgets */
};

/* ---- variables of a frame ---- */

#if PY_VERSION_HEX >= 0x030B0000
static int variable_count(const PyCodeObject *code)
{
	return code->co_nlocalsplus;
}
#else
static int variable_count(const PyCodeObject *code)
{
	return code->co_nlocals + (int)PyTuple_GET_SIZE(code->co_cellvars) +
	       (int)PyTuple_GET_SIZE(code->co_freevars);
}
#endif

/* A new reference, or NULL without an exception: it has no value. */
static PyObject *variable_at(PyFrameObject *frame, PyCodeObject *code, int i)
{
#if PY_VERSION_HEX >= 0x030C0000
	PyObject *value = PyFrame_GetVar(frame, PyTuple_GET_ITEM(code->co_localsplusnames, i));

	PyErr_Clear();
	return value;
#else
#if PY_VERSION_HEX >= 0x030B0000
	PyObject *value = frame->f_frame->localsplus[i];
#else
	PyObject *value = frame->f_localsplus[i];
#endif

	(void)code;
	if (value && PyCell_Check(value))
		value = PyCell_GET(value);
	Py_XINCREF(value);
	return value;
#endif
}

static PyObject *globals_of(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
	return PyFrame_GetGlobals(frame);
#else
	return Py_XNewRef(frame->f_globals);
#endif
}

/* ---- the search ---- */

/* nn.Module: the last class of that name in the order of its classes. */
static PyTypeObject *base_of(PyObject *module)
{
	PyObject *order = Py_TYPE(module)->tp_mro;

	for (Py_ssize_t i = order ? PyTuple_GET_SIZE(order) : 0; i-- > 0;) {
		PyTypeObject *type = (PyTypeObject *)PyTuple_GET_ITEM(order, i);

		if (!strcmp(type->tp_name, "Module"))
			return type;
	}
	return NULL;
}

/* "0" in a list of modules says less than the class. */
static bool is_mere_list(PyObject *module)
{
	const char *name = Py_TYPE(module)->tp_name;

	return !strcmp(name, "ModuleList") || !strcmp(name, "ModuleDict") ||
	       !strcmp(name, "Sequential");
}

/* Takes it as the owner if it contains the module and the owner found so far, and is more than a
   wrapper of it. */
static void consider(struct hunt *hunt, PyObject *value)
{
	PyObject *inner = hunt->owner ? hunt->owner : hunt->module;
	char path[PATH_BYTES] = "";
	int budget = PATHS_BUDGET;

	hunt->values--;
	if (value == inner || value == hunt->module ||
	    !PyType_IsSubtype(Py_TYPE(value), hunt->base) || is_mere_list(value))
		return;
	if (!paths_hold(value, inner, PATHS_DEPTH, &hunt->modules) ||
	    !paths_find(value, inner, &budget, path) || !path[0])
		return;
	Py_INCREF(value);
	Py_XDECREF(hunt->owner);
	hunt->owner = value;
}

static void consider_locals(struct hunt *hunt, PyFrameObject *frame)
{
	PyCodeObject *code = PyFrame_GetCode(frame);

	for (int i = 0; i < variable_count(code) && hunt->values > 0; i++) {
		PyObject *value = variable_at(frame, code, i);

		if (value)
			consider(hunt, value);
		Py_XDECREF(value);
	}
	Py_DECREF(code);
}

static void consider_globals(struct hunt *hunt, PyObject *globals)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	while (hunt->values > 0 && PyDict_Next(globals, &at, &key, &value))
		consider(hunt, value);
}

/* Neighbouring frames are often of one file: its globals are looked at once. */
static void consider_frames(struct hunt *hunt)
{
	PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get()), *back;
	PyObject *last = NULL, *globals; /* last: for comparison only */

	for (int i = 0; frame && i < FRAMES_MOST && hunt->values > 0 && hunt->modules > 0; i++) {
		consider_locals(hunt, frame);
		globals = globals_of(frame);
		if (globals && globals != last && PyDict_Check(globals))
			consider_globals(hunt, globals);
		last = globals;
		Py_XDECREF(globals); /* the frame holds a reference */
		back = PyFrame_GetBack(frame);
		Py_DECREF(frame);
		frame = back;
	}
	Py_XDECREF(frame);
}

PyObject *owners_find(PyObject *module)
{
	static int patience = PATIENCE;
	struct hunt hunt = { .module = module,
			     .base = base_of(module),
			     .modules = MODULES_MOST,
			     .values = VALUES_MOST };
	PyObject *kind, *error, *trace;

	if (!hunt.base || patience <= 0)
		return NULL;
	PyErr_Fetch(&kind, &error, &trace);
	consider_frames(&hunt);
	PyErr_Restore(kind, error, trace);
	if (!hunt.owner)
		patience -= (MODULES_MOST - hunt.modules) + (VALUES_MOST - hunt.values);
	return hunt.owner;
}
