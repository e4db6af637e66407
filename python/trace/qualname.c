/*
 * 3.10 has no co_qualname: it is derived from the place of the code object. The constants of a
 * module's or function's code hold what it defines; functions defined before tracing began are
 * found through the names of their module. A function found by neither (created by eval, kept in a
 * list) has its plain name.
 */
#include "trace.h"

#if PY_VERSION_HEX < 0x030B0000

#include <frameobject.h>

#define NESTED_MAX 8 /* classes in classes, functions in functions */

static PyObject *searched; /* the globals searched last; never dereferenced */
static Py_ssize_t searched_size;

static PyObject *known(PyCodeObject *code)
{
	return codes_item(code, CODE_NAME);
}

static void know_children(PyCodeObject *code, PyObject *prefix, int nested);

static void know(PyCodeObject *code, PyObject *name, int nested)
{
	bool is_class = !(code->co_flags & CO_NEWLOCALS);
	PyObject *prefix;

	if (known(code))
		return;
	Py_INCREF(name);
	if (codes_set_item(code, CODE_NAME, name)) {
		Py_DECREF(name);
		return;
	}
	prefix = PyUnicode_FromFormat(is_class ? "%U." : "%U.<locals>.", name);
	if (prefix && nested < NESTED_MAX)
		know_children(code, prefix, nested + 1);
	Py_XDECREF(prefix);
}

static void know_children(PyCodeObject *code, PyObject *prefix, int nested)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); i++) {
		PyObject *child = PyTuple_GET_ITEM(code->co_consts, i);
		PyObject *name = NULL;

		if (PyCode_Check(child))
			name = PyUnicode_Concat(prefix, ((PyCodeObject *)child)->co_name);
		if (name)
			know((PyCodeObject *)child, name, nested);
		Py_XDECREF(name);
	}
}

/* Before any of its functions is called. */
static void know_module(PyCodeObject *code)
{
	PyObject *prefix = PyUnicode_FromString("");

	Py_INCREF(code->co_name);
	if (codes_set_item(code, CODE_NAME, code->co_name))
		Py_DECREF(code->co_name);
	if (prefix)
		know_children(code, prefix, 0);
	Py_XDECREF(prefix);
}

/* functools.wraps gives a wrapper the name of the wrapped function, which is not that of its
   code. */
static void know_function(PyFunctionObject *function)
{
	PyCodeObject *code = (PyCodeObject *)function->func_code;
	PyObject *wrapped;

	if (PyUnicode_Tailmatch(function->func_qualname, code->co_name, 0, PY_SSIZE_T_MAX, 1) == 1)
		know(code, function->func_qualname, 0);
	wrapped = function->func_dict ? PyDict_GetItemString(function->func_dict, "__wrapped__")
				      : NULL;
	if (wrapped && PyFunction_Check(wrapped) && wrapped != (PyObject *)function)
		know(((PyCodeObject *)((PyFunctionObject *)wrapped)->func_code),
		     ((PyFunctionObject *)wrapped)->func_qualname, 0);
}

static void know_all(PyObject *dict, int nested)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	while (PyDict_Next(dict, &at, &key, &value)) {
		PyObject *inner = NULL;

		if (PyFunction_Check(value))
			know_function((PyFunctionObject *)value);
		else if (PyType_Check(value) && nested < NESTED_MAX &&
			 ((PyTypeObject *)value)->tp_dict &&
			 ((PyTypeObject *)value)->tp_flags & Py_TPFLAGS_HEAPTYPE)
			know_all(((PyTypeObject *)value)->tp_dict, nested + 1);
		else if (Py_IS_TYPE(value, &PyStaticMethod_Type) ||
			 Py_IS_TYPE(value, &PyClassMethod_Type))
			inner = PyObject_GetAttrString(value, "__func__");
		else if (Py_IS_TYPE(value, &PyProperty_Type))
			inner = PyObject_GetAttrString(value, "fget");
		if (inner && PyFunction_Check(inner))
			know_function((PyFunctionObject *)inner);
		Py_XDECREF(inner);
	}
}

/* Borrowed. */
PyObject *qualname_of(PyCodeObject *code)
{
	PyFrameObject *frame = PyEval_GetFrame();
	PyObject *globals = frame && frame->f_code == code ? frame->f_globals : NULL;

	if (!known(code) && !PyUnicode_CompareWithASCIIString(code->co_name, "<module>"))
		know_module(code);
	if (!known(code) && globals &&
	    (globals != searched || PyDict_GET_SIZE(globals) != searched_size)) {
		searched = globals;
		searched_size = PyDict_GET_SIZE(globals);
		know_all(globals, 0);
	}
	PyErr_Clear();
	return known(code) ? known(code) : code->co_name;
}

#endif
