/* The short name of a program, for lists. */
#ifndef KYMO_BASE_PROGRAM_NAME_H
#define KYMO_BASE_PROGRAM_NAME_H

#include <stddef.h>

/* argv: NUL-terminated words, as in /proc/PID/cmdline. An interpreter is named by its script or
   module: "train.py", not "python3.11". */
void program_name(const char *argv, size_t argv_bytes, char *out, size_t out_bytes);

#endif
