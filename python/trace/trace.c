/*
 * kymo._trace: every Python call as a zone. start() and stop() nest; the options of the outermost
 * start() apply.
 */
#include "calls.h"

struct trace trace;

/* In order of preference; the first that can be armed is used. */
static void choices(bool lines, bool c_calls, const struct mechanism *out[3])
{
#if PY_VERSION_HEX >= 0x030C0000
	(void)lines, (void)c_calls;
	out[0] = &mechanism_monitoring;
	out[1] = NULL;
#else
	int count = 0;

#if PY_VERSION_HEX >= 0x030B0000
	/* Before 3.11.4, a specialised x[i] of a Python class bypasses the hook (gh-104405). */
	if (!lines && !c_calls && Py_Version >= 0x030B0400)
		out[count++] = &mechanism_frame;
#endif
	(void)c_calls;
	out[count++] = lines ? &mechanism_trace : &mechanism_profile;
	out[count] = NULL;
#endif
}

static void trace_arm(bool lines, bool c_calls)
{
	const struct mechanism *list[3];

	trace.lines = lines;
	trace.c_calls = c_calls;
	trace.interpreter = PyInterpreterState_Get();
	cost_before();
	calls_generation++;
	trace.active = true;
	choices(lines, c_calls, list);
	for (int i = 0; list[i] && !trace.mechanism; i++)
		if (!list[i]->arm())
			trace.mechanism = list[i];
	if (trace.mechanism)
		cost_after();
	else
		trace.active = false;
	PyErr_Clear();
}

static void trace_disarm(void)
{
	trace.active = false;
	if (trace.mechanism && !trace.paused_ticks)
		trace.mechanism->disarm();
	if (trace.paused_ticks)
		gaps_add(GAP_BUDGET, trace.paused_ticks);
	trace.paused_ticks = 0;
	trace.mechanism = NULL;
	calls_end_all();
	gaps_flush();
	PyErr_Clear();
}

void trace_pause(void)
{
	struct error_kept kept;

	if (!trace.active || !trace.mechanism)
		return;
	kept = error_keep();
	trace.active = false;
	trace.mechanism->disarm();
	trace.paused_ticks = kymo_ticks();
	calls_drop_all();
	error_back(kept);
}

/* Another tool may have set its hook meanwhile: the mechanism is then refused until the next
   window. */
void trace_resume(void)
{
	struct error_kept kept;

	if (!trace.paused_ticks || !trace.mechanism)
		return;
	kept = error_keep();
	calls_generation++;
	trace.active = true;
	if (trace.mechanism->arm()) {
		trace.active = false;
	} else {
		gaps_add(GAP_BUDGET, trace.paused_ticks);
		trace.paused_ticks = 0;
	}
	error_back(kept);
}

PyDoc_STRVAR(start_doc, "start($module, /, *, lines=False, c_calls=False)\n--\n\n"
			"Starts tracing in all threads; returns the name of the mechanism.");

static PyObject *trace_start(PyObject *module, PyObject *args, PyObject *keywords)
{
	static char *words[] = { "lines", "c_calls", NULL };
	int lines = 0, c_calls = 0;

	(void)module;
	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$pp:start", words, &lines, &c_calls))
		return NULL;
	if (!kymo_enabled())
		kymo_enable(NULL); /* if it fails, there is nothing to trace */
	if (trace.starts && trace.interpreter != PyInterpreterState_Get())
		gaps_add(GAP_INTERPRETER, kymo_ticks());
	else if (!trace.starts++)
		trace_arm(lines, c_calls);
	if (!trace.mechanism)
		gaps_add(GAP_REFUSED, kymo_ticks());
	return PyUnicode_FromString(trace.mechanism ? trace.mechanism->word : "none");
}

PyDoc_STRVAR(stop_doc, "stop($module, /)\n--\n\nUndoes one start().");

static PyObject *trace_stop(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	if (trace.starts && trace.interpreter == PyInterpreterState_Get() && !--trace.starts)
		trace_disarm();
	Py_RETURN_NONE;
}

PyDoc_STRVAR(active_doc, "active($module, /)\n--\n\nReturns whether a start() has no stop() yet.");

static PyObject *trace_active(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	return PyBool_FromLong(trace.starts > 0);
}

PyDoc_STRVAR(gaps_doc, "gaps($module, /)\n--\n\nNumbers of missed calls, by cause.");

static PyObject *trace_gaps(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	return gaps_dict();
}

PyDoc_STRVAR(mechanism_doc, "mechanism($module, lines=False, c_calls=False, /)\n--\n\n"
			    "The mechanism of start(): monitoring, frame or profile.");

static PyObject *trace_mechanism(PyObject *module, PyObject *args)
{
	const struct mechanism *list[3];
	int lines = 0, c_calls = 0;

	(void)module;
	if (!PyArg_ParseTuple(args, "|pp:mechanism", &lines, &c_calls))
		return NULL;
	choices(lines, c_calls, list);
	return PyUnicode_FromString(list[0]->word);
}

PyDoc_STRVAR(window_doc, "window(change, skip, take, first, last, /)\n--\n\n"
			 "Calls change(True) at the first of these steps or the first signpost, "
			 "change(False) after the last. None: not given.");
PyDoc_STRVAR(window_close_doc, "window_close()\n--\n\nEnds the window.");
PyDoc_STRVAR(limit_doc, "limit()\n--\n\nKeeps the cost of tracing below the setting python_limit. "
			"Returns whether a thread was started for it.");
PyDoc_STRVAR(limit_end_doc, "limit_end()\n--\n\nEnds that.");
PyDoc_STRVAR(limit_in_child_doc, "limit_in_child()\n--\n\nContinues that in a forked child.");

static PyMethodDef methods[] = {
	{ "start", (PyCFunction)(void (*)(void))trace_start, METH_VARARGS | METH_KEYWORDS,
	  start_doc },
	{ "stop", trace_stop, METH_NOARGS, stop_doc },
	{ "active", trace_active, METH_NOARGS, active_doc },
	{ "gaps", trace_gaps, METH_NOARGS, gaps_doc },
	{ "mechanism", trace_mechanism, METH_VARARGS, mechanism_doc },
	{ "window", window_open, METH_VARARGS, window_doc },
	{ "window_close", window_close, METH_NOARGS, window_close_doc },
	{ "limit", limit_begin, METH_NOARGS, limit_doc },
	{ "limit_end", limit_end, METH_NOARGS, limit_end_doc },
	{ "limit_in_child", limit_in_child, METH_NOARGS, limit_in_child_doc },
	{ NULL },
};

static int trace_module_exec(PyObject *module)
{
	if (calls_init() || codes_init(module)) {
		PyErr_SetString(
			PyExc_ImportError,
			"kymo._trace: cannot trace calls: unknown layout of code objects in "
			"this Python, or out of memory");
		return -1;
	}
	return 0;
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, trace_module_exec },
#if PY_VERSION_HEX >= 0x030C0000
	{ Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED },
#endif
	{ 0, NULL },
};

static PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, .m_name = "kymo._trace", .m_doc = "Every Python call as a zone.",
	.m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__trace(void)
{
	return PyModuleDef_Init(&definition);
}
