/*
 * The PEP 523 frame hook of 3.11: the interpreter calls it for each frame, and the zone lives on
 * our C stack.
 *
 * With a hook, Python calls use C stack, which they otherwise do not; deep recursion would crash.
 * When hooked frames have used their share of the stack, a frame runs without the hook, and a
 * profile function, which needs no stack, records its calls. The hook belongs to the whole
 * interpreter: other threads that run in that time are not recorded, which is counted as a gap.
 */
#include "calls.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000

#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>

#include <pthread.h>

#include "hooks.h"

#define FRAMES_MAX 400
#define FRAME_BYTES 624 /* of C stack per hooked call */
#define STACK_LEAST (1u << 20) /* with less stack, profile functions are used */

static uint32_t runs_without; /* frames running without the hook, in all threads */
static uint64_t displaced_since;

static PyObject *frame_hook(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag);

/* ---- the stack --------------------------------------------------------------------------- */

static void ask_stack(struct calls *calls)
{
	pthread_attr_t attr;
	void *base;
	size_t bytes;

	calls->stack_bytes = STACK_LEAST; /* unknown: treated as small */
	calls->stack_base = (char *)__builtin_frame_address(0) - STACK_LEAST / 2;
	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (!pthread_attr_getstack(&attr, &base, &bytes)) {
		calls->stack_base = base;
		calls->stack_bytes = bytes;
	}
	pthread_attr_destroy(&attr);
}

/* How far the hooked frames starting here may go: 400 frames, an eighth of the stack, or half of
   what is left, whichever is least. */
static char *limit_from(struct calls *calls, char *here)
{
	size_t share = FRAMES_MAX * FRAME_BYTES, left;

	if (!calls->stack_base)
		ask_stack(calls);
	left = here > calls->stack_base ? (size_t)(here - calls->stack_base) : STACK_LEAST;
	if (share > calls->stack_bytes / 8)
		share = calls->stack_bytes / 8;
	if (share > left / 2)
		share = left / 2;
	return here - share;
}

/* ---- the hook ---------------------------------------------------------------------------- */

static void set_hook(PyInterpreterState *interpreter, _PyFrameEvalFunction function)
{
	_PyInterpreterState_SetEvalFrameFunc(interpreter, function);
}

/* The hook of another tool stays in place: it may call ours. When it is removed, ours is
   restored. */
static __attribute__((noinline, cold)) void other_hook(PyThreadState *tstate)
{
	_PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(tstate->interp);

	if (!trace.active || runs_without || now == frame_hook)
		return;
	if (!displaced_since)
		displaced_since = kymo_ticks();
	if (now != _PyEval_EvalFrameDefault)
		return;
	set_hook(tstate->interp, frame_hook);
	gaps_add(GAP_DISPLACED, displaced_since);
	displaced_since = 0;
}

static inline PyObject *traced(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag,
			       uint32_t name)
{
	struct kymo_zone zone = kymo__zone_open(name);
	PyObject *result = _PyEval_EvalFrameDefault(tstate, frame, throwflag);

	if (KYMO__LIKELY(zone.lane && zone.lane == kymo__lane))
		kymo__zone_close(&zone); /* in the child of a fork the zone is the parent's */
	if (KYMO__UNLIKELY(tstate->interp->eval_frame != frame_hook))
		other_hook(tstate);
	return result;
}

static bool awaited(const _PyInterpreterFrame *frame)
{
	const _PyInterpreterFrame *parent = frame->previous;

	return parent && parent->f_code->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE);
}

static PyObject *traced_coroutine(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag,
				  uint32_t name)
{
	struct calls *calls = calls_mine;
	struct kymo__lane *lane = kymo__lane ? kymo__lane : kymo__lane_get();
	char *floor = calls->floor;
	uint32_t thread = 0;
	PyObject *result;
	bool swapped;

	calls->floor = (char *)UINTPTR_MAX; /* our own code: forces hook_slow() */
	swapped = lane && calls_swap(calls, lane, &thread);
	calls->floor = floor;
	result = traced(tstate, frame, throwflag, name);
	if (swapped && lane == kymo__lane)
		lane->thread = thread;
	return result;
}

static __attribute__((noinline)) PyObject *traced_special(PyThreadState *tstate,
							  _PyInterpreterFrame *frame, int throwflag,
							  tag_t tag)
{
	/* Creating a generator runs a frame owned by the thread; resuming it runs its own. */
	if (tag & TAG_OURS || frame->owner != FRAME_OWNED_BY_GENERATOR)
		return _PyEval_EvalFrameDefault(tstate, frame, throwflag);
	if (tag & TAG_COROUTINE && !awaited(frame))
		return traced_coroutine(tstate, frame, throwflag, TAG_NAME(tag));
	return traced(tstate, frame, throwflag, TAG_NAME(tag));
}

static bool other_threads(PyThreadState *tstate)
{
	PyThreadState *first = PyInterpreterState_ThreadHead(tstate->interp);

	return first != tstate || PyThreadState_Next(first);
}

/* Runs the frame and everything it calls without the hook. */
static __attribute__((noinline)) PyObject *without_hook(PyThreadState *tstate,
							_PyInterpreterFrame *frame, int throwflag)
{
	_PyFrameEvalFunction before = _PyInterpreterState_GetEvalFrameFunc(tstate->interp);
	uint64_t since = kymo_ticks();
	bool profiled = hooks_borrow(tstate);
	PyObject *result;

	runs_without++;
	set_hook(tstate->interp, _PyEval_EvalFrameDefault);
	result = _PyEval_EvalFrameDefault(tstate, frame, throwflag);
	runs_without--;
	if (profiled)
		hooks_give_back(tstate);
	if (trace.active &&
	    _PyInterpreterState_GetEvalFrameFunc(tstate->interp) == _PyEval_EvalFrameDefault)
		set_hook(tstate->interp, before);
	if (!profiled || other_threads(tstate))
		gaps_add(GAP_DEEP, since);
	return result;
}

static PyObject *frame_pass_on(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
	/* Our hook is left over because another tool had wrapped it, and that tool is gone. */
	if (!trace.active && tstate->interp->eval_frame == frame_hook)
		set_hook(tstate->interp, _PyEval_EvalFrameDefault);
	return _PyEval_EvalFrameDefault(tstate, frame, throwflag);
}

static PyObject *frame_run(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag,
			   struct calls *calls)
{
	tag_t tag;

	if (!trace.active || calls->busy || !kymo__is_on(KYMO_ON_ZONES))
		return frame_pass_on(tstate, frame, throwflag);
	if (calls->name_attempts) {
		calls_name_thread(calls);
		if (!calls->name_attempts)
			calls->floor = calls->limit;
	}
	tag = codes_tag(frame->f_code);
	if (tag & TAG_SPECIAL)
		return traced_special(tstate, frame, throwflag, tag);
	return traced(tstate, frame, throwflag, TAG_NAME(tag));
}

/* The first frame of a thread sets the bounds; frames below them run without the hook. */
static __attribute__((noinline)) PyObject *hook_slow(PyThreadState *tstate,
						     _PyInterpreterFrame *frame, int throwflag)
{
	struct calls *calls = calls_get();
	char *here = __builtin_frame_address(0);
	bool outermost;
	PyObject *result;

	if (!calls)
		return without_hook(tstate, frame, throwflag);
	outermost = !calls->limit;
	if (!outermost && here < calls->limit)
		return without_hook(tstate, frame, throwflag);
	if (outermost) {
		calls->limit = limit_from(calls, here);
		if (!calls->name_attempts)
			calls->floor = calls->limit;
	}
	result = frame_run(tstate, frame, throwflag, calls);
	if (outermost) {
		calls->limit = NULL;
		calls->floor = (char *)UINTPTR_MAX;
	}
	return result;
}

static PyObject *frame_hook(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
	const struct calls *calls = calls_mine;
	tag_t tag;

	if (KYMO__UNLIKELY(!calls || (char *)__builtin_frame_address(0) < calls->floor ||
			   !trace.active || !kymo__is_on(KYMO_ON_ZONES)))
		return hook_slow(tstate, frame, throwflag);
	tag = codes_tag(frame->f_code);
	if (KYMO__UNLIKELY(tag & TAG_SPECIAL))
		return traced_special(tstate, frame, throwflag, tag);
	return traced(tstate, frame, throwflag, TAG_NAME(tag));
}

/* ---- on and off -------------------------------------------------------------------------- */

static int frame_arm(void)
{
	struct calls *calls = calls_get();

	if (!calls ||
	    _PyInterpreterState_GetEvalFrameFunc(trace.interpreter) != _PyEval_EvalFrameDefault)
		return -1;
	if (!calls->stack_base)
		ask_stack(calls);
	if (calls->stack_bytes < STACK_LEAST)
		return -1;
	displaced_since = 0;
	set_hook(trace.interpreter, frame_hook);
	return 0;
}

static void frame_disarm(void)
{
	if (_PyInterpreterState_GetEvalFrameFunc(trace.interpreter) == frame_hook)
		set_hook(trace.interpreter, _PyEval_EvalFrameDefault);
	if (displaced_since)
		gaps_add(GAP_DISPLACED, displaced_since);
	displaced_since = 0;
}

const struct mechanism mechanism_frame = { "frame", frame_arm, frame_disarm };

#endif
