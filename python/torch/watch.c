/*
 * Variables at each step: when an optimizer's step ends (in inference: a root's forward), the
 * innermost running call of the function is searched on the thread's stack, and the variable is
 * read from the interpreter's storage. The frame's dictionary of locals is not used, because
 * creating it would keep tensors alive. No code of the program runs: values other than numbers,
 * texts and tensors are recorded by type.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "torch.h"

#include <frameobject.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

#define WATCHED_MAX 16
#define FRAMES_MAX 200 /* searched, from the innermost */

struct watched {
	char name[64], function[64];
	uint32_t name_id, function_id;
};

static struct watched watched[WATCHED_MAX];
static int watched_count;

/* ---- parsing ---- */

/* "tokens" and "keys" are common words in models; these are not. */
static bool looks_secret(const char *name)
{
	static const char *const inside[] = { "password",    "passwd",	   "secret",
					      "credential",  "api_key",	   "apikey",
					      "private_key", "auth_token", "access_token" };
	static const char *const whole[] = { "token", "pwd", "authorization" };

	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
		if (strcasestr(name, inside[i]))
			return true;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (!strcasecmp(name, whole[i]))
			return true;
	return false;
}

static void watch_add_word(const char *word, size_t bytes)
{
	const char *at = memchr(word, '@', bytes);
	struct watched *next = &watched[watched_count];
	size_t name_bytes = at ? (size_t)(at - word) : 0;

	if (!at || watched_count == WATCHED_MAX || !name_bytes ||
	    name_bytes >= sizeof(next->name) || bytes - name_bytes - 1 >= sizeof(next->function))
		return;
	snprintf(next->name, sizeof(next->name), "%.*s", (int)name_bytes, word);
	snprintf(next->function, sizeof(next->function), "%.*s", (int)(bytes - name_bytes - 1),
		 at + 1);
	if (looks_secret(next->name)) {
		kymo_mark("kymo.torch",
			  "a watched variable is not recorded: its name suggests a secret");
		return;
	}
	next->name_id = kymo_name(next->name);
	next->function_id = kymo_name(next->function);
	watched_count++;
}

bool watch_set(const char *words)
{
	watched_count = 0;
	while (*words) {
		size_t bytes = strcspn(words, ",");

		watch_add_word(words, bytes);
		words += bytes + (words[bytes] == ',');
	}
	return watched_count > 0;
}

bool watch_any(void)
{
	return watched_count > 0;
}

/* ---- reading a variable ---- */

#if PY_VERSION_HEX < 0x030C0000
static PyObject *out_of_cell(PyObject *value)
{
	if (value && PyCell_Check(value))
		return PyCell_Get(value);
	Py_XINCREF(value);
	return value;
}
#endif

#if PY_VERSION_HEX >= 0x030C0000
/* A new reference, or NULL without an exception. */
static PyObject *local_of(PyFrameObject *frame, PyCodeObject *code, const char *name)
{
	PyObject *value = PyFrame_GetVarString(frame, name);

	(void)code;
	PyErr_Clear();
	return value;
}
#elif PY_VERSION_HEX >= 0x030B0000
static PyObject *local_of(PyFrameObject *frame, PyCodeObject *code, const char *name)
{
	for (int i = 0; i < code->co_nlocalsplus; i++)
		if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, i),
						      name))
			return out_of_cell(frame->f_frame->localsplus[i]);
	return NULL;
}
#else
static PyObject *local_of(PyFrameObject *frame, PyCodeObject *code, const char *name)
{
	PyObject *const lists[] = { code->co_varnames, code->co_cellvars, code->co_freevars };
	Py_ssize_t slot = 0;

	for (size_t list = 0; list < 3; list++)
		for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lists[list]); i++, slot++)
			if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(lists[list], i),
							      name))
				return out_of_cell(frame->f_localsplus[slot]);
	return NULL;
}
#endif

/* Module-level code (function <module>) keeps its variables in a dictionary. */
static PyObject *global_of(PyFrameObject *frame, const char *name)
{
#if PY_VERSION_HEX >= 0x030B0000
	PyObject *globals = PyFrame_GetGlobals(frame);
#else
	PyObject *globals = frame->f_globals;

	Py_XINCREF(globals);
#endif
	PyObject *value = globals ? PyDict_GetItemString(globals, name) : NULL;

	Py_XINCREF(value);
	Py_XDECREF(globals);
	return value;
}

/* ---- its value as text ---- */

static bool is_true(PyObject *object, const char *attribute)
{
	PyObject *value = PyObject_GetAttrString(object, attribute);
	bool yes = value == Py_True;

	Py_XDECREF(value);
	PyErr_Clear();
	return yes;
}

static bool text_of(PyObject *object, char *out, size_t bytes)
{
	PyObject *text = object ? PyObject_Str(object) : NULL;
	const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;

	if (utf8)
		snprintf(out, bytes, "%s", utf8);
	Py_XDECREF(text);
	PyErr_Clear();
	return utf8 != NULL;
}

/* A tensor of one number on the CPU: that number. Any other: its description. Reading a device
   tensor would wait for the device. */
static void say_tensor(PyObject *tensor, char *out, size_t bytes)
{
	static const char *const parts[] = { "shape", "dtype", "device" };
	PyObject *count = PyObject_CallMethod(tensor, "numel", NULL);
	bool one = count && PyLong_Check(count) && PyLong_AsLong(count) == 1;
	PyObject *number = NULL;
	char part[48];
	size_t used = 0;

	Py_XDECREF(count);
	PyErr_Clear();
	if (one && is_true(tensor, "is_cpu") && !is_true(tensor, "is_meta"))
		number = PyObject_CallMethod(tensor, "item", NULL);
	PyErr_Clear();
	if (number && text_of(number, out, bytes)) {
		Py_DECREF(number);
		return;
	}
	Py_XDECREF(number);
	for (size_t i = 0; i < 3; i++) {
		PyObject *value = PyObject_GetAttrString(tensor, parts[i]);

		part[0] = '\0';
		text_of(value, part, sizeof(part));
		Py_XDECREF(value);
		PyErr_Clear();
		used += (size_t)snprintf(out + used, used < bytes ? bytes - used : 0, "%s%s",
					 i ? " " : "", part);
		used = used < bytes ? used : bytes - 1;
	}
}

static bool watch_is_tensor(PyObject *value)
{
	const char *name = Py_TYPE(value)->tp_name;

	return !strcmp(name, "Tensor") || !strcmp(name, "torch.Tensor") ||
	       !strcmp(name, "Parameter");
}

static void say_value(PyObject *value, char *out, size_t bytes)
{
	PyObject *repr = NULL;
	const char *utf8;

	if (watch_is_tensor(value)) {
		say_tensor(value, out, bytes);
		return;
	}
	if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
	    PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) ||
	    PyComplex_CheckExact(value))
		repr = PyObject_Repr(value);
	else if (PyFloat_Check(value)) /* a NumPy number */
		repr = PyFloat_Type.tp_repr(value);
	utf8 = repr ? PyUnicode_AsUTF8(repr) : NULL;
	if (utf8)
		snprintf(out, bytes, "%s", utf8);
	else
		snprintf(out, bytes, "<%s>", Py_TYPE(value)->tp_name);
	Py_XDECREF(repr);
	PyErr_Clear();
}

static void cut_at_character(char *text, size_t bytes)
{
	size_t used = strnlen(text, bytes);

	if (used + 1 < bytes)
		return;
	while (used && ((unsigned char)text[used - 1] & 0xC0) == 0x80)
		used--;
	if (used && (unsigned char)text[used - 1] >= 0xC0)
		used--;
	text[used] = '\0';
}

static void write_value(const struct watched *what, PyObject *value)
{
	struct schema_variable_row row = { .ts_ticks = kymo__ticks(),
					   .step = steps_now(),
					   .function = what->function_id,
					   .name = what->name_id };

	say_value(value, row.value, sizeof(row.value));
	cut_at_character(row.value, sizeof(row.value));
	row.type = kymo_name(Py_TYPE(value)->tp_name);
	kymo__append(SCHEMA_VARIABLES, &row);
}

/* ---- at a step ---- */

static uint32_t look_in(PyFrameObject *frame, uint32_t done)
{
	PyCodeObject *code = PyFrame_GetCode(frame);

	for (int i = 0; i < watched_count; i++) {
		PyObject *value;

		if (done & 1u << i ||
		    PyUnicode_CompareWithASCIIString(code->co_name, watched[i].function))
			continue;
		value = strcmp(watched[i].function, "<module>")
				? local_of(frame, code, watched[i].name)
				: global_of(frame, watched[i].name);
		if (value)
			write_value(&watched[i], value);
		Py_XDECREF(value);
		done |= 1u << i;
	}
	Py_DECREF(code);
	return done;
}

void watch_sample(void)
{
	PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
	PyObject *kind, *error, *trace;
	uint32_t done = 0;

	PyErr_Fetch(&kind, &error, &trace);
	for (int i = 0; frame && i < FRAMES_MAX && done != (1u << watched_count) - 1; i++) {
		PyFrameObject *back = PyFrame_GetBack(frame);

		done = look_in(frame, done);
		Py_DECREF(frame);
		frame = back;
	}
	Py_XDECREF(frame);
	PyErr_Restore(kind, error, trace);
}
