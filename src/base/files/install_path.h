/* Files installed with the kymo command, found relative to it. */
#ifndef KYMO_BASE_FILES_INSTALL_PATH_H
#define KYMO_BASE_FILES_INSTALL_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the first file that matches one of the patterns (glob patterns relative to the folder of
   the running program; a NULL-terminated list). out: an absolute path. False: there is none. */
bool install_path_find(const char *const *patterns, char *out, size_t out_bytes);

/* Finds a library that kymo brings: in the build folder, below an installation prefix or in an
   environment with the wheel. */
bool install_path_library(const char *library, char *out, size_t out_bytes);

/* dlopen()s a library of the system, else the one that a wheel brings for systems without it.
   NULL: dlerror() has the reason. */
void *install_path_open(const char *library, int flags);

#endif
