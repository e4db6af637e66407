/* The frame that runs now: identifies one use of a region or of a series. */
#ifndef KYMO_PYTHON_FRAME_H
#define KYMO_PYTHON_FRAME_H

#include <Python.h>

/* An address to compare, never dereferenced. With the GIL. */
static inline const void *frame_current(void)
{
	PyThreadState *thread = PyThreadState_Get();

#if PY_VERSION_HEX >= 0x030D0000
	return thread->current_frame;
#elif PY_VERSION_HEX >= 0x030B0000
	return thread->cframe->current_frame;
#else
	return thread->frame;
#endif
}

#endif
