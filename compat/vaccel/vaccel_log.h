/* Log lines in vAccel's format, and its environment variables. */
#ifndef KYMO_COMPAT_VACCEL_LOG_H
#define KYMO_COMPAT_VACCEL_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

/* "[prof] NAME: total_time: N nsec nr_entries: N"; like snprintf. */
int log_format(char *out, size_t bytes, const char *name, uint64_t total_ns, uint64_t count);
/* The same with date and level before it and a newline after it, in one write. */
void log_entry(const char *name, uint64_t total_ns, uint64_t count);
/* Whether VACCEL_PROF_ENABLED or VACCEL_PROFILING_ENABLED is set to on. */
bool log_is_wanted(void);
/* One line to stderr. */
void log_complain(const char *what, const char *about);

#endif
