/* The cost of a traced call on this machine and Python: an empty function, called with and without
   tracing. */
#include "trace.h"

#include "calls.h"
#include "record/adapter.h"

#define CALLS 100
#define ROUNDS 5

static PyObject *loop; /* NULL: could not be made; no cost is reported */
static uint64_t before_ticks;

static PyObject *make_loop(void)
{
	static const char text[] = "def nothing():\n\tpass\n"
				   "def loop(nothing=nothing, times=range(100)):\n"
				   "\tfor _ in times:\n\t\tnothing()\n";
	PyObject *names = PyDict_New();
	PyObject *result = NULL, *function = NULL;

	if (names && !PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()))
		result = PyRun_String(text, Py_file_input, names, names);
	if (result)
		function = PyDict_GetItemString(names, "loop");
	Py_XINCREF(function);
	Py_XDECREF(result);
	Py_XDECREF(names);
	return function;
}

static uint64_t fastest(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = kymo_ticks();
		PyObject *result = PyObject_CallNoArgs(loop);

		Py_XDECREF(result);
		PyErr_Clear();
		start = kymo_ticks() - start;
		if (start < best)
			best = start;
	}
	return best;
}

#if PY_VERSION_HEX >= 0x030C0000
static bool others_monitor(void)
{
	PyObject *monitoring = PySys_GetObject("monitoring");
	bool others = false;

	for (int id = 0; monitoring && id < 6 && !others; id++) {
		PyObject *tool = PyObject_CallMethod(monitoring, "get_tool", "i", id);

		others = tool && tool != Py_None;
		Py_XDECREF(tool);
	}
	PyErr_Clear();
	return others;
}
#else
static bool others_monitor(void)
{
	return false;
}
#endif

/* A tool of the program would take our loop for part of the program. */
static bool others_watch(void)
{
	const PyThreadState *tstate = PyThreadState_Get();

	return tstate->c_profilefunc || tstate->c_tracefunc || others_monitor();
}

void cost_before(void)
{
	before_ticks = 0;
	if (others_watch())
		return;
	if (!loop)
		loop = make_loop();
	PyErr_Clear();
	if (loop)
		before_ticks = fastest();
}

void cost_after(void)
{
	struct calls *calls = calls_get();
	struct kymo__lane *lane;
	uint64_t after, rows;
	uint8_t attempts;

	if (!loop || !calls || !before_ticks)
		return;
	attempts = calls->name_attempts;
	calls->name_attempts = 0; /* the cost lane has no name */
	lane = kymo__cost_lane_begin();
	after = fastest();
	calls_end_all();
	rows = kymo__cost_lane_rows() / ROUNDS;
	kymo__cost_lane_end(lane);
	calls->name_attempts = attempts;
	if (!rows || after <= before_ticks)
		return;
	kymo__source_cost(KYMO_SOURCE_PYTHON, (after - before_ticks) / rows);
	if (trace.lines)
		kymo__source_cost(KYMO_SOURCE_LINE, (after - before_ticks) / rows);
}
