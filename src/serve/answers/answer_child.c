/*
 * Answers made by a command of kymo in a child process: its memory and its failures are isolated,
 * and it can be killed. The arguments are built here; a client only chooses among them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/settings.h"
#include "serve/serve_inside.h"
#include "serve/json_read.h"
#include "views/export/export.h"

#define SECONDS 120
#define WORDS 25
#define COMMAND 2 /* the place of its name */
#define ANSWER_BYTES (INT64_C(1) << 30)

struct child {
	const char *words[WORDS];
	size_t count;
	int out, err; /* temporary files */
	int status; /* from waitpid(); -1: killed here */
};

static void answer_child_add_word(struct child *child, const char *word)
{
	if (child->count < WORDS - 1)
		child->words[child->count++] = word;
}

/* Polled, since it may have to be killed; older kernels have no pidfd. */
static int answer_child_wait_for(pid_t pid, int out)
{
	uint64_t began_ns = target_clock_ns();
	struct timespec nap = { .tv_nsec = 2000000 };
	struct stat st;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (target_clock_ns() - began_ns > SECONDS * UINT64_C(1000000000) ||
		    (!fstat(out, &st) && st.st_size > ANSWER_BYTES)) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < 20000000)
			nap.tv_nsec += 1000000;
	}
	return status;
}

static int answer_child_spawn(struct child *child)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, plain;
	pid_t pid;
	int rc;

	sigemptyset(&none);
	sigemptyset(&plain);
	sigaddset(&plain, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, child->out, 1);
	posix_spawn_file_actions_adddup2(&actions, child->err, 2);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &plain);
	rc = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, (char **)child->words,
			 environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (rc)
		return -rc;
	child->status = answer_child_wait_for(pid, child->out);
	return 0;
}

static void read_sentence(int fd, char *out, size_t out_bytes)
{
	ssize_t got = pread(fd, out, out_bytes - 1, 0);
	char *colon;

	out[got > 0 ? got : 0] = '\0';
	while (got > 0 && strchr("\n ", out[got - 1]))
		out[--got] = '\0';
	/* Removes the prefix of "kymo report: message". */
	colon = !strncmp(out, "kymo", 4) ? strstr(out, ": ") : NULL;
	if (colon)
		memmove(out, colon + 2, strlen(colon + 2) + 1);
}

static void answer_child_finish(struct request *request, struct child *child, bool any_status)
{
	char sentence[2048];
	struct stat st;

	read_sentence(child->err, sentence, sizeof(sentence));
	if (child->status == -1) {
		answer_error(request, 504, NULL,
			     "kymo %s took longer than %d s or wrote too much, and was killed",
			     child->words[COMMAND], SECONDS);
	} else if (WIFEXITED(child->status) &&
		   (!WEXITSTATUS(child->status) ||
		    (any_status && !fstat(child->out, &st) && st.st_size > 0))) {
		request->fd = child->out;
		child->out = -1;
	} else {
		answer_error(request, 400, NULL, "%s",
			     sentence[0] ? sentence : "the command failed without a message");
	}
}

/* any_status: a failure with standard output is an answer, too. */
static void answer_child_run(struct request *request, struct child *child, bool any_status)
{
	child->out = memfd_create("kymo-answer", MFD_CLOEXEC);
	child->err = memfd_create("kymo-errors", MFD_CLOEXEC);
	if (child->out < 0 || child->err < 0 || answer_child_spawn(child))
		answer_error(request, 503, "try again later", "cannot start kymo %s",
			     child->words[COMMAND]);
	else
		answer_child_finish(request, child, any_status);
	if (child->out >= 0)
		close(child->out);
	if (child->err >= 0)
		close(child->err);
}

static struct child answer_child_begin(const char *command)
{
	struct child child = { .count = 0 };

	answer_child_add_word(&child, "kymo");
	answer_child_add_word(&child, "answer"); /* that is, with limits; see child.h */
	answer_child_add_word(&child, command);
	return child;
}

static bool is_set(const struct request *request, const char *key)
{
	const char *value = request_get(request, key);

	return value && strcmp(value, "0") != 0;
}

/* A running program by its pid, so that the command reads the live process; else by path. */
static const char *answer_child_name_of(const struct target *target, char *room, size_t room_bytes)
{
	if (target->entry.state != STORE_LIVE || target->entry.pid <= 0)
		return target->entry.path;
	snprintf(room, room_bytes, "%d", target->entry.pid);
	return room;
}

/* ---- the answers ---------------------------------------------------------------------------- */

void answer_backtrace(struct request *request)
{
	static const char *const flags[][2] = { { "native", "--native" },
						{ "locals", "--locals" },
						{ "tree", "--tree" },
						{ "why", "--why" } };
	struct target *target = request_target(request);
	struct child child = answer_child_begin("backtrace");
	char pid[16];

	if (!target)
		return;
	answer_child_add_word(&child, "-f");
	answer_child_add_word(&child, is_set(request, "text") ? "text" : "json");
	for (size_t i = 0; i < 4; i++)
		if (is_set(request, flags[i][0]))
			answer_child_add_word(&child, flags[i][1]);
	answer_child_add_word(&child, "--");
	answer_child_add_word(&child, answer_child_name_of(target, pid, sizeof(pid)));
	request->type = is_set(request, "text") ? "text/plain; charset=utf-8" : request->type;
	answer_child_run(request, &child, false);
}

static bool answer_child_choose(struct request *request, const char *const (*rows)[3], size_t count,
				const char *fallback, const char **format)
{
	*format = request_get(request, "format");
	if (!*format || !**format)
		*format = fallback;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i][0], *format)) {
			request->type = rows[i][1];
			if (rows[i][2])
				snprintf(request->file, sizeof(request->file), "%s", rows[i][2]);
			return true;
		}
	answer_error(request, 400, "docs/api.md lists the formats", "unknown format %.40s",
		     *format);
	return false;
}

void answer_report(struct request *request)
{
	static const char *const formats[][3] = {
		{ "text", "text/plain; charset=utf-8", NULL },
		{ "json", "application/json", NULL },
		{ "csv", "text/csv; charset=utf-8", "report.csv" },
		{ "html", "text/html; charset=utf-8", "report.html" },
	};
	struct target *target = request_target(request);
	struct child child = answer_child_begin("report");
	const char *format;

	if (!target || !answer_child_choose(request, formats, 4, "text", &format))
		return;
	answer_child_add_word(&child, "-f");
	answer_child_add_word(&child, format);
	if (!strcmp(format, "html") && request_get(request, "source") && !is_set(request, "source"))
		answer_child_add_word(&child, "--no-source");
	answer_child_add_word(&child, "--");
	answer_child_add_word(&child, target->entry.path);
	answer_child_run(request, &child, false);
}

/* Those of export.h that are one file. */
static size_t served_formats(const char *out[][3], size_t most)
{
	size_t count = 0;

	for (size_t i = 0; export_formats[i] && count < most; i++) {
		const struct export_format *format = export_formats[i];

		if (!format->media_type)
			continue;
		out[count][0] = format->name;
		out[count][1] = format->media_type;
		out[count++][2] = format->download;
	}
	return count;
}

void answer_export(struct request *request)
{
	const char *formats[16][3] = { { NULL } };
	size_t count = served_formats(formats, 16);
	struct target *target = request_target(request);
	struct child child = answer_child_begin("export");
	const char *format;

	if (!target || !answer_child_choose(request, (const char *const(*)[3])formats, count,
					    export_formats[0]->name, &format))
		return;
	answer_child_add_word(&child, "-f");
	answer_child_add_word(&child, format);
	answer_child_add_word(&child, "-o");
	answer_child_add_word(&child, "-");
	answer_child_add_word(&child, "--");
	answer_child_add_word(&child, target->entry.path);
	answer_child_run(request, &child, false);
}

void answer_compare(struct request *request)
{
	const char *names[2] = { request_get(request, "a"), request_get(request, "b") };
	const char *ranks = request_get(request, "ranks");
	struct child child = answer_child_begin("compare");
	struct rank_set chosen;

	if (!rank_set_read(&chosen, ranks)) {
		answer_error(request, 400, "ranks=0,3,8-15", "ranks is not a list of ranks");
		return;
	}
	answer_child_add_word(&child, "-f");
	answer_child_add_word(&child, "json");
	if (is_set(request, "anyway"))
		answer_child_add_word(&child, "--anyway");
	if (ranks && *ranks) {
		answer_child_add_word(&child, "--ranks");
		answer_child_add_word(&child, ranks);
	}
	for (size_t i = 0; i < 2; i++) {
		struct target *target = names[i] && *names[i]
						? targets_find(&request->serve->targets, names[i])
						: NULL;

		if (!target) {
			answer_error(request, names[i] ? 404 : 400,
				     "GET /api/targets lists the targets",
				     "parameter %c is missing or not a target", i ? 'b' : 'a');
			return;
		}
		answer_child_add_word(&child, i ? "--b" : "--a");
		answer_child_add_word(&child, target->entry.path);
	}
	answer_child_run(request, &child, true);
}

/* Keys and values come from the client: KEY=VALUE is one argument, and never an option. */
static bool add_settings(struct request *request, const struct json_read *json, struct child *child,
			 char words[][512])
{
	size_t count = 0;

	for (size_t i = 0; i < json->count; i++) {
		const struct json_read_field *field = &json->fields[i];

		if (!field->inside)
			continue;
		if (!settings_find(field->key) || count == 16 || strlen(field->value) > 400) {
			answer_error(request, 400, "GET /api/config lists the keys",
				     "no such setting, or its value is too long: %.60s",
				     field->key);
			return false;
		}
		snprintf(words[count], 512, "%s=%s", field->key, field->value);
		answer_child_add_word(child, words[count++]);
	}
	if (!count)
		answer_error(request, 400, "{\"set\":{\"sample_rate\":\"0.01\"}}",
			     "no setting to change");
	return count;
}

void answer_config(struct request *request)
{
	struct child child = answer_child_begin("config");
	struct json_read json = { .count = 0 };
	char words[16][512], pid[16];
	struct target *target;

	if (!strcmp(request->route->method, "POST")) {
		if (json_read_object(buf_get(&request->body), request->body.used, &json)) {
			answer_error(request, 400, "{\"set\":{\"sample_rate\":\"0.01\"}}",
				     "the body is not a JSON object");
			return;
		}
		if (json_read_get(&json, "target") && request->parameter_count < SERVE_PARAMETERS) {
			request->keys[request->parameter_count] = strdup("target");
			request->values[request->parameter_count++] = strdup(
				json_read_get(&json, "target"));
		}
	}
	target = request_target(request);
	answer_child_add_word(&child, "-f");
	answer_child_add_word(&child, is_set(request, "text") ? "text" : "json");
	answer_child_add_word(&child, "--");
	if (target)
		answer_child_add_word(&child, answer_child_name_of(target, pid, sizeof(pid)));
	for (size_t i = 0; i < request->parameter_count; i++)
		if (!strcmp(request->keys[i], "key") && settings_find(request->values[i]))
			answer_child_add_word(&child, request->values[i]);
	if (is_set(request, "text"))
		request->type = "text/plain; charset=utf-8";
	if (target && (!json.store || add_settings(request, &json, &child, words)))
		answer_child_run(request, &child, false);
	json_read_fini(&json);
}
