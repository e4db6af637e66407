/*
 * jax.profiler.TraceAnnotation and StepTraceAnnotation. Their class gets three methods of kymo,
 * which call those that it inherits: the program gets every result and exception as before. Names
 * are kept in the objects' __dict__, since the original has no way to read them. Annotations are
 * regions: generators and executors end them out of order.
 */
#include <string.h>

#include "jax.h"

#define NAMES_MAX 4096 /* further ones have # in the place of digits */
#define KEY "_kymo"
#define STACK_MAX 16

static struct {
	PyObject *step_type;
	PyObject *init, *enter, *leave; /* as the class inherits them */
	PyObject *names; /* a set */
	PyObject *key;
} borrowed;

static __thread uint32_t open_count; /* annotations of this thread */

PyObject *jax_call(PyObject *method, PyObject *self, PyObject *const *args, Py_ssize_t count,
		   PyObject *keywords)
{
	Py_ssize_t all = count + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
	PyObject *few[STACK_MAX], **stack = few, *result;

	if (all >= STACK_MAX)
		stack = PyMem_New(PyObject *, (size_t)all + 1);
	if (!stack)
		return PyErr_NoMemory();
	stack[0] = self;
	if (all)
		memcpy(stack + 1, args, (size_t)all * sizeof(*args));
	result = PyObject_Vectorcall(method, stack, (size_t)count + 1, keywords);
	if (stack != few)
		PyMem_Free(stack);
	return result;
}

int jax_replace(PyObject *type, PyMethodDef *method, PyObject **out_old)
{
	PyObject *ours = NULL, *old = PyObject_GetAttrString(type, method->ml_name);
	int rc;

	if (!old)
		return -1;
	if (PyType_Check(type))
		ours = PyDescr_NewMethod((PyTypeObject *)type, method);
	if (ours)
		*out_old = Py_NewRef(old); /* before the first call of the new one */
	rc = ours ? PyObject_SetAttrString(type, method->ml_name, ours) : -1;
	Py_XDECREF(ours);
	Py_DECREF(old);
	return rc;
}

/* ---- marks --------------------------------------------------------------------------------- */

static void mark_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	Py_XDECREF(((struct annotation_mark *)self)->text);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyType_Slot mark_slots[] = {
	{ Py_tp_dealloc, mark_free },
	{ 0, NULL },
};

static PyType_Spec mark_spec = {
	.name = "kymo._jax.Mark",
	.basicsize = sizeof(struct annotation_mark),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = mark_slots,
};

static PyTypeObject *mark_type;

/* "step_num=5 kind=train". Only plain values: the str() of others is code of the program. */
static PyObject *describe_arguments(PyObject *const *values, PyObject *keywords)
{
	PyObject *text = NULL;

	for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++) {
		PyObject *key = PyTuple_GET_ITEM(keywords, i), *value = values[i], *longer;

		if (!PyUnicode_CompareWithASCIIString(key, "_r") ||
		    !(PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
		      PyUnicode_CheckExact(value) || PyBool_Check(value)))
			continue;
		longer = text ? PyUnicode_FromFormat("%U %U=%S", text, key, value)
			      : PyUnicode_FromFormat("%U=%S", key, value);
		Py_XDECREF(text);
		text = longer;
	}
	return text;
}

/* The id of the name; of one beyond the limit the name without its digits. */
static uint32_t annotation_name(PyObject *name, bool *out_cut)
{
	char digitless[256];
	Py_ssize_t bytes, i;
	const char *text = PyUnicode_AsUTF8AndSize(name, &bytes);

	*out_cut = false;
	if (!text)
		return 0;
	if (PySet_Contains(borrowed.names, name) == 0) {
		*out_cut = PySet_GET_SIZE(borrowed.names) >= NAMES_MAX;
		if (!*out_cut && PySet_Add(borrowed.names, name))
			return 0;
	}
	if (*out_cut) {
		if (bytes > (Py_ssize_t)sizeof(digitless))
			bytes = (Py_ssize_t)sizeof(digitless);
		for (i = 0; i < bytes; i++)
			digitless[i] = text[i] >= '0' && text[i] <= '9' ? '#' : text[i];
		text = digitless;
	}
	return kymo_name_full(text, (size_t)bytes, NULL, 0, 0, KYMO_SOURCE_XLA, 0);
}

/* Puts a mark into the object. Exceptions are the caller's to clear. */
static void annotation_remember(PyObject *self, PyObject *name, PyObject *const *values,
				PyObject *keywords)
{
	struct annotation_mark *mark = PyObject_New(struct annotation_mark, mark_type);
	bool cut;

	if (!mark)
		return;
	mark->region = (struct kymo_region){ 0 };
	mark->region.id = annotation_name(name, &cut);
	mark->text = cut ? Py_NewRef(name) : describe_arguments(values, keywords);
	mark->is_step = PyObject_IsInstance(self, borrowed.step_type) == 1;
	if (mark->region.id && !PyErr_Occurred())
		PyObject_SetAttr(self, borrowed.key, (PyObject *)mark);
	Py_DECREF(mark);
}

/* A new reference; NULL without an exception: it has none. */
static struct annotation_mark *mark_of(PyObject *self)
{
	PyObject *mark = PyObject_GetAttr(self, borrowed.key);

	if (!mark)
		PyErr_Clear();
	else if (!Py_IS_TYPE(mark, mark_type))
		Py_CLEAR(mark);
	return (struct annotation_mark *)mark;
}

static void begin_zone(struct annotation_mark *mark)
{
	Py_ssize_t bytes;
	const char *text = mark->text ? PyUnicode_AsUTF8AndSize(mark->text, &bytes) : NULL;

	PyErr_Clear(); /* lone surrogates */
	if (mark->is_step)
		kymo_step(NULL); /* those of the recording */
	kymo_region_start(&mark->region);
	if (text)
		kymo_zone_text(text, (size_t)bytes);
}

/* ---- methods of the class ------------------------------------------------------------------ */

static PyObject *annotation_init(PyObject *self, PyObject *const *args, Py_ssize_t count,
				 PyObject *keywords)
{
	PyObject *done = jax_call(borrowed.init, self, args, count, keywords);

	if (done && kymo_enabled() && count == 1 && PyUnicode_CheckExact(args[0])) {
		annotation_remember(self, args[0], args + count, keywords);
		PyErr_Clear();
	}
	return done;
}

static PyObject *annotation_enter(PyObject *self, PyObject *const *args, Py_ssize_t count,
				  PyObject *keywords)
{
	struct annotation_mark *mark = mark_of(self);
	PyObject *done;

	if (mark)
		windows_begin(mark, open_count == 0);
	done = jax_call(borrowed.enter, self, args, count, keywords);
	if (done && mark) {
		open_count++;
		begin_zone(mark);
	}
	Py_XDECREF(mark);
	return done;
}

static PyObject *annotation_leave(PyObject *self, PyObject *const *args, Py_ssize_t count,
				  PyObject *keywords)
{
	struct annotation_mark *mark = mark_of(self);
	PyObject *done;

	if (mark) {
		open_count -= open_count > 0;
		kymo_region_stop(&mark->region);
		if (mark->is_step)
			kymo_step_end(NULL);
	}
	done = jax_call(borrowed.leave, self, args, count, keywords);
	if (mark)
		windows_end(mark);
	Py_XDECREF(mark);
	return done;
}

#define METHOD(name, function) \
	{ \
		name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, NULL \
	}
static PyMethodDef init_def = METHOD("__init__", annotation_init);
static PyMethodDef enter_def = METHOD("__enter__", annotation_enter);
static PyMethodDef leave_def = METHOD("__exit__", annotation_leave);

/* ---- the module ---------------------------------------------------------------------------- */

PyDoc_STRVAR(hook_doc, "hook($module, annotation, step, /)\n--\n\n"
		       "Records annotations of these classes; a second call does nothing.");

static PyObject *jax_hook(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	(void)module;
	if (count != 2 || !PyType_Check(args[0]) || !PyType_Check(args[1])) {
		PyErr_SetString(PyExc_TypeError, "two classes are needed");
		return NULL;
	}
	if (borrowed.step_type)
		Py_RETURN_NONE;
	borrowed.names = PySet_New(NULL);
	borrowed.key = PyUnicode_InternFromString(KEY);
	if (!borrowed.names || !borrowed.key)
		return NULL;
	borrowed.step_type = Py_NewRef(args[1]);
	/* In this order: without __init__ the others have nothing to do. */
	if (jax_replace(args[0], &leave_def, &borrowed.leave) ||
	    jax_replace(args[0], &enter_def, &borrowed.enter) ||
	    jax_replace(args[0], &init_def, &borrowed.init))
		return NULL;
	Py_RETURN_NONE;
}

PyDoc_STRVAR(windows_doc, "windows($module, make, sessions, every, /)\n--\n\n"
			  "Records XLA's operations in one step of every so many.");

static PyObject *jax_windows(PyObject *module, PyObject *args)
{
	PyObject *make, *sessions;
	unsigned int every;

	(void)module;
	if (!PyArg_ParseTuple(args, "OOI", &make, &sessions, &every) ||
	    windows_set(make, sessions, every))
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef jax_methods[] = {
	{ "hook", (PyCFunction)(void (*)(void))jax_hook, METH_FASTCALL, hook_doc },
	{ "windows", jax_windows, METH_VARARGS, windows_doc },
	{ NULL },
};

static int jax_exec(PyObject *module)
{
	(void)module;
	if (!mark_type)
		mark_type = (PyTypeObject *)PyType_FromSpec(&mark_spec);
	return mark_type ? 0 : -1;
}

static PyModuleDef_Slot jax_slots[] = {
	{ Py_mod_exec, jax_exec },
	{ 0, NULL },
};

static PyModuleDef jax_definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "kymo._jax",
	.m_doc = "Annotations of JAX's profiler as zones, and windows of XLA's operations.",
	.m_methods = jax_methods,
	.m_slots = jax_slots,
};

PyMODINIT_FUNC PyInit__jax(void)
{
	return PyModuleDef_Init(&jax_definition);
}
