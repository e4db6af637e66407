#include "collect/wait/wait_futex.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/native/process_memory.h"

/* The words of pthread_mutex_t: __lock, __count, __owner, … */
#define OWNER_WORD 2
#define LOCK_HAS_WAITERS 2 /* of __lock, and what a waiter expects to find there */

enum { CALL_ADDRESS, CALL_OPERATION, CALL_VALUE };

static int operation_of(const struct wait_call *call)
{
	return (int)call->argument[CALL_OPERATION] & FUTEX_CMD_MASK;
}

/* The owner's number is in the word itself. */
static bool inherits_priority(const struct wait_call *call)
{
	int operation = operation_of(call);

	return operation == FUTEX_LOCK_PI || operation == 13 /* FUTEX_LOCK_PI2, since 5.14 */;
}

bool wait_futex_may_be_mutex(const struct wait_call *call)
{
	int operation = operation_of(call);

	if (call->number != SYS_futex)
		return false;
	return inherits_priority(call) ||
	       ((operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) &&
		((uint32_t)call->argument[CALL_VALUE] == LOCK_HAS_WAITERS ||
		 ((uint32_t)call->argument[CALL_VALUE] & FUTEX_WAITERS)));
}

static bool is_thread_of(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
	return tid > 0 && !access(path, F_OK);
}

pid_t wait_futex_owner_at(pid_t pid, uint64_t address)
{
	uint32_t words[OWNER_WORD + 1];
	pid_t owner;

	if (process_memory_read(pid, address, words, sizeof(words)))
		return 0;
	if (words[0] & FUTEX_WAITERS) /* robust, or with priority inheritance */
		owner = (pid_t)(words[0] & FUTEX_TID_MASK);
	else if (words[0] == LOCK_HAS_WAITERS)
		owner = (pid_t)words[OWNER_WORD];
	else
		return 0;
	return is_thread_of(pid, owner) ? owner : 0;
}

pid_t wait_futex_owner(pid_t pid, pid_t tid, const struct wait_call *call)
{
	pid_t owner = wait_futex_may_be_mutex(call)
			      ? wait_futex_owner_at(pid, call->argument[CALL_ADDRESS])
			      : 0;

	return owner != tid ? owner : 0;
}
