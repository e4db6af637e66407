#include "cmds/attach/attach_all.h"

#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "cmds/cmds.h"
#include "collect/host/proc.h"
#include "collect/run/programs.h"
#include "collect/say.h"
#include "store/discover.h"

#define DIRECTORY "kymo-programs"
#define LOOK_NS 1000000000ull
#define WATCHED_MOST 32 /* programs at a time: each has a collector */
#define TRIED_MOST 1024 /* programs that are not tried again while they run */
#define NEW_MOST 256 /* programs that were new in the last look */
#define END_NS 60000000000ull /* for the collectors to write what they have */

struct one {
	pid_t pid;
	uint64_t starttime;
	pid_t collector; /* 0: it has ended, before the program or with it */
};

struct watcher {
	const struct attach_all *all;
	const char *directory;
	struct programs_wanted wanted;
	struct programs programs;
	struct one tried[TRIED_MOST];
	size_t tried_count, watched;
	/* A program is watched when it is seen for the second time: most commands are shorter. */
	struct one new[NEW_MOST];
	size_t new_count;
	bool said_most;
	sigset_t signals, before;
};

/* ---- one program ----------------------------------------------------------------------------- */

static void attach_all_name_recording(const struct watcher *watcher, pid_t pid, char *out,
				      size_t out_bytes)
{
	time_t now = time(NULL);
	char when[32];
	struct tm parts;

	localtime_r(&now, &parts);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &parts);
	snprintf(out, out_bytes, "%s/kymo-%s-%d", watcher->directory, when, (int)pid);
}

static void record_in_child(const struct watcher *watcher, const struct program *program,
			    const char *directory, pid_t parent)
{
	const struct attach_all *all = watcher->all;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(CMDS_FAILED);
	sigprocmask(SIG_SETMASK, &watcher->before, NULL);
	status = all->record(all->context, program->pid, program->starttime, directory);
	fflush(NULL);
	_exit(status);
}

static void begin_one(struct watcher *watcher, const struct program *program)
{
	struct one *one = &watcher->tried[watcher->tried_count];
	char directory[KYMO_PATH_BYTES];
	pid_t parent = getpid(), child;

	attach_all_name_recording(watcher, program->pid, directory, sizeof(directory));
	fflush(NULL);
	child = fork();
	if (!child)
		record_in_child(watcher, program, directory, parent);
	if (child < 0) {
		say("cannot record %s (pid %d): %s", program->name, (int)program->pid,
		    strerror(errno));
		return; /* tried again at the next look */
	}
	*one = (struct one){ program->pid, program->starttime, child };
	watcher->tried_count++;
	watcher->watched++;
}

/* ---- a look ---------------------------------------------------------------------------------- */

static struct one *find_one(struct one *list, size_t count, const struct program *program)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].pid == program->pid && list[i].starttime == program->starttime)
			return &list[i];
	return NULL;
}

/* Programs that have ended make room, and those that are watched are marked. */
static void settle_tried(struct watcher *watcher)
{
	size_t left = 0;

	for (size_t i = 0; i < watcher->tried_count; i++) {
		struct one one = watcher->tried[i];
		struct program *program = programs_find(&watcher->programs, one.pid);
		bool runs = program && program->starttime == one.starttime;

		if (runs)
			program->watched = one.collector != 0;
		if (runs || one.collector)
			watcher->tried[left++] = one;
	}
	watcher->tried_count = left;
}

static void attach_all_consider(struct watcher *watcher, struct program *program, struct one *fresh,
				size_t *fresh_count)
{
	if (find_one(watcher->tried, watcher->tried_count, program) ||
	    !programs_is_wanted(&watcher->programs, program, &watcher->wanted))
		return;
	if (!find_one(watcher->new, watcher->new_count, program)) {
		if (*fresh_count < NEW_MOST)
			fresh[(*fresh_count)++] = (struct one){ program->pid, program->starttime,
								0 };
		return;
	}
	if (watcher->watched < WATCHED_MOST && watcher->tried_count < TRIED_MOST) {
		program->watched = true;
		begin_one(watcher, program);
		return;
	}
	if (!watcher->said_most)
		say("recording %d programs, the most at a time; %s (pid %d) and later ones wait "
		    "until one of them ends",
		    WATCHED_MOST, program->name, (int)program->pid);
	watcher->said_most = true;
	if (*fresh_count < NEW_MOST)
		fresh[(*fresh_count)++] = (struct one){ program->pid, program->starttime, 0 };
}

/* Parents have lower start times than their children: of a family that is new, the parent is
   watched, and the children with it. */
static int compare_starts(const void *a, const void *b)
{
	const struct program *one = *(struct program *const *)a;
	const struct program *other = *(struct program *const *)b;

	if (one->starttime != other->starttime)
		return one->starttime < other->starttime ? -1 : 1;
	return (one->pid > other->pid) - (one->pid < other->pid);
}

static void look(struct watcher *watcher)
{
	struct one fresh[NEW_MOST];
	size_t fresh_count = 0;
	struct program **by_start;

	programs_look(&watcher->programs, &watcher->wanted);
	settle_tried(watcher);
	by_start = calloc(watcher->programs.count + 1, sizeof(*by_start));
	if (!by_start)
		return;
	for (size_t i = 0; i < watcher->programs.count; i++)
		by_start[i] = &watcher->programs.list[i];
	qsort(by_start, watcher->programs.count, sizeof(*by_start), compare_starts);
	for (size_t i = 0; i < watcher->programs.count; i++)
		attach_all_consider(watcher, by_start[i], fresh, &fresh_count);
	free(by_start);
	memcpy(watcher->new, fresh, sizeof(fresh));
	watcher->new_count = fresh_count;
}

/* ---- from start to end ----------------------------------------------------------------------- */

static void reap(struct watcher *watcher)
{
	pid_t child;

	while ((child = waitpid(-1, NULL, WNOHANG)) > 0)
		for (size_t i = 0; i < watcher->tried_count; i++)
			if (watcher->tried[i].collector == child) {
				watcher->tried[i].collector = 0;
				watcher->watched--;
				watcher->said_most = false;
				discover_prune(watcher->directory, watcher->all->most_bytes);
			}
}

/* True: a signal ended the wait that is no SIGCHLD. */
static bool attach_all_wait_until(struct watcher *watcher, uint64_t until_ns)
{
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		struct timespec left = { (time_t)(left_ns / 1000000000u),
					 (long)(left_ns % 1000000000u) };
		int number = sigtimedwait(&watcher->signals, NULL, &left);
		bool over = number < 0 && errno == EAGAIN;

		reap(watcher);
		if (over || (number > 0 && number != SIGCHLD))
			return !over;
	}
}

static void end_all(struct watcher *watcher)
{
	uint64_t until_ns = clock_monotonic_ns() + END_NS;

	for (size_t i = 0; i < watcher->tried_count; i++)
		if (watcher->tried[i].collector)
			kill(watcher->tried[i].collector, SIGTERM);
	while (watcher->watched && clock_monotonic_ns() < until_ns)
		attach_all_wait_until(watcher, clock_monotonic_ns() + LOOK_NS / 10);
	if (watcher->watched)
		say("%zu recordings are not complete yet; their collectors go on",
		    watcher->watched);
}

static void watch_programs(struct watcher *watcher)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t end_ns = watcher->all->duration_ns ? now_ns + watcher->all->duration_ns
						    : UINT64_MAX;

	do {
		uint64_t next_ns;

		look(watcher);
		next_ns = clock_monotonic_ns() + LOOK_NS;
		if (attach_all_wait_until(watcher, next_ns < end_ns ? next_ns : end_ns))
			break;
	} while (clock_monotonic_ns() < end_ns);
	end_all(watcher);
}

static int attach_all_prepare(struct watcher *watcher, regex_t *pattern)
{
	const struct attach_all *all = watcher->all;
	struct kymo_error err = { 0 };
	struct proc_stat self;
	char why[128];
	int rc;

	watcher->directory = all->directory ? all->directory : DIRECTORY;
	if (all->pattern) {
		rc = regcomp(pattern, all->pattern, REG_EXTENDED | REG_NOSUB);
		if (rc) {
			regerror(rc, pattern, why, sizeof(why));
			return cmds_wrong("attach",
					  "--match takes an extended regular expression, not "
					  "\"%s\": %s",
					  all->pattern, why);
		}
		watcher->wanted.pattern = pattern;
	} else if (!proc_stat(getpid(), &self)) {
		watcher->wanted.since = self.starttime;
	}
	if (mkdir(watcher->directory, 0700) && errno != EEXIST) {
		error_set(&err, errno,
			  "cannot create the folder %s: %s; use -o DIR for another one",
			  watcher->directory, strerror(errno));
		return cmds_fail("attach", &err);
	}
	return CMDS_OK;
}

static void take_signals(struct watcher *watcher)
{
	static const int numbers[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP };

	sigemptyset(&watcher->signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&watcher->signals, numbers[i]);
	sigprocmask(SIG_BLOCK, &watcher->signals, &watcher->before);
}

int attach_all(const struct attach_all *all)
{
	struct watcher *watcher = calloc(1, sizeof(*watcher));
	regex_t pattern;
	int status;

	if (!watcher) {
		struct kymo_error err = { 0 };

		error_set(&err, ENOMEM, "out of memory");
		return cmds_fail("attach", &err);
	}
	watcher->all = all;
	status = attach_all_prepare(watcher, &pattern);
	if (status == CMDS_OK) {
		take_signals(watcher);
		watch_programs(watcher);
		sigprocmask(SIG_SETMASK, &watcher->before, NULL);
	}
	if (watcher->wanted.pattern)
		regfree(&pattern);
	programs_fini(&watcher->programs);
	free(watcher);
	return status;
}
