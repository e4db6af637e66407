/* kymo config: reads and changes the settings of a running program. */
#include "cmds/cmds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files/safe_path.h"
#include "base/spelling.h"
#include "base/settings.h"
#include "cmds/config/config_check.h"
#include "cmds/config/config_memory.h"
#include "cmds/http_client.h"
#include "collect/run/configure.h"
#include "collect/move/guard.h"
#include "record/record.h"
#include "store/live_processes.h"
#include "views/query/json.h"
#include "views/term/text.h"

#define FOLLOW_TRIES 50 /* for a program to apply a change */
#define FOLLOW_PAUSE_NS 20000000

static void print_keys(void)
{
	char variable[48];

	printf("\nKeys (also kymo.KEY; KYMO_KEY in the environment at program start):\n");
	for (const struct settings_key *key = settings_keys; key->name; key++) {
		settings_variable(key, variable, sizeof(variable));
		printf("  %-13s  %s (%s)\n", key->name, key->about,
		       key->initial[0] ? key->initial : "empty");
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

static int unknown_key(const char *typed)
{
	const char *names[CONFIG_KEYS_MOST] = { NULL }, *suggestion;
	size_t count = 0;

	for (const struct settings_key *key = settings_keys; key->name; key++)
		names[count++] = key->name;
	suggestion = spelling_word(settings_bare_name(typed), names);
	if (suggestion)
		return cmds_wrong("config", "unknown key %s; did you mean %s?", typed, suggestion);
	return cmds_wrong("config", "unknown key %s; kymo help config lists the keys", typed);
}

static int bad_value(const struct settings_key *key, const char *text, const char *why)
{
	static const char *const switches[] = { "on", "off", NULL };
	static const char *const everies[] = { "on", "off", "all", NULL };
	static const char *const keeps[] = { "all", "flight", NULL };
	const char *suggestion = NULL;

	if (key->type == SETTINGS_SWITCH || key->type == SETTINGS_FLAG)
		suggestion = spelling_word(text, switches);
	if (key->type == SETTINGS_EVERY)
		suggestion = spelling_word(text, everies);
	if (key->type == SETTINGS_KEEP)
		suggestion = spelling_word(text, keeps);
	return cmds_wrong("config", "%s=%s: %s%s%s%s; no settings were changed", key->name, text,
			  why, suggestion ? " (did you mean " : "", suggestion ? suggestion : "",
			  suggestion ? "?)" : "");
}

static int read_change(struct config *config, const char *word);

/* memory=exact sets two keys. memory_exact comes first, so that memory starts with it. -1, or the
   exit status. */
static int read_both(struct config *config, const char *exact)
{
	char word[32];
	int status;

	snprintf(word, sizeof(word), "memory_exact=%s", exact);
	status = read_change(config, word);
	return status < 0 ? read_change(config, "memory=on") : status;
}

static int read_change(struct config *config, const char *word)
{
	const char *equals = strchr(word, '=');
	struct kymo_error err = { 0 };
	struct config_change *change = &config->changes[config->count];
	char name[64];

	snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - word) : 63, word);
	change->key = settings_find(name);
	if (!change->key)
		return unknown_key(name);
	if (config->count == CONFIG_KEYS_MOST - 1)
		return cmds_wrong("config", "too many keys at once");
	if (equals && config_memory_is(change->key) && config_memory_exact(equals + 1))
		return read_both(config, config_memory_exact(equals + 1));
	config->count++;
	change->sets_value = equals;
	if (equals && settings_parse(change->key, equals + 1, &change->value, &err))
		return bad_value(change->key, equals + 1, err.text);
	return -1;
}

static int config_read_words(struct config *config, const struct cmds_args *args)
{
	int status = -1;

	if (!args->word_count)
		return cmds_wrong("config",
				  "no target given; usage: kymo config TARGET [KEY[=VALUE]...]");
	config->target = args->words[0];
	if (strchr(config->target, '=') ||
	    (settings_find(config->target) && access(config->target, F_OK)))
		return cmds_wrong("config",
				  "no target given before %s; use kymo config TARGET %s, where "
				  "TARGET is a pid, a path, a name or latest",
				  config->target, config->target);
	for (size_t i = 1; i < args->word_count && status < 0; i++)
		status = read_change(config, args->words[i]);
	return status;
}

/* ---- the target ------------------------------------------------------------------------------ */

static int open_target(struct config *config, struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES];
	int rc;

	if (store_is_pid(config->target, &config->pid))
		return live_processes_open_pid(config->pid, &config->live, err);
	rc = store_resolve(config->target, path, sizeof(path), err);
	if (!rc)
		rc = live_processes_open(path, &config->live, err);
	if (!rc && !config->live.count)
		rc = error_set(err, ESRCH, "cannot configure %s: its program has ended", path);
	return rc;
}

/* Reads the control pages again after a change. */
static int open_again(struct config *config, struct kymo_error *err)
{
	live_processes_close(&config->live);
	config->live = (struct live_processes){ .count = 0 };
	return open_target(config, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The value of the first process that applies the key, collectors first. *out_differs: another
   process has another value. */
static bool config_value_of(const struct config *config, const struct settings_key *key,
			    struct settings_value *out, bool *out_differs)
{
	struct settings_value other;
	bool found = false;

	*out_differs = false;
	for (int role = KYMO_ROLE_COLLECTOR; role >= KYMO_ROLE_TARGET; role--)
		for (size_t i = 0; i < config->live.count; i++) {
			const struct live_process *process = &config->live.processes[i];

			if ((int)process->control.role != role ||
			    !config_is_concerned(config, process, key))
				continue;
			settings_load(key, &process->control, found ? &other : out);
			*out_differs |= found && !settings_equal(key, out, &other);
			found = true;
		}
	return found;
}

static void print_key(const struct config *config, const struct settings_key *key, bool alone)
{
	char text[SETTINGS_TEXT_BYTES] = "-";
	struct settings_value value;
	bool differs;

	if (config_value_of(config, key, &value, &differs))
		settings_format(key, &value, text, sizeof(text));
	if (alone)
		text_line(stdout, "%s", text);
	else
		text_line(stdout, "%-13s  %-10s  %s%s", key->name, text[0] ? text : "\"\"",
			  key->about, differs ? " (differs between processes)" : "");
}

static void config_print_all(const struct config *config)
{
	for (const struct settings_key *key = settings_keys; key->name; key++)
		print_key(config, key, false);
}

static void config_add_text(struct buf *out, const char *key, const char *text)
{
	buf_print(out, "\"%s\":", key);
	json_text(out, text, strlen(text));
}

/* All current settings. */
static void print_json(const struct config *config)
{
	struct buf out = { 0 };
	char text[SETTINGS_TEXT_BYTES];
	struct settings_value value;
	bool differs, known;

	buf_text(&out, "{\"settings\":[");
	for (const struct settings_key *key = settings_keys; key->name; key++) {
		text[0] = '\0';
		known = config_value_of(config, key, &value, &differs);
		if (known)
			settings_format(key, &value, text, sizeof(text));
		buf_text(&out, key == settings_keys ? "\n{" : ",\n{");
		config_add_text(&out, "key", key->name);
		buf_char(&out, ',');
		if (known)
			config_add_text(&out, "value", text);
		else
			buf_text(&out, "\"value\":null");
		buf_char(&out, ',');
		config_add_text(&out, "about", key->about);
		buf_print(&out, ",\"differs\":%s,\"sampled\":%s}",
			  known && differs ? "true" : "false",
			  key->who != SETTINGS_COLLECTOR || live_processes_collector(&config->live)
				  ? "true"
				  : "false");
	}
	buf_text(&out, "\n]}\n");
	fputs(buf_get(&out), stdout);
	buf_fini(&out);
}

/* ---- changing -------------------------------------------------------------------------------- */

static int change_in(const struct config *config, const struct live_process *process,
		     struct config_change *change, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	struct settings_value old;
	char path[RUN_FILES_PATH_BYTES + 16];
	struct safe_dir run;
	int fd, rc;

	rc = safe_dir_open(&run, config->live.directory, 0, &why);
	if (rc)
		return error_set(err, -rc, "cannot change settings in %s: %s",
				 config->live.directory, safe_dir_reason(rc, &why));
	snprintf(path, sizeof(path), "%s/control", process->name);
	fd = openat(run.fd, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	safe_dir_close(&run);
	if (fd < 0)
		return error_set(err, errno,
				 "cannot open %s/%s: %s; is the program of another user?",
				 config->live.directory, path, strerror(errno));
	rc = configure_process(fd, change->key, &change->value, &old, &why);
	close(fd);
	if (rc < 0)
		return error_set(err, -rc, "cannot set %s of pid %d: %s", change->key->name,
				 process->control.pid, why.text);
	if (!change->reached++ || (rc && !change->changed))
		change->old = old;
	change->changed |= rc > 0;
	return 0;
}

static int change_all(struct config *config, struct config_change *change, struct kymo_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < config->live.count && !rc; i++)
		if (config_is_concerned(config, &config->live.processes[i], change->key))
			rc = change_in(config, &config->live.processes[i], change, err);
	return rc;
}

/* ---- memory, which may need a library to be loaded ------------------------------------------- */

static void await_memory(struct config *config)
{
	const struct timespec pause = { 0, FOLLOW_PAUSE_NS };
	const struct live_process *pending = NULL;

	for (int i = 0; i < FOLLOW_TRIES; i++) {
		if (open_again(config, NULL))
			return; /* the program has ended */
		pending = config_find_pending(config);
		if (!pending)
			return;
		nanosleep(&pause, NULL);
	}
	config_memory_print_pending(&pending->control);
}

/* This process writes the rows into a stream of its own in the same run. There is one row for each
   change, with and without a collector. */
static int write_rows(const struct config *config, struct kymo_error *err)
{
	char old[SETTINGS_TEXT_BYTES], new[SETTINGS_TEXT_BYTES], by[64];
	bool began = false;
	int rc;

	configure_by("kymo config", by, sizeof(by));
	for (size_t i = 0; i < config->count; i++) {
		const struct config_change *change = &config->changes[i];

		if (!change->changed)
			continue;
		setenv("KYMO_KEEP", "flight", 1);
		rc = began ? 0 : kymo__enable_at(config->live.directory, KYMO_ROLE_COMMAND, err);
		if (rc)
			return rc;
		began = true;
		settings_format(change->key, &change->old, old, sizeof(old));
		settings_format(change->key, &change->value, new, sizeof(new));
		kymo__config_row(change->key->name, old, new, by);
	}
	if (began) {
		kymo_disable();
		configure_give_back(config->live.directory);
	}
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

static int32_t pid_to_name(const struct config *config)
{
	if (config->pid)
		return config->pid;
	if (config->live.run.target_pid)
		return config->live.run.target_pid;
	return config->live.count ? config->live.processes[0].control.pid : 0;
}

static void print_effect(const struct config *config, const struct config_change *change)
{
	const char *name = change->key->name;
	int pid = pid_to_name(config);

	if (change->key->who == SETTINGS_COLLECTOR && !live_processes_collector(&config->live))
		text_line(stderr,
			  "kymo: %s is stored but has no effect yet: no collector samples pid %d; "
			  "kymo attach %d starts one",
			  name, pid, pid);
	else if (!change->reached)
		text_line(stderr,
			  "kymo: %s has no effect: pid %d has not loaded libkymo; start it with "
			  "KYMO=standby, or as Python with kymo run --python",
			  name, pid);
	else if (change->key->who == SETTINGS_NEW_STREAMS && change->changed)
		text_line(stderr, "kymo: %s applies to new threads and tables", name);
}

static void print_change(const struct config_change *change)
{
	char old[SETTINGS_TEXT_BYTES], new[SETTINGS_TEXT_BYTES];

	settings_format(change->key, &change->old, old, sizeof(old));
	settings_format(change->key, &change->value, new, sizeof(new));
	if (change->changed)
		text_line(stdout, "%s=%s (was %s)", change->key->name, new, old[0] ? old : "empty");
	else if (change->reached)
		text_line(stdout, "%s=%s (unchanged)", change->key->name, new);
}

static int config_answer(struct config *config, struct kymo_error *err)
{
	int rc = config_check(config, err), written;
	bool without_effect = false;

	if (rc)
		return rc;
	for (size_t i = 0; i < config->count && !rc; i++)
		if (config->changes[i].sets_value)
			rc = change_all(config, &config->changes[i], err);
	/* Changes before a failed one are rows, too. */
	written = write_rows(config, rc ? NULL : err);
	rc = rc ? rc : written;
	for (size_t i = 0; i < config->count; i++) {
		const struct config_change *change = &config->changes[i];

		if (!change->sets_value) {
			if (!config->json)
				print_key(config, change->key, config->count == 1);
			continue;
		}
		if (!config->json)
			print_change(change);
		if (!rc)
			print_effect(config, change);
		without_effect |= !rc && !change->reached;
	}
	if (!rc && config_changes_memory(config))
		await_memory(config);
	return rc ? rc : without_effect ? 1 : 0;
}

/* ---- through kymo serve ---------------------------------------------------------------------- */

static void add_changes(const struct config *config, struct buf *body)
{
	char text[SETTINGS_TEXT_BYTES];
	bool first = true;

	buf_text(body, "{\"set\":{");
	for (size_t i = 0; i < config->count; i++) {
		const struct config_change *change = &config->changes[i];

		if (!change->sets_value)
			continue;
		settings_format(change->key, &change->value, text, sizeof(text));
		buf_text(body, first ? "" : ",");
		first = false;
		config_add_text(body, change->key->name, text);
	}
	buf_char(body, '}');
	if (*http_client_name(config->target)) {
		buf_char(body, ',');
		config_add_text(body, "target", http_client_name(config->target));
	}
	buf_char(body, '}');
}

static int config_ask_remote(const struct config *config)
{
	struct buf path = { 0 }, body = { 0 };
	bool change = false;
	int status;

	buf_text(&path, "/api/config");
	if (!config->json)
		http_client_add(&path, "text", "1");
	for (size_t i = 0; i < config->count; i++) {
		change |= config->changes[i].sets_value;
		if (!config->changes[i].sets_value)
			http_client_add(&path, "key", config->changes[i].key->name);
	}
	if (change)
		add_changes(config, &body);
	status = http_client_print("config", config->target, buf_get(&path), change ? &body : NULL,
				   NULL, false);
	buf_fini(&path);
	buf_fini(&body);
	return status;
}

/* -1, or the exit status. */
static int config_choose_format(struct config *config, const char *format)
{
	config->json = !strcmp(format, "json");
	return config->json || !strcmp(format, "text")
		       ? -1
		       : cmds_wrong("config", "unknown format %s; use text or json", format);
}

int cmd_config(int argc, char **argv)
{
	struct kymo_error err = { 0 };
	struct config config = { 0 };
	struct cmds_args args;
	int status, rc;

	cmds_args_init(&args, "config", argc, argv);
	while (cmds_next(&args, &status)) {
		status = config_choose_format(&config, args.value);
		if (status >= 0)
			return status;
	}
	if (args.help) {
		print_keys();
		return cmds_finish("config");
	}
	if (status < 0)
		status = config_read_words(&config, &args);
	if (status >= 0)
		return status;
	if (http_client_is(config.target))
		return config_ask_remote(&config);
	guard_install();
	rc = open_target(&config, &err);
	if (!rc && !config.count && !config.json)
		config_print_all(&config);
	else if (!rc)
		rc = config_answer(&config, &err);
	if (!rc && config.json && !open_again(&config, &err))
		print_json(&config);
	live_processes_close(&config.live);
	if (rc < 0)
		return cmds_fail("config", &err);
	status = cmds_finish("config");
	return rc ? CMDS_FAILED : status;
}
