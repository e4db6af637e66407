/* Whether a process is still running. Pids are reused and differ between namespaces. */
#ifndef KYMO_STORE_ALIVE_H
#define KYMO_STORE_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/format.h"

/* False for a recording of another boot or machine, which has no live process here. An empty
   boot_id is unknown. */
bool alive_same_boot(const char *boot_id);
/* Whether only another host can tell: neither its boot nor its name are ours. A host of our name
   and another boot was restarted, which ended its processes. */
bool alive_elsewhere(const char *boot_id, const char *host);
/* Whether processes of that namespace cannot be seen here: it is not ours, and we are in a
   container, too. pid_namespace 0: unknown; false. */
bool alive_hidden(uint64_t pid_namespace);
/* pid_namespace 0: unknown; ours is assumed. A zombie is not alive. */
bool alive_process(int32_t pid, uint64_t starttime, uint64_t pid_namespace);

#endif
