/* kymo._jax: annotations of JAX's profiler as zones, and windows of XLA's operations. */
#ifndef KYMO_JAX_H
#define KYMO_JAX_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <kymo/kymo.h>

#include <stdbool.h>

/* Of one annotation; in the __dict__ of the program's object. */
struct annotation_mark {
	PyObject_HEAD struct kymo_region region;
	PyObject *text; /* its arguments; NULL: none */
	bool is_step;
};

/* Calls a method of the program's class with self before the other arguments. */
PyObject *jax_call(PyObject *method, PyObject *self, PyObject *const *args, Py_ssize_t count,
		   PyObject *keywords);
/* Puts a method into a class; its present value goes to *out_old. -1 and an exception. */
int jax_replace(PyObject *type, PyMethodDef *method, PyObject **out_old);

/* ---- windows.c ---- */

/* make: returns a new session. sessions: its class. One window of `every` steps. */
int windows_set(PyObject *make, PyObject *sessions, uint32_t every);
/* Before an annotation begins, and after it has ended. */
void windows_begin(struct annotation_mark *mark, bool is_outermost);
void windows_end(const struct annotation_mark *mark);

#endif
