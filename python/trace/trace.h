/*
 * Inside kymo._trace. Every Python call is a zone. One of three mechanisms reports calls:
 *
 *	monitor.c   sys.monitoring, 3.12 and later
 *	frame.c     the PEP 523 frame hook, 3.11
 *	hooks.c     PyEval_SetProfile and PyEval_SetTrace, 3.10, and 3.11 for C functions and lines
 *
 *	trace.c     start and stop              calls.h   the open calls of a thread, and its zones
 *	codes.c     names of code objects       tasks.c   asyncio tasks as threads of their own
 *	codetable.c the same, beside other users of co_extra
 *	qualname.c  names of 3.10
 *	gaps.c      calls that were not seen    cost.c    the cost of a traced call
 *	window.c    from one step or signpost to another
 *	limit.c     in short windows, so that tracing costs at most a share of the time
 *
 * All state belongs to one interpreter, the one that called start(); its GIL protects it.
 * Per-thread state belongs to its thread. Nothing here raises, and code that may raise saves and
 * restores a pending exception.
 */
#ifndef KYMO_PYTHON_TRACE_TRACE_H
#define KYMO_PYTHON_TRACE_TRACE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include <kymo/kymo.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* ---- saving a pending exception ----------------------------------------------------------- */

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

/* Drops an exception of our own. */
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
	/* Hooks all threads; 0, or -1 if another tool's hook is in place. Called with the GIL,
	   without a pending exception. */
	int (*arm)(void);
	/* Removes the hooks that are still ours. */
	void (*disarm)(void);
};

struct trace {
	unsigned starts; /* not yet stopped */
	bool active; /* calls are recorded; otherwise leftover hooks only forward calls */
	bool lines, c_calls;
	uint64_t paused_ticks; /* by limit.c, since then; 0: not paused */
	PyInterpreterState *interpreter;
	const struct mechanism *mechanism;
};
extern HIDDEN struct trace trace;

/* Removes the hooks for a while, and sets them again. With the GIL. */
HIDDEN void trace_pause(void);
HIDDEN void trace_resume(void);

extern HIDDEN const struct mechanism mechanism_monitoring, mechanism_frame, mechanism_profile,
	mechanism_trace;

/* ---- codes.c ----------------------------------------------------------------------------- */

/* The name of a code object and flags, kept in its co_extra, so freed with it; in codetable.c if
   another user of co_extra was there first. */
typedef uintptr_t tag_t;
#define TAG_KNOWN 1u
#define TAG_OURS 2u /* kymo's own Python code: skipped */
#define TAG_RESUMES 4u /* generators and coroutines: each resume is a call, creation is not */
#define TAG_COROUTINE 8u
#define TAG_SPECIAL (TAG_OURS | TAG_RESUMES)
#define TAG_NAME(tag) ((uint32_t)((tag) >> 8))

/* The layout of CPython's co_extra; codes_init() verifies it. */
struct code_extra {
	Py_ssize_t size;
	void *items[1];
};
extern HIDDEN Py_ssize_t codes_index; /* CODES_ELSEWHERE: in codetable.c */
#define CODES_ELSEWHERE PY_SSIZE_T_MAX

/* What a code object has, by kind: its tag, the names of its lines (malloc'd), before 3.11 its
   qualified name (a str). */
enum code_item {
	CODE_TAG,
	CODE_LINES,
#if PY_VERSION_HEX < 0x030B0000
	CODE_NAME,
#endif
	CODE_ITEMS
};
HIDDEN void *codes_item(PyCodeObject *code, enum code_item item);
/* Takes value, if it returns 0; the previous one is freed. */
HIDDEN int codes_set_item(PyCodeObject *code, enum code_item item, void *value);

/* 0, or -1: this Python has another layout. */
HIDDEN int codes_init(PyObject *module);
HIDDEN tag_t codes_resolve(PyCodeObject *code);
/* The name of a line of the code. */
HIDDEN uint32_t codes_line(PyCodeObject *code, int line);
/* The name of a C function; 0: none. callable is a PyCFunction or a method descriptor. */
HIDDEN uint32_t codes_c_function(PyObject *callable);
HIDDEN PyMethodDef *codes_c_method(PyObject *callable); /* NULL: neither of them */

/* codetable.c; NULL: none, or no memory. */
struct code_entry {
	struct code_entry *next;
	const PyCodeObject *code; /* borrowed */
	PyObject *reference; /* weak, to the code */
	void *items[CODE_ITEMS];
};
HIDDEN struct code_entry *codetable_find(const PyCodeObject *code);
HIDDEN struct code_entry *codetable_at(PyCodeObject *code); /* found or inserted */
/* Frees what codes_set_item() took. */
HIDDEN void codes_free_item(enum code_item item, void *value);

/* qualname.c, before 3.11: the equivalent of co_qualname; borrowed. */
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

/* The thread index of the asyncio task that runs on this thread; 0: none. */
HIDDEN uint32_t tasks_current(void);
HIDDEN void tasks_forget(void); /* in the child of a fork, which has a new thread table */

/* ---- gaps.c ------------------------------------------------------------------------------ */

/* Causes of missed calls: the words of gaps() and of kymo.gaps. */
#define GAPS(X) \
	X(DISPLACED, "displaced") /* another tool replaced our hook */ \
	X(DEEP, "deep") /* recursion beyond our limit */ \
	X(REFUSED, "refused") /* no hook could be set at start() */ \
	X(INTERPRETER, "interpreter") /* start() in a second interpreter */ \
	X(BUDGET, "budget") /* between two windows of limit.c */ \
	X(TASKS, "tasks") /* more tasks than thread entries for them */ \
	X(MEMORY, "memory")

enum gap {
#define X(upper, word) GAP_##upper,
	GAPS(X)
#undef X
		GAP_COUNT
};

/* Counts a gap that lasted until now, and records it: at most one row a millisecond for each
   cause. */
HIDDEN void gaps_add(enum gap gap, uint64_t since_ticks);
/* At stop(): writes the rows held back. They span from the last row until now. */
HIDDEN void gaps_flush(void);
HIDDEN PyObject *gaps_dict(void);

/* ---- cost.c ------------------------------------------------------------------------------ */

/* Call them around the time the hooks are armed; the difference is written to the recording. */
HIDDEN void cost_before(void);
HIDDEN void cost_after(void);

/* ---- window.c ---------------------------------------------------------------------------- */

HIDDEN PyObject *window_open(PyObject *module, PyObject *args);
HIDDEN PyObject *window_close(PyObject *module, PyObject *unused);

/* ---- limit.c ----------------------------------------------------------------------------- */

HIDDEN PyObject *limit_begin(PyObject *module, PyObject *unused);
HIDDEN PyObject *limit_end(PyObject *module, PyObject *unused);
HIDDEN PyObject *limit_in_child(PyObject *module, PyObject *unused);

#endif
