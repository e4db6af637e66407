/* Part of _kymo.c: regions as context managers and decorators, and the names of their threads. */
#ifndef KYMO_PYTHON_REGION_H
#define KYMO_PYTHON_REGION_H

#include "arguments.h"
#include "frame.h"
#include "held.h"
#include "poll.h"

#define REGIONS_MAX 65536 /* bounds the memory of programs that generate names */

struct module_state {
	PyObject *regions; /* name -> Region, for kymo.region(name) */
	PyObject *phases[KYMO_PHASE_COUNT];
	PyObject *region_type;
	PyObject *function_type;
	PyObject *table_type;
	PyObject *error; /* kymo.Error */
};

static struct module_state *region_state_of(PyObject *module)
{
	return PyModule_GetState(module);
}

/* ---- threads ----------------------------------------------------------------------------- */

/* Once per thread, before its first row. */
static void introduce_thread(struct holder *holder)
{
	holder->introduced = true;
	text_introduce_thread();
}

static inline void region_ready_thread(void)
{
	struct holder *holder = held_holder();

	if (KYMO__UNLIKELY(holder && !holder->introduced))
		introduce_thread(holder);
}

static const struct signature thread_name_words = { "thread_name", { "name" }, 1, 1 };

PyDoc_STRVAR(
	thread_name_doc,
	"thread_name($module, /, name)\n--\n\n"
	"Names the calling thread in the recording; overrides the name of the threading module.\n\n"
	">>> kymo.thread_name(\"loader\")\n");

static PyObject *kymo_py_thread_name(PyObject *module, PyObject *const *args, Py_ssize_t count,
				     PyObject *keywords)
{
	struct holder *holder = held_holder();
	PyObject *given[WORDS_MAX];

	(void)module;
	if (take_arguments(&thread_name_words, args, count, keywords, given) ||
	    check_text(&thread_name_words, 0, &given[0]))
		return NULL;
	if (holder)
		holder->introduced = true;
	tell_thread_name(given[0]);
	if (PyErr_Occurred())
		return NULL;
	Py_RETURN_NONE;
}

/* ---- regions ----------------------------------------------------------------------------- */

struct region {
	PyObject_HEAD uint32_t id; /* 0 until its first recorded zone */
	int32_t phase; /* enum kymo_phase, or -1 */
	int line;
	PyObject *name;
	PyObject *file; /* NULL: none */
};

static const char *const phase_words[KYMO_PHASE_COUNT] = {
	[KYMO_PHASE_DATA] = "data",
	[KYMO_PHASE_FORWARD] = "forward",
	[KYMO_PHASE_BACKWARD] = "backward",
	[KYMO_PHASE_OPTIMIZER] = "optimizer",
};

static void region_resolve(struct region *region)
{
	struct text name = { 0 }, file = { 0 };

	if (text_take(region->name, &name) || (region->file && text_take(region->file, &file)))
		PyErr_Clear();
	else
		region->id = kymo_name_full(name.bytes, (size_t)name.size, file.bytes,
					    (size_t)file.size, (uint32_t)region->line,
					    KYMO_SOURCE_PYTHON, 0);
	text_release(&name);
	text_release(&file);
}

static inline uint32_t region_py_id(struct region *region)
{
	if (KYMO__UNLIKELY(!region->id))
		region_resolve(region);
	return region->id;
}

static inline void region_enter(struct region *region, struct holder *holder)
{
	struct kymo_zone none = { NULL, 0, 0, 0 };
	bool on = kymo_enabled();
	struct held *held;

	if (KYMO__UNLIKELY(!holder))
		return;
	poll_program(); /* before a slot is taken: it may run code */
	if (KYMO__UNLIKELY(on && !holder->introduced))
		introduce_thread(holder); /* likewise */
	held = held_next(holder);
	if (KYMO__UNLIKELY(!held))
		return;
	held->region = region;
	held->frame = frame_current();
	held->phase = KYMO__LIKELY(region->phase < 0) ? -1 : held_phase(holder, region->phase);
	/* Held while off, too: otherwise an end would match a use that began while recording was
	   on. */
	held->zone = on ? kymo_zone_begin_id(region_py_id(region)) : none;
	holder->count++;
}

static PyObject *region_enter_method(PyObject *self, PyObject *unused)
{
	(void)unused;
	region_enter((struct region *)self, held_holder());
	Py_INCREF(self);
	return self;
}

static PyObject *region_exit_method(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	(void)args, (void)count;
	held_leave(self, frame_current());
	Py_RETURN_NONE; /* an exception propagates */
}

static int region_check(int line, int phase)
{
	if (line < 0)
		PyErr_SetString(PyExc_ValueError, "kymo.Region: line must be 0 or greater");
	else if (phase < -1 || phase >= KYMO_PHASE_COUNT)
		PyErr_SetString(PyExc_ValueError, "kymo.Region: unknown phase");
	else
		return 0;
	return -1;
}

static PyObject *region_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static char *words[] = { "name", "file", "line", "phase", NULL };
	PyObject *name, *file = Py_None;
	int line = 0, phase = -1;
	struct region *region;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|Oii:Region", words, &name, &file, &line,
					 &phase) ||
	    region_check(line, phase))
		return NULL;
	if (file != Py_None && !PyUnicode_Check(file)) {
		PyErr_Format(PyExc_TypeError, "kymo.Region: file takes a str or None, not %.100s",
			     Py_TYPE(file)->tp_name);
		return NULL;
	}
	region = (struct region *)type->tp_alloc(type, 0);
	if (!region)
		return NULL;
	region->phase = phase;
	region->line = line;
	Py_INCREF(name);
	region->name = name;
	if (file != Py_None) {
		Py_INCREF(file);
		region->file = file;
	}
	return (PyObject *)region;
}

static void region_dealloc(PyObject *self)
{
	struct region *region = (struct region *)self;
	PyTypeObject *type = Py_TYPE(self);

	Py_CLEAR(region->name);
	Py_CLEAR(region->file);
	type->tp_free(self);
	Py_DECREF(type);
}

/* Python code handles decoration: there are five kinds of functions, and it happens once. */
static PyObject *decorate(const char *how, PyObject *first, PyObject *second)
{
	PyObject *module = PyImport_ImportModule("kymo._decorate");
	PyObject *result = NULL;

	if (module)
		result = PyObject_CallMethod(module, how, second ? "OO" : "O", first, second);
	Py_XDECREF(module);
	return result;
}

static PyObject *region_call(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *words[] = { "function", NULL };
	PyObject *function;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:Region", words, &function))
		return NULL;
	return decorate("decorate", self, function);
}

static PyObject *region_repr(PyObject *self)
{
	struct region *region = (struct region *)self;

	if (region->phase >= 0)
		return PyUnicode_FromFormat("kymo.phase(%R)", region->name);
	return PyUnicode_FromFormat("kymo.region(%R)", region->name);
}

static PyObject *region_reduce(PyObject *self, PyObject *unused)
{
	struct region *region = (struct region *)self;

	(void)unused;
	return Py_BuildValue("O(OOii)", Py_TYPE(self), region->name,
			     region->file ? region->file : Py_None, region->line,
			     (int)region->phase);
}

PyDoc_STRVAR(region_type_doc, "Region(name, file=None, line=0, phase=-1)\n--\n\n"
			      "A named region of code: a context manager and a decorator. One "
			      "object serves any number of\n"
			      "uses at once, in threads, recursion, generators and tasks. Create "
			      "it with kymo.region() or kymo.phase().");

static PyMethodDef region_methods[] = {
	{ "__enter__", region_enter_method, METH_NOARGS, "Begins a zone of this region." },
	{ "__exit__", (PyCFunction)(void (*)(void))region_exit_method, METH_FASTCALL,
	  "Ends the zone; exceptions propagate." },
	{ "__reduce__", region_reduce, METH_NOARGS, NULL },
	{ NULL },
};

static PyMemberDef region_members[] = {
	{ "name", T_OBJECT_EX, offsetof(struct region, name), READONLY, "as it is recorded" },
	{ "file", T_OBJECT, offsetof(struct region, file), READONLY, "where it is, or None" },
	{ "line", T_INT, offsetof(struct region, line), READONLY, "where it is, or 0" },
	{ "phase", T_INT, offsetof(struct region, phase), READONLY,
	  "which phase of a step, or -1" },
	{ NULL },
};

static PyType_Slot region_slots[] = {
	{ Py_tp_doc, (void *)region_type_doc },
	{ Py_tp_new, region_new },
	{ Py_tp_dealloc, region_dealloc },
	{ Py_tp_call, region_call },
	{ Py_tp_repr, region_repr },
	{ Py_tp_methods, region_methods },
	{ Py_tp_members, region_members },
	{ 0, NULL },
};

static PyType_Spec region_spec = {
	.name = "kymo.Region",
	.basicsize = sizeof(struct region),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = region_slots,
};

/* For a new name: the first caller is the region's place in the source. */
static PyObject *region_here(struct module_state *state, PyObject *name)
{
	PyFrameObject *frame = PyEval_GetFrame();
	PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
	PyObject *region;

	if (!code)
		return PyObject_CallOneArg(state->region_type, name);
	region = PyObject_CallFunction(state->region_type, "OOi", name, code->co_filename,
				       PyFrame_GetLineNumber(frame));
	Py_DECREF(code);
	return region;
}

/* The Region of a name, borrowed. */
static PyObject *region_named(struct module_state *state, PyObject *name)
{
	PyObject *region = PyDict_GetItemWithError(state->regions, name);

	if (KYMO__LIKELY(region != NULL) || PyErr_Occurred())
		return region;
	if (PyDict_GET_SIZE(state->regions) >= REGIONS_MAX)
		PyDict_Clear(state->regions);
	region = region_here(state, name);
	if (!region)
		return NULL;
	if (PyDict_SetItem(state->regions, name, region))
		Py_CLEAR(region);
	else
		Py_DECREF(region); /* owned by the dict */
	return region;
}

PyDoc_STRVAR(region_doc,
	     "region($module, name, /)\n--\n\n"
	     "The region of a name, as context manager and decorator. As a decorator without a "
	     "name,\n"
	     "it uses the function's name.\n\n"
	     ">>> with kymo.region(\"load\"):\n"
	     "...     sum(range(10))\n"
	     "45\n"
	     ">>> @kymo.region(\"double\")\n"
	     "... def double(x):\n"
	     "...     return 2 * x\n"
	     ">>> double(4)\n"
	     "8\n"
	     ">>> @kymo.region\n"
	     "... def triple(x):\n"
	     "...     return 3 * x\n"
	     ">>> triple(4)\n"
	     "12\n\n"
	     "A name always gives the same object; its place in the source is the first call with "
	     "that name.\n"
	     "For a generator or an `async def`, a zone lasts from the first step to the end, "
	     "waits included.\n"
	     "Each zone is a row of trace.zones; trace.regions has the exact totals.");

static PyObject *kymo_py_region(PyObject *module, PyObject *name)
{
	PyObject *region;

	if (!PyUnicode_Check(name))
		return decorate("decorate_bare", name, NULL);
	region = region_named(region_state_of(module), name);
	Py_XINCREF(region);
	return region;
}

/* ---- decorated functions ------------------------------------------------------------------ */

/* A plain function inside a region: each call is a zone, without a frame of its own in
   tracebacks. */
struct function {
	PyObject_HEAD vectorcallfunc vectorcall;
	struct region *region;
	PyObject *callable;
	PyObject *dict;
	PyObject *weakrefs;
};

/*
 * 3.12 and 3.13 count calls through C and allow fewer of them than Python's own limit, so a
 * decorated function could recurse less deep than a plain one. The stack has been checked, so ours
 * need not count.
 */
static inline void allow_c_calls(int calls)
{
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
	PyThreadState_Get()->c_recursion_remaining += calls;
#else
	(void)calls;
#endif
}

#define CALLS_OF_A_FRAME 2 /* PY_EVAL_C_STACK_UNITS, which no header declares */

static PyObject *function_vectorcall(PyObject *self, PyObject *const *args, size_t count,
				     PyObject *keywords)
{
	struct function *function = (struct function *)self;
	struct holder *holder = held_holder();
	PyObject *result;

	if (KYMO__UNLIKELY(holder && held_stack_is_short(holder))) {
		PyErr_SetString(PyExc_RecursionError,
				"calls of a function decorated by kymo.region are nested too deep "
				"for this thread's "
				"stack; use `with kymo.region(...)` inside the function instead");
		return NULL;
	}
	region_enter(function->region, holder);
	allow_c_calls(CALLS_OF_A_FRAME);
	result = PyObject_Vectorcall(function->callable, args, count, keywords);
	allow_c_calls(-CALLS_OF_A_FRAME);
	held_leave(function->region, frame_current());
	return result;
}

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	struct function *function;
	PyObject *region, *callable;

	if (keywords && PyDict_GET_SIZE(keywords)) {
		PyErr_SetString(PyExc_TypeError, "kymo.Function takes no keywords");
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "OO:Function", &region, &callable))
		return NULL;
	if (Py_TYPE(region)->tp_new != region_new || !PyCallable_Check(callable)) {
		PyErr_SetString(PyExc_TypeError, "kymo.Function takes a Region and a callable");
		return NULL;
	}
	function = (struct function *)type->tp_alloc(type, 0);
	if (!function)
		return NULL;
	Py_INCREF(region);
	Py_INCREF(callable);
	function->vectorcall = function_vectorcall;
	function->region = (struct region *)region;
	function->callable = callable;
	return (PyObject *)function;
}

static int function_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct function *function = (struct function *)self;

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(function->region);
	Py_VISIT(function->callable);
	Py_VISIT(function->dict);
	return 0;
}

static int function_clear(PyObject *self)
{
	struct function *function = (struct function *)self;

	Py_CLEAR(function->dict);
	/* the other members are never NULL while it can be called; dict breaks a cycle through the
	   callable */
	return 0;
}

static void function_dealloc(PyObject *self)
{
	struct function *function = (struct function *)self;
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	if (function->weakrefs)
		PyObject_ClearWeakRefs(self);
	Py_CLEAR(function->dict);
	Py_CLEAR(function->region);
	Py_CLEAR(function->callable);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyObject *function_get(PyObject *self, PyObject *instance, PyObject *owner)
{
	(void)owner;
	if (instance && instance != Py_None)
		return PyMethod_New(self, instance);
	Py_INCREF(self);
	return self;
}

static PyObject *function_repr(PyObject *self)
{
	struct function *function = (struct function *)self;

	return PyUnicode_FromFormat("<%R of %R>", function->region, function->callable);
}

/* By name, as functions are. */
static PyObject *function_reduce(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *function_copy(PyObject *self, PyObject *unused)
{
	(void)unused;
	Py_INCREF(self);
	return self;
}

static PyMethodDef function_methods[] = {
	{ "__reduce__", function_reduce, METH_NOARGS, NULL },
	{ "__copy__", function_copy, METH_NOARGS, NULL },
	{ "__deepcopy__", function_copy, METH_O, NULL },
	{ NULL },
};

static PyMemberDef function_members[] = {
	{ "__vectorcalloffset__", T_PYSSIZET, offsetof(struct function, vectorcall), READONLY },
	{ "__dictoffset__", T_PYSSIZET, offsetof(struct function, dict), READONLY },
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct function, weakrefs), READONLY },
	{ NULL },
};

static PyGetSetDef function_getset[] = {
	{ "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict },
	{ NULL },
};

static PyType_Slot function_slots[] = {
	{ Py_tp_doc,
	  "Function(region, callable)\n--\n\nA function whose calls are zones of a region." },
	{ Py_tp_new, function_new },
	{ Py_tp_dealloc, function_dealloc },
	{ Py_tp_traverse, function_traverse },
	{ Py_tp_clear, function_clear },
	{ Py_tp_call, PyVectorcall_Call },
	{ Py_tp_descr_get, function_get },
	{ Py_tp_repr, function_repr },
	{ Py_tp_methods, function_methods },
	{ Py_tp_members, function_members },
	{ Py_tp_getset, function_getset },
	{ 0, NULL },
};

static PyType_Spec function_spec = {
	.name = "kymo.Function",
	.basicsize = sizeof(struct function),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
		 Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = function_slots,
};

#endif
