#include "collect/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void launch_hold_standard_files(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		int null;

		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* open() returns the lowest free number, which is this one. */
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		(void)null;
	}
}

void launch_block_signals(struct launch_signals *saved)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	struct sigaction plain;
	sigset_t all;

	sigfillset(&all);
	/* A blocked fault kills the process without calling the handler of guard.c. */
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&all, faults[i]);
	sigprocmask(SIG_SETMASK, &all, &saved->mask);
	/* If SIGCHLD is ignored, which is inherited, children leave no status. */
	memset(&plain, 0, sizeof(plain));
	plain.sa_handler = SIG_DFL;
	sigaction(SIGCHLD, &plain, &saved->child);
}

void launch_restore_signals(const struct launch_signals *saved)
{
	sigaction(SIGCHLD, &saved->child, NULL);
	sigprocmask(SIG_SETMASK, &saved->mask, NULL);
}

static bool same_variable(const char *a, const char *b)
{
	size_t length = strcspn(a, "=");

	return a[length] && !strncmp(a, b, length + 1);
}

/* The environment with the additions, which replace variables of the same name. NULL: out of
   memory. The caller frees only the array. */
static char **make_environment(const char *const *additions)
{
	size_t count = 0, kept = 0, added = 0;
	char **out;

	while (environ[count])
		count++;
	while (additions[added])
		added++;
	out = malloc((count + added + 1) * sizeof(*out));
	if (!out)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		bool replaced = false;

		for (size_t k = 0; k < added; k++)
			replaced = replaced || same_variable(additions[k], environ[i]);
		if (!replaced)
			out[kept++] = environ[i];
	}
	memcpy(out + kept, additions, (added + 1) * sizeof(*out));
	return out;
}

/* The end of the pipe is the signal to go on, so that it does not wait for a parent that died. */
static void wait_for_parent(int go_fd)
{
	char byte;

	while (go_fd >= 0 && read(go_fd, &byte, 1) < 0 && errno == EINTR)
		;
}

static void become_program(char *const *argv, char **environment,
			   const struct launch_signals *saved, int go_fd, int report_fd)
{
	ssize_t done;
	int error;

	wait_for_parent(go_fd);
	launch_restore_signals(saved);
	execvpe(argv[0], argv, environment);
	error = errno;
	done = write(report_fd, &error, sizeof(error));
	(void)done;
	_exit(127);
}

/* The pipe closes without data when the exec succeeds. */
static int wait_for_exec(int fd, pid_t pid)
{
	int error = 0;
	ssize_t got;

	do
		got = read(fd, &error, sizeof(error));
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(error))
		return 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -error;
}

static void close_pipe(int ends[2])
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

int launch_program(char *const *argv, const char *const *additions,
		   const struct launch_signals *saved,
		   void (*before_exec)(void *context, pid_t pid), void *context, pid_t *out_pid,
		   int *out_exec_failed)
{
	char **environment = make_environment(additions);
	int report[2] = { -1, -1 }, go[2] = { -1, -1 };
	int rc = 0;

	*out_exec_failed = 0;
	if (!environment)
		return -ENOMEM;
	if (pipe2(report, O_CLOEXEC) || (before_exec && pipe2(go, O_CLOEXEC))) {
		rc = -errno;
		goto out;
	}
	*out_pid = fork();
	if (*out_pid < 0)
		rc = -errno;
	if (*out_pid == 0) {
		if (go[1] >= 0)
			close(go[1]);
		become_program(argv, environment, saved, go[0], report[1]);
	}
	if (!rc && before_exec)
		before_exec(context, *out_pid);
	close_pipe(go);
	close(report[1]);
	report[1] = -1;
	if (!rc) {
		rc = wait_for_exec(report[0], *out_pid);
		*out_exec_failed = rc != 0;
	}
out:
	close_pipe(report);
	free(environment);
	return rc;
}
