/* kymo config: reads and changes the settings of a program that runs. */
#include "cmds/cmds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/spelling.h"
#include "base/settings.h"
#include "cmds/config_memory.h"
#include "cmds/http_client.h"
#include "collect/run/configure.h"
#include "collect/run/guard.h"
#include "record/record.h"
#include "store/live_processes.h"
#include "views/query/json.h"
#include "views/term/text.h"

#define KEYS_MOST 32
#define FOLLOW_TRIES 50 /* to see that a program has followed */
#define FOLLOW_PAUSE_NS 20000000

/* A word of the command line, taken apart. */
struct wish {
	const struct settings_key *key;
	bool change; /* else it only asks */
	struct settings_value value, old;
	bool changed;
	size_t heard; /* pages that have it now */
};

struct config {
	const char *target;
	int32_t pid; /* of TARGET, where it is one; else 0 */
	struct live_processes live;
	struct wish wishes[KEYS_MOST];
	size_t count;
	bool json;
};

static void print_keys(void)
{
	char variable[48];

	printf("\nKeys, also as kymo.KEY; before the start as KYMO_KEY in the environment:\n");
	for (const struct settings_key *key = settings_keys; key->name; key++) {
		settings_variable(key, variable, sizeof(variable));
		printf("  %-13s  %s (%s)\n", key->name, key->about,
		       key->initial[0] ? key->initial : "empty");
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

static int unknown_key(const char *typed)
{
	const char *names[KEYS_MOST] = { NULL }, *near;
	size_t count = 0;

	for (const struct settings_key *key = settings_keys; key->name; key++)
		names[count++] = key->name;
	near = spelling_word(settings_bare_name(typed), names);
	if (near)
		return cmds_wrong("config", "no key is called %s; did you mean %s?", typed, near);
	return cmds_wrong("config", "no key is called %s; kymo help config lists them", typed);
}

static int bad_value(const struct settings_key *key, const char *text, const char *why)
{
	static const char *const switches[] = { "on", "off", NULL };
	static const char *const keeps[] = { "all", "flight", NULL };
	const char *near = NULL;

	if (key->type == SETTINGS_SWITCH || key->type == SETTINGS_FLAG)
		near = spelling_word(text, switches);
	if (key->type == SETTINGS_KEEP)
		near = spelling_word(text, keeps);
	return cmds_wrong("config", "%s=%s: %s%s%s%s; nothing is changed", key->name, text, why,
			  near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static int read_wish(struct config *config, const char *word);

/* memory=exact is two settings; the other one comes first, so that it begins so. -1, or the exit
   status. */
static int read_both(struct config *config, const char *exact)
{
	char word[32];
	int status;

	snprintf(word, sizeof(word), "memory_exact=%s", exact);
	status = read_wish(config, word);
	return status < 0 ? read_wish(config, "memory=on") : status;
}

static int read_wish(struct config *config, const char *word)
{
	const char *equals = strchr(word, '=');
	struct kymo_error err = { 0 };
	struct wish *wish = &config->wishes[config->count];
	char name[64];

	snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - word) : 63, word);
	wish->key = settings_find(name);
	if (!wish->key)
		return unknown_key(name);
	if (config->count == KEYS_MOST - 1)
		return cmds_wrong("config", "too many keys at once");
	if (equals && config_memory_is(wish->key) && config_memory_exact(equals + 1))
		return read_both(config, config_memory_exact(equals + 1));
	config->count++;
	wish->change = equals;
	if (equals && settings_parse(wish->key, equals + 1, &wish->value, &err))
		return bad_value(wish->key, equals + 1, err.text);
	return -1;
}

static int config_read_words(struct config *config, const struct cmds_args *args)
{
	int status = -1;

	if (!args->word_count)
		return cmds_wrong("config", "which program? kymo config TARGET [KEY[=VALUE]...]");
	config->target = args->words[0];
	if (strchr(config->target, '=') ||
	    (settings_find(config->target) && access(config->target, F_OK)))
		return cmds_wrong("config",
				  "which program? %s is a setting; kymo config TARGET %s, where "
				  "TARGET is a pid, a path, a name or latest",
				  config->target, config->target);
	for (size_t i = 1; i < args->word_count && status < 0; i++)
		status = read_wish(config, args->words[i]);
	return status;
}

/* ---- who is meant ---- */

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
		rc = error_set(err, ESRCH,
			       "%s has ended: what was recorded stays as it is, and there is "
			       "nothing to configure",
			       path);
	return rc;
}

/* The pages as they are after a change. */
static int open_again(struct config *config, struct kymo_error *err)
{
	live_processes_close(&config->live);
	config->live = (struct live_processes){ .count = 0 };
	return open_target(config, err);
}

/* A child's pid means that child alone; the program's own, the whole run. */
static bool is_meant(const struct config *config, const struct live_process *process)
{
	const struct live_process *named = config->pid
						   ? live_processes_find(&config->live, config->pid)
						   : NULL;

	if (!named || named->control.role == KYMO_ROLE_COLLECTOR ||
	    named->control.pid == config->live.run.target_pid)
		return true;
	return process == named;
}

/* The collector acts on what it is asked for, the program on the rest. */
static bool is_concerned(const struct config *config, const struct live_process *process,
			 const struct settings_key *key)
{
	if (process->control.role == KYMO_ROLE_COLLECTOR)
		return key->who == SETTINGS_COLLECTOR;
	return process->control.role == KYMO_ROLE_TARGET && is_meant(config, process);
}

/* ---- reading ---- */

/* Of the first that is concerned; collectors first, since they act on it. *out_differs: another has
   another. */
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
			    !is_concerned(config, process, key))
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
		printf("%s\n", text);
	else
		printf("%-13s  %-10s  %s%s\n", key->name, text[0] ? text : "\"\"", key->about,
		       differs ? " (not the same in all processes)" : "");
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

/* All settings as they are now, for programs. */
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

/* ---- changing ---- */

static int change_in(const struct config *config, const struct live_process *process,
		     struct wish *wish, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	struct settings_value old;
	char path[KYMO_PATH_BYTES + SOURCE_PATH_BYTES + 16];
	int fd, rc;

	snprintf(path, sizeof(path), "%s/%s/control", config->live.directory, process->name);
	fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_set(err, errno, "cannot open %s: %s; whose program is it?", path,
				 strerror(errno));
	rc = configure_process(fd, wish->key, &wish->value, &old, &why);
	close(fd);
	if (rc < 0)
		return error_set(err, -rc, "cannot set %s of pid %d: %s", wish->key->name,
				 process->control.pid, why.text);
	if (!wish->heard++ || (rc && !wish->changed))
		wish->old = old;
	wish->changed |= rc > 0;
	return 0;
}

static int config_change(struct config *config, struct wish *wish, struct kymo_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < config->live.count && !rc; i++)
		if (is_concerned(config, &config->live.processes[i], wish->key))
			rc = change_in(config, &config->live.processes[i], wish, err);
	return rc;
}

/* ---- memory, for which programs load a library ---- */

static bool is_asked_for_memory(const struct config *config)
{
	for (size_t i = 0; i < config->count; i++)
		if (config->wishes[i].change && config_memory_is(config->wishes[i].key))
			return true;
	return false;
}

/* Turned on where nobody can follow, nothing is changed. */
static int check_memory(const struct config *config, struct kymo_error *err)
{
	const struct live_process *deaf = NULL;

	for (size_t i = 0; i < config->count; i++) {
		const struct wish *wish = &config->wishes[i];

		if (!wish->change || !config_memory_is(wish->key) || !wish->value.number)
			continue;
		for (size_t k = 0; k < config->live.count; k++) {
			const struct live_process *process = &config->live.processes[k];

			if (!is_concerned(config, process, wish->key))
				continue;
			if (config_memory_hears(&process->control))
				return 0;
			deaf = process;
		}
	}
	return deaf ? config_memory_refuse(&deaf->control, err) : 0;
}

/* One that hears and has not followed; NULL: all have. */
static const struct live_process *late_one(const struct config *config)
{
	for (size_t i = 0; i < config->live.count; i++) {
		const struct live_process *process = &config->live.processes[i];

		if (process->control.role == KYMO_ROLE_TARGET && is_meant(config, process) &&
		    config_memory_hears(&process->control) &&
		    !config_memory_has_followed(&process->control))
			return process;
	}
	return NULL;
}

static void await_memory(struct config *config)
{
	const struct timespec pause = { 0, FOLLOW_PAUSE_NS };
	const struct live_process *late = NULL;

	for (int i = 0; i < FOLLOW_TRIES; i++) {
		if (open_again(config, NULL))
			return; /* it has ended */
		late = late_one(config);
		if (!late)
			return;
		nanosleep(&pause, NULL);
	}
	config_memory_say_when(&late->control);
}

/* The row is written by this process, in a stream of its own in the same run: so there is one row
   for each change, whoever else watches the program, or nobody does. */
static int write_rows(const struct config *config, struct kymo_error *err)
{
	char old[SETTINGS_TEXT_BYTES], new[SETTINGS_TEXT_BYTES], by[64];
	bool began = false;
	int rc;

	configure_by("kymo config", by, sizeof(by));
	for (size_t i = 0; i < config->count; i++) {
		const struct wish *wish = &config->wishes[i];

		if (!wish->changed)
			continue;
		setenv("KYMO_KEEP", "flight", 1);
		rc = began ? 0 : kymo__enable_at(config->live.directory, KYMO_ROLE_COMMAND, err);
		if (rc)
			return rc;
		began = true;
		settings_format(wish->key, &wish->old, old, sizeof(old));
		settings_format(wish->key, &wish->value, new, sizeof(new));
		kymo__config_row(wish->key->name, old, new, by);
	}
	if (began) {
		kymo_disable();
		configure_give_back(config->live.directory);
	}
	return 0;
}

/* ---- answers ---- */

static int32_t pid_to_name(const struct config *config)
{
	if (config->pid)
		return config->pid;
	if (config->live.run.target_pid)
		return config->live.run.target_pid;
	return config->live.count ? config->live.processes[0].control.pid : 0;
}

static void say_who_follows(const struct config *config, const struct wish *wish)
{
	const char *name = wish->key->name;
	int pid = pid_to_name(config);

	if (wish->key->who == SETTINGS_COLLECTOR && !live_processes_collector(&config->live))
		fprintf(stderr,
			"kymo: %s is stored, but nobody samples pid %d; kymo attach %d begins, "
			"with what is stored\n",
			name, pid, pid);
	else if (!wish->heard)
		fprintf(stderr,
			"kymo: nobody hears of %s: pid %d has no kymo inside; kymo run -- … or "
			"KYMO=standby starts it with one\n",
			name, pid);
	else if (wish->key->who == SETTINGS_NEW_STREAMS && wish->changed)
		fprintf(stderr, "kymo: %s holds for threads and tables that begin from now on\n",
			name);
}

static void print_change(const struct wish *wish)
{
	char old[SETTINGS_TEXT_BYTES], new[SETTINGS_TEXT_BYTES];

	settings_format(wish->key, &wish->old, old, sizeof(old));
	settings_format(wish->key, &wish->value, new, sizeof(new));
	if (wish->changed)
		printf("%s=%s (was %s)\n", wish->key->name, new, old[0] ? old : "empty");
	else if (wish->heard)
		printf("%s=%s already\n", wish->key->name, new);
}

static int config_answer(struct config *config, struct kymo_error *err)
{
	int rc = check_memory(config, err), written;
	bool nobody = false;

	if (rc)
		return rc;
	for (size_t i = 0; i < config->count && !rc; i++)
		if (config->wishes[i].change)
			rc = config_change(config, &config->wishes[i], err);
	/* Those before the one that failed have changed: they are rows too. */
	written = write_rows(config, rc ? NULL : err);
	rc = rc ? rc : written;
	for (size_t i = 0; i < config->count; i++) {
		const struct wish *wish = &config->wishes[i];

		if (!wish->change) {
			if (!config->json)
				print_key(config, wish->key, config->count == 1);
			continue;
		}
		if (!config->json)
			print_change(wish);
		if (!rc)
			say_who_follows(config, wish);
		nobody |= !rc && !wish->heard;
	}
	if (!rc && is_asked_for_memory(config))
		await_memory(config);
	return rc ? rc : nobody ? 1 : 0;
}

/* ---- by a kymo serve ------------------------------------------------------------------------- */

static void add_changes(const struct config *config, struct buf *body)
{
	char text[SETTINGS_TEXT_BYTES];
	bool first = true;

	buf_text(body, "{\"set\":{");
	for (size_t i = 0; i < config->count; i++) {
		const struct wish *wish = &config->wishes[i];

		if (!wish->change)
			continue;
		settings_format(wish->key, &wish->value, text, sizeof(text));
		buf_text(body, first ? "" : ",");
		first = false;
		config_add_text(body, wish->key->name, text);
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
		change |= config->wishes[i].change;
		if (!config->wishes[i].change)
			http_client_add(&path, "key", config->wishes[i].key->name);
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
		       : cmds_wrong("config", "no format is called %s; there are text and json",
				    format);
}

int cmd_config(int argc, char **argv)
{
	static const struct cmds_option config_options[] = {
		{ 'f', "format", "text|json", "how to print it (text)" },
		{ 0 },
	};
	struct cmds_command command = *cmds_find("config");
	struct kymo_error err = { 0 };
	struct config config = { 0 };
	struct cmds_args args;
	int status, rc;

	command.options = config_options;
	cmds_args_init(&args, "config", argc, argv);
	args.command = &command;
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
