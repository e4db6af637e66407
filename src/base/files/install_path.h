/* What came with the program: beside its file, wherever that was installed. */
#ifndef KYMO_BASE_FILES_INSTALL_PATH_H
#define KYMO_BASE_FILES_INSTALL_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The first thing that fits one of the patterns (as a shell's, relative to the folder of the
   running program; NULL ends the list), as an absolute path. False: there is none. */
bool install_path_find(const char *const *patterns, char *out, size_t out_bytes);

#endif
