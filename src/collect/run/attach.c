/* `kymo attach`: records a program that is already running, like `kymo run`. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/settings.h"
#include "collect/run/collector.h"
#include "collect/move/guard.h"
#include "collect/host/proc.h"
#include "collect/native/process_memory.h"
#include "collect/say.h"
#include "record/record.h"

#define WORDS_MOST 64

/* ---- the process ----------------------------------------------------------------------------- */

/* The command line as words, stored in text. A kernel thread has none; its name is used. */
static void attach_read_words(pid_t pid, char *text, size_t text_bytes, char **words)
{
	char path[48];
	struct proc_stat stat;
	ssize_t bytes;
	size_t count = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	bytes = proc_read(path, text, text_bytes);
	if (bytes <= 0 && !proc_stat(pid, &stat))
		bytes = snprintf(text, text_bytes, "%s", stat.name);
	for (char *word = text; word < text + (bytes > 0 ? bytes : 0) && count < WORDS_MOST - 1;
	     word += strlen(word) + 1)
		words[count++] = word;
	if (!count)
		words[count++] = strcpy(text, "?");
	words[count] = NULL;
}

static void read_cwd(pid_t pid, char *out, size_t out_bytes)
{
	char path[48];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	bytes = readlink(path, out, out_bytes - 1);
	out[bytes > 0 ? bytes : 0] = '\0'; /* not readable for other users */
}

/* ---- the recording --------------------------------------------------------------------------- */

static int make_recording(struct collector *collector, const struct attach_options *options,
			  struct kymo_error *err)
{
	struct collect_options run = { .directory = options->directory,
				       .keep = options->keep,
				       .budget = options->budget };
	char text[KYMO_ARGV_BYTES], *words[WORDS_MOST];
	int rc;

	attach_read_words(options->pid, text, sizeof(text), words);
	run.argv = words;
	rc = run_dirs_make(&collector->dirs, &run, err);
	if (rc)
		return rc;
	read_cwd(options->pid, collector->dirs.run.cwd, sizeof(collector->dirs.run.cwd));
	run_dirs_write(&collector->dirs);
	run_dirs_started(&collector->dirs, options->pid, options->starttime);
	collector_say_fallback(collector);
	collector->moves = true;
	return 0;
}

/* A lock for the collector. The kernel releases it when the process ends. */
static int claim(const char *live, pid_t pid, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	struct safe_dir dir;
	int rc = safe_dir_open(&dir, live, SAFE_DIR_OWN, &why);

	if (rc)
		return error_set(err, -rc, "cannot record into the recording %s: %s", live,
				 safe_dir_reason(rc, &why));
	if (!flock(dir.fd, LOCK_EX | LOCK_NB))
		return dir.fd;
	safe_dir_close(&dir);
	return error_set(err, EBUSY, "another kymo attach already records process %d", (int)pid);
}

static int join_recording(struct collector *collector, const struct attach_options *options,
			  int *out_claim, struct kymo_error *err)
{
	*out_claim = claim(options->live, options->pid, err);
	if (*out_claim < 0)
		return *out_claim;
	if (options->disk) {
		collector->moves = true;
		return run_dirs_take_over(&collector->dirs, options->live, options->disk, err);
	}
	snprintf(collector->dirs.live, sizeof(collector->dirs.live), "%s", options->live);
	collector->dirs.live_fd = collector->dirs.disk_fd = collector->dirs.parent.fd = -1;
	return 0;
}

/* ---- the time without a collector ------------------------------------------------------------ */

/* The last known time of a collector that has ended; 0: not a collector, or alive. */
static uint64_t last_ticks(const char *live, const char *process)
{
	struct kymo_control control;
	char path[KYMO_PATH_BYTES + 64];
	uint64_t last;
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/control", live, process);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		got = pread(fd, &control, sizeof(control), 0);
	if (fd >= 0)
		close(fd);
	if (got != (ssize_t)sizeof(control) || control.role != KYMO_ROLE_COLLECTOR ||
	    proc_alive(control.pid, control.starttime))
		return 0;
	last = control.ended_ticks;
	for (int i = 0; i < KYMO_CLOCK_PAIRS && !control.ended_ticks; i++)
		if (control.pairs[i].ticks > last)
			last = control.pairs[i].ticks;
	return last;
}

static void write_gap(const char *live)
{
	DIR *directory = opendir(live);
	struct schema_gap_row row;
	struct dirent *entry;
	uint64_t last = 0, one, now;

	while (directory && (entry = readdir(directory))) {
		one = entry->d_name[0] == 'p' ? last_ticks(live, entry->d_name) : 0;
		last = one > last ? one : last;
	}
	if (directory)
		closedir(directory);
	now = kymo_ticks();
	if (!last || last >= now)
		return;
	memset(&row, 0, sizeof(row));
	row.start_ticks = last;
	row.duration_ticks = now - last;
	row.events = 1;
	row.cause = kymo_name("no collector was running");
	kymo__append(SCHEMA_GAPS, &row);
}

/* Applies settings that were stored without a collector. Our own environment takes precedence. */
static void take_settings(const struct kymo_control *from)
{
	struct settings_value value, initial;
	char variable[48];

	for (const struct settings_key *key = settings_keys; from && key->name; key++) {
		settings_variable(key, variable, sizeof(variable));
		if (key->who != SETTINGS_COLLECTOR || getenv(variable))
			continue;
		settings_load(key, from, &value);
		settings_parse(key, key->initial, &initial, NULL);
		/* A default stays unset: see settings_is_set(). */
		if ((from->config_changed & settings_bit(key)) ||
		    !settings_equal(key, &value, &initial))
			settings_store(key, kymo__process.control, &value);
	}
}

/* ---- from start to end ----------------------------------------------------------------------- */

/* Reading memory needs permission, metrics do not. Reported once; metrics are recorded in any
   case. */
static void report_unreadable_stacks(pid_t pid)
{
	struct kymo_error err = { 0 };
	char byte;
	/* Address 8 is never mapped, so a permitted read fails with EFAULT. */
	int rc = process_memory_read(pid, 8, &byte, 1);

	if (rc != -EPERM && rc != -EACCES && rc != -ENOSYS)
		return;
	process_memory_name_command("attach");
	process_memory_refused(&err, pid, -rc);
	say("recording metrics only, no Python stacks: %s", err.text);
}

/* Children that exist already do not inherit. */
static void open_native_samples(struct collector *collector, pid_t pid)
{
	if (collector->no_native ||
	    native_sampler_open_process(&collector->native, pid, &collector->native_error))
		return;
	for (size_t i = 0; i < collector->family.count; i++)
		if (collector->family.members[i].pid != pid)
			native_sampler_add_process(&collector->native,
						   collector->family.members[i].pid);
}

static void attach_begin(struct collector *collector, const struct attach_options *options)
{
	struct proc_stat stat;

	if (collector->moves)
		archive_init(&collector->archive, collector->dirs.live_fd, collector->dirs.disk_fd,
			     &options->budget);
	/* Its children exist already, so no process counts as seen. */
	memset(&collector->family, 0, sizeof(collector->family));
	family_root(&collector->family, options->pid, options->starttime,
		    proc_stat(options->pid, &stat) ? "" : stat.name);
	family_look(&collector->family);
	open_native_samples(collector, options->pid);
	collector_record(collector);
	if (!collector->records)
		return;
	take_settings(options->settings);
	if (kymo__process.control->sample_period_ns || collector->slow_ns)
		report_unreadable_stacks(options->pid);
	if (options->live)
		write_gap(options->live);
}

static void attach_end(struct collector *collector, struct collect_result *result)
{
	result->ended = collector->watch.ended;
	result->duration_ns = clock_monotonic_ns() - collector->started_ns;
	if (collector->moves)
		archive_pass(&collector->archive);
	collector_last_rows(collector, NULL);
	result->sampled_native = collector->sampled_native;
	snprintf(result->native_refused, sizeof(result->native_refused), "%s",
		 collector->native_error.text);
	snprintf(result->directory, sizeof(result->directory), "%s",
		 collector->moves ? collector->dirs.shown : collector->dirs.live);
	if (!collector->moves)
		return;
	/* A joined run continues without this collector, whose own recording ends here. */
	if (result->ended || !archive_has_program(&collector->archive))
		collector_settle(collector, NULL, result);
	else
		archive_retire_self(&collector->archive);
	archive_fini(&collector->archive);
}

int collect_attach(const struct attach_options *options, struct collect_result *result,
		   struct kymo_error *err)
{
	struct collector collector;
	int claimed = -1, rc;

	memset(&collector, 0, sizeof(collector));
	memset(result, 0, sizeof(*result));
	collector.keep = options->keep;
	collector.slow_ns = options->slow_ns;
	collector.no_native = options->no_native;
	collector.started_ns = clock_monotonic_ns();
	if (options->duration_ns)
		collector.until_ns = collector.started_ns + options->duration_ns;
	signal(SIGPIPE, SIG_IGN);
	if (watch_attach(&collector.watch, options->pid, options->starttime)) {
		rc = error_set(err, ESRCH, "process %d has ended", (int)options->pid);
		goto out;
	}
	collector.target_starttime = options->starttime;
	rc = options->live ? join_recording(&collector, options, &claimed, err)
			   : make_recording(&collector, options, err);
	if (rc)
		goto out;
	guard_install();
	attach_begin(&collector, options);
	if (options->start_lock >= 0)
		close(options->start_lock);
	collector_supervise(&collector);
	attach_end(&collector, result);
	host_fini(&collector.host);
	if (collector.moves)
		run_dirs_close(&collector.dirs);
out:
	family_fini(&collector.family);
	watch_fini(&collector.watch);
	if (claimed >= 0)
		close(claimed);
	return rc;
}
