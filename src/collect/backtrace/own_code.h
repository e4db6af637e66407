/*
 * Which frames are the program's own code: not the standard library, not installed packages
 * (site-packages, dist-packages), not frozen modules, not kymo. Files below the directory in which
 * the program was started are judged by the rest of their path, so that a project may be anywhere.
 * $KYMO_OWN_CODE names more directories, with colons between them.
 *
 * Code without a file of its own ("<string>": exec, dataclasses, python -c) and scripts that pip
 * writes into bin/ are own code only in a program that has no other: see own_code_is_weak().
 */
#ifndef KYMO_COLLECT_BACKTRACE_OWN_CODE_H
#define KYMO_COLLECT_BACKTRACE_OWN_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* file: as Python names it; cwd: of the program, may be empty. */
bool own_code_is(const char *file, size_t file_bytes, const char *cwd);
/* Whether a worker process of multiprocessing begins with this function of Python. In one that was
   forked, the callers of that are what the parent did then. */
bool own_code_is_worker(const char *function, size_t function_bytes, const char *file,
			size_t file_bytes);
/* Whether own code is so only if there is no better. */
bool own_code_is_weak(const char *file, size_t file_bytes);
/*
 * The same for native code. module: the path of the program or library; file: of its source, may be
 * empty. Programs and libraries of the system (/usr, /lib, /opt, …) and of Python are not own code,
 * and neither are functions of system headers that are inlined into own code.
 */
bool own_code_is_native(const char *module, size_t module_bytes, const char *file,
			size_t file_bytes, const char *cwd);

/* Functions without source lines that are linked into every program: where it begins, the table of
   calls into libraries, and, in static programs, the C library, to which names with two underscores
   are reserved. */
bool own_code_is_linked(const char *function, size_t bytes);
/* The inline functions of <kymo/kymo.h> and <kymo/hot.h>, which are compiled into own code. */
bool own_code_is_recorder(const char *function, size_t bytes);

#endif
