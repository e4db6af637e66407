/* kymo backtrace: what every thread of a program is doing now, without stopping it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/cmds.h"
#include "cmds/http_client.h"
#include "collect/run/family.h"
#include "collect/host/proc.h"
#include "collect/backtrace/stacks.h"
#include "store/alive.h"
#include "store/store.h"
#include "views/stacks/backtrace.h"
#include "views/stacks/laststacks.h"

struct request {
	const char *target;
	bool json, tree;
	struct stacks_options stacks;
	/* the program of a recording that has ended, attach's, if it has not; 0: it has */
	pid_t runs_on;
};

/* ---- the command line ------------------------------------------------------------------------ */

static int backtrace_take_option(void *context, struct cmds_args *args,
				 const struct cmds_option *option)
{
	struct request *request = context;
	static const struct {
		const char *name;
		size_t offset;
	} flags[] = {
		{ "locals", offsetof(struct request, stacks.locals) },
		{ "native", offsetof(struct request, stacks.native) },
		{ "why", offsetof(struct request, stacks.why) },
		{ "tree", offsetof(struct request, tree) },
		{ "json", offsetof(struct request, json) },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (!strcmp(flags[i].name, option->name))
			*(bool *)((char *)request + flags[i].offset) = true;
	if (!strcmp(option->name, "format")) {
		request->json = !strcmp(args->value, "json");
		if (!request->json && strcmp(args->value, "text") != 0)
			return cmds_wrong("backtrace",
					  "no format is called %s; there are text and json",
					  args->value);
	}
	return -1;
}

static int backtrace_parse(struct request *request, int argc, char **argv)
{
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "backtrace", argc, argv);
	status = cmds_take_all(&args, backtrace_take_option, request);
	if (status >= 0)
		return status;
	if (args.word_count > 1)
		return cmds_wrong("backtrace", "one TARGET at a time, not %zu", args.word_count);
	request->target = args.word_count ? args.words[0] : NULL;
	return -1;
}

/* ---- who ------------------------------------------------------------------------------------- */

static bool target_runs(const struct kymo_run_file *run)
{
	return run->target_pid && alive_same_boot(run->boot_id) &&
	       proc_alive(run->target_pid, run->target_starttime);
}

/* A recording stands for the program that it is of; *out 0: which has ended, or is not recorded any
   more. */
static int pid_of_recording(const char *path, pid_t *out, pid_t *runs_on, struct kymo_error *err)
{
	struct recording *recording = NULL;
	int rc;

	if (store_kind(path, NULL) == STORE_PACKED)
		return 0;
	rc = store_open(path, &recording, err);
	if (rc)
		return rc;
	for (size_t i = 0; !*out && i < recording->process_count; i++)
		if (recording->processes[i].state == STORE_LIVE &&
		    recording->processes[i].role == KYMO_ROLE_TARGET)
			*out = recording->processes[i].pid;
	if (target_runs(&recording->run))
		*(recording->live ? out : runs_on) = recording->run.target_pid;
	store_close(recording);
	return 0;
}

/* A pid, or a recording of one that has ended: *out is 0 then, and path says where. */
static int find_target(struct request *request, pid_t *out, char *path, size_t path_bytes,
		       struct kymo_error *err)
{
	const char *target = request->target;
	int32_t pid;
	int rc;

	*out = 0;
	if (target && store_is_pid(target, &pid) && pid > 0 && pid <= 1 << 22) {
		*out = pid;
		return 0;
	}
	rc = store_resolve(target, path, path_bytes, err);
	return rc ? rc : pid_of_recording(path, out, &request->runs_on, err);
}

/* ---- answers --------------------------------------------------------------------------------- */

static int answer_one(const struct request *request, pid_t pid, struct kymo_error *err)
{
	struct text_style style = text_style_of(stdout);
	struct stacks stacks;
	int rc = stacks_take(pid, &request->stacks, &stacks, err);

	if (rc)
		return rc;
	if (request->json)
		backtrace_print_json(&stacks, 1, stdout);
	else
		backtrace_print(&stacks, &style, stdout);
	stacks_free(&stacks);
	return 0;
}

/* All descendants too. A child that cannot be read, or ends meanwhile, is said on stderr; the rest
   is shown. */
static int answer_tree(const struct request *request, pid_t pid, struct kymo_error *err)
{
	struct text_style style = text_style_of(stdout);
	struct family family = { 0 };
	struct kymo_error one = { 0 };
	struct proc_stat stat;
	struct stacks *all;
	size_t count = 0;

	if (proc_stat(pid, &stat))
		return error_set(err, ESRCH, "there is no process %d", (int)pid);
	family_root(&family, pid, stat.starttime, stat.name);
	family_look(&family);
	all = calloc(family.count + 1, sizeof(*all));
	for (size_t i = 0; all && i < family.count; i++) {
		if (!stacks_take(family.members[i].pid, &request->stacks, &all[count], &one))
			count++;
		else if (one.code != ESRCH || !i)
			fprintf(stderr, "kymo backtrace: %s\n", one.text);
	}
	if (all && count && request->json)
		backtrace_print_json(all, count, stdout);
	else if (all && count)
		backtrace_print_groups(all, count, &style, stdout);
	for (size_t i = 0; all && i < count; i++)
		stacks_free(&all[i]);
	free(all);
	family_fini(&family);
	return count ? 0 : error_set(err, one.code ? one.code : ENOMEM, "%s", one.text);
}

static int refuse_dead(const struct request *request, const char *path, struct kymo_error *err)
{
	const struct stacks_options *asked = &request->stacks;
	const char *option = asked->native ? "native" : asked->locals ? "locals" : "why";

	if (request->runs_on)
		return error_set(err, ESRCH,
				 "the recording %s has ended, and its program runs on: `kymo "
				 "backtrace --%s %d` asks it",
				 path, option, (int)request->runs_on);
	return error_set(err, ESRCH,
			 "the program of %s has ended: --%s needs one that runs; without it the "
			 "last stacks that were taken are shown",
			 path, option);
}

/* What was not written down while it lived cannot be asked any more. */
static int answer_dead(const struct request *request, const char *path, struct kymo_error *err)
{
	const struct stacks_options *asked = &request->stacks;
	struct text_style style = text_style_of(stdout);
	struct stacks *stacks;
	size_t count;
	int rc;

	if (asked->native || asked->locals || asked->why)
		return refuse_dead(request, path, err);
	rc = laststacks_take(path, &stacks, &count, err);
	if (rc)
		return rc;
	if (request->json)
		backtrace_print_json(stacks, count, stdout);
	else if (request->tree)
		backtrace_print_groups(stacks, count, &style, stdout);
	for (size_t i = 0; !request->json && !request->tree && i < count; i++) {
		if (i)
			putchar('\n');
		backtrace_print(&stacks[i], &style, stdout);
	}
	if (request->runs_on)
		fprintf(stderr,
			"kymo backtrace: the program runs on; `kymo backtrace %d` shows what it "
			"does now\n",
			(int)request->runs_on);
	laststacks_free(stacks, count);
	return 0;
}

/* Of a program on another machine, by the kymo serve there. */
static int answer_remote(const struct request *request)
{
	const struct stacks_options *asked = &request->stacks;
	const struct {
		const char *key;
		bool set;
	} flags[] = { { "text", !request->json },
		      { "tree", request->tree },
		      { "native", asked->native },
		      { "locals", asked->locals },
		      { "why", asked->why } };
	struct buf path = { 0 };
	int status;

	buf_text(&path, "/api/backtrace");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (flags[i].set)
			http_client_add(&path, flags[i].key, "1");
	status = http_client_print("backtrace", request->target, buf_get(&path), NULL, NULL, false);
	buf_fini(&path);
	return status;
}

int cmd_backtrace(int argc, char **argv)
{
	struct request request = { 0 };
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];
	pid_t pid;
	int status = backtrace_parse(&request, argc, argv);
	int rc;

	if (status >= 0)
		return status;
	if (http_client_is(request.target))
		return answer_remote(&request);
	rc = find_target(&request, &pid, path, sizeof(path), &err);
	if (!rc && !pid)
		rc = answer_dead(&request, path, &err);
	else if (!rc)
		rc = request.tree ? answer_tree(&request, pid, &err)
				  : answer_one(&request, pid, &err);
	return rc ? cmds_fail("backtrace", &err) : cmds_finish("backtrace");
}
