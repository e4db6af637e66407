/* The child that reads SQLite files. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "import/nsys/nsys.h"
#include "import/nsys/sqlite_api.h"

#define CHILD_PIPE 3
#define CHILD_MEMORY (UINT64_C(1) << 30)
#define CHILD_SECONDS 30u
#define CHILD_BYTES_A_SECOND (2u << 20) /* slow, for a loaded machine */
#define EXPANDS_RATIO 300u
#define EXPANDS_BYTES (UINT64_C(64) << 20)
#define WAITS_MOST 500 /* times 10 ms, after the pipe has ended */

/* In memory of both processes; the child may have written anything. */
struct nsys_shared {
	int done; /* it ended by itself */
	int rc;
	struct kymo_error damage, err;
};

/* ---- limits -------------------------------------------------------------------------------- */

static uint64_t address_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (file && fscanf(file, "%llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit(__rlimit_resource_t resource, uint64_t most)
{
	struct rlimit limits;

	if (getrlimit(resource, &limits))
		return;
	limits.rlim_max = limits.rlim_max < most ? limits.rlim_max : most;
	limits.rlim_cur = limits.rlim_max;
	setrlimit(resource, &limits);
}

__attribute__((noreturn)) static void become_reader(const struct nsys_child *child,
						    const char *path, int fd)
{
	struct nsys_shared *shared = child->shared;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (fd != CHILD_PIPE)
		dup2(fd, CHILD_PIPE);
	syscall(SYS_close_range, CHILD_PIPE + 1, ~0u, 0);
	limit(RLIMIT_AS, address_bytes() + CHILD_MEMORY);
	limit(RLIMIT_CPU, child->cpu_seconds);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	shared->rc = nsys_write(CHILD_PIPE, path, &shared->damage, &shared->err);
	shared->done = 1;
	_exit(0);
}

/* ---- start and end ------------------------------------------------------------------------- */

static int nsys_start(struct nsys_child *child, const char *path, int ends[2],
		      struct kymo_error *err)
{
	child->shared = mmap(NULL, sizeof(*child->shared), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (child->shared == MAP_FAILED) {
		child->shared = NULL;
		return error_set(err, errno, "no memory to read an SQLite file");
	}
	if (pipe2(ends, O_CLOEXEC))
		return error_set(err, errno, "cannot create a pipe: %s", strerror(errno));
	child->pid = fork();
	if (!child->pid)
		become_reader(child, path, ends[1]);
	close(ends[1]);
	if (child->pid > 0)
		return 0;
	close(ends[0]);
	return error_set(err, errno, "cannot start a process: %s", strerror(errno));
}

int nsys_open(struct nsys_child *child, struct input *input, const char *path,
	      struct kymo_error *err)
{
	struct stat status;
	uint64_t bytes, most;
	int ends[2] = { -1, -1 }, rc;

	memset(child, 0, sizeof(*child));
	if (stat(path, &status))
		return error_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	rc = sqlite_api_load(err); /* before the fork: a library is not loaded twice */
	if (rc)
		return rc;
	bytes = status.st_size > 0 ? (uint64_t)status.st_size : 0;
	most = bytes < UINT64_MAX / EXPANDS_RATIO - EXPANDS_BYTES ? bytes * EXPANDS_RATIO
								  : UINT64_MAX / 2;
	child->cpu_seconds = CHILD_SECONDS + bytes / CHILD_BYTES_A_SECOND;
	rc = nsys_start(child, path, ends, err);
	if (!rc)
		rc = input_open_pipe(input, ends[0], most > EXPANDS_BYTES ? most : EXPANDS_BYTES,
				     err);
	if (rc)
		nsys_close(child, NULL, NULL);
	return rc;
}

/* Its status, at once if it has ended; else it gets some time, then SIGKILL. */
static int nsys_wait(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	int status = 0;

	for (int i = 0; i < WAITS_MOST; i++) {
		pid_t ended = waitpid(pid, &status, WNOHANG);

		if (ended == pid || (ended < 0 && errno != EINTR))
			return status;
		nanosleep(&pause, NULL);
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void nsys_explain(const struct nsys_child *child, int status, struct kymo_error *damage)
{
	const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (signal == SIGXCPU || signal == SIGKILL)
		error_set(damage, ETIME, "reading it took more than %llu s of CPU time",
			  (unsigned long long)child->cpu_seconds);
	else
		error_set(damage, EPROTO, "SQLite failed on it (signal %d)", signal);
}

/* A sentence of the child: copied, and ended for sure. */
static int nsys_copy_error(const struct kymo_error *from, struct kymo_error *to)
{
	struct kymo_error copy;

	memcpy(&copy, from, sizeof(copy));
	copy.text[sizeof(copy.text) - 1] = '\0';
	return copy.code ? error_set(to, EPROTO, "%s", copy.text) : 0;
}

int nsys_close(struct nsys_child *child, struct kymo_error *damage, struct kymo_error *err)
{
	struct nsys_shared *shared = child->shared;
	int rc = 0, status;

	if (child->pid > 0) {
		status = nsys_wait(child->pid);
		if (shared->done && shared->rc)
			rc = nsys_copy_error(&shared->err, err);
		else if (shared->done)
			nsys_copy_error(&shared->damage, damage);
		else if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGPIPE)
			nsys_explain(child, status, damage);
	}
	if (shared)
		munmap(shared, sizeof(*shared));
	memset(child, 0, sizeof(*child));
	return rc;
}
