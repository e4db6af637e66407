/* PyEval_SetProfile and PyEval_SetTrace; see hooks.c. */
#ifndef KYMO_PYTHON_TRACE_HOOKS_H
#define KYMO_PYTHON_TRACE_HOOKS_H

#include "trace.h"

/* Records the calls of that thread by a profile function for a while. False: the program has set
   its own. */
HIDDEN bool hooks_borrow(PyThreadState *tstate);
HIDDEN void hooks_give_back(PyThreadState *tstate);

#endif
