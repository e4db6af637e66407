/*
 * The thread that holds the lock which another one waits for in a futex. A mutex of glibc has its
 * owner beside the word that threads wait for; a mutex with priority inheritance has it in that
 * word.
 */
#ifndef KYMO_COLLECT_WAIT_WAIT_FUTEX_H
#define KYMO_COLLECT_WAIT_WAIT_FUTEX_H

#include <stdbool.h>

#include "collect/wait/wait_call.h"

/* Whether the call waits for a mutex of glibc, by its arguments alone. */
bool wait_futex_may_be_mutex(const struct wait_call *call);
/* The thread that holds the mutex whose futex is at the address: one of the process's own. 0: it is
   no mutex, is not waited for, or does not record its owner. */
pid_t wait_futex_owner_at(pid_t pid, uint64_t address);
/* The thread that holds the mutex that a call waits for: one of the process's own, and another than
   the one that waits. 0: it is no mutex, was released meanwhile, or does not record its owner. */
pid_t wait_futex_owner(pid_t pid, pid_t tid, const struct wait_call *call);

#endif
