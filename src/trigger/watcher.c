#include "trigger/watcher.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <kymo/kymo.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "base/files/run_files.h"
#include "base/schema.h"
#include "record/record.h"
#include "store/live_processes.h"
#include "trigger/action.h"
#include "trigger/condition.h"
#include "trigger/job_requests.h"
#include "trigger/trigger.h"
#include "views/query/json.h"

#define SECOND_NS 1000000000ull
#define NAP_NS 50000000ull /* at least between two looks at anything */
#define BUSY_NAP_NS 20000000ull /* while actions run */
#define COST_ROW_NS (10 * SECOND_NS)
#define FINISH_NS (3 * SECOND_NS)
#define REQUESTS_MOST 64 /* of other ranks, at one look */
#define SLOWED 2.0 /* a condition that is asked this much less often than wanted is reported */

/* What is known of a trigger beside its definition. */
struct watched {
	uint64_t next_ns, quiet_until_ns, said_ns;
	uint64_t fired, suppressed, bytes;
	double cpu_ns; /* of one look, smoothed */
	bool slowed;
	char problem[512]; /* the last one that was written */
};

/* Settings to be restored. */
struct raised {
	char words[4 * TRIGGER_ACTION_BYTES]; /* KEY=OLD … ; "": none */
	double until_step; /* or, if below 0, */
	uint64_t until_ns;
	uint64_t looked_ns; /* when the step was last asked for */
};

struct watcher {
	struct live_processes live; /* as it was at the start: paths, the program */
	struct trigger_set set;
	struct watched watched[TRIGGER_MOST];
	struct timespec defined; /* when the definitions changed */
	struct conditions conditions;
	struct actions actions;
	struct job_requests requests;
	struct raised raised;
	uint64_t asked, cpu_ns, cost_written_ns;
	bool ended;
};

/* ---- firing ---------------------------------------------------------------------------------- */

static void watcher_say(const struct watcher *watcher, size_t i, const char *action,
			const char *result, const char *json, uint64_t rows)
{
	struct action row = { .row_count = rows };

	snprintf(row.trigger, sizeof(row.trigger), "%s", watcher->set.triggers[i].name);
	snprintf(row.action, sizeof(row.action), "%s", action);
	snprintf(row.row, sizeof(row.row), "%.*s", (int)strcspn(json, "\n"), json);
	actions_row(&row, result, 0);
}

/* One key of a detail: asks for its value, then sets it. */
static bool raise_one(struct watcher *watcher, const char *word)
{
	char key[64], old[160], output[256];
	size_t used = strlen(watcher->raised.words);
	char *ask[] = { watcher->actions.kymo, "config", watcher->actions.recording, key, NULL };
	char *set[] = { watcher->actions.kymo, "config", watcher->actions.recording, (char *)word,
			NULL };

	snprintf(key, sizeof(key), "%.*s", (int)strcspn(word, "="), word);
	if (actions_run_kymo(&watcher->actions, ask, old, sizeof(old)) ||
	    actions_run_kymo(&watcher->actions, set, output, sizeof(output)))
		return false;
	snprintf(watcher->raised.words + used, sizeof(watcher->raised.words) - used, " %s=%s", key,
		 old);
	return true;
}

static void raise_detail(struct watcher *watcher, size_t i, const char *action,
			 const struct action_firing *firing, uint64_t now_ns)
{
	struct trigger_detail detail;
	char *save = NULL;
	bool good = true;

	if (watcher->raised.words[0] || !trigger_detail_parse(action, &detail)) {
		watcher_say(watcher, i, action, "detail is raised already", firing->json,
			    firing->rows);
		return;
	}
	for (char *word = strtok_r(detail.settings, " \t", &save); word;
	     word = strtok_r(NULL, " \t", &save))
		good &= raise_one(watcher, word);
	watcher->raised.until_step = detail.steps
					     ? condition_step(&watcher->conditions) + detail.amount
					     : -1;
	watcher->raised.until_ns = now_ns + (uint64_t)((detail.steps ? 3600 : detail.amount) * 1e9);
	watcher_say(watcher, i, action,
		    good ? "ok" : "not all settings could be changed; see kymo.config",
		    firing->json, firing->rows);
}

static void restore_detail(struct watcher *watcher)
{
	char output[256], *save = NULL;

	for (char *word = strtok_r(watcher->raised.words, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		char *set[] = { watcher->actions.kymo, "config", watcher->actions.recording, word,
				NULL };

		actions_run_kymo(&watcher->actions, set, output, sizeof(output));
	}
	watcher->raised.words[0] = '\0';
}

static void check_detail_end(struct watcher *watcher, uint64_t now_ns)
{
	if (!watcher->raised.words[0])
		return;
	if (now_ns >= watcher->raised.until_ns) {
		restore_detail(watcher);
		return;
	}
	/* A query: once a second, as often as a condition is asked. */
	if (watcher->raised.until_step < 0 || now_ns - watcher->raised.looked_ns < SECOND_NS)
		return;
	watcher->raised.looked_ns = now_ns;
	if (condition_step(&watcher->conditions) >= watcher->raised.until_step)
		restore_detail(watcher);
}

/* Beyond its limits a trigger is counted, in one row for each cool-down. */
static bool may_fire(struct watcher *watcher, size_t i, const char *json, uint64_t rows,
		     uint64_t now_ns)
{
	const struct trigger *trigger = &watcher->set.triggers[i];
	struct watched *watched = &watcher->watched[i];
	const char *why = NULL;

	if (now_ns < watched->quiet_until_ns)
		why = "within the cool-down";
	else if (watched->fired >= trigger->limit)
		why = "beyond the limit in number";
	else if (watched->bytes >= trigger->limit_bytes)
		why = "beyond the limit in bytes";
	if (!why)
		return true;
	watched->suppressed++;
	if (!watched->said_ns ||
	    now_ns - watched->said_ns > (uint64_t)(trigger->cooldown_s * 1e9)) {
		watched->said_ns = now_ns ? now_ns : 1;
		watcher_say(watcher, i, "suppressed", why, json, rows);
	}
	return false;
}

static void fire(struct watcher *watcher, size_t i, const char *json, uint64_t rows,
		 uint64_t now_ns)
{
	const struct trigger *trigger = &watcher->set.triggers[i];
	struct watched *watched = &watcher->watched[i];
	const struct action_firing firing = {
		.trigger = trigger, .number = watched->fired + 1, .rows = rows, .json = json
	};

	if (!may_fire(watcher, i, json, rows, now_ns))
		return;
	watched->fired++;
	watched->quiet_until_ns = now_ns + (uint64_t)(trigger->cooldown_s * 1e9);
	for (size_t k = 0; k < trigger->action_count; k++)
		if (trigger_action_kind(trigger->actions[k]) == TRIGGER_DETAIL)
			raise_detail(watcher, i, trigger->actions[k], &firing, now_ns);
		else
			actions_start(&watcher->actions, &firing, trigger->actions[k], now_ns);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* How long a trigger rests, so that all of them together stay within their share of a core. */
static double pause_s(const struct watcher *watcher, size_t i)
{
	double all_ns = 0, wanted = watcher->set.triggers[i].every_s, least;

	for (size_t k = 0; k < watcher->set.count; k++)
		all_ns += watcher->watched[k].cpu_ns;
	least = all_ns / WATCHER_SHARE / 1e9;
	return wanted > least ? wanted : least;
}

static void note_slowed(struct watcher *watcher, size_t i, double now_s)
{
	bool slowed = now_s > SLOWED * watcher->set.triggers[i].every_s;
	char text[160];

	if (slowed && !watcher->watched[i].slowed) {
		snprintf(text, sizeof(text),
			 "asked every %.1f s, not %g: a look takes %.1f ms of CPU time, and all "
			 "triggers have %g %% of a core",
			 now_s, watcher->set.triggers[i].every_s, watcher->watched[i].cpu_ns / 1e6,
			 WATCHER_SHARE * 100);
		watcher_say(watcher, i, "slowed", text, "", 0);
	}
	watcher->watched[i].slowed = slowed;
}

static void note_problem(struct watcher *watcher, size_t i, const char *problem)
{
	struct watched *watched = &watcher->watched[i];

	if (!strncmp(watched->problem, problem, sizeof(watched->problem) - 1))
		return;
	snprintf(watched->problem, sizeof(watched->problem), "%s", problem);
	if (problem[0])
		watcher_say(watcher, i, "look", problem, "", 0);
}

static void ask_one(struct watcher *watcher, size_t i, bool refresh, uint64_t now_ns)
{
	struct watched *watched = &watcher->watched[i];
	struct condition_answer answer;
	double rest;

	condition_ask(&watcher->conditions, i, refresh, &answer);
	watcher->asked++;
	watcher->cpu_ns += answer.cpu_ns;
	/* The first look starts DuckDB. */
	if (watcher->asked > 1)
		watched->cpu_ns = watched->cpu_ns > 0
					  ? 0.8 * watched->cpu_ns + 0.2 * (double)answer.cpu_ns
					  : (double)answer.cpu_ns;
	note_problem(watcher, i, answer.problem);
	if (answer.new_rows) {
		fire(watcher, i, buf_get(&answer.rows), answer.new_rows, now_ns);
		if (watcher->set.triggers[i].all_ranks)
			job_requests_send(&watcher->requests, watcher->set.triggers[i].name,
					  watched->fired);
	}
	buf_fini(&answer.rows);
	rest = pause_s(watcher, i);
	note_slowed(watcher, i, rest);
	watched->next_ns = now_ns + (uint64_t)(rest * 1e9);
}

static void ask_due(struct watcher *watcher, uint64_t now_ns)
{
	bool refresh = true;

	for (size_t i = 0; i < watcher->set.count; i++)
		/* Those that are almost due share the look. */
		if (now_ns + NAP_NS >= watcher->watched[i].next_ns) {
			ask_one(watcher, i, refresh, now_ns);
			refresh = false;
		}
}

static void obey_requests(struct watcher *watcher, uint64_t now_ns)
{
	char name[TRIGGER_NAME_BYTES];
	struct buf json = { 0 };

	/* A look has an end, however many files there are. */
	for (int left = REQUESTS_MOST;
	     left && job_requests_next(&watcher->requests, name, sizeof(name)); left--) {
		struct trigger *trigger = trigger_find(&watcher->set, name);

		if (!trigger)
			continue;
		buf_reset(&json);
		buf_text(&json, "{\"fired_by\":");
		json_text(&json, watcher->requests.from, strlen(watcher->requests.from));
		buf_text(&json, "}\n");
		fire(watcher, (size_t)(trigger - watcher->set.triggers), buf_get(&json), 1, now_ns);
	}
	buf_fini(&json);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static bool same_trigger(const struct trigger *a, const struct trigger *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->sql, b->sql);
}

/* Triggers that stay keep their place, and their counts with it: conditions.h
   compares their texts, and forgets the rows of others. */
static void take_definitions(struct watcher *watcher, struct trigger_set *set)
{
	struct watched watched[TRIGGER_MOST] = { 0 };

	for (size_t i = 0; i < set->count; i++)
		for (size_t k = 0; k < watcher->set.count; k++)
			if (same_trigger(&set->triggers[i], &watcher->set.triggers[k]))
				watched[i] = watcher->watched[k];
	trigger_set_fini(&watcher->set);
	watcher->set = *set;
	memcpy(watcher->watched, watched, sizeof(watched));
	conditions_restart(&watcher->conditions, watcher->conditions.path);
}

static bool definitions_changed(struct watcher *watcher, const char *path)
{
	struct stat status;

	if (stat(path, &status) || (status.st_mtim.tv_sec == watcher->defined.tv_sec &&
				    status.st_mtim.tv_nsec == watcher->defined.tv_nsec))
		return false;
	watcher->defined = status.st_mtim;
	return true;
}

static void read_definitions(struct watcher *watcher)
{
	char path[KYMO_PATH_BYTES + 16];
	struct kymo_error err = { 0 };
	struct trigger_set set = { .count = 0 };

	snprintf(path, sizeof(path), "%s/" TRIGGER_FILE, watcher->live.directory);
	if (!definitions_changed(watcher, path))
		return;
	if (trigger_read_live(&set, watcher->live.directory, &err))
		trigger_set_fini(&set); /* the old ones stay */
	else
		take_definitions(watcher, &set);
}

static void watcher_count_saved(void *context, const char *name, uint64_t bytes)
{
	struct watcher *watcher = context;
	const struct trigger *trigger = trigger_find(&watcher->set, name);

	if (trigger)
		watcher->watched[trigger - watcher->set.triggers].bytes += bytes;
}

/* ---- the run --------------------------------------------------------------------------------- */

static bool run_goes_on(const struct watcher *watcher)
{
	const struct kymo_run_file *run = &watcher->live.run;

	if (access(watcher->live.directory, F_OK))
		return false;
	if (run->supervised && watcher->live.supervised)
		return paths_starttime(run->supervisor_pid) == run->supervisor_starttime;
	for (size_t i = 0; i < watcher->live.count; i++) {
		const struct kymo_control *control = &watcher->live.processes[i].control;

		if (paths_starttime(control->pid) == control->starttime)
			return true;
	}
	return false;
}

static void watcher_cost(struct watcher *watcher, uint64_t now_ns)
{
	struct schema_cost_row row = { .ts_ticks = kymo_ticks(),
				       .events = watcher->asked,
				       .cost_ns = watcher->cpu_ns,
				       .source = "triggers" };

	if (watcher->cost_written_ns && now_ns - watcher->cost_written_ns < COST_ROW_NS)
		return;
	watcher->cost_written_ns = now_ns;
	kymo__append(SCHEMA_OVERHEAD, &row);
}

static uint64_t next_look(const struct watcher *watcher, uint64_t now_ns)
{
	uint64_t next_ns = now_ns + SECOND_NS;

	for (size_t i = 0; i < watcher->set.count; i++)
		if (watcher->watched[i].next_ns < next_ns)
			next_ns = watcher->watched[i].next_ns;
	for (size_t i = 0; i < ACTION_MOST; i++)
		if (watcher->actions.list[i].child && now_ns + BUSY_NAP_NS < next_ns)
			next_ns = now_ns + BUSY_NAP_NS;
	return next_ns > now_ns + NAP_NS ? next_ns : now_ns + NAP_NS;
}

/* SIGTERM ends the watcher: `kymo run` sends it when the program has ended. */
static void watcher_sleep(struct watcher *watcher, uint64_t until_ns, const sigset_t *waited)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	const struct timespec nap = { (time_t)(left_ns / SECOND_NS), (long)(left_ns % SECOND_NS) };

	if (sigtimedwait(waited, NULL, &nap) > 0)
		watcher->ended = true;
}

static void watch_run(struct watcher *watcher, const sigset_t *waited)
{
	while (!watcher->ended && run_goes_on(watcher)) {
		uint64_t now_ns = clock_monotonic_ns();

		read_definitions(watcher);
		ask_due(watcher, now_ns);
		obey_requests(watcher, now_ns);
		actions_look(&watcher->actions, clock_monotonic_ns());
		check_detail_end(watcher, now_ns);
		watcher_cost(watcher, now_ns);
		watcher_sleep(watcher, next_look(watcher, clock_monotonic_ns()), waited);
	}
	/* What came since the last look. */
	ask_due(watcher, UINT64_MAX - SECOND_NS * 3600);
	restore_detail(watcher);
	watcher->cost_written_ns = 0;
	watcher_cost(watcher, clock_monotonic_ns());
	actions_finish(&watcher->actions, FINISH_NS);
}

/* Files go into the folder `triggers` of the directory on disk. */
static int make_directory(struct watcher *watcher, const char *wanted, struct kymo_error *err)
{
	char *directory = watcher->actions.directory;
	const char *parent = watcher->live.disk[0] ? watcher->live.disk : watcher->live.directory;

	snprintf(directory, sizeof(watcher->actions.directory), wanted ? "%s%s" : "%s/%s",
		 wanted ? wanted : parent, wanted ? "" : "triggers");
	if (mkdir(directory, 0700) && errno != EEXIST)
		return error_set(err, errno, "cannot make %s: %s", directory, strerror(errno));
	return 0;
}

static int watcher_begin(struct watcher *watcher, const struct watcher_options *options,
			 struct kymo_error *err)
{
	int rc = live_processes_open(options->live, &watcher->live, err);

	if (!rc)
		rc = trigger_check_owner(watcher->live.directory, err);
	if (!rc)
		rc = make_directory(watcher, options->directory, err);
	if (!rc && conditions_init(&watcher->conditions, watcher->live.directory, &watcher->set))
		rc = error_set(err, ENOMEM, "out of memory");
	if (rc)
		return rc;
	snprintf(watcher->actions.kymo, sizeof(watcher->actions.kymo), "%s", options->kymo);
	snprintf(watcher->actions.recording, sizeof(watcher->actions.recording), "%s",
		 watcher->live.directory);
	watcher->actions.pid = watcher->live.run.target_pid;
	watcher->actions.saved = watcher_count_saved;
	watcher->actions.context = watcher;
	job_requests_init(&watcher->requests, watcher->live.disk, &watcher->live.run);
	read_definitions(watcher);
	setenv("KYMO_KEEP", "all", 1);
	return kymo__enable_at(watcher->live.directory, KYMO_ROLE_COMMAND, err);
}

/* The live directory is removed at the end of a run; the definitions stay beside the files. */
static void keep_definitions(const struct watcher *watcher)
{
	char path[KYMO_PATH_BYTES + 32];
	struct kymo_error err = { 0 };

	if (!watcher->live.disk[0] ||
	    !trigger_write_file(&watcher->set, watcher->actions.directory, &err)) {
		snprintf(path, sizeof(path), "%s/" TRIGGER_FILE, watcher->live.directory);
		unlink(path);
	}
}

int watcher_run(const struct watcher_options *options, struct kymo_error *err)
{
	struct watcher *watcher = calloc(1, sizeof(*watcher));
	sigset_t waited;
	int rc = watcher ? 0 : error_set(err, ENOMEM, "out of memory");

	if (rc)
		return rc;
	sigemptyset(&waited);
	sigaddset(&waited, SIGTERM);
	sigaddset(&waited, SIGINT);
	sigaddset(&waited, SIGHUP);
	sigprocmask(SIG_BLOCK, &waited, NULL);
	signal(SIGPIPE, SIG_IGN);
	setpriority(PRIO_PROCESS, 0, 10);
	prctl(PR_SET_NAME, "kymo triggers");
	rc = watcher_begin(watcher, options, err);
	if (options->note_fd >= 0 && write(options->note_fd, rc ? "-" : "+", 1) < 0)
		rc = rc ? rc : -EPIPE;
	if (!rc) {
		watch_run(watcher, &waited);
		keep_definitions(watcher);
		kymo_disable();
	}
	conditions_fini(&watcher->conditions);
	live_processes_close(&watcher->live);
	trigger_set_fini(&watcher->set);
	free(watcher);
	return rc;
}
