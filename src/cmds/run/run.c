/* kymo run: records a program, prints a summary on stderr and exits with the program's status. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files/paths.h"
#include "cmds/cmds.h"
#include "cmds/guard/guard.h"
#include "cmds/run/run_device.h"
#include "cmds/run/run_doors.h"
#include "cmds/run/run_job.h"
#include "cmds/run/run_lake.h"
#include "cmds/run/run_memory.h"
#include "cmds/run/run_python.h"
#include "cmds/run/run_serve.h"
#include "cmds/run/run_torch.h"
#include "cmds/run/run_trigger.h"
#include "cmds/run/run_xla.h"
#include "collect/collect.h"
#include "collect/say.h"
#include "store/store.h"
#include "views/term/format.h"
#include "views/stacks/last_stacks.h"
#include "views/term/text.h"

#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127
#define COMMAND_COLUMNS 48 /* for the command in the first line */
#define COMMAND_COLUMNS_LEAST 8 /* with less, the path gets a line of its own */
#define COMMAND_COLUMNS_PIPE 16 /* at least, where no terminal has to be wide enough */
#define SHORT_NS 100000000
#define LAST_STACK_LINES 8 /* six frames and two lines around them */

struct run_options {
	struct collect_options collect;
	struct run_python python;
	struct run_environment environment;
	char *directory; /* with --name: contains it; owned */
	const char *name;
	struct run_torch torch;
	struct run_xla xla;
	struct run_serve serve;
	struct run_lake lake;
	struct run_memory memory;
	struct run_job job;
	struct run_trigger *trigger; /* of cmd_run() */
	bool force, quiet, no_summary, report, device;
};

/* ---- options --------------------------------------------------------------------------------- */

enum {
	OPTION_OUTPUT,
	OPTION_FORCE,
	OPTION_KEEP,
	OPTION_BUDGET,
	OPTION_NAME,
	OPTION_PYTHON,
	OPTION_SKIP,
	OPTION_TAKE,
	OPTION_FROM,
	OPTION_TO,
	OPTION_REPORT,
	OPTION_TORCH,
	OPTION_TORCH_MODULES,
	OPTION_TORCH_EVERY,
	OPTION_TORCH_OPS,
	OPTION_XLA,
	OPTION_PEAK_FLOPS,
	OPTION_WATCH,
	OPTION_MEMORY,
	OPTION_DEVICE,
	OPTION_SLOW,
	OPTION_NO_NATIVE,
	OPTION_MAX_OVERHEAD,
	OPTION_TRIGGER,
	OPTION_TRIGGERS,
	OPTION_ACTION,
	OPTION_SERVE,
	OPTION_LAKE,
	OPTION_LAKE_TIER,
	OPTION_NO_SUMMARY,
	OPTION_QUIET,
	OPTION_COUNT
};

const struct cmds_option cmds_run_options[] = {
	[OPTION_OUTPUT] = { 'o', "output", "DIR", "directory of the recording (./kymo-DATE-PID)" },
	[OPTION_FORCE] = { 0, "force", NULL, "replace an existing recording" },
	[OPTION_KEEP] = { 0, "keep", "all|flight|RULES",
			  "all rows, the last 10,000, or rules: zones=10m" },
	[OPTION_BUDGET] = { 0, "budget", "SIZE", "limit of memory, or both: mem=1G,disk=4G" },
	[OPTION_NAME] = { 'n', "name", "NAME", "./kymo-NAME-DATE-PID; with --output: DIR/NAME" },
	[OPTION_PYTHON] = { 0, "python", "[=WORDS]",
			    "record Python calls: partial, lines, c-calls" },
	[OPTION_SKIP] = { 0, "skip", "N", "record Python calls after the first N steps" },
	[OPTION_TAKE] = { 0, "take", "N", "record Python calls for N steps" },
	[OPTION_FROM] = { 0, "from", "NAME", "record Python calls from this signpost" },
	[OPTION_TO] = { 0, "to", "NAME", "record Python calls until this signpost" },
	[OPTION_REPORT] = { 'r', "report", NULL, "write the totals of regions to DIR.csv" },
	[OPTION_TORCH] = { 0, "torch", NULL, "record PyTorch modules, forward and backward" },
	[OPTION_TORCH_MODULES] = { 0, "torch-modules", "PATTERN",
				   "only modules that match, such as 'layers.*'" },
	[OPTION_TORCH_EVERY] = { 0, "torch-every", "N", "record modules in every N-th step" },
	[OPTION_TORCH_OPS] = { 0, "torch-ops", "[=all|N]",
			       "record operators of torch in one step of N (64)" },
	[OPTION_XLA] = { 0, "xla", "[=all|N]", "record operations of XLA in one step of N (64)" },
	[OPTION_PEAK_FLOPS] = { 0, "peak-flops", "N|measure",
				"FLOP/s that the device can reach, such as 312e12" },
	[OPTION_WATCH] = { 0, "watch", "NAME@FUNC", "record a variable at each optimizer step" },
	[OPTION_MEMORY] = { 0, "memory", "[=exact|off]",
			    "record allocations; off: can be turned on later" },
	[OPTION_DEVICE] = { 0, "device", NULL, "record device operations (OpenCL, CUDA)" },
	[OPTION_SLOW] = { 0, "slow", "SECONDS", "sample Python when a zone or step takes longer" },
	[OPTION_NO_NATIVE] = { 0, "no-native", NULL, "do not sample native stacks" },
	[OPTION_MAX_OVERHEAD] = { 0, "max-overhead", "PERCENT",
				  "lower detail while recording costs more (1%)" },
	[OPTION_TRIGGER] = { 0, "trigger", "NAME[=SQL]", "act when this SELECT returns a new row" },
	[OPTION_TRIGGERS] = { 0, "triggers", "FILE", "the same for all triggers of a file" },
	[OPTION_ACTION] = { 0, "action", "ACTION",
			    "of --trigger: snapshot (default), why, mark, …" },
	[OPTION_SERVE] = { 0, "serve", "[=PORT]", "start a live viewer for browsers" },
	[OPTION_LAKE] = { 0, "lake", "DIR", "also write Parquet files into this lake" },
	[OPTION_LAKE_TIER] = { 0, "lake-tier", "N", "0: totals; 1: also steps; 2: all tables (1)" },
	[OPTION_NO_SUMMARY] = { 0, "no-summary", NULL, "print one line at the end" },
	[OPTION_QUIET] = { 'q', "quiet", NULL, "print no messages (or set KYMO_QUIET=1)" },
	[OPTION_COUNT] = { 0 },
};

static int set_keep(struct run_options *run, const char *word)
{
	struct kymo_error err = { 0 };

	run->collect.keep_rules.count = 0;
	run->collect.keep = strcmp(word, "flight") != 0 ? KYMO_KEEP_ALL : KYMO_KEEP_FLIGHT;
	if (!strchr(word, '=') && strcmp(word, "all") != 0 && strcmp(word, "flight") != 0)
		return cmds_wrong("run", "--keep takes all, flight or rules, not \"%s\"", word);
	if (strchr(word, '=') && keep_rules_parse(word, &run->collect.keep_rules, &err))
		return cmds_wrong("run", "--keep: %s", err.text);
	return -1;
}

/* -1 to continue, else the exit status. */
static int set_option(struct run_options *run, int option, const char *value)
{
	struct kymo_error err = { 0 };

	switch (option) {
	case OPTION_OUTPUT: run->collect.directory = value; break;
	case OPTION_FORCE: run->force = true; break;
	case OPTION_KEEP: return set_keep(run, value);
	case OPTION_BUDGET:
		if (budget_parse(value, &run->collect.budget, &err))
			return cmds_wrong("run", "--budget: %s", err.text);
		break;
	case OPTION_NAME: run->name = value; break;
	case OPTION_PYTHON: return run_python_words(&run->python, value);
	case OPTION_SKIP: run->python.skip = value; break;
	case OPTION_TAKE: run->python.take = value; break;
	case OPTION_FROM: run->python.from = value; break;
	case OPTION_TO: run->python.to = value; break;
	case OPTION_REPORT: run->report = true; break;
	case OPTION_TORCH: run->torch.on = true; break;
	case OPTION_TORCH_MODULES: run->torch.modules = value; break;
	case OPTION_TORCH_EVERY: run->torch.every = value; break;
	case OPTION_TORCH_OPS: return run_torch_ops(&run->torch, value);
	case OPTION_PEAK_FLOPS: return run_torch_peak(&run->torch, value);
	case OPTION_XLA: return run_xla_option(&run->xla, value);
	case OPTION_WATCH: return run_torch_watch(&run->torch, value);
	case OPTION_MEMORY: return run_memory_word(&run->memory, value);
	case OPTION_DEVICE: run->device = true; break;
	case OPTION_SLOW: return cmds_slow("run", "--slow", value, &run->collect.slow_ns);
	case OPTION_NO_NATIVE: run->collect.no_native = true; break;
	case OPTION_MAX_OVERHEAD: return run_python_budget(&run->python, &run->collect, value);
	case OPTION_TRIGGER: return run_trigger_add(run->trigger, value);
	case OPTION_TRIGGERS: return run_trigger_file(run->trigger, value);
	case OPTION_ACTION: return run_trigger_action(run->trigger, value);
	case OPTION_SERVE: return run_serve_word(&run->serve, value);
	case OPTION_LAKE: run->lake.directory = value; break;
	case OPTION_LAKE_TIER: return run_lake_tier(&run->lake, value);
	case OPTION_NO_SUMMARY: run->no_summary = true; break;
	case OPTION_QUIET: run->quiet = true; break;
	default: break;
	}
	return -1;
}

static int read_options(int argc, char **argv, struct run_options *run)
{
	const struct cmds_option *option;
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "run", argc, argv);
	args.takes_program = true;
	while ((option = cmds_next(&args, &status))) {
		status = set_option(run, (int)(option - cmds_run_options), args.value);
		if (status >= 0)
			return status;
	}
	if (status >= 0)
		return status;
	if (!args.word_count)
		return cmds_wrong(
			"run",
			"no program given; usage: kymo run [OPTIONS] -- PROGRAM [ARGUMENTS]");
	args.words[args.word_count] = NULL; /* at most argv[argc] */
	run->collect.argv = args.words;
	return -1;
}

/* Read before the command line, which takes precedence. */
static int read_environment(struct run_options *run)
{
	const char *budget = getenv("KYMO_BUDGET"), *keep = getenv("KYMO_KEEP"),
		   *quiet = getenv("KYMO_QUIET");
	struct kymo_error err = { 0 };

	if (budget && *budget && budget_parse(budget, &run->collect.budget, &err))
		return cmds_wrong("run", "KYMO_BUDGET: %s", err.text);
	if (keep && !strcasecmp(keep, "flight"))
		run->collect.keep = KYMO_KEEP_FLIGHT;
	run->quiet = quiet && *quiet && strcmp(quiet, "0");
	run->collect.no_native = cmds_samples_are_off();
	if (cmds_slow("run", "KYMO_SLOW_ZONE", getenv("KYMO_SLOW_ZONE"), &run->collect.slow_ns) >=
	    0)
		return CMDS_WRONG_USE;
	return cmds_check_settings("run");
}

/* ---- before ---------------------------------------------------------------------------------- */

static bool is_turned_off(void)
{
	static const char *const words[] = { "off", "0", "false", "no" };
	const char *value = getenv("KYMO");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (value && !strcasecmp(value, words[i]))
			return true;
	return false;
}

static int cannot_start(char **argv, int error)
{
	bool has_path = strchr(argv[0], '/');
	bool missing = error == ENOENT || error == ENOTDIR;

	if (missing && !has_path)
		cmds_wrong("run", "%s: command not found", argv[0]);
	else if (missing && !access(argv[0], F_OK))
		cmds_wrong("run", "cannot execute %s: its interpreter (#! line) does not exist",
			   argv[0]);
	else
		cmds_wrong("run", "cannot execute %s: %s", argv[0], strerror(error));
	return missing ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* KYMO=off overrides all options: the program replaces this process. */
static int run_without_recording(struct run_options *run)
{
	say("nothing is recorded: KYMO=off is set in the environment");
	execvp(run->collect.argv[0], run->collect.argv);
	return cannot_start(run->collect.argv, errno);
}

/* Trouble with the recording does not keep the program from running. */
static int run_unrecorded(struct run_options *run, const struct kymo_error *err)
{
	say("nothing is recorded: %s", err->text);
	execvp(run->collect.argv[0], run->collect.argv);
	return cannot_start(run->collect.argv, errno);
}

/* It may exist; errors show when the recording is made. */
static void make_folder_of_runs(const char *path)
{
	struct safe_dir parent;

	if (!safe_dir_parent(&parent, path, 0, NULL))
		mkdirat(parent.fd, parent.name, 0700);
	safe_dir_close(&parent);
}

/* The name must not leave its folder. */
static int name_recording(struct run_options *run)
{
	time_t now = time(NULL);
	struct tm parts;
	char when[32];
	int made;

	if (!run->name)
		return -1;
	if (!*run->name || *run->name == '.' || strchr(run->name, '/'))
		return cmds_wrong("run",
				  "--name \"%s\" is invalid: a name must not be empty, contain / "
				  "or begin with a dot",
				  run->name);
	run->collect.name = run->name;
	localtime_r(&now, &parts);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &parts);
	if (run->collect.directory) {
		make_folder_of_runs(run->collect.directory);
		made = asprintf(&run->directory, "%s/%s", run->collect.directory, run->name);
	} else {
		made = asprintf(&run->directory, "kymo-%s-%s-%d", run->name, when, (int)getpid());
	}
	if (made < 0)
		return CMDS_FAILED;
	run->collect.directory = run->directory;
	return -1;
}

/* ---- after ----------------------------------------------------------------------------------- */

static bool is_python(const char *command)
{
	const char *name = strrchr(command, '/');

	return !strncmp(name ? name + 1 : command, "python", 6);
}

static const char *without_directory(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static size_t join_words(struct buf *out, const char *first, char **more)
{
	buf_reset(out);
	buf_text(out, first); /* not foreign: text_fit() escapes the whole */
	for (; *more; more++) {
		buf_char(out, ' ');
		buf_text(out, *more); /* not foreign: as above */
	}
	return text_width(buf_get(out), out->used);
}

/* If the whole command does not fit: the program without its directory, then the script without the
   interpreter, then cut in the middle. */
static void add_command(struct buf *out, char **argv, size_t columns,
			const struct text_style *style)
{
	struct buf words = { 0 };

	if (join_words(&words, argv[0], argv + 1) > columns &&
	    join_words(&words, without_directory(argv[0]), argv + 1) > columns &&
	    is_python(argv[0]) && argv[1] && argv[1][0] != '-')
		join_words(&words, without_directory(argv[1]), argv + 2);
	text_fit(out, buf_get(&words), columns, 0, style);
	buf_fini(&words);
}

static void add_end(struct buf *out, int wstatus)
{
	const char *name = WIFSIGNALED(wstatus) ? sigabbrev_np(WTERMSIG(wstatus)) : NULL;

	if (WIFEXITED(wstatus))
		buf_print(out, " ended with %d", WEXITSTATUS(wstatus));
	else if (name)
		buf_print(out, " was killed by SIG%s", name); /* not foreign: of libc */
	else
		buf_print(out, " was killed by signal %d", WTERMSIG(wstatus));
}

/* Shortens the command so that the rest of the line fits. */
static size_t command_columns(size_t taken, const struct text_style *style)
{
	size_t least = style->terminal ? COMMAND_COLUMNS_LEAST : COMMAND_COLUMNS_PIPE, room;

	taken += strlen("kymo: ");
	room = (size_t)style->columns > taken ? (size_t)style->columns - taken : 0;
	if (room > COMMAND_COLUMNS)
		return COMMAND_COLUMNS;
	return room > least ? room : least;
}

/* A path that does not fit the line is on a line of its own: it is never cut, so that it can be
   copied. Returns the number of lines. */
static int print_first_line(const struct run_options *run, const struct collect_result *result)
{
	struct text_style style = text_style_of(stderr);
	struct buf command = { 0 }, end = { 0 }, path = { 0 };
	size_t taken;
	bool fits;

	add_end(&end, result->wstatus);
	buf_print(&end, " after %s; recording",
		  format_clock((double)result->duration_ns, style.utf8).text);
	text_visible(&path, result->directory, strlen(result->directory));
	taken = text_width(buf_get(&end), end.used) + 1 + text_width(buf_get(&path), path.used);
	fits = strlen("kymo: ") + COMMAND_COLUMNS_LEAST + taken <= (size_t)style.columns;
	add_command(&command, run->collect.argv,
		    command_columns(fits ? taken : text_width(buf_get(&end), end.used), &style),
		    &style);
	fprintf(stderr, "kymo: %s%s%s%s\n", buf_get(&command), buf_get(&end), fits ? " " : "\n  ",
		buf_get(&path));
	buf_fini(&command);
	buf_fini(&end);
	buf_fini(&path);
	return fits ? 1 : 2;
}

/* One line: some of the names, if not all fit. */
static void print_not_recorded(const struct collect_result *result)
{
	struct text_style style = text_style_of(stderr);
	struct buf line = { 0 }, fitted = { 0 };

	buf_print(&line, "  %s %s not recorded: ", format_count(result->not_recorded).text,
		  result->not_recorded == 1 ? "child was" : "children were");
	buf_text(&line, result->not_recorded_names);
	buf_text(&line, result->not_recorded > 3 ? ", …" : "");
	text_fit(&fitted, buf_get(&line), (size_t)style.columns, 0, &style);
	fprintf(stderr, "%s\n", buf_get(&fitted));
	buf_fini(&line);
	buf_fini(&fitted);
}

static void print_incomplete(const struct collect_result *result)
{
	bool several = result->still_running > 1;

	if (result->not_recorded)
		print_not_recorded(result);
	if (several)
		text_line(stderr,
			  "  %u children are still running (pid %d, …); their data stays in %s",
			  result->still_running, (int)result->still_running_pid, result->live);
	else if (result->still_running)
		text_line(stderr, "  Child %d is still running; its data stays in %s",
			  (int)result->still_running_pid, result->live);
	else if (result->live[0])
		text_line(stderr, "  cannot move all data to the disk (%s): the rest stays in %s",
			  result->move_error ? strerror(-result->move_error)
					     : "another file has its name",
			  result->live);
}

struct ended_run {
	const char *directory, *command;
	uint64_t duration_ns;
	int more_lines; /* that the first line has taken */
};

/* The program was too short for a sample, cannot be sampled, or sampling is off. Advice is for the
   program's language, as far as its name tells. */
static void print_how_to_record(const struct ended_run *ended)
{
	if (ended->duration_ns < SHORT_NS)
		fprintf(stderr, "  Too short to judge: no stack was sampled in %s.\n",
			format_clock((double)ended->duration_ns, text_style_of(stderr).utf8).text);
	else
		fputs(is_python(ended->command)
			      ? "  No zones recorded, and no stack was sampled. kymo run --python "
				"records every call.\n"
			      : "  No zones recorded, and no stack was sampled. In C, "
				"KYMO_SCOPE(\"name\") of\n  <kymo/kymo.h> marks zones.\n",
		      stderr);
	fputs("  next: kymo query 'FROM host.process'\n", stderr);
}

/* In a child. What a program was in when a signal ended it comes first. */
static int print_last_stacks(void *context)
{
	const struct ended_run *ended = context;
	struct text_style style = text_style_of(stderr);

	if (last_stacks_print(ended->directory, &style, stderr))
		return cmds_print_summary_below(ended->directory,
						LAST_STACK_LINES + ended->more_lines, true);
	return cmds_print_summary_below(ended->directory, ended->more_lines, false);
}

static int run_print_summary_of(void *context)
{
	const struct ended_run *ended = context;

	return cmds_print_summary_below(ended->directory, ended->more_lines, false);
}

static void print_summary(struct collect_result *result, const char *command, int more_lines)
{
	struct ended_run ended = { result->directory, command, result->duration_ns, more_lines };
	struct kymo_error err = { 0 };

	if (!result->processes && !result->still_running && !result->sampled &&
	    !result->sampled_native)
		print_how_to_record(&ended);
	else if (!result->processes && WIFSIGNALED(result->wstatus))
		guard_run(print_last_stacks, &ended, NULL);
	else if (guard_run(run_print_summary_of, &ended, &err) < 0)
		text_line(stderr, "  no summary: %s", err.text);
}

static void report(const struct run_options *run, struct collect_result *result)
{
	int lines;

	if (run->quiet)
		return;
	lines = print_first_line(run, result);
	print_incomplete(result);
	if (result->native_refused[0])
		text_line(stderr, "  %s", result->native_refused);
	if (run_python_report_empty(&run->python, run->collect.argv, result->directory))
		return;
	if (!run->no_summary)
		print_summary(result, run->collect.argv[0], lines - 1);
	fflush(stderr);
}

/* Writes the exact totals as CSV. A failure is reported and does not change the exit status. */
static void run_write_report(const struct run_options *run, const struct collect_result *result)
{
	char file[KYMO_PATH_BYTES + 8], target[KYMO_PATH_BYTES];
	char *argv[] = { "query", "--force", "-f",   "csv",
			 "-o",	  file,	     target, "FROM trace.regions ORDER BY self_ns DESC",
			 NULL };

	if (!run->report || !result->processes)
		return;
	snprintf(target, sizeof(target), "%s", result->directory);
	snprintf(file, sizeof(file), "%s.csv", result->directory);
	if (cmd_query((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv) == CMDS_OK)
		say("wrote %s", file);
}

/* A recording of a job is found by its job. */
static void add_to_index(const struct run_options *run, const struct collect_result *result)
{
	struct kymo_error err = { 0 };

	if (store_remember(run->job.directory[0] ? run->job.directory : result->directory, &err))
		say("%s", err.text); /* `kymo ls` then lists it only in its own directory */
	store_prune();
}

/* The watcher of triggers begins with the program and ends before the recording is complete. */
static void prepare_triggers(struct run_options *run)
{
	if (!run->trigger->set.count)
		return;
	run->collect.started = run_trigger_started;
	run->collect.ended = run_trigger_ended;
	run->collect.context = run->trigger;
}

int cmd_run(int argc, char **argv)
{
	static struct run_trigger trigger; /* large */
	struct run_options run = { .collect = { .keep = KYMO_KEEP_ALL }, .trigger = &trigger };
	struct collect_result result;
	struct kymo_error err = { 0 };
	int status;

	run.collect.budget = (struct budget){ BUDGET_MEMORY_BYTES, BUDGET_DISK_BYTES };
	status = read_environment(&run);
	if (status < 0)
		status = read_options(argc, argv, &run);
	if (status >= 0)
		return status;
	say_quiet(run.quiet);
	if (is_turned_off())
		return run_without_recording(&run);
	status = run_python_prepare(&run.python, run.quiet, &run.environment);
	if (status < 0)
		status = run_torch_prepare(&run.torch, run.collect.argv, &run.environment);
	run_python_collections(run.collect.argv, &run.environment);
	if (status < 0)
		status = run_memory_prepare(&run.memory,
					    run_environment_has(&run.environment, "PYTHONPATH"),
					    &run.environment);
	run_device_prepare(run.device, &run.environment);
	run_doors_prepare(&run.environment);
	if (status < 0)
		status = run_trigger_ready(&trigger);
	if (status < 0)
		status = name_recording(&run);
	if (status >= 0)
		return status;
	status = run_xla_prepare(&run.xla, run.collect.directory, &run.environment,
				 &run.collect.hold[2]);
	if (status >= 0)
		return status;
	prepare_triggers(&run);
	run.collect.environment = (const char *const *)run.environment.list;
	/* What cannot be replaced stays, and the recording gets another name. */
	if (run.force)
		cmds_remove_old("run", run.collect.directory);
	run.collect.elsewhere = true;
	run_job_prepare(&run.job, &run.collect);
	run_serve_start(&run.serve);
	run_lake_start(&run.lake, run.collect.hold);
	if (collect_run(&run.collect, &result, &err))
		return run_unrecorded(&run, &err);
	if (result.exec_error)
		return cannot_start(run.collect.argv, result.exec_error);
	run_xla_end(&run.xla, result.directory);
	add_to_index(&run, &result);
	report(&run, &result);
	run_lake_end(&run.lake, result.directory);
	run_write_report(&run, &result);
	run_environment_fini(&run.environment);
	free(run.directory);
	run_trigger_fini(&trigger);
	collect_end_like(result.wstatus);
}
