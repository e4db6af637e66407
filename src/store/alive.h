/* Is that process still running? Pids are used again and mean different things in different
   namespaces. */
#ifndef KYMO_STORE_ALIVE_H
#define KYMO_STORE_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/format.h"

/* Recordings of another boot, or of another machine, have no living process here. An empty boot_id:
   not known. */
bool alive_same_boot(const char *boot_id);
/* pid_namespace: 0: not known, ours is meant. A zombie is not alive. */
bool alive_process(int32_t pid, uint64_t starttime, uint64_t pid_namespace);

#endif
