#include "loop.h"

PyDoc_STRVAR(loop_arm_doc, "arm($module, /)\n--\n\nRecords callbacks of event loops that take "
			   "longer than 10 ms. Repeated calls have no effect.");

static PyObject *loop_arm(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	loop_stall_begin();
	if (loop_run_arm())
		loop_uvloop_look();
	Py_RETURN_NONE;
}

PyDoc_STRVAR(loop_disarm_doc, "disarm($module, /)\n--\n\nEnds it.");

static PyObject *loop_disarm(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	loop_run_disarm();
	loop_uvloop_disarm();
	loop_stall_flush(&loop_thread);
	Py_RETURN_NONE;
}

PyDoc_STRVAR(loop_flush_doc, "flush($module, /)\n--\n\nWrites the last row of this thread.");

static PyObject *loop_flush(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	loop_stall_flush(&loop_thread);
	Py_RETURN_NONE;
}

static PyMethodDef loop_methods[] = {
	{ "arm", loop_arm, METH_NOARGS, loop_arm_doc },
	{ "disarm", loop_disarm, METH_NOARGS, loop_disarm_doc },
	{ "flush", loop_flush, METH_NOARGS, loop_flush_doc },
	{ NULL },
};

static PyModuleDef_Slot loop_slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
	/* Interpreters with a GIL of their own would share the statics. */
	{ Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED },
#endif
	{ 0, NULL },
};

static PyModuleDef loop_definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "kymo._loop",
	.m_doc = "Records callbacks that block an event loop.",
	.m_methods = loop_methods,
	.m_slots = loop_slots,
};

PyMODINIT_FUNC PyInit__loop(void)
{
	return PyModuleDef_Init(&loop_definition);
}
