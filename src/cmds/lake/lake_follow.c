/* The helper of `kymo run --lake`: flushes the recording of a collector while it runs, and once
   more at its end. Standard input is a pipe from the collector: its end is that of the collector,
   also after SIGKILL; before, it has the path of the complete recording. Each flush is a child, so
   that a lake that does not answer holds only that. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files/run_files.h"
#include "cmds/cmds.h"
#include "cmds/lake/lake_words.h"
#include "lake/lake.h"
#include "store/store.h"
#include "views/term/text.h"

#define EVERY_S 600 /* KYMO_LAKE_EVERY changes it */
#define NOW_S 30
#define RETRY_S 30
#define MEMORY_BYTES (UINT64_C(512) << 20)
#define IOPRIO_IDLE (3 << 13)

struct lake_follow {
	const struct lake_request *request;
	int32_t collector;
	char path[KYMO_PATH_BYTES]; /* "": not known yet */
	bool ended; /* the collector has ended, or was killed */
	bool complete; /* path is the complete recording */
	double every_s;
	struct lake_gaps gaps;
	char why[512]; /* of the last failure */
};

static double follow_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t follow_unix_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_of_collector(const char *path, int32_t collector)
{
	struct run_files source;
	struct kymo_run_file run;
	bool is;

	if (run_files_open(&source, path, NULL))
		return false;
	is = run_files_head(&source, "run", KYMO_MAGIC_RUN, &run, sizeof(run)) &&
	     run.supervisor_pid == collector && !run.ended;
	run_files_close(&source);
	return is;
}

/* The recording that the collector has begun. */
static void find_recording(struct lake_follow *follow)
{
	struct store_entry *entries = NULL;
	size_t count = 0;

	if (follow->path[0] || store_list(&entries, &count, NULL))
		return;
	for (size_t i = 0; i < count && !follow->path[0]; i++)
		if (entries[i].kind == STORE_DIRECTORY && !entries[i].unreadable[0] &&
		    is_of_collector(entries[i].path, follow->collector))
			snprintf(follow->path, sizeof(follow->path), "%s", entries[i].path);
	free(entries);
}

/* In a child; its sentence goes to out. */
static int follow_flush(const struct lake_follow *follow, bool now_only, int out)
{
	const struct lake_options options = {
		.lake = follow->request->words[1],
		.tier = follow->request->tier,
		.running = !follow->complete,
		.threads = 1,
		.memory_bytes = MEMORY_BYTES,
		.gaps = &follow->gaps,
	};
	struct lake_result result = { 0 };
	struct kymo_error err = { 0 };
	int rc = now_only ? lake_now(follow->path, &options, &err)
			  : lake_add(follow->path, &options, &result, &err);

	/* not foreign: a pipe, whose reader prints it with escapes */
	dprintf(out, "%s", rc ? err.text : result.job);
	return rc ? 1 : 0;
}

/* Whether it succeeded; follow->why has the job's path, or the reason. */
static bool flush_in_child(struct lake_follow *follow, bool now_only)
{
	int ends[2], status = 0;
	ssize_t got = 0;
	pid_t child;

	follow->why[0] = '\0';
	if (pipe2(ends, O_CLOEXEC))
		return false;
	child = fork();
	if (!child)
		_exit(follow_flush(follow, now_only, ends[1]));
	close(ends[1]);
	if (child > 0)
		got = read(ends[0], follow->why, sizeof(follow->why) - 1);
	follow->why[got > 0 ? got : 0] = '\0';
	close(ends[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* What the lake costs is a row of its kymo.overhead, what it missed one of kymo.flush_gaps. */
static void note_cost(struct lake_follow *follow)
{
	struct rusage used;

	if (!getrusage(RUSAGE_CHILDREN, &used))
		follow->gaps.cpu_ns = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) *
					      1000000000u +
				      (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) *
					      1000u;
}

static void note_failure(struct lake_follow *follow)
{
	struct lake_gap *last;

	if (!follow->gaps.open && follow->gaps.count < LAKE_GAPS_MOST) {
		last = &follow->gaps.list[follow->gaps.count++];
		memset(last, 0, sizeof(*last));
		last->from_unix_ns = follow_unix_ns();
		follow->gaps.open = true;
	}
	if (!follow->gaps.count)
		return;
	last = &follow->gaps.list[follow->gaps.count - 1];
	last->to_unix_ns = follow_unix_ns();
	last->attempts++;
	snprintf(last->reason, sizeof(last->reason), "%.255s",
		 follow->why[0] ? follow->why : "the process was killed");
}

static bool follow_once(struct lake_follow *follow, bool now_only)
{
	bool good;

	if (follow->gaps.open)
		follow->gaps.list[follow->gaps.count - 1].to_unix_ns = follow_unix_ns();
	follow->gaps.flushes++;
	good = flush_in_child(follow, now_only);
	note_cost(follow);
	if (!good)
		note_failure(follow);
	else
		follow->gaps.open = false;
	return good;
}

/* Waits; at the end of the pipe, reads the path. */
static void follow_wait(struct lake_follow *follow, double seconds)
{
	struct pollfd poll_for = { .fd = 0, .events = POLLIN };
	char path[KYMO_PATH_BYTES];
	size_t used = 0;
	ssize_t got;

	if (poll(&poll_for, 1, (int)(seconds * 1000)) <= 0)
		return;
	while (used + 1 < sizeof(path) && (got = read(0, path + used, sizeof(path) - used - 1)) > 0)
		used += (size_t)got;
	path[used] = '\0';
	follow->ended = true;
	if (used) {
		memcpy(follow->path, path, used + 1);
		follow->complete = true;
	}
}

static void follow_run(struct lake_follow *follow)
{
	double next = follow_seconds() + (follow->every_s < 5 ? follow->every_s : 5);
	double now_s = follow->every_s < NOW_S ? follow->every_s : NOW_S;
	double retry_s = follow->every_s < RETRY_S ? follow->every_s : RETRY_S;

	while (!follow->ended) {
		follow_wait(follow, now_s < retry_s ? now_s : retry_s);
		if (follow->ended)
			break;
		find_recording(follow);
		if (!follow->path[0])
			continue;
		if (follow_seconds() >= next) {
			bool good = follow_once(follow, false);

			next = follow_seconds() + (good ? follow->every_s : retry_s);
		} else if (!follow->gaps.open) {
			follow_once(follow, true);
		}
	}
}

/* The last flush. A lake that is gone may come back for some time. */
static bool follow_end(struct lake_follow *follow)
{
	find_recording(follow);
	if (!follow->path[0])
		return true;
	for (int i = 0; i < 3; i++) {
		if (follow_once(follow, false))
			return true;
		sleep(1);
	}
	return false;
}

static void lower_priority(void)
{
	setpriority(PRIO_PROCESS, 0, 19);
	syscall(SYS_ioprio_set, 1, 0, IOPRIO_IDLE);
}

int lake_words_follow(struct lake_request *request)
{
	const char *every = getenv("KYMO_LAKE_EVERY");
	struct lake_follow follow = { .request = request };

	store_is_pid(request->words[0], &follow.collector);
	follow.every_s = every && strtod(every, NULL) > 0 ? strtod(every, NULL) : EVERY_S;
	lower_priority();
	follow_run(&follow);
	if (!follow_end(&follow))
		text_line(stderr,
			  "cannot write into the lake: %.400s; to add the rest: kymo lake "
			  "add %s %s",
			  follow.why, follow.path, request->words[1]);
	else if (follow.why[0])
		text_line(stderr, "lake: %s", follow.why);
	return CMDS_OK;
}
