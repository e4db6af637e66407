/*
 * sitecustomize: what python/kymo/_inject/sitecustomize.py does, without compiling or reading a
 * line of Python. Each Python below `kymo run` loads it, however short it is, so it imports only
 * built-in modules, makes no recording, and loads the rest of kymo when torch is imported or an
 * exception ended the program. Settings that are not those of plain `kymo run` are left to
 * _auto.py. Python prefers this file to the .py beside it, which is for versions without an
 * extension.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of gc.c and the folder loop, which are part of this library. */
PyMODINIT_FUNC PyInit__gc(void);
PyMODINIT_FUNC PyInit__loop(void);
void loop_uvloop_look(void);

/* ---- the rest of kymo ---------------------------------------------------------------------- */

/* Calls function of the module; a new reference, NULL and an exception. */
static PyObject *call_module(const char *module_name, const char *function, PyObject *args)
{
	PyObject *module = PyImport_ImportModule(module_name);
	PyObject *callee = module ? PyObject_GetAttrString(module, function) : NULL;
	PyObject *result = callee && args ? PyObject_CallObject(callee, args) : NULL;

	Py_XDECREF(module);
	Py_XDECREF(callee);
	Py_XDECREF(args);
	return result;
}

/* Loads PACKAGE/_auto.py as kymo._auto, as sitecustomize.py does. */
static PyObject *load_auto(PyObject *package)
{
	PyObject *loaded = PyDict_GetItemString(PyImport_GetModuleDict(), "kymo._auto"), *spec;

	if (loaded)
		return Py_NewRef(loaded);
	spec = call_module(
		"_frozen_importlib_external", "spec_from_file_location",
		Py_BuildValue("(sN)", "kymo._auto", PyUnicode_FromFormat("%U/_auto.py", package)));
	return spec ? call_module("_frozen_importlib", "_load", Py_BuildValue("(N)", spec)) : NULL;
}

static PyObject *call_auto(PyObject *package, const char *method, PyObject *args)
{
	PyObject *module = load_auto(package);
	PyObject *callee = module ? PyObject_GetAttrString(module, method) : NULL;
	PyObject *result = callee ? PyObject_CallObject(callee, args) : NULL;

	Py_XDECREF(module);
	Py_XDECREF(callee);
	return result;
}

/* ---- torch, JAX and trainers ---------------------------------------------------------------- */

/* The first of sys.meta_path until torch is imported; the class _Waiter of _torch_auto.py takes
   its place then. At an import of JAX that of _jax_auto.py comes before it, at one of a trainer
   that of _trainers_auto.py. */
struct waiter {
	PyObject_HEAD PyObject *package;
};

static bool waiter_is_trainer(PyObject *name)
{
	static const char *const trainers[] = { "transformers",	     "accelerate", "lightning",
						"pytorch_lightning", "deepspeed",  "ray" };

	for (size_t i = 0; i < sizeof(trainers) / sizeof(trainers[0]); i++)
		if (!PyUnicode_CompareWithASCIIString(name, trainers[i]))
			return true;
	return false;
}

static PyObject *waiter_find_spec(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = { "name", "path", "target", NULL };
	PyObject *name = NULL, *path = Py_None, *target = Py_None, *all, *spec;
	const char *finder;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OO", names, &name, &path, &target))
		return NULL;
	loop_uvloop_look(); /* at the import after it, which its own package makes */
	finder = !PyUnicode_Check(name)				    ? NULL
		 : !PyUnicode_CompareWithASCIIString(name, "torch") ? "find_torch"
		 : !PyUnicode_CompareWithASCIIString(name, "jax")   ? "find_jax"
								    : NULL;
	if (!finder && !(PyUnicode_Check(name) && waiter_is_trainer(name)))
		Py_RETURN_NONE;
	all = finder ? PyTuple_Pack(3, self, path, target) : PyTuple_New(0);
	spec = all ? call_auto(((struct waiter *)self)->package, finder ? finder : "arm_trainers",
			       all)
		   : NULL;
	Py_XDECREF(all);
	if (spec)
		return spec;
	PyErr_Clear();
	Py_RETURN_NONE;
}

static void waiter_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	Py_XDECREF(((struct waiter *)self)->package);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyMethodDef waiter_methods[] = {
	{ "find_spec", (PyCFunction)(void (*)(void))waiter_find_spec, METH_VARARGS | METH_KEYWORDS,
	  NULL },
	{ NULL },
};

static PyType_Slot waiter_slots[] = {
	{ Py_tp_methods, waiter_methods },
	{ Py_tp_dealloc, waiter_free },
	{ 0, NULL },
};

static PyType_Spec waiter_spec = {
	.name = "kymo._inject.TorchWaiter", /* _torch_auto.py knows it by this name */
	.basicsize = sizeof(struct waiter),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = waiter_slots,
};

static int wait_for_torch(PyObject *package)
{
	PyObject *finders = PySys_GetObject("meta_path"); /* borrowed */
	PyObject *type = PyType_FromSpec(&waiter_spec);
	struct waiter *waiter = type ? PyObject_New(struct waiter, (PyTypeObject *)type) : NULL;
	int rc = -1;

	Py_XDECREF(type);
	if (!waiter)
		return -1;
	waiter->package = Py_NewRef(package);
	if (finders && PyList_Check(finders))
		rc = PyList_Insert(finders, 0, (PyObject *)waiter);
	Py_DECREF(waiter);
	return rc;
}

/* Calls a function of a module that make_module() has made. */
static PyObject *call_made(const char *module_name, const char *function)
{
	PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(),
						module_name); /* borrowed */

	return module ? PyObject_CallMethod(module, function, NULL) : NULL;
}

static PyObject *call_gc(const char *function)
{
	return call_made("kymo._gc", function);
}

/* ---- an uncaught exception ----------------------------------------------------------------- */

/* At exit. self: the folder of the package. */
static PyObject *failure_at_exit(PyObject *self, PyObject *unused)
{
	PyObject *error = PySys_GetObject("last_value"), *done; /* borrowed */

	(void)unused;
	done = call_made("kymo._loop", "flush");
	Py_XDECREF(done);
	PyErr_Clear();
	if (error && PyExceptionInstance_Check(error)) {
		/* The traceback of a MemoryError holds what has used up the memory. */
		Py_XDECREF(call_gc("give_room"));
		PyErr_Clear();
		done = call_auto(self, "note_failure_once", NULL);
		Py_XDECREF(done);
		PyErr_Clear(); /* the program has failed already and reports it itself */
	}
	Py_RETURN_NONE;
}

static PyMethodDef failure_def = { "kymo_failure", failure_at_exit, METH_NOARGS, NULL };

static int note_at_exit(PyObject *package)
{
	PyObject *done = call_module("atexit", "register",
				     Py_BuildValue("(N)", PyCFunction_New(&failure_def, package)));

	Py_XDECREF(done);
	return done ? 0 : -1;
}

/* ---- garbage collections ------------------------------------------------------------------- */

/* A module out of this library: opening another would take longer than all the rest. init: of a
   module of two phases. */
static PyObject *make_module(const char *name, PyObject *(*init)(void))
{
	PyModuleDef *definition = (PyModuleDef *)init();
	PyObject *spec = call_module("_frozen_importlib", "ModuleSpec",
				     Py_BuildValue("(sO)", name, Py_None));
	PyObject *module = spec ? PyModule_FromDefAndSpec(definition, spec) : NULL;

	if (module && (PyModule_ExecDef(module, definition) ||
		       PyObject_SetAttrString(module, "__spec__", spec) ||
		       PyDict_SetItemString(PyImport_GetModuleDict(), name, module)))
		Py_CLEAR(module);
	Py_XDECREF(spec);
	return module;
}

static bool env_is(const char *name, const char *word)
{
	const char *value = getenv(name);

	return value && !strcmp(value, word);
}

static int start_gc(void)
{
	PyObject *module = make_module("kymo._gc", PyInit__gc);
	PyObject *done = module ? call_gc("keep_room") : NULL;

	Py_XDECREF(module);
	Py_XDECREF(done);
	if (done && env_is("KYMO_GC", "on")) {
		done = call_gc("arm");
		Py_XDECREF(done);
	}
	return done ? 0 : -1;
}

/* ---- event loops --------------------------------------------------------------------------- */

static int start_loops(void)
{
	PyObject *module = make_module("kymo._loop", PyInit__loop);
	PyObject *done = module ? call_made("kymo._loop", "arm") : NULL;

	Py_XDECREF(module);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

/* ---- the start ----------------------------------------------------------------------------- */

/* Other words are left to _auto.py, which reports the wrong ones. */
static bool env_is_switch(const char *name)
{
	return !getenv(name) || env_is(name, "on") || env_is(name, "off");
}

/* As plain `kymo run` sets the environment. */
static bool is_plain(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return env_is("KYMO", "on") && env_is_switch("KYMO_GC") && env_is_switch("KYMO_TORCH") &&
	       !getenv("KYMO_PYTHON") && !getenv("KYMO_MEMORY") &&
	       !getenv("PROBING_TORCH_PROFILING") &&
	       !(preloaded && strstr(preloaded, "libkymo_memory")) &&
	       !PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
}

static int start_plain(PyObject *package)
{
	int rc = note_at_exit(package);

	if (!rc)
		rc = start_gc();
	if (!rc)
		rc = start_loops();
	if (!rc && env_is("KYMO_TORCH", "on"))
		rc = wait_for_torch(package);
	return rc;
}

/* Without using sys.stderr, which belongs to the program. */
static void say_failed(PyObject *error)
{
	PyObject *text = error ? PyObject_Str(error) : NULL;
	const char *words = text ? PyUnicode_AsUTF8(text) : NULL;
	const char *quiet = getenv("KYMO_QUIET");

	if (!quiet || !*quiet || !strcmp(quiet, "0"))
		dprintf(STDERR_FILENO, "kymo: Python calls are not recorded: %s\n",
			words ? words : "out of memory");
	Py_XDECREF(text);
	PyErr_Clear();
}

static void inject_start(PyObject *package)
{
	PyObject *done, *type, *value, *trace;

	if (PyDict_GetItemString(PyImport_GetModuleDict(), "kymo._auto"))
		return; /* started by the .pth file of an installed kymo */
	if (is_plain() && !start_plain(package))
		return;
	PyErr_Clear();
	done = call_auto(package, "start", NULL); /* repeated parts have no effect */
	if (!done) {
		PyErr_Fetch(&type, &value, &trace);
		say_failed(value);
		Py_XDECREF(type);
		Py_XDECREF(value);
		Py_XDECREF(trace);
	}
	Py_XDECREF(done);
}

/* Leaves sys.path and the import caches: the next `import sitecustomize` finds the user's own. */
static void leave_path(PyObject *here)
{
	PyObject *path = PySys_GetObject("path"), *cache = PySys_GetObject("path_importer_cache");
	PyObject *modules = PyImport_GetModuleDict();

	for (Py_ssize_t i = path && PyList_Check(path) ? PyList_GET_SIZE(path) : 0; i-- > 0;)
		if (PyObject_RichCompareBool(PyList_GET_ITEM(path, i), here, Py_EQ) == 1)
			PyList_SetSlice(path, i, i + 1, NULL);
	if (cache && PyDict_Check(cache) && PyDict_GetItem(cache, here))
		PyDict_DelItem(cache, here);
	if (PyDict_GetItemString(modules, "sitecustomize"))
		PyDict_DelItemString(modules, "sitecustomize");
	PyErr_Clear();
}

/* The text up to the last slash; a new reference. */
static PyObject *inject_folder(PyObject *path)
{
	Py_ssize_t at = path && PyUnicode_Check(path)
				? PyUnicode_FindChar(path, '/', 0, PyUnicode_GET_LENGTH(path), -1)
				: -1;

	return at < 0 ? NULL : PyUnicode_Substring(path, 0, at);
}

static int inject_begin(PyObject *module)
{
	PyObject *file = PyObject_GetAttrString(module, "__file__");
	PyObject *here = inject_folder(file), *package = inject_folder(here);
	PyObject *theirs, *type, *value, *trace;

	PyErr_Clear();
	if (here && package)
		leave_path(here);
	/* Python expects the ImportError if there is none. */
	theirs = here && package ? PyImport_ImportModule("sitecustomize") : Py_NewRef(module);
	PyErr_Fetch(&type, &value, &trace);
	if (package)
		inject_start(package);
	PyErr_Restore(type, value, trace);
	Py_XDECREF(file);
	Py_XDECREF(here);
	Py_XDECREF(package);
	Py_XDECREF(theirs);
	return theirs ? 0 : -1;
}

static PyModuleDef_Slot inject_slots[] = {
	{ Py_mod_exec, inject_begin },
#if PY_VERSION_HEX >= 0x030C0000
	{ Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED },
#endif
	{ 0, NULL },
};

static PyModuleDef inject_definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "sitecustomize",
	.m_doc = "Starts kymo in this Python and then removes its own traces.",
	.m_slots = inject_slots,
};

PyMODINIT_FUNC PyInit_sitecustomize(void)
{
	return PyModuleDef_Init(&inject_definition);
}
