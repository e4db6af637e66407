/*
 * Profile and trace functions of 3.10 and 3.11, set in each thread. Lines need a trace function,
 * which also sees calls; the profile function then sees only C functions. A function set by the
 * program stays in place; when it is removed (an audit event reports each change), ours is restored
 * at the next pending call.
 */
#include "calls.h"

#if PY_VERSION_HEX < 0x030C0000

#include <frameobject.h>

#include "hooks.h"

#if PY_VERSION_HEX >= 0x030B0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#endif

static bool by_profile, by_trace; /* which of the two to keep armed */
static bool changing; /* we are setting one: not another tool */
static bool scheduled;
static uint64_t displaced_since;
static PyObject *thread_profile, *thread_trace; /* initial functions of new threads of threading */

static PyCodeObject *hooks_code_of(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
	return frame->f_frame->f_code;
#else
	return frame->f_code;
#endif
}

static void on_call(PyFrameObject *frame, int what)
{
	struct calls *calls = calls_get();

	if (!calls || !trace.active)
		return;
	if (what == PyTrace_CALL)
		calls_begin_code(calls, frame, hooks_code_of(frame));
	else if (what == PyTrace_RETURN)
		calls_end(calls, frame);
	else if (what == PyTrace_LINE)
		calls_line(calls, frame, hooks_code_of(frame), PyFrame_GetLineNumber(frame));
}

static void on_c_call(int what, PyObject *function)
{
	struct calls *calls = calls_get();

	if (!calls || !trace.active || !trace.c_calls || !PyCFunction_Check(function))
		return;
	if (what == PyTrace_C_CALL)
		calls_begin_c(calls, codes_c_method(function), function);
	else if (what == PyTrace_C_RETURN || what == PyTrace_C_EXCEPTION)
		calls_end_c(calls, codes_c_method(function));
}

static int profile(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
	(void)self;
	if (what == PyTrace_CALL || what == PyTrace_RETURN)
		on_call(frame, what);
	else
		on_c_call(what, arg);
	return 0;
}

static int profile_c(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
	(void)self, (void)frame;
	if (what != PyTrace_CALL && what != PyTrace_RETURN)
		on_c_call(what, arg);
	return 0;
}

static int trace_lines(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
	(void)self, (void)arg;
	on_call(frame, what);
	return 0;
}

static Py_tracefunc our_profile(void)
{
	return by_trace ? profile_c : profile;
}

/* ---- one thread -------------------------------------------------------------------------- */

static void set_profile(PyThreadState *tstate, Py_tracefunc function)
{
	struct error_kept kept = error_keep();

	changing = true;
	if (_PyEval_SetProfile(tstate, function, NULL) < 0)
		gaps_add(GAP_REFUSED, kymo_ticks()); /* an audit hook of the program refused */
	changing = false;
	error_back(kept);
}

static void set_trace(PyThreadState *tstate, Py_tracefunc function)
{
	struct error_kept kept = error_keep();

	changing = true;
	if (_PyEval_SetTrace(tstate, function, NULL) < 0)
		gaps_add(GAP_REFUSED, kymo_ticks());
	changing = false;
	error_back(kept);
}

/* False: another tool's function is set. */
static bool arm_thread(PyThreadState *tstate)
{
	bool ours = true;

	if (by_profile && !tstate->c_profilefunc)
		set_profile(tstate, our_profile());
	if (by_trace && !tstate->c_tracefunc)
		set_trace(tstate, trace_lines);
	if (by_profile)
		ours = tstate->c_profilefunc == our_profile();
	return ours && (!by_trace || tstate->c_tracefunc == trace_lines);
}

static void disarm_thread(PyThreadState *tstate)
{
	if (tstate->c_profilefunc == profile || tstate->c_profilefunc == profile_c)
		set_profile(tstate, NULL);
	if (tstate->c_tracefunc == trace_lines)
		set_trace(tstate, NULL);
}

static bool arm_threads(void)
{
	bool all = true;

	for (PyThreadState *tstate = PyInterpreterState_ThreadHead(trace.interpreter); tstate;
	     tstate = PyThreadState_Next(tstate))
		all &= arm_thread(tstate);
	return all;
}

/* For frame.c: without an audit event, because the program should not see this change. */
static void update_tracing(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030B0000
	bool on = (tstate->c_profilefunc || tstate->c_tracefunc) && !tstate->tracing;

	tstate->cframe->use_tracing = on ? 255 : 0;
#else
	(void)tstate;
#endif
}

bool hooks_borrow(PyThreadState *tstate)
{
	if (tstate->c_profilefunc || tstate->tracing || !trace.active)
		return false;
	tstate->c_profilefunc = profile;
	update_tracing(tstate);
	return true;
}

void hooks_give_back(PyThreadState *tstate)
{
	if (tstate->c_profilefunc != profile || by_profile)
		return;
	tstate->c_profilefunc = NULL;
	update_tracing(tstate);
}

/* ---- threads that begin ------------------------------------------------------------------- */

/* Called once in a new thread, as the function that threading set there; installs ours. */
static PyObject *hooks_begin_thread(PyObject *self, PyObject *args)
{
	PyThreadState *tstate = PyThreadState_Get();
	PyObject *frame, *event;

	if (PyTuple_GET_SIZE(args) == 3) {
		frame = PyTuple_GET_ITEM(args, 0);
		event = PyTuple_GET_ITEM(args, 1);
		if (self == Py_True ? by_trace : by_profile) {
			if (self == Py_True)
				set_trace(tstate, trace_lines);
			else
				set_profile(tstate, our_profile());
		}
		if (PyFrame_Check(frame) && PyUnicode_Check(event) &&
		    !PyUnicode_CompareWithASCIIString(event, "call") &&
		    (self == Py_True || !by_trace))
			on_call((PyFrameObject *)frame, PyTrace_CALL);
	}
	Py_RETURN_NONE;
}

static PyMethodDef begin_method = { "kymo", hooks_begin_thread, METH_VARARGS, NULL };

static void tell_threading(const char *attribute, PyObject *from, PyObject *to)
{
	struct error_kept kept = error_keep();
	PyObject *modules = PyImport_GetModuleDict();
	PyObject *threading = modules ? PyDict_GetItemString(modules, "threading") : NULL;
	PyObject *now = threading ? PyObject_GetAttrString(threading, attribute) : NULL;

	if (now && now == from && to)
		PyObject_SetAttrString(threading, attribute, to);
	Py_XDECREF(now);
	error_back(kept);
}

static void tell_new_threads(void)
{
	if (by_profile)
		tell_threading("_profile_hook", Py_None, thread_profile);
	if (by_trace)
		tell_threading("_trace_hook", Py_None, thread_trace);
}

/* ---- other tools -------------------------------------------------------------------------- */

static int rearm(void *unused)
{
	(void)unused;
	scheduled = false;
	if (!trace.active || !(by_profile || by_trace) ||
	    PyThreadState_Get()->interp != trace.interpreter)
		return 0;
	if (arm_threads() && displaced_since) {
		gaps_add(GAP_DISPLACED, displaced_since);
		displaced_since = 0;
	}
	return 0;
}

/* Not in a new thread, which begins without one. */
static bool takes_ours(const char *event)
{
	const PyThreadState *tstate = PyThreadState_Get();

	return strcmp(event, "sys.settrace") ? tstate->c_profilefunc == our_profile()
					     : tstate->c_tracefunc == trace_lines;
}

static int audit(const char *event, PyObject *args, void *data)
{
	(void)args, (void)data;
	if (!trace.active || changing || !(by_profile || by_trace))
		return 0;
	if (!strcmp(event, "_thread.start_new_thread")) {
		tell_new_threads();
	} else if (!strcmp(event, "sys.setprofile") || !strcmp(event, "sys.settrace")) {
		if (!displaced_since && takes_ours(event))
			displaced_since = kymo_ticks();
	} else {
		return 0;
	}
	if (!scheduled)
		scheduled = !Py_AddPendingCall(rearm, NULL);
	return 0;
}

/* ---- on and off -------------------------------------------------------------------------- */

static int hooks_arm(bool lines)
{
	static bool audited;

	if (!audited && PySys_AddAuditHook(audit, NULL) < 0)
		/* refused by an audit hook of the program: no changes will be reported */
		PyErr_Clear();
	audited = true;
	if (!thread_profile)
		thread_profile = PyCFunction_New(&begin_method, Py_False);
	if (!thread_trace)
		thread_trace = PyCFunction_New(&begin_method, Py_True);
	PyErr_Clear();
	by_trace = lines;
	by_profile = !lines || trace.c_calls;
	displaced_since = 0;
	tell_new_threads();
	if (!arm_threads())
		displaced_since = kymo_ticks();
	return 0;
}

static int arm_profile(void)
{
	return hooks_arm(false);
}

static int arm_trace(void)
{
	return hooks_arm(true);
}

static void hooks_disarm(void)
{
	for (PyThreadState *tstate = PyInterpreterState_ThreadHead(trace.interpreter); tstate;
	     tstate = PyThreadState_Next(tstate))
		disarm_thread(tstate);
	tell_threading("_profile_hook", thread_profile, Py_None);
	tell_threading("_trace_hook", thread_trace, Py_None);
	by_profile = by_trace = false;
	if (displaced_since)
		gaps_add(GAP_DISPLACED, displaced_since);
	displaced_since = 0;
}

const struct mechanism mechanism_profile = { "profile", arm_profile, hooks_disarm };
const struct mechanism mechanism_trace = { "trace", arm_trace, hooks_disarm };

#endif
