#include "collect/native/ptrace_stop.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "collect/native/process_memory.h"

#define STOP_WITHIN_NS \
	200000000ull /* it runs on until then; longer: it is in the kernel, and is left alone */

/* ---- registers ------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static void take_registers(struct ptrace_stop *hold, const struct user_regs_struct *from)
{
	const uint64_t in_order[] = { from->rax, from->rdx, from->rcx, from->rbx, from->rsi,
				      from->rdi, from->rbp, from->rsp, from->r8,  from->r9,
				      from->r10, from->r11, from->r12, from->r13, from->r14,
				      from->r15, from->rip };

	memcpy(hold->registers, in_order, sizeof(in_order));
	hold->register_count = sizeof(in_order) / sizeof(in_order[0]);
	hold->pc = from->rip;
	hold->sp = from->rsp;
}
#elif defined(__aarch64__)
static void take_registers(struct ptrace_stop *hold, const struct user_regs_struct *from)
{
	memcpy(hold->registers, from->regs, 31 * sizeof(uint64_t));
	hold->registers[31] = from->sp;
	hold->register_count = 32;
	hold->pc = from->pc;
	hold->sp = from->sp;
}
#else
#error "the registers of this processor are not known here"
#endif

static int read_registers(struct ptrace_stop *hold)
{
	struct user_regs_struct registers;
	struct iovec iov = { &registers, sizeof(registers) };

	if (ptrace(PTRACE_GETREGSET, hold->tid, (void *)NT_PRSTATUS, &iov))
		return -errno;
	take_registers(hold, &registers);
	return 0;
}

/* As much as is mapped above the stack pointer. */
static int read_stack(struct ptrace_stop *hold)
{
	ssize_t got;

	hold->stack = malloc(HOLD_STACK_BYTES);
	if (!hold->stack)
		return -ENOMEM;
	got = process_memory_read_some(hold->pid, hold->sp, hold->stack, HOLD_STACK_BYTES);
	hold->stack_bytes = got > 0 ? (size_t)got : 0;
	return got > 0 ? 0 : -EFAULT;
}

/* ---- hold and let go ------------------------------------------------------------------------- */

/* Our own stop says so; another one is a signal on its way, which must not be lost. */
static void note_stop(struct ptrace_stop *hold, int status)
{
	hold->held = WIFSTOPPED(status);
	hold->signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

/* It is held from the last moment at which it had not stopped yet. */
static int wait_for_stop(struct ptrace_stop *hold, uint64_t within_ns)
{
	struct timespec pause = { 0, 20000 };
	uint64_t until_ns = clock_monotonic_ns() + within_ns;
	int status;

	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		pid_t got = waitpid(hold->tid, &status, __WALL | WNOHANG);

		if (got == hold->tid) {
			note_stop(hold, status);
			return hold->held ? 0 : -ESRCH;
		}
		if (got < 0 && errno != EINTR)
			return -errno;
		if (now_ns > until_ns)
			return -ETIMEDOUT;
		hold->since_ns = now_ns;
		nanosleep(&pause, NULL);
	}
}

int ptrace_stop_begin(struct ptrace_stop *hold, pid_t pid, pid_t tid)
{
	int rc;

	memset(hold, 0, sizeof(*hold));
	hold->pid = pid;
	hold->tid = tid;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return errno == EPERM ? -EPERM : -errno;
	hold->since_ns = clock_monotonic_ns();
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return -errno;
	rc = wait_for_stop(hold, STOP_WITHIN_NS);
	if (!rc)
		rc = read_registers(hold);
	if (!rc)
		rc = read_stack(hold);
	if (rc)
		ptrace_stop_end(hold);
	return rc;
}

void ptrace_stop_end(struct ptrace_stop *hold)
{
	if (!hold->held)
		return;
	ptrace(PTRACE_DETACH, hold->tid, NULL, (void *)(intptr_t)hold->signal);
	hold->took_ns = clock_monotonic_ns() - hold->since_ns;
	hold->held = false;
}

void ptrace_stop_free(struct ptrace_stop *hold)
{
	ptrace_stop_end(hold);
	free(hold->stack);
	hold->stack = NULL;
}
