#include "serve/children/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "serve/target.h"

#define KEPT 4 /* children of ended recordings */
#define UNUSED_NS UINT64_C(300000000000) /* after this time without questions all are ended */
#define LOOK_SECONDS 10
#define OPEN_SECONDS 120
#define GRACE_MS 500 /* for a child to end its statement by itself, with the same sentence */

struct child {
	pid_t pid;
	int socket;
	char path[KYMO_PATH_BYTES]; /* "": none yet */
	uint64_t memory_bytes;
	uint64_t used_at_ns;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wanted, ready;
	bool started; /* the thread that starts children */
	bool wants_spare;
	struct child *spare, *kept[KEPT];
	uint64_t failures;
	int why; /* of the last failure */
	uint64_t asked_at_ns;
} children = { .lock = PTHREAD_MUTEX_INITIALIZER,
	       .wanted = PTHREAD_COND_INITIALIZER,
	       .ready = PTHREAD_COND_INITIALIZER };

/* ---- starting and ending -------------------------------------------------------------------- */

static int children_spawn_with(int socket, pid_t *out)
{
	static const char *const words[] = { "kymo", "answer", NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, plain;
	int rc;

	sigemptyset(&none);
	sigemptyset(&plain);
	sigaddset(&plain, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, socket, QUESTION_SOCKET);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &plain);
	rc = posix_spawn(out, "/proc/self/exe", &actions, &attributes, (char **)words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

/* 0 or an errno. */
static int children_spawn(struct child **out)
{
	struct child *child = calloc(1, sizeof(*child));
	int pair[2], rc;

	if (!child)
		return ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		rc = errno;
		free(child);
		return rc;
	}
	child->socket = pair[0];
	rc = children_spawn_with(pair[1], &child->pid);
	close(pair[1]);
	if (rc) {
		close(pair[0]);
		free(child);
		return rc;
	}
	*out = child;
	return 0;
}

/* Its status, as from waitpid(). */
static int children_end(struct child *child)
{
	int status = 0;

	if (!child)
		return 0;
	kill(child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(child->socket);
	free(child);
	return status;
}

/* The status of a child that has closed its socket, or is about to end. It has a second for that,
   so that the status is its own. */
static int children_reap(struct child *child)
{
	struct timespec nap = { .tv_nsec = 2000000 };
	int status;

	for (int i = 0; i < 500; i++) {
		if (waitpid(child->pid, &status, WNOHANG) == child->pid) {
			close(child->socket);
			free(child);
			return status;
		}
		nanosleep(&nap, NULL);
	}
	return children_end(child);
}

static bool children_is_dead(const struct child *child)
{
	struct pollfd other = { .fd = child->socket, .events = POLLIN };

	/* Nothing is due from a child without a question. */
	return poll(&other, 1, 0) != 0;
}

/* ---- the ready one -------------------------------------------------------------------------- */

/* Under the lock: takes the children that have ended or were not used for long. */
static size_t children_take_old(struct child *out[KEPT + 1])
{
	bool unused = target_clock_ns() - children.asked_at_ns > UNUSED_NS;
	size_t count = 0;

	for (size_t i = 0; i < KEPT; i++)
		if (children.kept[i] && (unused || children_is_dead(children.kept[i]))) {
			out[count++] = children.kept[i];
			children.kept[i] = NULL;
		}
	if (children.spare && (unused || children_is_dead(children.spare))) {
		out[count++] = children.spare;
		children.spare = NULL;
	}
	children.wants_spare &= !unused;
	return count;
}

/* Under the lock. */
static void children_wait_until_wanted(void)
{
	struct child *old[KEPT + 1];
	struct timespec until;
	size_t count;

	while (children.spare || !children.wants_spare) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += LOOK_SECONDS;
		if (pthread_cond_timedwait(&children.wanted, &children.lock, &until) != ETIMEDOUT)
			continue;
		count = children_take_old(old);
		pthread_mutex_unlock(&children.lock);
		while (count)
			children_end(old[--count]);
		pthread_mutex_lock(&children.lock);
	}
}

/* One thread starts all children. They get a signal when it ends (PR_SET_PDEATHSIG), which is when
   the server does; and they have its priority, not that of the workers for slow answers. */
static void *children_keep(void *context)
{
	struct child *child;

	pthread_mutex_lock(&children.lock);
	for (;;) {
		children_wait_until_wanted();
		pthread_mutex_unlock(&children.lock);
		child = NULL;
		int why = children_spawn(&child);
		pthread_mutex_lock(&children.lock);
		children.spare = child;
		children.failures += why != 0;
		children.why = why;
		/* After a failure the next question tries again. */
		children.wants_spare = !why;
		pthread_cond_broadcast(&children.ready);
	}
	return context;
}

/* Under the lock. */
static void children_want(void)
{
	pthread_t thread;

	children.asked_at_ns = target_clock_ns();
	children.wants_spare = true;
	if (!children.started) {
		children.started = !pthread_create(&thread, NULL, children_keep, NULL);
		if (children.started)
			pthread_detach(thread);
	}
	pthread_cond_signal(&children.wanted);
}

void children_prepare(void)
{
	pthread_mutex_lock(&children.lock);
	children_want();
	pthread_mutex_unlock(&children.lock);
}

/* Under the lock. */
static struct child *children_take_spare(struct kymo_error *err)
{
	uint64_t before = children.failures;
	struct child *child;

	children_want();
	while (!children.spare && children.started && children.failures == before)
		pthread_cond_wait(&children.ready, &children.lock);
	child = children.spare;
	children.spare = NULL;
	if (child)
		children_want();
	else
		error_set(err, EAGAIN, "cannot start a process for the SQL: %s; try again later",
			  strerror(children.started ? children.why : EAGAIN));
	return child;
}

/* ---- the kept ones -------------------------------------------------------------------------- */

/* Under the lock. */
static struct child *children_take_kept(const struct question *question)
{
	for (size_t i = 0; i < KEPT; i++) {
		struct child *child = children.kept[i];

		if (child && child->memory_bytes == question->memory_bytes &&
		    !strcmp(child->path, question->path) && !children_is_dead(child)) {
			children.kept[i] = NULL;
			return child;
		}
	}
	return NULL;
}

static struct child *children_take(const struct children_ask *ask, struct kymo_error *err)
{
	struct child *child;

	pthread_mutex_lock(&children.lock);
	child = ask->keep ? children_take_kept(&ask->question) : NULL;
	if (!child)
		child = children_take_spare(err);
	children.asked_at_ns = target_clock_ns();
	pthread_mutex_unlock(&children.lock);
	if (child) {
		strcpy(child->path, ask->question.path);
		child->memory_bytes = ask->question.memory_bytes;
	}
	return child;
}

static void children_give(struct child *child)
{
	struct child **oldest = &children.kept[0], *gone;

	child->used_at_ns = target_clock_ns();
	pthread_mutex_lock(&children.lock);
	for (size_t i = 0; i < KEPT; i++)
		if (!children.kept[i] ||
		    (*oldest && children.kept[i]->used_at_ns < (*oldest)->used_at_ns))
			oldest = &children.kept[i];
	gone = *oldest;
	*oldest = child;
	pthread_mutex_unlock(&children.lock);
	children_end(gone);
}

/* ---- one question --------------------------------------------------------------------------- */

static int children_send(const struct child *child, const struct question *question, int file)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec data = { (void *)question, sizeof(*question) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &file, sizeof(file));
	return sendmsg(child->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* 1: a reply; 0: the child has ended, or sent something else; -ETIMEDOUT. */
static int children_receive(const struct child *child, uint64_t deadline_ns,
			    struct question_reply *out)
{
	struct pollfd other = { .fd = child->socket, .events = POLLIN };
	uint64_t now_ns;
	ssize_t got;
	int rc = 0;

	while (!rc) {
		now_ns = target_clock_ns();
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		rc = poll(&other, 1, (int)((deadline_ns - now_ns) / 1000000) + 1);
		rc = rc < 0 && errno == EINTR ? 0 : rc;
	}
	got = rc > 0 ? recv(child->socket, out, sizeof(*out), MSG_DONTWAIT) : -1;
	out->err.text[sizeof(out->err.text) - 1] = '\0';
	return got == sizeof(*out) && out->stage < QUESTION_STAGES && out->rc <= 0 &&
	       out->rc > -4096;
}

static int children_too_late(const struct children_ask *ask, bool opened, struct kymo_error *err)
{
	if (!opened)
		return error_set(err, ETIMEDOUT,
				 "cannot open %s within %d s; it is too large, or damaged",
				 ask->question.path, OPEN_SECONDS);
	return error_set(err, ETIMEDOUT,
			 "the query was stopped after %g s, its time limit; reduce it (WHERE, "
			 "LIMIT) or raise the limit",
			 ask->question.timeout_ms / 1000.0);
}

static int children_died(const struct children_ask *ask, int status, struct kymo_error *err)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (number == SIGKILL)
		return error_set(err, ENOMEM,
				 "the process of the query was killed; the machine may have run "
				 "out of memory: select less (WHERE, LIMIT, fewer columns)");
	if (number == SIGXCPU)
		return error_set(err, ETIMEDOUT,
				 "the query was stopped at its limit of CPU time; reduce it "
				 "(WHERE, LIMIT)");
	if (number)
		return error_set(err, EIO,
				 "DuckDB crashed (signal %d, %s) while it read %s: the query is "
				 "too large, or the recording is damaged; other requests are not "
				 "affected",
				 number, strsignal(number), ask->question.path);
	return error_set(err, EIO,
			 "the process of the query ended with status %d while it read %s; try "
			 "again",
			 WEXITSTATUS(status), ask->question.path);
}

/* Waits for the last reply. *alive: the child may be asked again. */
static int children_listen(struct children_ask *ask, const struct child *child, bool *alive,
			   struct kymo_error *err)
{
	uint64_t deadline_ns = target_clock_ns() + OPEN_SECONDS * UINT64_C(1000000000);
	bool opened = false;
	struct question_reply reply;
	int rc;

	*alive = true;
	while ((rc = children_receive(child, deadline_ns, &reply)) > 0 &&
	       reply.stage == QUESTION_OPENED && !opened) {
		opened = true;
		deadline_ns = target_clock_ns() +
			      (ask->question.timeout_ms + GRACE_MS) * UINT64_C(1000000);
	}
	if (rc == -ETIMEDOUT)
		return children_too_late(ask, opened, err);
	if (!rc || reply.stage == QUESTION_OPENED) {
		*alive = false;
		return -EIO; /* its status is not known yet */
	}
	ask->not_opened = reply.stage == QUESTION_NOT_OPENED;
	if (reply.rc)
		*err = reply.err;
	return ask->not_opened && !reply.rc ? -EIO : reply.rc;
}

static bool children_tell(const struct children_ask *ask, pid_t child)
{
	return !ask->running || ask->running(ask->context, child);
}

/* A child whose question failed is ended: after a fatal error DuckDB refuses all further queries,
   and after a lack of memory little is left. The next one is ready. */
static int children_ask_one(struct children_ask *ask, struct child *child, struct kymo_error *err)
{
	bool going = children_tell(ask, child->pid), alive = true;
	int rc = going ? children_send(child, &ask->question, ask->fd) : -ECANCELED;

	if (rc == -EPIPE || rc == -ECONNRESET)
		alive = false;
	else if (!rc)
		rc = children_listen(ask, child, &alive, err);
	/* Its pid ends with it: it may not be killed by others from here on. */
	going = children_tell(ask, 0) && going;
	if (!rc && going && ask->keep)
		children_give(child);
	else if (alive || !going)
		children_end(child);
	else
		rc = children_died(ask, children_reap(child), err);
	return going ? rc : error_set(err, ECANCELED, "the query was cancelled");
}

static int children_make_file(const char *sql, struct kymo_error *err)
{
	size_t bytes = sql ? strlen(sql) : 0;
	int fd = memfd_create("kymo-answer", MFD_CLOEXEC);

	if (fd >= 0 && (!bytes || pwrite(fd, sql, bytes, 0) == (ssize_t)bytes))
		return fd;
	if (fd >= 0)
		close(fd);
	return error_set(err, ENOMEM, "out of memory for the query");
}

int children_ask(struct children_ask *ask, struct kymo_error *err)
{
	struct child *child;
	int rc;

	ask->not_opened = false;
	ask->fd = children_make_file(ask->sql, err);
	if (ask->fd < 0)
		return ask->fd;
	child = children_take(ask, err);
	rc = child ? children_ask_one(ask, child, err) : -EAGAIN;
	if (rc) {
		close(ask->fd);
		ask->fd = -1;
	}
	return rc;
}

/* ---- its answer ----------------------------------------------------------------------------- */

int children_read_answer(struct children_ask *ask, struct buf *out, struct kymo_error *err)
{
	char block[1 << 16];
	uint64_t at = 0;
	ssize_t got;

	while ((got = pread(ask->fd, block, sizeof(block), (off_t)at)) > 0 &&
	       at <= ask->question.answer_bytes) {
		buf_add(out, block, (size_t)got);
		at += (uint64_t)got;
	}
	close(ask->fd);
	ask->fd = -1;
	if (got < 0)
		return error_set(err, EIO, "cannot read the answer: %s", strerror(errno));
	return out->failed ? error_set(err, ENOMEM, "out of memory for the answer") : 0;
}
