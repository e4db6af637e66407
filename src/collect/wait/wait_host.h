/* What threads of programs in any language wait for, for rows of host.threads. */
#ifndef KYMO_COLLECT_WAIT_WAIT_HOST_H
#define KYMO_COLLECT_WAIT_WAIT_HOST_H

#include "collect/host/host_threads.h"

void wait_host_look(pid_t pid, pid_t tid, char state, struct host_threads_wait *out);

#endif
