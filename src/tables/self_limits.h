/*
 * Limits of this process, set by the child that runs foreign SQL or opens a foreign file. DuckDB
 * counts only the memory of its buffers: repeat('x', 1500000000) is outside of its own limit, and
 * some functions never look at the clock. The kernel enforces both.
 */
#ifndef KYMO_TABLES_SELF_LIMITS_H
#define KYMO_TABLES_SELF_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* From now on this process may allocate memory_bytes (plus a quarter and some for the allocator and
   for threads) and use cpu_seconds. 0: no such limit. Limits that are lower already stay. Call it
   when the database is open, whose threads exist then, and before foreign SQL or a foreign file. A
   refused allocation is an error of DuckDB, which mostly survives it; more CPU time ends the
   process by SIGXCPU. */
int self_limits_set(uint64_t memory_bytes, uint32_t cpu_seconds, struct kymo_error *err);

/* Declares that this process exists for one session, as the child of a command does. tables_open()
   then calls self_limits_set() with the session's memory limit, before it opens a packed file. */
void self_limits_arm(void);
bool self_limits_armed(void);

#endif
