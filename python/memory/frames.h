/* Python frames, for libkymo_memory. */
#ifndef KYMO_PYTHON_MEMORY_FRAMES_H
#define KYMO_PYTHON_MEMORY_FRAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "record/memory/memory.h"

/* See struct kymo_memory_python. */
size_t frames_walk(struct kymo_memory_frame_key *out, size_t most);
uint32_t frames_name(const struct kymo_memory_frame_key *frame, char *name, size_t *name_bytes,
		     char *file, size_t *file_bytes);

#endif
