#include "loop.h"

__thread struct loop_thread loop_thread;

/* As METH_FASTCALL | METH_KEYWORDS. */
typedef PyObject *(*run_entry)(PyObject *self, PyObject *const *args, Py_ssize_t count,
			       PyObject *keywords);

static run_entry run_original; /* NULL: not armed */

static PyObject *run_timed(PyObject *self, PyObject *const *args, Py_ssize_t count,
			   PyObject *keywords)
{
	struct loop_thread *thread = &loop_thread;
	uint64_t began, taken;
	PyObject *result;

	if (thread->depth || thread->pending)
		loop_stall_before(thread);
	thread->depth++;
	began = loop_ticks();
	result = run_original(self, args, count, keywords);
	taken = loop_ticks() - began;
	thread->depth--;
	if (taken >= loop_least_ticks && count > 0)
		loop_stall_after(thread, began, taken, args[0], SCHEMA_LOOP_ASYNCIO);
	if (thread->nested)
		thread->nested = thread->depth;
	return result;
}

/* The definition that all ways to call Context.run read; NULL: this Python has another one. */
static PyMethodDef *run_definition(void)
{
	PyObject *method = PyObject_GetAttrString((PyObject *)&PyContext_Type, "run");
	PyMethodDef *definition = NULL;

	if (method && Py_IS_TYPE(method, &PyMethodDescr_Type))
		definition = ((PyMethodDescrObject *)method)->d_method;
	if (definition && definition->ml_flags != (METH_FASTCALL | METH_KEYWORDS))
		definition = NULL;
	Py_XDECREF(method); /* the type holds it */
	PyErr_Clear();
	return definition;
}

bool loop_run_arm(void)
{
	PyMethodDef *definition = run_definition();

	if (!definition)
		return false;
	if (definition->ml_meth == (PyCFunction)(void (*)(void))run_timed)
		return true;
	run_original = (run_entry)(void (*)(void))definition->ml_meth;
	definition->ml_meth = (PyCFunction)(void (*)(void))run_timed;
	return true;
}

/* A call that is open returns through run_timed(), so run_original stays. */
void loop_run_disarm(void)
{
	PyMethodDef *definition = run_definition();

	if (definition && definition->ml_meth == (PyCFunction)(void (*)(void))run_timed)
		definition->ml_meth = (PyCFunction)(void (*)(void))run_original;
}
