#include "collect/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "base/settings.h"
#include "collect/traceparent.h"
#include "collect/wait/wait_host.h"
#include "collect/run/collector.h"
#include "collect/host/gpu.h"
#include "collect/move/guard.h"
#include "collect/say.h"
#include "record/record.h"

#define FIRST_PASS_NS 20000000ull
#define SLOW_PASS_NS 1000000000ull /* to find new and ended processes */
#define SHORTEST_PERIOD_NS 10000000ull
/* Where system_rate is not set, a short run has more than one or two rows. */
#define FIRST_PERIOD_NS 200000000ull
#define FIRST_PERIOD_FOR_NS 2000000000ull
#define STRAGGLERS_MS 100 /* for children that end shortly after the program */

/* ---- start ----------------------------------------------------------------------------------- */

/* While the child waits for its exec. */
static void open_native(void *context, pid_t pid)
{
	struct collector *collector = context;

	native_sampler_open_child(&collector->native, pid, &collector->native_error);
}

static int launch(struct collector *collector, const struct collect_options *options,
		  struct collect_result *result, struct kymo_error *err)
{
	char run[KYMO_PATH_BYTES + 16], keep[32], budget[96] = "KYMO_BUDGET=";
	const char *additions[4 + COLLECT_VARIABLES + 1] = { "KYMO=on", run, keep, budget };
	const char *const *more = options->environment;
	char *const *argv = options->argv;
	int exec_failed, rc;

	snprintf(run, sizeof(run), "KYMO_RUN=%s", collector->dirs.live);
	snprintf(keep, sizeof(keep), "KYMO_KEEP=%s",
		 collector->keep == KYMO_KEEP_ALL ? "all" : "flight");
	budget_format(&options->budget, budget + strlen(budget), sizeof(budget) - strlen(budget));
	for (size_t i = 0; more && more[i] && i < COLLECT_VARIABLES; i++)
		additions[4 + i] = more[i];
	collector->started_ns = clock_monotonic_ns();
	rc = launch_program(argv, additions, &collector->signals,
			    collector->no_native ? NULL : open_native, collector,
			    &collector->watch.target, &exec_failed);
	if (rc && exec_failed) {
		result->exec_error = -rc;
		return rc;
	}
	if (rc)
		return error_set(err, -rc, "cannot start %s: %s", argv[0], strerror(-rc));
	collector->target_starttime = paths_starttime(collector->watch.target);
	return 0;
}

/* Copies of the program's descriptors in this process would keep its pipes open. */
static void close_inherited_files(const struct collector *collector,
				  const struct collect_options *options)
{
	DIR *directory = opendir("/proc/self/fd");
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct dirent *entry;

	if (null >= 0) {
		dup3(null, STDIN_FILENO, O_CLOEXEC);
		dup3(null, STDOUT_FILENO, O_CLOEXEC);
		close(null);
	}
	while (directory && (entry = readdir(directory))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd > STDERR_FILENO && fd != dirfd(directory) && fd != collector->dirs.live_fd &&
		    fd != collector->dirs.disk_fd && fd != collector->dirs.parent.fd &&
		    fd != options->hold[0] && fd != options->hold[1] && fd != options->hold[2] &&
		    fd != collector->watch.signal_fd && fd != collector->watch.witness.fd &&
		    !native_sampler_holds(&collector->native, fd))
			close(fd);
	}
	if (directory)
		closedir(directory);
}

static void start_sampler(struct collector *collector)
{
	struct sampler_options options = { .adaptive = true,
					   .slow_ns = collector->slow_ns,
					   .live_dir = collector->dirs.live,
					   .keep = collector->keep,
					   .recent = collector->recent };
	struct kymo_error err = { 0 };

	if (sampler_start(&collector->sampler, &options, &err))
		say("cannot sample Python stacks: %s", err.text);
	for (size_t i = 0; i < collector->family.count; i++)
		sampler_watch(&collector->sampler, collector->family.members[i].pid);
}

/* A trace's id finds its moment in the recording by it. */
static void mark_trace(void)
{
	const char *text = getenv("TRACEPARENT");
	struct traceparent parent;

	if (text && traceparent_read(text, &parent))
		kymo_mark(TRACEPARENT_MARK, text);
}

void collector_record(struct collector *collector)
{
	struct kymo_error err = { 0 };

	setenv("KYMO_KEEP", collector->keep == KYMO_KEEP_ALL ? "all" : "flight", 1);
	host_threads_set_wait(wait_host_look);
	collector->records = !host_init(&collector->host) &&
			     !kymo__enable_at(collector->dirs.live, KYMO_ROLE_COLLECTOR, &err);
	if (!collector->records) {
		say("cannot record system metrics and Python samples: %s",
		    err.text[0] ? err.text : "out of memory");
		return;
	}
	mark_trace();
	gpu_start(); /* after a failure host.gpu is empty */
	if (collector->native.inside)
		collector->recent = recent_stacks_create();
	start_sampler(collector);
	native_sampler_start(&collector->native, collector->recent, collector->keep,
			     &collector->native_error);
	if (collector->native_error.code)
		kymo__config_row("native", "on", collector->native_error.text, "kymo");
}

/* ---- while it runs --------------------------------------------------------------------------- */

static void mark_recorded(struct collector *collector)
{
	for (size_t i = 0; i < collector->archive.process_count; i++) {
		struct archive_process *process = &collector->archive.processes[i];
		struct family_member *member;

		if (archive_is_collector(&collector->archive, process))
			continue;
		member = family_find(&collector->family, process->pid, process->starttime);
		/* A process whose parent ended before it was found. */
		if (!member && !process->foreign && archive_process_alive(process))
			member = family_add(&collector->family, process->pid, process->starttime,
					    "");
		if (member)
			member->recorded = true;
	}
}

/* Returns the time until the next pass. */
static uint64_t pass(struct collector *collector)
{
	uint64_t pause_ns;

	if (!collector->moves)
		return SLOW_PASS_NS;
	pause_ns = (uint64_t)archive_pass(&collector->archive) * 1000000u;
	mark_recorded(collector);
	return pause_ns;
}

static void slow_pass(struct collector *collector)
{
	family_look(&collector->family);
	mark_recorded(collector);
	family_forget(&collector->family);
	for (size_t i = 0; i < collector->family.count; i++)
		sampler_watch(&collector->sampler, collector->family.members[i].pid);
	if (collector->moves) {
		archive_retire_dead(&collector->archive);
		archive_expire(&collector->archive);
		mirror_refresh(&collector->mirror, &collector->archive);
	}
}

static uint64_t ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

static void write_cost(const char *source, uint64_t events, uint64_t cost_ns)
{
	struct schema_cost_row row = { .ts_ticks = kymo_ticks(),
				       .events = events,
				       .cost_ns = cost_ns };

	memcpy(row.source, source, strlen(source));
	kymo__append(SCHEMA_OVERHEAD, &row);
}

/* The cost of this process. The sampler has a row of its own once it has taken a sample; before
   that its cost counts as the collector's. */
static void write_own_cost(const struct collector *collector, const struct sampler_stats *sampler,
			   const struct native_sampler_stats *native)
{
	struct rusage usage;
	uint64_t all_ns, sampler_ns = sampler->samples ? sampler->cpu_ns : 0;
	uint64_t native_ns = native->samples ? native->cpu_ns : 0;

	if (!collector->records || getrusage(RUSAGE_SELF, &usage))
		return;
	all_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
	if (native->samples)
		write_cost("native", native->samples, native_ns);
	/* The clocks may differ by a tick. */
	write_cost("collector", collector->rounds,
		   all_ns > sampler_ns + native_ns ? all_ns - sampler_ns - native_ns : 0);
	if (sampler->samples)
		write_cost("sampler", sampler->samples, sampler_ns);
}

static void govern(struct collector *collector, const struct sampler_stats *sampler,
		   const struct native_sampler_stats *native, uint64_t now_ns)
{
	struct governor_samplers samplers = { &collector->native, native->cpu_ns, sampler->cpu_ns,
					      0 };
	struct rusage usage;

	if (!collector->records || !collector->moves || getrusage(RUSAGE_SELF, &usage))
		return;
	samplers.all_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
	governor_run_look(&collector->governor, &collector->archive, &samplers, now_ns);
}

static void sample(struct collector *collector)
{
	if (!collector->records)
		return;
	host_sample(&collector->host, &collector->family);
	autopsy_look(&collector->autopsy, &collector->family, clock_monotonic_ns());
	collector->rounds++;
}

/* Of all processes, between two samples: a program that takes 600 MB in four seconds is found.
   Returns the time until the next look. */
static uint64_t collector_look_at_memory(struct collector *collector, uint64_t now_ns)
{
	bool changed = false;

	for (size_t i = 0; collector->records && i < collector->family.count; i++) {
		struct family_member *member = &collector->family.members[i];

		changed |= !member->gone && host_memory_look(&member->memory, member->pid, now_ns);
	}
	collector->memory_unchanged = changed ? 0 : collector->memory_unchanged + 1;
	return host_memory_pause(now_ns - collector->started_ns, collector->memory_unchanged);
}

static int ms_until(uint64_t deadline_ns, uint64_t now_ns)
{
	return deadline_ns > now_ns ? (int)((deadline_ns - now_ns + 999999) / 1000000) : 0;
}

/* Read each time, because `kymo config` may change the period in our control page. The kernel's
   counters do not change within 10 ms. */
static uint64_t next_sample(const struct collector *collector, uint64_t last_ns)
{
	uint64_t period_ns = collector->records
				     ? kymo__load_relaxed(&kymo__process.control->system_period_ns)
				     : 0;

	if (!period_ns || period_ns > UINT64_MAX / 2)
		return UINT64_MAX;
	if (period_ns > FIRST_PERIOD_NS && last_ns - collector->started_ns < FIRST_PERIOD_FOR_NS &&
	    !settings_is_set(settings_find("system_rate"), kymo__process.control))
		period_ns = FIRST_PERIOD_NS;
	return last_ns ? last_ns + (period_ns < SHORTEST_PERIOD_NS ? SHORTEST_PERIOD_NS : period_ns)
		       : 0;
}

static bool is_running(const struct collector *collector, uint64_t now_ns)
{
	return !collector->watch.ended && !collector->watch.end_requested &&
	       (!collector->until_ns || now_ns < collector->until_ns);
}

void collector_supervise(struct collector *collector)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t next_pass_ns = now_ns + FIRST_PASS_NS, next_slow_ns = now_ns + SLOW_PASS_NS;
	uint64_t next_memory_ns = now_ns + HOST_MEMORY_FIRST_NS, sampled_ns = 0;
	struct sampler_stats sampled;
	struct native_sampler_stats native;

	/* The program may have ended already; its SIGCHLD is then pending. */
	while (is_running(collector, now_ns)) {
		uint64_t next_ns = next_pass_ns < next_slow_ns ? next_pass_ns : next_slow_ns;
		uint64_t next_sample_ns = next_sample(collector, sampled_ns);

		next_ns = next_ns < next_sample_ns ? next_ns : next_sample_ns;
		if (next_sample_ns != UINT64_MAX && next_memory_ns < next_ns)
			next_ns = next_memory_ns;
		if (collector->until_ns && collector->until_ns < next_ns)
			next_ns = collector->until_ns;
		watch_wait(&collector->watch, ms_until(next_ns, clock_monotonic_ns()));
		now_ns = clock_monotonic_ns();
		if (now_ns >= next_pass_ns) {
			next_pass_ns = now_ns + pass(collector);
		}
		if (now_ns >= next_slow_ns) {
			slow_pass(collector);
			sampler_stats(&collector->sampler, &sampled);
			native_sampler_stats(&collector->native, &native);
			write_own_cost(collector, &sampled, &native);
			govern(collector, &sampled, &native, now_ns);
			next_slow_ns = now_ns + SLOW_PASS_NS;
		}
		if (now_ns >= next_sample(collector, sampled_ns) && !collector->watch.ended) {
			sample(collector);
			sampled_ns = now_ns;
		}
		if (now_ns >= next_memory_ns && next_sample(collector, sampled_ns) != UINT64_MAX &&
		    !collector->watch.ended)
			next_memory_ns = now_ns + collector_look_at_memory(collector, now_ns);
	}
	run_dirs_note_end(&collector->dirs);
}

/* ---- the end --------------------------------------------------------------------------------- */

static unsigned count_alive(struct collector *collector, pid_t *out_one)
{
	unsigned count = 0;

	for (size_t i = 0; i < collector->archive.process_count; i++) {
		struct archive_process *process = &collector->archive.processes[i];

		if (archive_is_collector(&collector->archive, process) ||
		    !archive_process_alive(process))
			continue;
		*out_one = process->pid;
		count++;
	}
	return count;
}

/* Workers often end shortly after their parent. Daemons do not, so the wait is limited. */
static void wait_for_stragglers(struct collector *collector, struct collect_result *result)
{
	struct timespec pause = { 0, 5000000 };

	for (int waited_ms = 0;; waited_ms += 5) {
		archive_retire_dead(&collector->archive);
		result->still_running = count_alive(collector, &result->still_running_pid);
		if (!result->still_running || waited_ms >= STRAGGLERS_MS)
			return;
		nanosleep(&pause, NULL);
	}
}

static void count_unrecorded(struct collector *collector, struct collect_result *result)
{
	family_look(&collector->family);
	mark_recorded(collector);
	for (size_t i = 1; i < collector->family.count; i++)
		collector->family.members[i].gone =
			true; /* counted now, even if it is still running */
	family_forget(&collector->family);
	result->not_recorded = collector->family.gone_unrecorded;
	snprintf(result->not_recorded_names, sizeof(result->not_recorded_names), "%s",
		 collector->family.gone_names);
}

void collector_last_rows(struct collector *collector, const struct rusage *usage)
{
	struct sampler_stats sampled;
	struct native_sampler_stats native;

	if (!collector->records) {
		native_sampler_stop(&collector->native, NULL);
		return;
	}
	gpu_stop();
	sampler_stop(&collector->sampler, &sampled);
	collector->sampled = sampled.rows;
	/* After the Python sampler, whose last stacks it needs. */
	native_sampler_stop(&collector->native, &native);
	collector->sampled_native = native.samples;
	recent_stacks_destroy(collector->recent);
	collector->recent = NULL;
	if (next_sample(collector, 1) != UINT64_MAX) {
		sample(collector);
		if (usage)
			host_last(&collector->host, &collector->family, usage);
	}
	write_own_cost(collector, &sampled, &native);
	kymo_disable();
}

void collector_settle(struct collector *collector, const int *wstatus,
		      struct collect_result *result)
{
	struct archive *archive = &collector->archive;

	if (wstatus)
		archive_mark_target(archive, collector->watch.target, collector->target_starttime,
				    *wstatus);
	wait_for_stragglers(collector, result);
	archive_retire_self(archive);
	run_dirs_ended(&collector->dirs, wstatus, !result->ended, result->not_recorded,
		       !archive_left(archive));
	result->processes = archive->recorded_processes;
	result->rows = archive->recorded_rows;
	result->sampled = collector->sampled;
	result->sampled_native = collector->sampled_native;
	result->removed_segments = archive->removed_segments;
	snprintf(result->directory, sizeof(result->directory), "%s", collector->dirs.shown);
	if (archive_left(archive) || !run_dirs_drop_live(&collector->dirs)) {
		result->move_error = archive->last_error;
		snprintf(result->live, sizeof(result->live), "%s", collector->dirs.live);
	}
}

static void collect_finish(struct collector *collector, struct collect_result *result)
{
	snprintf(result->native_refused, sizeof(result->native_refused), "%s",
		 collector->native_error.text);
	result->wstatus = collector->watch.wstatus;
	result->duration_ns = clock_monotonic_ns() - collector->started_ns;
	archive_pass(&collector->archive);
	count_unrecorded(collector, result);
	collector_last_rows(collector, &collector->watch.usage);
	watch_reap(&collector->watch);
	collector_settle(collector, &result->wstatus, result);
}

void collector_say_fallback(const struct collector *collector)
{
	if (paths_root_fallback() == PATHS_TMPFS_IS_SMALL)
		say("/dev/shm is too small or missing; rows are written to %s, which may be slower",
		    collector->dirs.live);
	if (paths_root_fallback() == PATHS_TAKEN_BY_ANOTHER)
		say("/dev/shm/kymo-%u belongs to another user; rows are written to %s",
		    (unsigned)geteuid(), collector->dirs.live);
}

static void keep_rate(const struct keep_rules *rules, const char *table, const char *variable)
{
	uint64_t period_ns = keep_rules_first_period(rules, table);
	char seconds[32];

	if (!period_ns)
		return;
	snprintf(seconds, sizeof(seconds), "%.9g", (double)period_ns * 1e-9);
	setenv(variable, seconds, 0);
}

/* Of this process only: the program has started. What the user has set takes precedence. */
static void keep_rates(const struct keep_rules *rules)
{
	keep_rate(rules, "python.samples", "KYMO_SAMPLE_RATE");
	keep_rate(rules, "host.process", "KYMO_SYSTEM_RATE");
}

int collect_run(const struct collect_options *options, struct collect_result *result,
		struct kymo_error *err)
{
	struct collector collector;
	int rc;

	memset(&collector, 0, sizeof(collector));
	memset(result, 0, sizeof(*result));
	collector.keep = options->keep;
	collector.slow_ns = options->slow_ns;
	collector.no_native = options->no_native;
	governor_run_init(&collector.governor, options->max_overhead);
	collector.moves = true;
	collector.watch.signal_fd = collector.watch.witness.fd = collector.watch.pidfd = -1;
	launch_hold_standard_files();
	rc = run_dirs_make(&collector.dirs, options, err);
	if (rc)
		return rc;
	launch_block_signals(&collector.signals);
	family_init(&collector.family);
	rc = watch_init(&collector.watch);
	if (rc) {
		error_set(err, -rc, "cannot start the program: signalfd: %s", strerror(-rc));
	} else {
		witness_start(&collector.watch.witness);
		rc = launch(&collector, options, result, err);
	}
	if (rc) {
		run_dirs_remove(&collector.dirs);
		goto out;
	}
	close_inherited_files(&collector, options);
	collector_say_fallback(&collector);
	guard_install();
	run_dirs_started(&collector.dirs, collector.watch.target, collector.target_starttime);
	archive_init(&collector.archive, collector.dirs.live_fd, collector.dirs.disk_fd,
		     &options->budget);
	collector.archive.keep = options->keep_rules;
	family_root(&collector.family, collector.watch.target, collector.target_starttime,
		    options->argv[0]);
	keep_rates(&options->keep_rules);
	collector_record(&collector);
	if (kymo__process.ticks_per_ms)
		collector.archive.ns_per_tick = 1e6 / (double)kymo__process.ticks_per_ms;
	if (options->started)
		options->started(options->context, collector.dirs.live);
	collector_supervise(&collector);
	if (options->ended)
		options->ended(options->context);
	collect_finish(&collector, result);
	governor_run_fini(&collector.governor);
	archive_fini(&collector.archive);
	host_fini(&collector.host);
	watch_drain(&collector.watch);
out:
	family_fini(&collector.family);
	watch_fini(&collector.watch);
	run_dirs_close(&collector.dirs);
	launch_restore_signals(&collector.signals);
	return rc && !result->exec_error ? rc : 0;
}

void collect_end_like(int wstatus)
{
	struct rlimit none = { 0, 0 };
	sigset_t one;

	if (WIFEXITED(wstatus))
		exit(WEXITSTATUS(wstatus));
	/* The program has left its own core file; ours would replace it. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	signal(WTERMSIG(wstatus), SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, WTERMSIG(wstatus));
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	kill(getpid(), WTERMSIG(wstatus));
	/* The signal does not kill the first process of a container. */
	_exit(128 + WTERMSIG(wstatus));
}
