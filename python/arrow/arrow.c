/*
 * kymo._arrow: the output of `kymo query -f arrow` as an Arrow C stream (PyCapsule) and as Python
 * objects. The bytes come from a child process; nanoarrow checks them, so bad bytes are an error,
 * not a crash.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>

#include "convert.h"

#define CAPSULE_NAME "arrow_array_stream"

/* ---- the stream ------------------------------------------------------------------------------ */

static PyObject *arrow_raise_failed(const char *doing, const char *why)
{
	return PyErr_Format(PyExc_ValueError, "%s: %s", doing,
			    why && *why ? why : "no reason given");
}

/* Reads IPC from a copy of the bytes, so the consumer of the stream needs neither them nor the
   GIL. */
static int open_stream(PyObject *bytes, struct ArrowArrayStream *out)
{
	struct ArrowIpcInputStream input = { 0 };
	struct ArrowBuffer buffer;

	ArrowBufferInit(&buffer);
	if (ArrowBufferAppend(&buffer, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes)) ||
	    ArrowIpcInputStreamInitBuffer(&input, &buffer)) {
		ArrowBufferReset(&buffer);
		PyErr_NoMemory();
		return -1;
	}
	if (ArrowIpcArrayStreamReaderInit(out, &input, NULL)) {
		if (input.release)
			input.release(&input);
		PyErr_NoMemory();
		return -1;
	}
	return 0;
}

static void free_stream(PyObject *capsule)
{
	struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, CAPSULE_NAME);

	if (!stream)
		return;
	if (stream->release) /* not consumed */
		stream->release(stream);
	free(stream);
}

PyDoc_STRVAR(stream_doc, "stream($module, data, /)\n--\n\n"
			 "An Arrow IPC stream, in bytes, as the capsule of an Arrow C stream.");

static PyObject *arrow_stream(PyObject *module, PyObject *bytes)
{
	struct ArrowArrayStream *stream;
	PyObject *capsule;

	(void)module;
	if (!PyBytes_Check(bytes))
		return PyErr_Format(PyExc_TypeError, "stream takes bytes, not %.100s",
				    Py_TYPE(bytes)->tp_name);
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return PyErr_NoMemory();
	if (open_stream(bytes, stream)) {
		free(stream);
		return NULL;
	}
	capsule = PyCapsule_New(stream, CAPSULE_NAME, free_stream);
	if (!capsule) {
		stream->release(stream);
		free(stream);
	}
	return capsule;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static PyObject *names_of(const struct ArrowSchema *schema)
{
	PyObject *names = PyTuple_New((Py_ssize_t)schema->n_children);

	for (int64_t i = 0; names && i < schema->n_children; i++) {
		const char *text = schema->children[i]->name ? schema->children[i]->name : "";
		PyObject *name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

		if (!name)
			Py_CLEAR(names);
		else
			PyTuple_SET_ITEM(names, (Py_ssize_t)i, name);
	}
	return names;
}

static int arrow_add_row(const struct convert *convert, const struct ArrowArrayView *view,
			 int64_t row, PyObject *names, PyObject *list)
{
	PyObject *dict = PyDict_New();
	int rc = dict ? 0 : -1;

	for (int64_t i = 0; !rc && i < view->n_children; i++) {
		PyObject *value = convert_value(convert, convert->schema->children[i],
						view->children[i], row);

		rc = value ? PyDict_SetItem(dict, PyTuple_GET_ITEM(names, (Py_ssize_t)i), value)
			   : -1;
		Py_XDECREF(value);
	}
	if (!rc)
		rc = PyList_Append(list, dict);
	Py_XDECREF(dict);
	return rc;
}

static int add_batches(const struct convert *convert, struct ArrowArrayStream *stream,
		       PyObject *names, PyObject *list)
{
	struct ArrowArrayView view;
	struct ArrowArray array = { 0 };
	struct ArrowError why = { 0 };
	int rc = 0;

	if (ArrowArrayViewInitFromSchema(&view, convert->schema, &why)) {
		arrow_raise_failed("cannot read the columns", why.message);
		return -1;
	}
	while (!rc) {
		if (stream->get_next(stream, &array)) {
			arrow_raise_failed("cannot read the rows", stream->get_last_error(stream));
			rc = -1;
		}
		if (rc || !array.release)
			break;
		if (ArrowArrayViewSetArray(&view, &array, &why) ||
		    ArrowArrayViewValidate(&view, NANOARROW_VALIDATION_LEVEL_FULL, &why)) {
			arrow_raise_failed("cannot read the rows", why.message);
			rc = -1;
		}
		for (int64_t row = 0; !rc && row < array.length; row++)
			rc = arrow_add_row(convert, &view, row, names, list);
		array.release(&array);
	}
	ArrowArrayViewReset(&view);
	return rc;
}

PyDoc_STRVAR(rows_doc, "rows($module, data, special, /)\n--\n\n"
		       "The names of the columns of an Arrow IPC stream, and its rows as dicts. "
		       "special(kind, value, unit)\n"
		       "converts dates, times and decimals.");

static PyObject *arrow_rows(PyObject *module, PyObject *args)
{
	struct ArrowArrayStream stream = { 0 };
	struct ArrowSchema schema = { 0 };
	struct convert convert = { &schema, NULL };
	PyObject *bytes, *names = NULL, *list = NULL;
	int rc = -1;

	(void)module;
	if (!PyArg_ParseTuple(args, "SO:rows", &bytes, &convert.special) ||
	    open_stream(bytes, &stream))
		return NULL;
	if (stream.get_schema(&stream, &schema)) {
		arrow_raise_failed("cannot read the columns", stream.get_last_error(&stream));
	} else {
		names = names_of(&schema);
		list = PyList_New(0);
		rc = names && list ? add_batches(&convert, &stream, names, list) : -1;
	}
	if (schema.release)
		schema.release(&schema);
	stream.release(&stream);
	if (!rc)
		return Py_BuildValue("(NN)", names, list);
	Py_XDECREF(names);
	Py_XDECREF(list);
	return NULL;
}

/* ---- the module ------------------------------------------------------------------------------ */

static PyMethodDef arrow_methods[] = {
	{ "stream", arrow_stream, METH_O, stream_doc },
	{ "rows", arrow_rows, METH_VARARGS, rows_doc },
	{ NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot arrow_slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
	{ Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED },
#endif
	{ 0, NULL },
};

static PyModuleDef arrow_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "kymo._arrow",
	.m_doc = "Results of queries, from Arrow; use kymo.query().",
	.m_methods = arrow_methods,
	.m_slots = arrow_slots,
};

PyMODINIT_FUNC PyInit__arrow(void)
{
	return PyModuleDef_Init(&arrow_def);
}
