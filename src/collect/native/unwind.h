/* Native frames from a copied stack, after the thread has been let go. Needs elfutils' libdw.so.1
   at run time. */
#ifndef KYMO_COLLECT_NATIVE_UNWIND_H
#define KYMO_COLLECT_NATIVE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/native/ptrace_stop.h"

#define UNWIND_DEEPEST 1024

struct unwind_frame {
	char *func; /* demangled; module+0xoffset where there is no symbol */
	char *file; /* of its source, where its module has that; else its module's */
	int line; /* of the source; 0: not known */
	bool eval; /* the interpreter's loop: Python frames belong here */
};

struct unwind;

/* For a process; *out is NULL and *err says why (no libdw, no memory). */
int unwind_open(pid_t pid, struct unwind **out, struct kymo_error *err);
/* The frames of a copied stack, the innermost first; how many were found. The caller frees their
   texts. */
size_t unwind_frames(struct unwind *unwind, const struct ptrace_stop *hold,
		     struct unwind_frame *out, size_t most);
void unwind_close(struct unwind *unwind);

#endif
