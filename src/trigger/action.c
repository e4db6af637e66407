#include "trigger/action.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/kymo.h>

#include "base/clock.h"
#include "base/schema.h"
#include "record/record.h"

#define RUN_WORDS 32
#define SETTING_MS 2000
#define NAMES_TRIED 10000 /* more files than all limits of triggers together allow */

/* ---- rows ------------------------------------------------------------------------------------ */

void actions_row(const struct action *action, const char *result, uint64_t bytes)
{
	struct schema_trigger_row row = { .ts_ticks = kymo_ticks(),
					  .rows = action->row_count,
					  .bytes = bytes };

	snprintf(row.trigger, sizeof(row.trigger), "%s", action->trigger);
	snprintf(row.action, sizeof(row.action), "%s", action->action);
	snprintf(row.result, sizeof(row.result), "%s", result);
	snprintf(row.saved, sizeof(row.saved), "%s", bytes ? action->saved : "");
	snprintf(row.row, sizeof(row.row), "%s", action->row);
	kymo__append(SCHEMA_TRIGGERS, &row);
}

static void action_describe(struct action *action, const struct action_firing *firing,
			    const char *text)
{
	size_t line = strcspn(firing->json, "\n");

	memset(action, 0, sizeof(*action));
	action->input = -1;
	snprintf(action->trigger, sizeof(action->trigger), "%s", firing->trigger->name);
	snprintf(action->action, sizeof(action->action), "%s", text);
	snprintf(action->row, sizeof(action->row), "%.*s",
		 (int)(line < sizeof(action->row) ? line : sizeof(action->row) - 1), firing->json);
	action->row_count = firing->rows;
}

/* ---- children -------------------------------------------------------------------------------- */

/* The signals that the watcher blocks or ignores are as they are by default in its children. */
static int spawn(char *const *argv, int input, int output, pid_t *out)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int rc;

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETPGROUP);
	if (input >= 0)
		posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
	else
		posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (output >= 0)
		posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	else
		posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	rc = posix_spawnp(out, argv[0], &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

static struct action *free_slot(struct actions *actions)
{
	for (size_t i = 0; i < ACTION_MOST; i++)
		if (!actions->list[i].child && !actions->list[i].again_ns)
			return &actions->list[i];
	return NULL;
}

static void action_begin(struct action *action, char *const *argv, int input, int output,
			 uint64_t now_ns)
{
	int rc = spawn(argv, input, output, &action->child);
	char why[160];

	action->deadline_ns = now_ns + ACTION_DEADLINE_NS;
	if (!rc)
		return;
	action->child = 0;
	action->again_ns = 0;
	snprintf(why, sizeof(why), "cannot start %.60s: %s", argv[0], strerror(rc));
	actions_row(action, why, 0);
}

/* ---- each kind ------------------------------------------------------------------------------- */

static void saved_path(const struct actions *actions, const struct action *action, char *out,
		       size_t out_bytes)
{
	snprintf(out, out_bytes, "%s/%s", actions->directory, action->saved);
}

/* A watcher that was started again counts from 1: files of the one before stay. */
static void action_name_file(const struct actions *actions, struct action *action, uint64_t number,
			     const char *extension)
{
	char path[KYMO_PATH_BYTES + 192];

	for (int tries = 0; tries < NAMES_TRIED; tries++, number++) {
		struct buf name = { 0 };

		buf_print(&name, "%s-%llu.%s", action->trigger, (unsigned long long)number,
			  extension);
		snprintf(action->saved, sizeof(action->saved), "%s", buf_get(&name));
		buf_fini(&name);
		saved_path(actions, action, path, sizeof(path));
		if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW))
			return;
	}
}

static void action_write_snapshot(struct actions *actions, struct action *action,
				  const char *seconds, uint64_t now_ns)
{
	char path[KYMO_PATH_BYTES + 192];
	char *argv[] = { actions->kymo, "snapshot",	    "--last", (char *)seconds,
			 "--force",	actions->recording, path,     NULL };

	saved_path(actions, action, path, sizeof(path));
	action_begin(action, argv, -1, -1, now_ns);
}

static void start_snapshot(struct actions *actions, struct action *action, uint64_t number,
			   uint64_t now_ns)
{
	action_name_file(actions, action, number, "kymosnap");
	action->again_ns = now_ns + ACTION_AFTER_S * 1000000000ull;
	action_write_snapshot(actions, action, "30", now_ns);
}

static void start_why(struct actions *actions, struct action *action, uint64_t number,
		      uint64_t now_ns)
{
	char path[KYMO_PATH_BYTES + 192], pid[16], why[160];
	char *argv[] = { actions->kymo, "backtrace", "--why", "--tree", pid, NULL };
	int fd;

	action_name_file(actions, action, number, "why.txt");
	saved_path(actions, action, path, sizeof(path));
	snprintf(pid, sizeof(pid), "%d", actions->pid);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		snprintf(why, sizeof(why), "cannot write the file: %s", strerror(errno));
		actions_row(action, why, 0);
		return;
	}
	action_begin(action, argv, -1, fd, now_ns);
	close(fd);
}

/* Words are separated by spaces; quotes of both kinds hold spaces. Nothing is expanded. */
static size_t split_words(char *text, char **words, size_t most)
{
	size_t count = 0;

	while (count < most - 1) {
		char *to, quote = 0;

		text += strspn(text, " \t");
		if (!*text)
			break;
		words[count++] = to = text;
		for (; *text && (quote || (*text != ' ' && *text != '\t')); text++) {
			if (quote ? *text == quote : *text == '"' || *text == '\'')
				quote = quote ? 0 : *text;
			else
				*to++ = *text;
		}
		text += *text != '\0';
		*to = '\0';
	}
	words[count] = NULL;
	return count;
}

/* The rows are on its standard input, never in its arguments. */
static void start_command(struct action *action, const struct action_firing *firing,
			  const char *text, uint64_t now_ns)
{
	char copy[TRIGGER_ACTION_BYTES], *words[RUN_WORDS];
	int ends[2];

	snprintf(copy, sizeof(copy), "%s", text + strlen("run"));
	if (!split_words(copy, words, RUN_WORDS) || pipe2(ends, O_CLOEXEC)) {
		actions_row(action, "cannot start the command", 0);
		return;
	}
	action_begin(action, words, ends[0], -1, now_ns);
	close(ends[0]);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	action->input = ends[1];
	action->rows = strdup(firing->json);
	action->rows_bytes = action->rows ? strlen(action->rows) : 0;
	if (!action->child) {
		close(ends[1]);
		action->input = -1;
	}
}

void actions_start(struct actions *actions, const struct action_firing *firing, const char *text,
		   uint64_t now_ns)
{
	struct action *action = free_slot(actions), none;

	if (!action || trigger_action_kind(text) == TRIGGER_MARK) {
		action_describe(&none, firing, text);
		if (action)
			kymo_mark(firing->trigger->name, firing->json);
		actions_row(&none, action ? "ok" : "too many actions run at once", 0);
		return;
	}
	free(action->rows);
	action_describe(action, firing, text);
	switch (trigger_action_kind(text)) {
	case TRIGGER_SNAPSHOT: start_snapshot(actions, action, firing->number, now_ns); break;
	case TRIGGER_WHY: start_why(actions, action, firing->number, now_ns); break;
	case TRIGGER_RUN: start_command(action, firing, text, now_ns); break;
	default: break;
	}
}

/* ---- while they run -------------------------------------------------------------------------- */

static void feed(struct action *action)
{
	ssize_t wrote;

	if (action->input < 0)
		return;
	wrote = write(action->input, action->rows + action->rows_written,
		      action->rows_bytes - action->rows_written);
	if (wrote > 0)
		action->rows_written += (size_t)wrote;
	if (action->rows_written < action->rows_bytes && (wrote > 0 || errno == EAGAIN))
		return;
	close(action->input);
	action->input = -1;
}

static uint64_t saved_size(const struct actions *actions, const struct action *action)
{
	char path[KYMO_PATH_BYTES + 192];
	struct stat status;

	if (!action->saved[0])
		return 0;
	saved_path(actions, action, path, sizeof(path));
	return stat(path, &status) ? 0 : (uint64_t)status.st_size;
}

/* A snapshot is written twice under one name: only what it has grown by is new. */
static void count_saved(const struct actions *actions, struct action *action, uint64_t bytes)
{
	if (actions->saved && bytes > action->saved_bytes)
		actions->saved(actions->context, action->trigger, bytes - action->saved_bytes);
	action->saved_bytes = bytes;
}

static void action_ended(const struct actions *actions, struct action *action, int wstatus)
{
	uint64_t bytes = saved_size(actions, action);
	char result[160] = "ok";

	if (WIFSIGNALED(wstatus))
		snprintf(result, sizeof(result), "killed by signal %d%s", WTERMSIG(wstatus),
			 WTERMSIG(wstatus) == SIGKILL ? " (after 60 s, or by others)" : "");
	else if (WEXITSTATUS(wstatus))
		snprintf(result, sizeof(result), "ended with %d", WEXITSTATUS(wstatus));
	action->child = 0;
	if (action->input >= 0)
		close(action->input);
	action->input = -1;
	count_saved(actions, action, bytes);
	actions_row(action, result, bytes);
}

/* Seconds that the second part of a snapshot has to go back. */
static void write_again(struct actions *actions, struct action *action, uint64_t now_ns)
{
	uint64_t since_ns = now_ns + ACTION_AFTER_S * 1000000000ull - action->again_ns;
	char seconds[32];

	action->again_ns = 0;
	snprintf(seconds, sizeof(seconds), "%.3f", ACTION_BEFORE_S + (double)since_ns / 1e9);
	snprintf(action->action, sizeof(action->action), "snapshot, with what followed");
	action_write_snapshot(actions, action, seconds, now_ns);
}

void actions_look(struct actions *actions, uint64_t now_ns)
{
	int wstatus;

	for (size_t i = 0; i < ACTION_MOST; i++) {
		struct action *action = &actions->list[i];

		if (!action->child) {
			if (action->again_ns && now_ns >= action->again_ns)
				write_again(actions, action, now_ns);
			continue;
		}
		feed(action);
		if (now_ns >= action->deadline_ns)
			kill(-action->child, SIGKILL);
		if (waitpid(action->child, &wstatus, WNOHANG) == action->child)
			action_ended(actions, action, wstatus);
	}
}

static bool is_busy(const struct actions *actions)
{
	for (size_t i = 0; i < ACTION_MOST; i++)
		if (actions->list[i].child)
			return true;
	return false;
}

void actions_finish(struct actions *actions, uint64_t wait_ns)
{
	const struct timespec pause = { 0, 10000000 };
	uint64_t until_ns = clock_monotonic_ns() + wait_ns;

	for (size_t i = 0; i < ACTION_MOST; i++)
		if (!actions->list[i].child && actions->list[i].again_ns)
			write_again(actions, &actions->list[i], clock_monotonic_ns());
	while (is_busy(actions) && clock_monotonic_ns() < until_ns) {
		actions_look(actions, clock_monotonic_ns());
		nanosleep(&pause, NULL);
	}
	for (size_t i = 0; i < ACTION_MOST; i++) {
		if (actions->list[i].child)
			kill(-actions->list[i].child, SIGKILL);
		free(actions->list[i].rows);
		actions->list[i].rows = NULL;
	}
}

/* ---- settings -------------------------------------------------------------------------------- */

static int await_child(pid_t child, int ms)
{
	const struct timespec pause = { 0, 5000000 };
	int wstatus;

	for (int waited = 0; waited < ms; waited += 5) {
		if (waitpid(child, &wstatus, WNOHANG) == child)
			return WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) : -1;
		nanosleep(&pause, NULL);
	}
	kill(-child, SIGKILL);
	while (waitpid(child, &wstatus, 0) < 0 && errno == EINTR)
		;
	return -1;
}

int actions_run_kymo(const struct actions *actions, char *const *argv, char *output,
		     size_t output_bytes)
{
	pid_t child;
	ssize_t got;
	int ends[2], rc;

	(void)actions;
	output[0] = '\0';
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	rc = spawn(argv, -1, ends[1], &child);
	close(ends[1]);
	if (!rc) {
		rc = await_child(child, SETTING_MS);
		got = read(ends[0], output, output_bytes - 1);
		output[got > 0 ? got : 0] = '\0';
		output[strcspn(output, "\n")] = '\0';
	} else {
		rc = -1;
	}
	close(ends[0]);
	return rc;
}
