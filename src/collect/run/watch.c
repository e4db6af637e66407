#include "collect/run/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect/host/proc.h"

#define WAKER_LOOKS_NS 50000000 /* between two checks of a stopped program */

int watch_init(struct watch *watch)
{
	sigset_t blocked;

	memset(watch, 0, sizeof(*watch));
	watch->witness.fd = watch->pidfd = -1;
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	watch->signal_fd = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	return watch->signal_fd < 0 ? -errno : 0;
}

int watch_attach(struct watch *watch, pid_t target, uint64_t starttime)
{
	sigset_t ours;

	memset(watch, 0, sizeof(*watch));
	watch->witness.fd = -1;
	watch->target = target;
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGQUIT);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	watch->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	watch->pidfd = (int)syscall(SYS_pidfd_open, target, 0);
	/* Only with the pidfd open is it certain that the pid was not reused. */
	if (watch->signal_fd < 0 || watch->pidfd < 0 || !proc_alive(target, starttime))
		return -ESRCH;
	return 0;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* A signal of the terminal goes to the whole foreground group, so the program has it already. Only
   a hang-up goes to the session leader alone: if that is us, without kymo it would be the
   program. */
static bool is_from_terminal(const struct signalfd_siginfo *info)
{
	static const int of_terminal[] = { SIGINT,  SIGQUIT,  SIGTSTP, SIGTTIN,
					   SIGTTOU, SIGWINCH, SIGHUP,  SIGCONT };

	if (info->ssi_code != SI_KERNEL)
		return false;
	if ((info->ssi_signo == SIGHUP || info->ssi_signo == SIGCONT) && getsid(0) == getpid())
		return false;
	for (size_t i = 0; i < sizeof(of_terminal) / sizeof(of_terminal[0]); i++)
		if (info->ssi_signo == (uint32_t)of_terminal[i])
			return true;
	return false;
}

/* The process to pass the signal on to; 0: none, because the program has it already. */
static pid_t recipient(struct watch *watch, const struct signalfd_siginfo *info)
{
	enum witness_answer answer;

	if (is_from_terminal(info))
		return 0;
	if (info->ssi_code != SI_USER)
		return watch->target;
	answer = witness_got(&watch->witness, (int)info->ssi_signo);
	if (answer == WITNESS_YES)
		return 0;
	if (info->ssi_pid != (uint32_t)watch->target)
		return watch->target;
	/* The program signals its parent, which without kymo would be our parent. */
	return answer == WITNESS_NO ? getppid() : 0;
}

static void watch_pass_on(struct watch *watch, const struct signalfd_siginfo *info)
{
	pid_t pid = recipient(watch, info);
	union sigval value;

	if (pid <= 0)
		return;
	if (info->ssi_code == SI_QUEUE) {
		value.sival_ptr = (void *)(uintptr_t)info->ssi_ptr;
		sigqueue(pid, (int)info->ssi_signo, value);
	} else {
		kill(pid, (int)info->ssi_signo);
	}
}

/* ---- stop and go ----------------------------------------------------------------------------- */

static bool is_stopped(pid_t pid)
{
	struct proc_stat stat;

	return !proc_stat(pid, &stat) && (stat.state == 'T' || stat.state == 't');
}

/* While we are stopped with the program, the program alone may be continued or killed. This child
   polls for that and wakes us. */
static void waker(pid_t target, pid_t parent)
{
	struct timespec pause = { 0, WAKER_LOOKS_NS };

	while (getppid() == parent) {
		nanosleep(&pause, NULL);
		if (!is_stopped(target)) {
			kill(parent, SIGCONT);
			break;
		}
	}
	_exit(0);
}

static void stop_ourselves(int signal_number)
{
	struct sigaction plain, before;
	sigset_t one, mask;

	memset(&plain, 0, sizeof(plain));
	plain.sa_handler = SIG_DFL;
	sigemptyset(&one);
	sigaddset(&one, signal_number);
	if (signal_number != SIGSTOP)
		sigaction(signal_number, &plain, &before);
	kill(getpid(), signal_number);
	sigprocmask(SIG_UNBLOCK, &one, &mask); /* the process stops and continues here */
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (signal_number != SIGSTOP)
		sigaction(signal_number, &before, NULL);
}

/* Signals sent while we were stopped. SIGCONT has continued us; stop_like() continues the
   program. */
static void pass_on_others(struct watch *watch)
{
	struct signalfd_siginfo info;

	while (read(watch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCONT && info.ssi_signo != SIGCHLD)
			watch_pass_on(watch, &info);
}

/* Stops this process like the program, for the job control of the shell. */
static void stop_like(struct watch *watch, int signal_number)
{
	pid_t parent = getpid();
	pid_t helper = fork();

	if (helper == 0)
		waker(watch->target, parent);
	if (helper < 0)
		return; /* without a waker it is safer not to stop */
	stop_ourselves(signal_number);
	kill(helper, SIGKILL);
	while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
		;
	pass_on_others(watch);
	/* We were continued alone, not with the group. */
	if (is_stopped(watch->target))
		kill(watch->target, SIGCONT);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* In the form of waitpid(). */
static int watch_status_of(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return (info->si_status & 0xff) << 8;
	return (info->si_status & 0x7f) | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

static void check_target(struct watch *watch)
{
	siginfo_t info;

	for (;;) {
		memset(&info, 0, sizeof(info));
		/* Unlike waitid() of libc, the system call also returns the usage without reaping
		   the zombie. */
		if (syscall(SYS_waitid, P_PID, watch->target, &info, WEXITED | WNOHANG | WNOWAIT,
			    &watch->usage) == 0 &&
		    info.si_pid) {
			watch->ended = true;
			watch->wstatus = watch_status_of(&info);
			return;
		}
		memset(&info, 0, sizeof(info));
		if (waitid(P_PID, (id_t)watch->target, &info, WSTOPPED | WNOHANG) || !info.si_pid)
			return;
		/* It may have been continued in the meantime. */
		if (is_stopped(watch->target))
			stop_like(watch, info.si_status);
	}
}

/* A pidfd is readable when the process is a zombie. */
static void wait_attached(struct watch *watch, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = watch->signal_fd, .events = POLLIN },
				{ .fd = watch->pidfd, .events = POLLIN } };
	struct signalfd_siginfo info;

	if (poll(fds, 2, timeout_ms) <= 0)
		return;
	while (read(watch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		watch->end_requested = true;
	watch->ended = fds[1].revents != 0;
}

void watch_wait(struct watch *watch, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = watch->signal_fd, .events = POLLIN };
	struct signalfd_siginfo info;

	if (watch->pidfd >= 0) {
		wait_attached(watch, timeout_ms);
		return;
	}
	if (poll(&poll_fd, 1, timeout_ms) <= 0)
		return;
	while (read(watch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			watch_pass_on(watch, &info);
	/* Checked after every signal, because two SIGCHLD may merge into one. */
	check_target(watch);
}

void watch_reap(struct watch *watch)
{
	while (waitpid(watch->target, NULL, 0) < 0 && errno == EINTR)
		;
}

void watch_drain(struct watch *watch)
{
	struct signalfd_siginfo info;

	while (read(watch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
}

void watch_fini(struct watch *watch)
{
	witness_end(&watch->witness);
	if (watch->signal_fd >= 0)
		close(watch->signal_fd);
	if (watch->pidfd >= 0)
		close(watch->pidfd);
	watch->signal_fd = watch->pidfd = -1;
}
