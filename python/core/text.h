/* Shared by the extensions: str objects as C texts, and the names of threads. */
#ifndef KYMO_PYTHON_TEXT_H
#define KYMO_PYTHON_TEXT_H

#include <stdbool.h>
#include <string.h>

#include <kymo/kymo.h>

/* ---- texts ------------------------------------------------------------------------------- */

/* The UTF-8 of a str, without NUL bytes. */
struct text {
	const char *bytes;
	Py_ssize_t size;
	PyObject *owner; /* NULL: the str itself */
};

static void text_release(struct text *text)
{
	Py_CLEAR(text->owner);
}

/* U+2400 for each NUL: a C string would end there and cut the name. */
static int text_replace_nul(PyObject *str, struct text *out)
{
	PyObject *nul = PyUnicode_FromStringAndSize("", 1);
	PyObject *sign = PyUnicode_FromString("\xe2\x90\x80");
	PyObject *clean = nul && sign ? PyUnicode_Replace(str, nul, sign, -1) : NULL;

	Py_XDECREF(nul);
	Py_XDECREF(sign);
	if (!clean)
		return -1;
	out->owner = PyUnicode_AsEncodedString(clean, "utf-8", "backslashreplace");
	Py_DECREF(clean);
	if (!out->owner)
		return -1;
	out->bytes = PyBytes_AS_STRING(out->owner);
	out->size = PyBytes_GET_SIZE(out->owner);
	return 0;
}

/* A str with lone surrogates, as file names can have, is not an error. -1 and MemoryError. */
static int text_take(PyObject *str, struct text *out)
{
	out->owner = NULL;
	out->bytes = PyUnicode_AsUTF8AndSize(str, &out->size);
	if (!out->bytes && !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
		return -1;
	if (out->bytes && strlen(out->bytes) == (size_t)out->size)
		return 0;
	PyErr_Clear();
	return text_replace_nul(str, out);
}

/* ---- threads ----------------------------------------------------------------------------- */

/* The name threading has for this thread, without creating a thread object; NULL: none. */
static PyObject *known_thread_name(PyObject *active)
{
	PyObject *ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
	PyObject *thread = NULL, *name = NULL;

	if (ident && active && PyDict_Check(active))
		thread = PyDict_GetItemWithError(active, ident);
	Py_XDECREF(ident);
	if (thread)
		name = PyObject_GetAttrString(thread, "_name");
	if (name && !PyUnicode_Check(name))
		Py_CLEAR(name);
	return name;
}

static void tell_thread_name(PyObject *name)
{
	struct text text;

	if (text_take(name, &text))
		return;
	kymo_thread_name(text.bytes);
	text_release(&text);
}

/* Names the calling thread as threading does. False: it has no name yet. */
static inline bool text_introduce_thread(void)
{
	PyObject *modules = PyImport_GetModuleDict();
	PyObject *threading = modules ? PyDict_GetItemString(modules, "threading") : NULL;
	PyObject *active = NULL, *name = NULL;
	bool known;

	if (threading)
		active = PyObject_GetAttrString(threading, "_active");
	name = known_thread_name(active);
	known = name != NULL;
	if (name)
		tell_thread_name(name);
	Py_XDECREF(name);
	Py_XDECREF(active);
	PyErr_Clear();
	return known;
}

#endif
