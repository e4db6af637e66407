/* kymo attach: records a running program from outside. */
#include "cmds/cmds.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/paths.h"
#include "base/settings.h"
#include "cmds/attach/attach_all.h"
#include "collect/collect.h"
#include "collect/host/proc.h"
#include "collect/say.h"
#include "store/live_processes.h"
#include "views/term/format.h"
#include "views/term/text.h"

#define START_NAPS 500 /* of 10 ms */

struct attach {
	struct attach_options options;
	struct live_processes live; /* of a program that is already recorded */
	struct kymo_control settings;
	char name[64];
	const char *match;
	bool force, quiet, no_summary, all;
};

/* ---- options --------------------------------------------------------------------------------- */

static int read_pid(struct attach *attach, const char *word)
{
	int32_t pid;

	if (!store_is_pid(word, &pid) || !pid)
		return cmds_wrong("attach", "%s is not a pid; kymo ls and ps list processes", word);
	attach->options.pid = pid;
	if (attach->options.pid == getpid())
		return cmds_wrong("attach", "cannot attach to process %s: it is this command",
				  word);
	return -1;
}

/* Either the words that name one program, or those that choose many. */
static int attach_check_words(const struct attach *attach, const struct cmds_args *args)
{
	if (attach->match && !attach->all)
		return cmds_wrong("attach", "--match chooses among the programs of --all");
	if (attach->all && args->word_count)
		return cmds_wrong("attach", "use either a PID or --all, not both");
	if (attach->all && attach->force)
		return cmds_wrong("attach", "--force replaces one recording; it does not work with "
					    "--all");
	if (!attach->all && args->word_count != 1)
		return cmds_wrong("attach", "expected one PID; usage: kymo attach [OPTIONS] PID");
	return -1;
}

static int read_arguments(struct attach *attach, int argc, char **argv)
{
	const char *quiet = getenv("KYMO_QUIET"), *budget = getenv("KYMO_BUDGET");
	const struct cmds_option *option;
	struct kymo_error err = { 0 };
	struct cmds_args args;
	double seconds;
	int status;

	attach->quiet = quiet && *quiet && strcmp(quiet, "0") != 0;
	attach->options.budget = (struct budget){ BUDGET_MEMORY_BYTES, BUDGET_DISK_BYTES };
	attach->options.keep = KYMO_KEEP_ALL;
	attach->options.no_native = cmds_samples_are_off();
	if (budget && *budget && budget_parse(budget, &attach->options.budget, &err))
		return cmds_wrong("attach", "KYMO_BUDGET: %s", err.text);
	if (cmds_slow("attach", "KYMO_SLOW_ZONE", getenv("KYMO_SLOW_ZONE"),
		      &attach->options.slow_ns) >= 0)
		return CMDS_WRONG_USE;
	cmds_args_init(&args, "attach", argc, argv);
	while ((option = cmds_next(&args, &status))) {
		if (!strcmp(option->name, "output"))
			attach->options.directory = args.value;
		else if (!strcmp(option->name, "force"))
			attach->force = true;
		else if (!strcmp(option->name, "quiet"))
			attach->quiet = true;
		else if (!strcmp(option->name, "no-native"))
			attach->options.no_native = true;
		else if (!strcmp(option->name, "no-summary"))
			attach->no_summary = true;
		else if (!strcmp(option->name, "all"))
			attach->all = true;
		else if (!strcmp(option->name, "match"))
			attach->match = args.value;
		else if (!strcmp(option->name, "slow")) {
			if (cmds_slow("attach", "--slow", args.value, &attach->options.slow_ns) >=
			    0)
				return CMDS_WRONG_USE;
		} else if (!cmds_number(&args, option, 1e9, &seconds, &status))
			return status;
		else
			attach->options.duration_ns = (uint64_t)(seconds * 1e9) + 1;
	}
	if (status >= 0)
		return status;
	status = attach_check_words(attach, &args);
	if (status < 0)
		status = cmds_check_settings("attach");
	return status < 0 && !attach->all ? read_pid(attach, args.words[0]) : status;
}

/* ---- the process ----------------------------------------------------------------------------- */

static int attach_check_process(struct attach *attach, struct kymo_error *err)
{
	struct proc_stat stat;
	int pid = (int)attach->options.pid;
	int rc = proc_stat(pid, &stat);

	if (rc == -ENOENT || rc == -ESRCH)
		return error_set(err, ESRCH, "process %d does not exist", pid);
	if (rc)
		return error_set(err, -rc, "cannot read process %d: %s; use sudo kymo attach %d",
				 pid, strerror(-rc), pid);
	if (stat.state == 'Z' || stat.state == 'X')
		return error_set(err, ESRCH,
				 "process %d has ended: it is a zombie of its parent %d", pid,
				 (int)stat.ppid);
	/* Children are followed, and all processes descend from this one, kymo included. */
	if (pid == 1)
		return error_set(
			err, EINVAL,
			"cannot attach to process 1 (%s): every process is its child and would be "
			"recorded; attach to one of them, or use kymo backtrace 1",
			stat.name);
	/* With --all it is known which life of the pid is meant. */
	if (attach->options.starttime && attach->options.starttime != stat.starttime)
		return error_set(err, ESRCH, "process %d has ended", pid);
	attach->options.starttime = stat.starttime;
	snprintf(attach->name, sizeof(attach->name), "%s", stat.name);
	return 0;
}

static void format_setting(const struct kymo_control *control, const char *name, char *out,
			   size_t out_bytes)
{
	const struct settings_key *key = settings_find(name);
	struct settings_value value;

	settings_load(key, control, &value);
	settings_format(key, &value, out, out_bytes);
}

/* Another collector records the program: there is nothing to do. */
static int print_already_recorded(const struct attach *attach, pid_t collector_pid,
				  const struct live_process *collector)
{
	char samples[64], system[64], rates[192] = "";
	int pid = (int)attach->options.pid;

	if (attach->all)
		return CMDS_OK;
	if (collector) {
		format_setting(&collector->control, "sample_rate", samples, sizeof(samples));
		format_setting(&collector->control, "system_rate", system, sizeof(system));
		snprintf(rates, sizeof(rates),
			 strcmp(samples, "adaptive") ? "stacks every %s s, metrics every %s s, "
						     : "stacks at an %s rate, metrics every %s s, ",
			 samples, system);
	}
	text_line(stderr,
		  "kymo: process %d is already recorded by kymo (pid %d): %sin %s; kymo config %d "
		  "changes the rates, kymo query %d reads it",
		  pid, (int)collector_pid, rates,
		  attach->live.disk[0] ? attach->live.disk : attach->live.directory, pid, pid);
	return CMDS_OK;
}

/*
 * Of two that start together, the second waits until it can find the recording of the first.
 * Bounded: the first may be stopped, and a lock is not worth a hang. -1: none.
 */
static int lock_start(void)
{
	struct timespec nap = { .tv_nsec = 10000000 };
	char root[KYMO_PATH_BYTES];
	int fd = -1;

	if (!paths_root(root, sizeof(root), NULL))
		fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	for (int i = 0; fd >= 0 && i < START_NAPS && flock(fd, LOCK_EX | LOCK_NB); i++)
		nanosleep(&nap, NULL);
	return fd;
}

/* -1 to continue, else the exit status. */
static int attach_find_recording(struct attach *attach)
{
	struct kymo_error err = { 0 };
	const struct live_process *collector, *target;
	pid_t collector_pid;

	if (live_processes_open_pid(attach->options.pid, &attach->live, &err))
		return err.code == ENOENT ? -1 : cmds_fail("attach", &err);
	collector = live_processes_collector(&attach->live);
	/* kymo run exists before its collector has a control page. */
	collector_pid = collector		  ? collector->control.pid
			: attach->live.supervised ? attach->live.run.supervisor_pid
						  : 0;
	if (collector_pid)
		return print_already_recorded(attach, collector_pid, collector);
	if (attach->options.directory && !attach->all) {
		error_set(&err, EEXIST,
			  "cannot use -o: process %d records into %s already; omit -o, and use "
			  "kymo snapshot %d FILE for a copy",
			  (int)attach->options.pid, attach->live.directory,
			  (int)attach->options.pid);
		return cmds_fail("attach", &err);
	}
	target = live_processes_find(&attach->live, attach->options.pid);
	if (target) {
		attach->settings = target->control;
		attach->options.settings = &attach->settings;
	}
	attach->options.live = attach->live.directory;
	if (attach->live.run.supervised && attach->live.disk[0])
		attach->options.disk = attach->live.disk;
	attach->options.keep = attach->live.run.keep == KYMO_KEEP_ALL ? KYMO_KEEP_ALL
								      : KYMO_KEEP_FLIGHT;
	return -1;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void print_begin(const struct attach *attach)
{
	if (attach->all && !attach->quiet)
		text_line(stderr, "kymo: recording %s (pid %d) into %s", attach->name,
			  (int)attach->options.pid,
			  attach->options.live ? "its own recording" : attach->options.directory);
	else if (!attach->quiet && isatty(STDERR_FILENO))
		text_line(stderr,
			  "kymo: recording %s (pid %d)%s; Ctrl-C ends the recording, not the "
			  "program",
			  attach->name, (int)attach->options.pid,
			  attach->options.live ? " into its own recording" : "");
}

static void print_end(const struct attach *attach, struct collect_result *result)
{
	struct text_style style = text_style_of(stderr);

	if (attach->quiet)
		return;
	text_line(stderr, "kymo: recorded %s (pid %d) for %s; the program %s; recording %s",
		  attach->name, (int)attach->options.pid,
		  format_clock((double)result->duration_ns, style.utf8).text,
		  result->ended ? "has ended" : "is still running", result->directory);
	if (result->native_refused[0])
		text_line(stderr, "  %s", result->native_refused);
	if (!attach->no_summary)
		cmds_print_summary(result->directory);
	fflush(stderr);
}

/* ---- one program, or all --------------------------------------------------------------------- */

static int attach_record(struct attach *attach)
{
	struct collect_result result;
	struct kymo_error err = { 0 };
	int status;

	if (attach_check_process(attach, &err))
		return cmds_fail("attach", &err);
	attach->options.start_lock = lock_start();
	status = attach_find_recording(attach);
	if (status < 0 && attach->force && cmds_remove_old("attach", attach->options.directory))
		status = CMDS_FAILED;
	if (status < 0) {
		print_begin(attach);
		status = collect_attach(&attach->options, &result, &err) ? cmds_fail("attach", &err)
									 : CMDS_OK;
		if (status == CMDS_OK) {
			if (!attach->options.live)
				store_remember(result.directory, NULL);
			print_end(attach, &result);
		}
	}
	live_processes_close(&attach->live);
	return status;
}

/* In a process of its own, so the options are a copy. */
static int record_one_of_all(void *context, pid_t pid, uint64_t starttime, const char *directory)
{
	struct attach *attach = context;

	attach->options.pid = pid;
	attach->options.starttime = starttime;
	attach->options.directory = directory;
	attach->options.duration_ns = 0;
	attach->no_summary = true;
	return attach_record(attach);
}

int cmd_attach(int argc, char **argv)
{
	struct attach attach = { 0 };
	int status = read_arguments(&attach, argc, argv);

	if (status >= 0)
		return status;
	say_quiet(attach.quiet);
	if (attach.all) {
		const struct attach_all all = {
			.directory = attach.options.directory,
			.pattern = attach.match,
			.duration_ns = attach.options.duration_ns,
			.most_bytes = attach.options.budget.disk_bytes,
			.record = record_one_of_all,
			.context = &attach,
		};

		return attach_all(&all);
	}
	return attach_record(&attach);
}
