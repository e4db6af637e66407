/* Unwinds native frames from a copied stack, after the thread has continued. Needs libdw.so.1 of
   elfutils at run time. */
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
	char *func; /* demangled; module+0xoffset without a symbol */
	char *file; /* the source file if its module has debug information, else the module */
	int line; /* in the source; 0: unknown */
	bool eval; /* the interpreter loop, in whose place Python frames are inserted */
};

struct unwind;

/* On failure (no libdw, out of memory) *out is NULL and *err is set. */
int unwind_open(pid_t pid, struct unwind **out, struct kymo_error *err);
/* Writes the frames of a copied stack, innermost first, and returns their number. The caller frees
   their texts. */
size_t unwind_frames(struct unwind *unwind, const struct ptrace_stop *stop,
		     struct unwind_frame *out, size_t most);
void unwind_close(struct unwind *unwind);

/* A copied stack and its frames, which the caller frees with free() and their texts. */
struct unwind_job {
	const struct ptrace_stop *stop; /* NULL: nothing to do */
	struct unwind_frame *frames;
	size_t count;
};
/*
 * unwind_child.c: unwinds all jobs in a child process, which ends at the deadline of this thread
 * (collect/native/process_memory.h). libdw reads files that the program chose: whatever they make
 * of it, the frames found before are kept. 0, or a negative errno and *err.
 */
int unwind_all(struct unwind *unwind, struct unwind_job *jobs, size_t count,
	       struct kymo_error *err);

#endif
