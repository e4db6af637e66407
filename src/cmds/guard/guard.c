#include "cmds/guard/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/scratch/child_notes.h"
#include "tables/self_limits.h"

#define SECOND_NS UINT64_C(1000000000)
/* DuckDB gets this long to obey its interrupt. */
#define GRACE_NS SECOND_NS
/* How often the deadline, which the child may change, is read. */
#define LOOK_NS (SECOND_NS / 5)

struct guard {
	pid_t child;
	struct child_notes *notes;
	sigset_t waited, before;
	struct sigaction child_before;
	uint32_t interrupts;
	uint64_t kill_ns; /* after the first Ctrl-C; 0: none yet */
	bool timed_out;
	int ended_by; /* SIGTERM, …: this process ends by it, too */
};

static bool inside_child;
static void (*at_end)(void);

void guard_at_end(void (*restore)(void))
{
	at_end = restore;
}

bool guard_is_child(void)
{
	return inside_child;
}

static uint64_t guard_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- signals -------------------------------------------------------------------------------- */

static bool is_ignored(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

/* Blocked from before the fork, so that none is lost. A signal that the caller ignores, as nohup
   does, stays ignored; Ctrl-C always cancels a query. */
static void block_signals(struct guard *guard)
{
	static const int numbers[] = { SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT };
	const struct sigaction plain = { .sa_handler = SIG_DFL };

	/* Where it is ignored, the kernel forgets how a child ended. */
	sigaction(SIGCHLD, &plain, &guard->child_before);

	sigemptyset(&guard->waited);
	sigaddset(&guard->waited, SIGCHLD);
	sigaddset(&guard->waited, SIGINT);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!is_ignored(numbers[i]))
			sigaddset(&guard->waited, numbers[i]);
	sigprocmask(SIG_BLOCK, &guard->waited, &guard->before);
}

static void restore_signals(const struct guard *guard)
{
	sigaction(SIGCHLD, &guard->child_before, NULL);
	sigprocmask(SIG_SETMASK, &guard->before, NULL);
}

static void on_ctrl_c(struct guard *guard)
{
	if (guard->interrupts++) {
		kill(guard->child, SIGKILL);
		return;
	}
	kill(guard->child, SIGINT);
	guard->kill_ns = guard_now_ns() + GRACE_NS;
}

static void on_signal(struct guard *guard, int number)
{
	switch (number) {
	case SIGINT: on_ctrl_c(guard); break;
	case SIGTSTP:
		/* The terminal stops both, kill(1) only this process. */
		kill(guard->child, SIGSTOP);
		raise(SIGSTOP);
		break;
	case SIGCONT: kill(guard->child, SIGCONT); break;
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		guard->ended_by = number;
		kill(guard->child, SIGKILL);
		break;
	default: break; /* SIGCHLD */
	}
}

/* ---- the child ------------------------------------------------------------------------------ */

static void run_child(struct guard *guard, pid_t parent, int (*work)(void *context), void *context)
{
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* it has died meanwhile */
	inside_child = true;
	child_notes_use(guard->notes);
	self_limits_arm();
	restore_signals(guard);
	status = work(context);
	fflush(stdout);
	fflush(stderr);
	/* Without the destructors of DuckDB, which only free memory. */
	_exit(status);
}

/* ---- the parent ----------------------------------------------------------------------------- */

/* Ends a child that has not obeyed. Returns how long to sleep. */
static uint64_t check_deadlines(struct guard *guard)
{
	uint64_t now = guard_now_ns(), deadline = kymo__load_acquire(&guard->notes->deadline_ns);

	if (deadline && now >= deadline + GRACE_NS) {
		guard->timed_out = true;
		kill(guard->child, SIGKILL);
	}
	if (guard->kill_ns && now >= guard->kill_ns)
		kill(guard->child, SIGKILL);
	return LOOK_NS;
}

static int wait_for(struct guard *guard)
{
	struct timespec nap = { 0 };
	siginfo_t info;
	int wstatus = 0, number;

	while (!waitpid(guard->child, &wstatus, WNOHANG)) {
		nap.tv_nsec = (long)check_deadlines(guard);
		number = sigtimedwait(&guard->waited, &info, &nap);
		if (number > 0)
			on_signal(guard, number);
	}
	return wstatus;
}

static int say_crash(const char *recording, int number, struct kymo_error *err)
{
	const char *of = recording[0] ? recording : "the recording";

	if (number == SIGKILL)
		return error_set(err, ENOMEM,
				 "the process that read %s was killed, probably because the "
				 "machine has no memory left; reduce the query (WHERE, LIMIT) or "
				 "free memory",
				 of);
	if (number == SIGXCPU)
		return error_set(err, ETIMEDOUT,
				 "reading %s took more CPU time than allowed; reduce the query "
				 "(WHERE, LIMIT)",
				 of);
	return error_set(err, EIO,
			 "DuckDB crashed (%s) while it read %s; the file may be damaged or made to "
			 "do this: get it again from its source, and do not trust it",
			 strsignal(number), of);
}

/* What the death of the child means. */
static int say_death(const struct guard *guard, int number, struct kymo_error *err)
{
	if (guard->interrupts)
		return error_set(err, ECANCELED, "the query was cancelled");
	if (guard->timed_out)
		return error_set(err, ETIMEDOUT,
				 "the query was stopped after %g s, its time limit; reduce it "
				 "(WHERE, LIMIT) or raise the limit",
				 guard->notes->limit_ms / 1000.0);
	return say_crash(guard->notes->recording, number, err);
}

static bool is_for_command(int number)
{
	return number == SIGPIPE || number == SIGTERM || number == SIGHUP || number == SIGQUIT ||
	       number == SIGINT || number == SIGALRM || number == SIGUSR1 || number == SIGUSR2;
}

/* As if the signal had ended this process itself, without a second core dump. */
static void end_by(int number)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	signal(number, SIG_DFL);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static int settle_child(struct guard *guard, int wstatus, struct kymo_error *err)
{
	int number = WIFSIGNALED(wstatus) ? WTERMSIG(wstatus) : 0;

	child_notes_clean(guard->notes);
	if (at_end)
		at_end();
	if (guard->ended_by)
		end_by(guard->ended_by);
	if (is_for_command(number))
		end_by(number);
	restore_signals(guard);
	return number ? say_death(guard, number, err) : WEXITSTATUS(wstatus);
}

int guard_run(int (*work)(void *context), void *context, struct kymo_error *err)
{
	struct guard guard = { .child = -1 };
	pid_t parent = getpid();
	int rc;

	guard.notes = mmap(NULL, sizeof(*guard.notes), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard.notes == MAP_FAILED)
		return error_set(err, errno, "cannot share memory with a child process: %s",
				 strerror(errno));
	fflush(stdout);
	fflush(stderr);
	block_signals(&guard);
	guard.child = fork();
	if (!guard.child)
		run_child(&guard, parent, work, context);
	if (guard.child < 0) {
		rc = error_set(err, errno, "cannot start a child process for DuckDB: %s",
			       strerror(errno));
		restore_signals(&guard);
	} else {
		rc = settle_child(&guard, wait_for(&guard), err);
	}
	munmap(guard.notes, sizeof(*guard.notes));
	return rc;
}
