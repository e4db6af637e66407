/*
 * Python frames of the calling thread, taken inside malloc: with or without the GIL, without
 * references, locks or allocation. The frames belong to calls that this thread is in, so they
 * cannot go away.
 */
#include "frames.h"

#include <frameobject.h>
#include <string.h>

#if PY_VERSION_HEX >= 0x030B0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe_structs.h>
#endif
#if PY_VERSION_HEX >= 0x030C0000
#include <internal/pycore_code.h>
#endif
#endif

/* Code of the interpreter between a class that is called and its __init__. */
#ifdef CO_NO_MONITORING_EVENTS
#define INTERNAL CO_NO_MONITORING_EVENTS
#else
#define INTERNAL 0
#endif

/* The thread state also exists while the thread waits for the GIL or has released it, which is when
   torch allocates. */
static PyThreadState *state(void)
{
#if PY_VERSION_HEX >= 0x030D0000
	PyThreadState *now = PyThreadState_GetUnchecked();

	return now ? now : PyGILState_GetThisThreadState();
#elif PY_VERSION_HEX >= 0x030C0000
	PyThreadState *now = _PyThreadState_UncheckedGet();

	return now ? now : PyGILState_GetThisThreadState();
#else
	return PyGILState_GetThisThreadState();
#endif
}

/* An address may be reused by another code object, so the name and first line are part of the key.
   The multiplications are independent. */
static void frames_take(struct kymo_memory_frame_key *out, const PyCodeObject *code, int place)
{
	uint64_t key = (uintptr_t)code * 0x9E3779B97F4A7C15ull +
		       (uint64_t)(uint32_t)place * 0xBF58476D1CE4E5B9ull +
		       (uintptr_t)code->co_name * 0x94D049BB133111EBull +
		       (uintptr_t)code->co_filename * 0xD6E8FEB86659FD93ull +
		       (uint64_t)(uint32_t)code->co_firstlineno * 0xC2B2AE3D27D4EB4Full;

	out->key = (key ^ key >> 32) | 1ull << 63; /* not an address: distinct from native keys */
	out->code = code;
	out->place = place;
}

#if PY_VERSION_HEX >= 0x030B0000

static _PyInterpreterFrame *innermost(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030D0000
	return tstate->current_frame;
#else
	return tstate->cframe ? tstate->cframe->current_frame : NULL;
#endif
}

/* NULL: not a Python function but an entry frame of the interpreter. */
static const PyCodeObject *frames_code_of(const _PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
	const PyObject *executable; /* has tags in its lowest bits */

	if (frame->owner >= FRAME_OWNED_BY_INTERPRETER)
		return NULL;
	executable = (const PyObject *)(frame->f_executable.bits & ~(uintptr_t)7);
	return executable && PyCode_Check(executable) ? (const PyCodeObject *)executable : NULL;
#elif PY_VERSION_HEX >= 0x030D0000
	if (frame->owner == FRAME_OWNED_BY_CSTACK || !frame->f_executable ||
	    !PyCode_Check(frame->f_executable))
		return NULL;
	return (const PyCodeObject *)frame->f_executable;
#elif PY_VERSION_HEX >= 0x030C0000
	return frame->owner == FRAME_OWNED_BY_CSTACK ? NULL : frame->f_code;
#else
	return frame->f_code;
#endif
}

static int frames_place_of(const _PyInterpreterFrame *frame, const PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030D0000
	const _Py_CODEUNIT *at = frame->instr_ptr;
#else
	const _Py_CODEUNIT *at = frame->prev_instr;
#endif
	intptr_t place = (const char *)at - (const char *)_PyCode_CODE((PyCodeObject *)code);

	return place >= 0 && place < (1 << 24) ? (int)place : 0;
}

size_t frames_walk(struct kymo_memory_frame_key *out, size_t most)
{
	PyThreadState *tstate = state();
	const _PyInterpreterFrame *frame = tstate ? innermost(tstate) : NULL;
	size_t count = 0;

	for (; frame && count < most; frame = frame->previous) {
		const PyCodeObject *code = frames_code_of(frame);

		if (code && !(code->co_flags & INTERNAL))
			frames_take(&out[count++], code, frames_place_of(frame, code));
	}
	return count;
}

#else

size_t frames_walk(struct kymo_memory_frame_key *out, size_t most)
{
	PyThreadState *tstate = state();
	const PyFrameObject *frame = tstate ? tstate->frame : NULL;
	size_t count = 0;

	for (; frame && count < most; frame = frame->f_back)
		frames_take(&out[count++], frame->f_code,
			    frame->f_lasti > 0 ? frame->f_lasti * 2 : 0);
	return count;
}

#endif

/* ---- names ----------------------------------------------------------------------------------- */

static size_t frames_put(char *out, size_t room, Py_UCS4 character)
{
	unsigned char bytes[4];
	size_t count = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
	static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (count > room)
		return 0;
	for (size_t i = count; i-- > 1; character >>= 6)
		bytes[i] = (unsigned char)(0x80 | (character & 0x3f));
	bytes[0] = (unsigned char)(first[count] | character);
	memcpy(out, bytes, count);
	return count;
}

/* As UTF-8, without the object's own methods, which would allocate. */
static size_t frames_text(PyObject *object, char *out, size_t room)
{
	size_t used = 0, added = 1;

	if (!object || !PyUnicode_Check(object) || !PyUnicode_IS_READY(object))
		return 0;
	for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(object) && added; i++) {
		added = frames_put(out + used, room - used, PyUnicode_READ_CHAR(object, i));
		used += added;
	}
	return used;
}

uint32_t frames_name(const struct kymo_memory_frame_key *frame, char *name, size_t *name_bytes,
		     char *file, size_t *file_bytes)
{
	PyCodeObject *code = (PyCodeObject *)frame->code;
	int line = PyCode_Addr2Line(code, frame->place);

#if PY_VERSION_HEX >= 0x030B0000
	*name_bytes = frames_text(code->co_qualname, name, *name_bytes);
#else
	*name_bytes = frames_text(code->co_name, name, *name_bytes);
#endif
	*file_bytes = frames_text(code->co_filename, file, *file_bytes);
	return line > 0 ? (uint32_t)line : 0;
}
