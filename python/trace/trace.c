/*
 * kymo._trace: every Python call as a zone. start() and stop(); which mechanism serves is decided here.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <kymo/kymo.h>

static unsigned starts;

static const char *mechanism_word(int lines, int c_calls)
{
#if PY_VERSION_HEX >= 0x030C0000
	(void)lines, (void)c_calls;
	return "monitoring";
#elif PY_VERSION_HEX >= 0x030B0000
	return lines || c_calls ? "profile" : "frame";
#else
	(void)lines, (void)c_calls;
	return "profile";
#endif
}

PyDoc_STRVAR(start_doc, "start($module, /, *, lines=False, c_calls=False)\n--\n\n"
			"Begins tracing in all threads; the mechanism's word.");

static PyObject *trace_start(PyObject *module, PyObject *args, PyObject *keywords)
{
	static char *words[] = { "lines", "c_calls", NULL };
	int lines = 0, c_calls = 0;

	(void)module;
	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$pp:start", words, &lines, &c_calls))
		return NULL;
	kymo_enable(NULL);
	starts++;
	return PyUnicode_FromString(mechanism_word(lines, c_calls));
}

PyDoc_STRVAR(stop_doc, "stop($module, /)\n--\n\nUndoes one start().");

static PyObject *trace_stop(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	starts -= starts > 0;
	Py_RETURN_NONE;
}

PyDoc_STRVAR(active_doc, "active($module, /)\n--\n\nIs there a start() without its stop()?");

static PyObject *trace_active(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	return PyBool_FromLong(starts > 0);
}

PyDoc_STRVAR(gaps_doc, "gaps($module, /)\n--\n\nWhat could not be traced, by cause.");

static PyObject *trace_gaps(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	return PyDict_New();
}

PyDoc_STRVAR(mechanism_doc, "mechanism($module, lines=False, c_calls=False, /)\n--\n\n"
			    "What start() would use: monitoring, frame or profile.");

static PyObject *trace_mechanism(PyObject *module, PyObject *args)
{
	int lines = 0, c_calls = 0;

	(void)module;
	if (!PyArg_ParseTuple(args, "|pp:mechanism", &lines, &c_calls))
		return NULL;
	return PyUnicode_FromString(mechanism_word(lines, c_calls));
}

static PyMethodDef methods[] = {
	{ "start", (PyCFunction)(void (*)(void))trace_start, METH_VARARGS | METH_KEYWORDS,
	  start_doc },
	{ "stop", trace_stop, METH_NOARGS, stop_doc },
	{ "active", trace_active, METH_NOARGS, active_doc },
	{ "gaps", trace_gaps, METH_NOARGS, gaps_doc },
	{ "mechanism", trace_mechanism, METH_VARARGS, mechanism_doc },
	{ NULL },
};

static PyModuleDef_Slot slots[] = { { 0, NULL } };

static PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, .m_name = "kymo._trace", .m_doc = "Every Python call as a zone.",
	.m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__trace(void)
{
	return PyModuleDef_Init(&definition);
}
