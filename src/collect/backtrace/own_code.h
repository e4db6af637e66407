/*
 * Which frames are the program's own code: not the standard library, not installed packages
 * (site-packages, dist-packages), not frozen modules, not kymo. Files below the directory in which
 * the program was started are judged by the rest of their path, so that a project may be anywhere.
 * $KYMO_OWN_CODE names more directories, with colons between them.
 */
#ifndef KYMO_COLLECT_BACKTRACE_OWN_CODE_H
#define KYMO_COLLECT_BACKTRACE_OWN_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* file: as Python names it; cwd: of the program, may be empty. */
bool own_code_is(const char *file, size_t file_bytes, const char *cwd);

#endif
