/* What a program is called in lists. */
#ifndef KYMO_BASE_PROGRAM_NAME_H
#define KYMO_BASE_PROGRAM_NAME_H

#include <stddef.h>

/* argv: words, each ended by NUL, as in /proc/PID/cmdline. "train.py" says more than "python3.11",
   so an interpreter gives way to its script or module. */
void program_name(const char *argv, size_t argv_bytes, char *out, size_t out_bytes);

#endif
