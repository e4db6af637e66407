#include "serve/children/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "tables/self_limits.h"

#define MEMORY_BYTES (UINT64_C(1) << 30) /* of tables.h, if a question names no limit */
#define NICE 4
#define COMMAND_SECONDS 130 /* the server kills it after 120 s */
#define CPU_GRACE_SECONDS 10
#define SQL_BYTES_MOST (INT64_C(2) << 20)

typedef int child_answer(struct tables *tables, const struct question *question, const char *sql,
			 FILE *out, struct kymo_error *err);

static child_answer *const child_answers[QUESTION_KINDS] = {
	[QUESTION_QUERY] = child_query,	  [QUESTION_RUN] = child_run,
	[QUESTION_RANGE] = child_range,	  [QUESTION_SCHEMA] = child_schema,
	[QUESTION_FLAME] = child_flame,	  [QUESTION_SOURCE] = child_source,
	[QUESTION_ZONES] = child_zones,	  [QUESTION_DEVICES] = child_devices,
	[QUESTION_QUEUES] = child_queues, [QUESTION_PATH] = child_path,
	[QUESTION_JOINS] = child_joins,	  [QUESTION_METRICS] = child_metrics,
};

int child_write(const struct buf *text, FILE *out, struct kymo_error *err)
{
	errno = 0;
	if (text->failed)
		return error_set(err, ENOMEM, "out of memory for the answer");
	if (text->used && fwrite(text->data, 1, text->used, out) < text->used)
		return error_set(err, errno ? errno : EIO, "cannot write the answer: %s",
				 strerror(errno));
	return 0;
}

/* ---- messages ------------------------------------------------------------------------------- */

/* False: the server has closed the socket, or sent no question. */
static bool child_receive(struct question *out, int *out_file)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec data = { out, sizeof(*out) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t got = recvmsg(QUESTION_SOCKET, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (got != sizeof(*out) || !head || head->cmsg_type != SCM_RIGHTS ||
	    out->kind >= QUESTION_KINDS)
		return false;
	memcpy(out_file, CMSG_DATA(head), sizeof(*out_file));
	return true;
}

static void child_reply(enum question_stage stage, int rc, const struct kymo_error *err)
{
	struct question_reply reply = { .stage = stage, .rc = rc };

	if (rc)
		reply.err = *err;
	send(QUESTION_SOCKET, &reply, sizeof(reply), MSG_NOSIGNAL);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void child_soft_limit(__rlimit_resource_t resource, uint64_t soft)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return;
	limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
	setrlimit(resource, &limit);
}

/* The CPU time of all threads, should the server not be there to kill it; the size of the answer,
   which is memory, too. Both are soft limits, as the next question has its own. */
static void child_limit(const struct question *question)
{
	uint64_t seconds = question->timeout_ms / 1000 + CPU_GRACE_SECONDS;
	struct rusage usage;

	if (!getrusage(RUSAGE_SELF, &usage))
		child_soft_limit(RLIMIT_CPU, (uint64_t)usage.ru_utime.tv_sec +
						     (uint64_t)usage.ru_stime.tv_sec +
						     seconds * (uint64_t)get_nprocs());
	child_soft_limit(RLIMIT_FSIZE, question->answer_bytes);
}

/* ---- one question --------------------------------------------------------------------------- */

static int child_open(const struct question *question, struct tables **out, struct kymo_error *err)
{
	struct tables_options options = { .memory_limit_bytes = question->memory_bytes,
					  .timeout_ms = question->timeout_ms };
	uint64_t memory = question->memory_bytes ? question->memory_bytes : MEMORY_BYTES;
	int rc;

	if (*out) {
		tables_limit_time(*out, question->timeout_ms);
		return 0;
	}
	if (question->background)
		setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
	rc = tables_open(question->path, &options, out, err);
	if (!rc)
		rc = self_limits_set(memory, 0, err);
	return rc;
}

/* The SQL of the question, on the heap; the file is emptied for the answer. */
static char *child_take_sql(int file)
{
	struct stat st;
	char *sql = NULL;

	if (fstat(file, &st) || st.st_size > SQL_BYTES_MOST)
		return NULL;
	sql = calloc(1, (size_t)st.st_size + 1);
	if (sql && (pread(file, sql, (size_t)st.st_size, 0) != st.st_size || ftruncate(file, 0))) {
		free(sql);
		sql = NULL;
	}
	return sql;
}

static int child_answer_into(struct tables *tables, const struct question *question, int file,
			     struct kymo_error *err)
{
	char *sql = child_take_sql(file);
	FILE *out = sql ? fdopen(file, "w") : NULL;
	int rc;

	if (!out) {
		close(file);
		free(sql);
		return error_set(err, ENOMEM, "out of memory for the answer");
	}
	setvbuf(out, NULL, _IOFBF, 1 << 16);
	rc = child_answers[question->kind](tables, question, sql, out, err);
	errno = 0;
	if (fclose(out) && !rc)
		rc = error_set(err, errno ? errno : EIO, "cannot write the answer: %s",
			       strerror(errno));
	free(sql);
	if (rc == -EFBIG)
		rc = error_set(err, EFBIG, "the answer is larger than %llu MB",
			       (unsigned long long)(question->answer_bytes >> 20));
	return rc;
}

static void child_take_question(struct tables **tables, const struct question *question, int file)
{
	struct kymo_error err = { 0 };
	int rc;

	child_limit(question);
	rc = child_open(question, tables, &err);
	if (rc) {
		close(file);
		child_reply(QUESTION_NOT_OPENED, rc, &err);
		return;
	}
	child_reply(QUESTION_OPENED, 0, NULL);
	rc = child_answer_into(*tables, question, file, &err);
	child_reply(QUESTION_DONE, rc, &err);
}

/* It ends with the server, leaves no core file, and gains no privileges. Ctrl-C in a terminal
   goes to the server as well, which decides. */
static void child_settle(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	child_soft_limit(RLIMIT_CORE, 0);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	self_limits_arm();
}

/* Not of address space, which recordings of any size are mapped into. */
void child_limit_command(void)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child_soft_limit(RLIMIT_CORE, 0);
	child_soft_limit(RLIMIT_DATA, memory / 2);
	child_soft_limit(RLIMIT_CPU, COMMAND_SECONDS * (uint64_t)get_nprocs());
}

int child_main(void)
{
	struct question question;
	struct tables *tables = NULL;
	struct kymo_error err;
	struct stat st;
	const char *version;
	int file;

	if (fstat(QUESTION_SOCKET, &st) || !S_ISSOCK(st.st_mode)) {
		fprintf(stderr, "kymo answer: this is a part of kymo serve; run kymo serve\n");
		return 2;
	}
	child_settle();
	/* Loaded ahead of the first question, which reports an error. */
	tables_library(&version, &err);
	while (child_receive(&question, &file)) {
		question.path[sizeof(question.path) - 1] = '\0';
		child_take_question(&tables, &question, file);
	}
	/* Without closing the session: nothing of it outlives the process. */
	fflush(NULL);
	_exit(0);
}
