/* The lines that vAccel's log would have printed, and what its environment says. */
#ifndef KYMO_COMPAT_VACCEL_LOG_H
#define KYMO_COMPAT_VACCEL_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

/* "[prof] NAME: total_time: N nsec nr_entries: N"; as snprintf. */
int log_format(char *out, size_t bytes, const char *name, uint64_t total_ns, uint64_t count);
/* The same with date and level before it and a newline after it, in one write. */
void log_entry(const char *name, uint64_t total_ns, uint64_t count);
/* VACCEL_PROF_ENABLED or VACCEL_PROFILING_ENABLED say so. */
bool log_is_wanted(void);
/* One line to stderr. */
void log_complain(const char *what, const char *about);

#endif
