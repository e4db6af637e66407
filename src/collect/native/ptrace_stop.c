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
#include <unistd.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "collect/native/process_memory.h"

#define STOP_WITHIN_NS 200000000ull /* a thread that does not stop within this time is given up */

/* ---- registers ------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static void take_registers(struct ptrace_stop *stop, const struct user_regs_struct *from)
{
	const uint64_t in_order[] = { from->rax, from->rdx, from->rcx, from->rbx, from->rsi,
				      from->rdi, from->rbp, from->rsp, from->r8,  from->r9,
				      from->r10, from->r11, from->r12, from->r13, from->r14,
				      from->r15, from->rip };

	memcpy(stop->registers, in_order, sizeof(in_order));
	stop->register_count = sizeof(in_order) / sizeof(in_order[0]);
	stop->pc = from->rip;
	stop->sp = from->rsp;
}
#elif defined(__aarch64__)
static void take_registers(struct ptrace_stop *stop, const struct user_regs_struct *from)
{
	memcpy(stop->registers, from->regs, 31 * sizeof(uint64_t));
	stop->registers[31] = from->sp;
	stop->register_count = 32;
	stop->pc = from->pc;
	stop->sp = from->sp;
}
#else
#error "unsupported processor"
#endif

static int read_registers(struct ptrace_stop *stop)
{
	struct user_regs_struct registers;
	struct iovec iov = { &registers, sizeof(registers) };

	if (ptrace(PTRACE_GETREGSET, stop->tid, (void *)NT_PRSTATUS, &iov))
		return -errno;
	take_registers(stop, &registers);
	return 0;
}

/* Copies up to STOP_STACK_BYTES above the stack pointer. */
static int read_stack(struct ptrace_stop *stop)
{
	ssize_t got;

	stop->stack = malloc(STOP_STACK_BYTES);
	if (!stop->stack)
		return -ENOMEM;
	got = process_memory_read_some(stop->pid, stop->sp, stop->stack, STOP_STACK_BYTES);
	stop->stack_bytes = got > 0 ? (size_t)got : 0;
	return got > 0 ? 0 : -EFAULT;
}

/* ---- stop and continue ----------------------------------------------------------------------- */

/* A stop that is not PTRACE_EVENT_STOP is a pending signal, which must not be lost. */
static void note_stop(struct ptrace_stop *stop, int status)
{
	stop->stopped = WIFSTOPPED(status);
	stop->signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

/* Whether it ended. A program that we started stays a zombie: its status is for those who wait for
   it, and taking it here would let `kymo run` wait forever. */
static bool has_ended(const struct ptrace_stop *stop)
{
	siginfo_t info = { 0 };

	/* A stop of a traced thread is reported without WSTOPPED as well. */
	if (waitid(P_PID, (id_t)stop->tid, &info, WEXITED | WNOWAIT | WNOHANG | __WALL) ||
	    !info.si_pid ||
	    (info.si_code != CLD_EXITED && info.si_code != CLD_KILLED &&
	     info.si_code != CLD_DUMPED))
		return false;
	if (stop->tid != stop->pid || paths_parent(stop->pid) != getpid())
		waitpid(stop->tid, NULL, __WALL | WNOHANG);
	return true;
}

/* The stop begins at the last time at which the thread was still running. */
static int wait_for_stop(struct ptrace_stop *stop, uint64_t within_ns)
{
	struct timespec pause = { 0, 20000 };
	uint64_t until_ns = clock_monotonic_ns() + within_ns;
	int status;

	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		siginfo_t info = { 0 };
		pid_t got;

		if (has_ended(stop))
			return -ESRCH;
		got = waitid(P_PID, (id_t)stop->tid, &info, WSTOPPED | WNOHANG | __WALL)
			      ? -1
			      : info.si_pid;
		status = info.si_status << 8 | 0x7f;

		if (got == stop->tid) {
			note_stop(stop, status);
			return stop->stopped ? 0 : -ESRCH;
		}
		if (got < 0 && errno != EINTR)
			return -errno;
		if (now_ns > until_ns)
			return -ETIMEDOUT;
		stop->since_ns = now_ns;
		nanosleep(&pause, NULL);
	}
}

int ptrace_stop_begin(struct ptrace_stop *stop, pid_t pid, pid_t tid)
{
	int rc;

	memset(stop, 0, sizeof(*stop));
	stop->pid = pid;
	stop->tid = tid;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return errno == EPERM ? -EPERM : -errno;
	stop->since_ns = clock_monotonic_ns();
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return -errno;
	rc = wait_for_stop(stop, STOP_WITHIN_NS);
	if (!rc)
		rc = read_registers(stop);
	if (!rc)
		rc = read_stack(stop);
	if (rc)
		ptrace_stop_end(stop);
	return rc;
}

void ptrace_stop_end(struct ptrace_stop *stop)
{
	if (!stop->stopped)
		return;
	ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)(intptr_t)stop->signal);
	stop->took_ns = clock_monotonic_ns() - stop->since_ns;
	stop->stopped = false;
}

void ptrace_stop_free(struct ptrace_stop *stop)
{
	ptrace_stop_end(stop);
	free(stop->stack);
	stop->stack = NULL;
}
