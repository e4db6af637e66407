/* kymo trigger: conditions in SQL over a running program, and what is done when they hold. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmds/cmds.h"
#include "cmds/guard/guard.h"
#include "cmds/trigger/trigger_start.h"
#include "store/live_processes.h"
#include "store/store.h"
#include "trigger/condition.h"
#include "trigger/trigger.h"
#include "views/query/rows.h"
#include "views/term/text.h"

struct trigger_request {
	const char *actions[TRIGGER_ACTIONS];
	size_t action_count;
	double every_s, cooldown_s, limit; /* 0: not given; cooldown below 0 */
	const char *bytes;
	bool all_ranks, ready;
};

static int trigger_take_option(void *context, struct cmds_args *args,
			       const struct cmds_option *option)
{
	struct trigger_request *request = context;
	int status = -1;

	if (!strcmp(option->name, "action")) {
		if (request->action_count == TRIGGER_ACTIONS)
			return cmds_wrong("trigger", "--action: at most %d", TRIGGER_ACTIONS);
		request->actions[request->action_count++] = args->value;
	} else if (!strcmp(option->name, "every"))
		cmds_number(args, option, 1e6, &request->every_s, &status);
	else if (!strcmp(option->name, "cooldown"))
		cmds_number(args, option, 1e9, &request->cooldown_s, &status);
	else if (!strcmp(option->name, "limit"))
		cmds_number(args, option, 1e9, &request->limit, &status);
	else if (!strcmp(option->name, "bytes"))
		request->bytes = args->value;
	else if (!strcmp(option->name, "all-ranks"))
		request->all_ranks = true;
	else
		request->ready = true;
	return status;
}

/* ---- the target ------------------------------------------------------------------------------ */

static int open_live(const char *target, struct live_processes *live, struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES];
	int32_t pid;
	int rc;

	if (target && store_is_pid(target, &pid))
		return live_processes_open_pid(pid, live, err);
	rc = store_resolve(target, path, sizeof(path), err);
	if (!rc)
		rc = live_processes_open(path, live, err);
	if (!rc && !live->count)
		rc = error_set(err, ESRCH,
			       "%s: its program has ended; triggers watch a program that runs",
			       path);
	return rc;
}

static bool is_watched(const struct live_processes *live)
{
	for (size_t i = 0; i < live->count; i++)
		if (live->processes[i].control.role == KYMO_ROLE_COMMAND)
			return true;
	return false;
}

/* ---- add ------------------------------------------------------------------------------------- */

static int apply_options(const struct trigger_request *request, struct trigger_set *set,
			 struct trigger *trigger, struct kymo_error *err)
{
	for (size_t i = 0; i < request->action_count; i++)
		if (trigger_add_action(trigger, request->actions[i], err))
			return -EINVAL;
	if (request->every_s > 0)
		trigger->every_s = request->every_s < 0.1 ? 0.1 : request->every_s;
	if (request->cooldown_s >= 0)
		trigger->cooldown_s = request->cooldown_s;
	if (request->limit >= 1)
		trigger->limit = (uint64_t)request->limit;
	trigger->all_ranks = request->all_ranks;
	trigger_complete(set);
	return request->bytes ? trigger_set_key(trigger, "bytes", request->bytes, err) : 0;
}

struct checking {
	const char *path, *sql;
	struct kymo_error *err; /* shared with the child */
};

static int check_condition_in_child(void *context)
{
	const struct checking *checking = context;

	return condition_check(checking->path, checking->sql, checking->err) ? 1 : 0;
}

/* By DuckDB, in a child. */
static int check_condition(const char *path, const char *sql, struct kymo_error *err)
{
	struct checking checking = { path, sql, NULL };
	int rc;

	checking.err = mmap(NULL, sizeof(*err), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	if (checking.err == MAP_FAILED)
		return error_set(err, ENOMEM, "out of memory");
	rc = guard_run(check_condition_in_child, &checking, err);
	if (rc > 0)
		rc = error_set(err, EINVAL, "%s", checking.err->text);
	munmap(checking.err, sizeof(*checking.err));
	return rc;
}

static int add(const struct trigger_request *request, const char *target, const char *word,
	       struct kymo_error *err)
{
	struct live_processes live = { 0 };
	struct trigger_set *set = calloc(1, sizeof(*set));
	struct trigger *trigger = NULL;
	pid_t watcher;
	int rc = set ? open_live(target, &live, err) : error_set(err, ENOMEM, "out of memory");

	if (!rc)
		rc = trigger_check_owner(live.directory, err);
	if (!rc)
		rc = trigger_read_live(set, live.directory, err);
	if (!rc) {
		trigger = trigger_add(set, word, err);
		rc = trigger ? apply_options(request, set, trigger, err) : -EINVAL;
	}
	if (!rc)
		rc = check_condition(live.directory, trigger->sql, err);
	if (!rc)
		rc = trigger_write_file(set, live.directory, err);
	if (!rc && !is_watched(&live))
		rc = trigger_start(live.directory, true, &watcher, err);
	if (!rc)
		text_line(stderr, "kymo: trigger %s watches %s", trigger->name, live.run.program);
	live_processes_close(&live);
	if (set)
		trigger_set_fini(set);
	free(set);
	return rc;
}

/* ---- ls and rm ------------------------------------------------------------------------------- */

static void print_ready(void)
{
	for (const struct trigger_ready *ready = trigger_ready; ready->name; ready++)
		text_line(stdout, "%-14s  %s", ready->name, ready->about);
}

static void print_set(const struct trigger_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct trigger *trigger = &set->triggers[i];

		text_line(stdout, "%s: every %g s, cool-down %g s, at most %llu times%s",
			  trigger->name, trigger->every_s, trigger->cooldown_s,
			  (unsigned long long)trigger->limit,
			  trigger->all_ranks ? ", on all ranks" : "");
		text_line(stdout, "  when %s", trigger->sql);
		for (size_t k = 0; k < trigger->action_count; k++)
			text_line(stdout, "  %s", trigger->actions[k]);
	}
}

static int print_firing(const struct rows *rows, void *context)
{
	char trigger[64], action[80], result[176], saved[144];

	(void)context;
	rows_copy_text(rows, 1, trigger, sizeof(trigger));
	rows_copy_text(rows, 2, action, sizeof(action));
	rows_copy_text(rows, 3, result, sizeof(result));
	rows_copy_text(rows, 4, saved, sizeof(saved));
	text_line(stdout, "%8.1f s  %s  %s  %s%s%s", rows_number(rows, 0, 0) / 1e9, trigger, action,
		  result, saved[0] ? "  triggers/" : "", saved);
	return 0;
}

/* In a child. Of a recording that has ended, too. */
static int print_firings(void *context)
{
	struct kymo_error err = { 0 };
	struct tables *tables;
	int rc = cmds_open(context, &tables, &err);

	if (!rc)
		rc = rows_each(tables,
			       "SELECT ts_ns, trigger, action, result, saved FROM kymo.triggers "
			       "ORDER BY ts_ns DESC LIMIT 40",
			       print_firing, NULL, &err);
	cmds_close(tables);
	return rc ? cmds_fail("trigger", &err) : cmds_finish("trigger");
}

static int list(const char *target)
{
	struct live_processes live = { 0 };
	struct trigger_set *set = calloc(1, sizeof(*set));
	struct kymo_error err = { 0 };

	if (set && !open_live(target, &live, &err) && !trigger_read_live(set, live.directory, &err))
		print_set(set);
	live_processes_close(&live);
	if (set)
		trigger_set_fini(set);
	free(set);
	fflush(stdout);
	return cmds_guarded("trigger", print_firings, (void *)target);
}

static int rm(const char *target, char **names, size_t count, struct kymo_error *err)
{
	struct live_processes live = { 0 };
	struct trigger_set *set = calloc(1, sizeof(*set));
	int rc = set ? open_live(target, &live, err) : error_set(err, ENOMEM, "out of memory");

	if (!rc)
		rc = trigger_check_owner(live.directory, err);
	if (!rc)
		rc = trigger_read_live(set, live.directory, err);
	for (size_t i = 0; i < count && !rc; i++)
		if (!trigger_remove(set, names[i]))
			rc = error_set(err, ENOENT,
				       "there is no trigger %s; kymo trigger ls lists "
				       "them",
				       names[i]);
	if (!rc)
		rc = trigger_write_file(set, live.directory, err);
	live_processes_close(&live);
	if (set)
		trigger_set_fini(set);
	free(set);
	return rc;
}

int cmd_trigger(int argc, char **argv)
{
	struct trigger_request request = { .cooldown_s = -1 };
	struct kymo_error err = { 0 };
	struct cmds_args args;
	const char *verb;
	int status;

	cmds_args_init(&args, "trigger", argc, argv);
	args.takes_sql = true;
	status = cmds_take_all(&args, trigger_take_option, &request);
	if (status >= 0)
		return status;
	verb = args.word_count ? args.words[0] : "";
	if (!strcmp(verb, "add") && args.word_count == 3)
		return add(&request, args.words[1], args.words[2], &err)
			       ? cmds_fail("trigger", &err)
			       : CMDS_OK;
	if (!strcmp(verb, "rm") && args.word_count > 2)
		return rm(args.words[1], args.words + 2, args.word_count - 2, &err)
			       ? cmds_fail("trigger", &err)
			       : CMDS_OK;
	if (!strcmp(verb, "ls") && request.ready) {
		print_ready();
		return cmds_finish("trigger");
	}
	if (!strcmp(verb, "ls") && args.word_count <= 2)
		return list(args.word_count == 2 ? args.words[1] : NULL);
	return cmds_wrong("trigger", "expected add TARGET NAME[='SELECT ...'], ls [TARGET] or rm "
				     "TARGET NAME...");
}
