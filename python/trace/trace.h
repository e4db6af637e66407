/*
 * Inside kymo._trace. Every Python call is a zone; three mechanisms see calls, one of them at a
 * time:
 *
 *	monitor.c   sys.monitoring, 3.12 and later
 *	frame.c     the PEP 523 frame hook, 3.11
 *	hooks.c     PyEval_SetProfile and PyEval_SetTrace, 3.10, and 3.11 for C functions and lines
 *
 *	trace.c     start and stop              calls.h   the calls that a thread has open, and its zones
 *	codes.c     code objects to names       tasks.c   asyncio tasks as lanes of their own
 *	qualname.c  names of 3.10
 *	gaps.c      what could not be seen      cost.c    what a traced call costs here
 *	window.c    from one step or signpost to another
 *
 * All state is of one interpreter, the one that start() was called in; its GIL guards it. What a
 * thread holds is the thread's own. Nothing here raises, and an exception that is on its way is
 * kept aside by whatever may make another.
 */
#ifndef KYMO_PYTHON_TRACE_TRACE_H
#define KYMO_PYTHON_TRACE_TRACE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include <kymo/kymo.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* ---- an exception that is on its way ------------------------------------------------------ */

struct error_kept {
	PyObject *type, *value, *traceback;
};

static inline struct error_kept error_keep(void)
{
	struct error_kept kept = { NULL, NULL, NULL };

#if PY_VERSION_HEX >= 0x030C0000
	kept.value = PyErr_GetRaisedException();
#else
	PyErr_Fetch(&kept.type, &kept.value, &kept.traceback);
#endif
	return kept;
}

/* Drops one of ours. */
static inline void error_back(struct error_kept kept)
{
#if PY_VERSION_HEX >= 0x030C0000
	PyErr_SetRaisedException(kept.value);
#else
	PyErr_Restore(kept.type, kept.value, kept.traceback);
#endif
}

/* ---- trace.c ----------------------------------------------------------------------------- */

struct mechanism {
	const char *word;
	/* Hooks all threads; 0, or -1 where something else is in its place. Called with the GIL, no
	   exception set. */
	int (*arm)(void);
	/* Puts back what is still ours. */
	void (*disarm)(void);
};

struct trace {
	unsigned starts; /* that have not been stopped */
	bool active; /* calls are to be recorded; what is left of our hooks passes on otherwise */
	bool lines, c_calls;
	PyInterpreterState *interpreter;
	const struct mechanism *mechanism;
};
extern HIDDEN struct trace trace;

extern HIDDEN const struct mechanism mechanism_monitoring, mechanism_frame, mechanism_profile,
	mechanism_trace;

/* ---- codes.c ----------------------------------------------------------------------------- */

/* What is known of a code object, kept in its co_extra, so that it goes with it. */
typedef uintptr_t tag_t;
#define TAG_KNOWN 1u
#define TAG_OURS 2u /* kymo's own Python code: passed over */
#define TAG_RESUMES 4u /* generators and coroutines: each resume is a call, making one is not */
#define TAG_COROUTINE 8u
#define TAG_SPECIAL (TAG_OURS | TAG_RESUMES)
#define TAG_NAME(tag) ((uint32_t)((tag) >> 8))

/* As CPython lays out co_extra; codes_init() makes sure. */
struct code_extra {
	Py_ssize_t size;
	void *items[1];
};
extern HIDDEN Py_ssize_t codes_index;

/* 0, or -1: this Python keeps it otherwise than we know. */
HIDDEN int codes_init(PyObject *module);
HIDDEN tag_t codes_resolve(PyCodeObject *code);
/* The name of a line of it. */
HIDDEN uint32_t codes_line(PyCodeObject *code, int line);
/* The name of a C function; 0: none. callable is a PyCFunction or a method descriptor. */
HIDDEN uint32_t codes_c_function(PyObject *callable);
HIDDEN PyMethodDef *codes_c_method(PyObject *callable); /* NULL: it is neither */

/* qualname.c, before 3.11: as co_qualname would be; borrowed. */
HIDDEN PyObject *qualname_of(PyCodeObject *code);

static inline tag_t codes_tag(PyCodeObject *code)
{
	const struct code_extra *extra = code->co_extra;

	if (KYMO__LIKELY(extra && extra->size > codes_index)) {
		tag_t tag = (tag_t)extra->items[codes_index];

		if (KYMO__LIKELY(tag))
			return tag;
	}
	return codes_resolve(code);
}

/* ---- tasks.c ----------------------------------------------------------------------------- */

/* The thread index of the asyncio task that runs on this thread now; 0: none does. */
HIDDEN uint32_t tasks_current(void);
HIDDEN void tasks_forget(void); /* in the child of a fork, whose table of threads is a new one */

/* ---- gaps.c ------------------------------------------------------------------------------ */

/* What could not be seen: the words of gaps() and of kymo.gaps. */
#define GAPS(X) \
	X(DISPLACED, "displaced") /* another tool took our hook */ \
	X(DEEP, "deep") /* recursion deeper than we follow */ \
	X(REFUSED, "refused") /* no hook could be had at start() */ \
	X(INTERPRETER, "interpreter") /* start() in a second interpreter */ \
	X(TASKS, "tasks") /* more tasks than get a lane of their own */ \
	X(MEMORY, "memory")

enum gap {
#define X(upper, word) GAP_##upper,
	GAPS(X)
#undef X
		GAP_COUNT
};

/* Counts one that lasted from then until now, and records it: at most a row a millisecond for each
   cause. */
HIDDEN void gaps_add(enum gap gap, uint64_t since_ticks);
/* At stop(): the rows that were held back. They span from the last one until now. */
HIDDEN void gaps_flush(void);
HIDDEN PyObject *gaps_dict(void);

/* ---- cost.c ------------------------------------------------------------------------------ */

/* Between the two, the hooks are armed; what calls cost then and before is told to the
   recording. */
HIDDEN void cost_before(void);
HIDDEN void cost_after(void);

/* ---- window.c ---------------------------------------------------------------------------- */

HIDDEN PyObject *window_open(PyObject *module, PyObject *args);
HIDDEN PyObject *window_close(PyObject *module, PyObject *unused);

#endif
