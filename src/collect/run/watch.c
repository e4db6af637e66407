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

#define WAKER_LOOKS_NS 50000000 /* between two looks at a program that is stopped */

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
	/* Only now is it known that the pid is still the one that was meant. */
	if (watch->signal_fd < 0 || watch->pidfd < 0 || !proc_alive(target, starttime))
		return -ESRCH;
	return 0;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* Such a signal goes to the whole foreground group, so the program has it already. Only a hang-up
   goes to the session's leader alone: if that is us, it would be the program without us. */
static bool terminal_told_both(const struct signalfd_siginfo *info)
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

/* To whom the signal goes that came to us; 0: nobody, he has it already. */
static pid_t addressee(struct watch *watch, const struct signalfd_siginfo *info)
{
	enum witness_answer answer;

	if (terminal_told_both(info))
		return 0;
	if (info->ssi_code != SI_USER)
		return watch->target;
	answer = witness_got(&watch->witness, (int)info->ssi_signo);
	if (answer == WITNESS_YES)
		return 0;
	if (info->ssi_pid != (uint32_t)watch->target)
		return watch->target;
	/* The program signals its parent, which would not be us if we were not here. */
	return answer == WITNESS_NO ? getppid() : 0;
}

static void watch_pass_on(struct watch *watch, const struct signalfd_siginfo *info)
{
	pid_t pid = addressee(watch, info);
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

/* While we are stopped with the program, somebody may continue or kill it alone. We would sleep
   through that, so this child looks from time to time and wakes us. */
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
	sigprocmask(SIG_UNBLOCK, &one, &mask); /* here we stop, and here we go on */
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (signal_number != SIGSTOP)
		sigaction(signal_number, &before, NULL);
}

/* What was sent while we were stopped. The SIGCONT among it continued us; the program is seen to
   below. */
static void pass_on_others(struct watch *watch)
{
	struct signalfd_siginfo info;

	while (read(watch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCONT && info.ssi_signo != SIGCHLD)
			watch_pass_on(watch, &info);
}

/* The shell has to see us stop as it would see the program stop. */
static void stop_like(struct watch *watch, int signal_number)
{
	pid_t parent = getpid();
	pid_t helper = fork();

	if (helper == 0)
		waker(watch->target, parent);
	if (helper < 0)
		return; /* nobody could wake us: better to go on */
	stop_ourselves(signal_number);
	kill(helper, SIGKILL);
	while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
		;
	pass_on_others(watch);
	/* Continued alone, not with the group: so pass it on. */
	if (is_stopped(watch->target))
		kill(watch->target, SIGCONT);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* As waitpid() would give it. */
static int watch_status_of(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return (info->si_status & 0xff) << 8;
	return (info->si_status & 0x7f) | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

static void look_at_target(struct watch *watch)
{
	siginfo_t info;

	for (;;) {
		memset(&info, 0, sizeof(info));
		/* The system call rather than the function of that name: it tells the usage too,
		   while the zombie stays. */
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
		/* It may have been continued since. */
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
		watch->told_to_end = true;
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
	/* After every signal: two SIGCHLD may have become one. */
	look_at_target(watch);
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
