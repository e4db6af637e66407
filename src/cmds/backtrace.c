/* kymo backtrace: the current stack of every thread of a program, without stopping it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/cmds.h"
#include "cmds/http_client.h"
#include "collect/host/family.h"
#include "collect/host/proc.h"
#include "collect/backtrace/stacks.h"
#include "collect/native/process_memory.h"
#include "store/alive.h"
#include "store/store.h"
#include "views/hang/hang.h"
#include "views/stacks/backtrace.h"
#include "views/term/text.h"
#include "views/stacks/last_stacks.h"

#define RANKS_MOST 256 /* whose stacks are read at once */

struct request {
	const char *target;
	bool json, tree;
	struct stacks_options stacks;
	/* the program of an ended recording of kymo attach, if it is still running; else 0 */
	pid_t running_pid;
	/* the ranks of a job that run here; their number may be larger than what is listed */
	pid_t rank_pids[RANKS_MOST];
	size_t rank_count;
	int32_t ranks; /* that the recording expects; 0: not known */
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
			return cmds_wrong("backtrace", "unknown format %s; use text or json",
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
		return cmds_wrong("backtrace", "expected one TARGET, got %zu", args.word_count);
	request->target = args.word_count ? args.words[0] : NULL;
	return -1;
}

/* ---- the target ------------------------------------------------------------------------------ */

static bool target_runs(const struct kymo_run_file *run)
{
	return run->target_pid && alive_same_boot(run->boot_id) &&
	       proc_alive(run->target_pid, run->target_starttime);
}

/* The ranks of a job, each of which has a recording of its own. */
static void note_ranks(struct request *request, const struct recording *recording)
{
	for (size_t i = 0; i < recording->process_count; i++) {
		const struct store_process *process = &recording->processes[i];

		if (process->ranks > request->ranks)
			request->ranks = process->ranks;
		if (recording->kind == STORE_JOB && process->state == STORE_LIVE &&
		    process->role == KYMO_ROLE_TARGET && request->rank_count < RANKS_MOST &&
		    proc_alive(process->pid, process->control.starttime))
			request->rank_pids[request->rank_count++] = process->pid;
	}
}

/* The pid of the recorded program; *out is 0 if it has ended or is no longer recorded. */
static int pid_of_recording(struct request *request, const char *path, pid_t *out,
			    struct kymo_error *err)
{
	struct recording *recording = NULL;
	int rc;

	if (store_kind_is_sql(store_kind(path, NULL)))
		return 0;
	rc = store_open(path, &recording, err);
	if (rc)
		return rc;
	for (size_t i = 0; !*out && i < recording->process_count; i++)
		if (recording->processes[i].state == STORE_LIVE &&
		    recording->processes[i].role == KYMO_ROLE_TARGET)
			*out = recording->processes[i].pid;
	if (target_runs(&recording->run))
		*(recording->live ? out : &request->running_pid) = recording->run.target_pid;
	note_ranks(request, recording);
	store_close(recording);
	return 0;
}

/* A running process (*out), or the recording of an ended one (*out is 0, and path is set). */
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
	return rc ? rc : pid_of_recording(request, path, out, err);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* On stderr where the output has no place for it. */
static void say_unfinished(const struct stacks *stacks)
{
	if (stacks->unfinished[0])
		text_line(stderr, "kymo backtrace: %s", stacks->unfinished);
}

static int answer_one(const struct request *request, pid_t pid, struct kymo_error *err)
{
	struct text_style style = text_style_of(stdout);
	struct stacks stacks;
	int rc = stacks_take(pid, &request->stacks, &stacks, err);

	if (rc)
		return rc;
	if (request->json) {
		backtrace_print_json(&stacks, 1, stdout);
		say_unfinished(&stacks);
	} else {
		backtrace_print(&stacks, &style, stdout);
	}
	stacks_free(&stacks);
	return 0;
}

/* All stacks of the family that can be read before the deadline. A child that cannot be read is
   reported on stderr. */
static size_t take_family(const struct request *request, const struct family *family,
			  struct stacks *all, struct kymo_error *one)
{
	size_t count = 0, i = 0;

	process_memory_begin(PROCESS_MEMORY_WITHIN_NS);
	for (; i < family->count && !process_memory_late(); i++) {
		if (!stacks_take(family->members[i].pid, &request->stacks, &all[count], one))
			say_unfinished(&all[count++]);
		else if (one->code != ESRCH || !i)
			text_line(stderr, "kymo backtrace: %s", one->text);
	}
	if (i < family->count)
		fprintf(stderr,
			"kymo backtrace: %zu processes are left out: reading the others took "
			"longer than %llu s\n",
			family->count - i, PROCESS_MEMORY_WITHIN_NS / 1000000000);
	process_memory_set_deadline(0);
	return count;
}

static void print_all(const struct request *request, const struct stacks *all, size_t count)
{
	struct text_style style = text_style_of(stdout);

	if (request->json)
		backtrace_print_json(all, count, stdout);
	else
		backtrace_print_groups(all, count, &style, stdout);
}

/* The ranks of a job that run on this host. */
static int answer_ranks(const struct request *request, struct kymo_error *err)
{
	struct stacks *all = calloc(request->rank_count, sizeof(*all));
	struct kymo_error one = { 0 };
	size_t count = 0;

	process_memory_begin(PROCESS_MEMORY_WITHIN_NS);
	for (size_t i = 0; all && i < request->rank_count && !process_memory_late(); i++)
		count += !stacks_take(request->rank_pids[i], &request->stacks, &all[count], &one);
	process_memory_set_deadline(0);
	if (count < request->rank_count)
		fprintf(stderr, "kymo backtrace: %zu of %zu ranks could not be read\n",
			request->rank_count - count, request->rank_count);
	if (count)
		print_all(request, all, count);
	for (size_t i = 0; i < count; i++)
		stacks_free(&all[i]);
	free(all);
	return count ? 0 : error_set(err, one.code ? one.code : ENOMEM, "%s", one.text);
}

/* The process and its descendants. */
static int answer_tree(const struct request *request, pid_t pid, struct kymo_error *err)
{
	struct family family = { 0 };
	struct kymo_error one = { 0 };
	struct proc_stat stat;
	struct stacks *all;
	size_t count = 0;

	if (proc_stat(pid, &stat))
		return error_set(err, ESRCH, "process %d does not exist", (int)pid);
	family_root(&family, pid, stat.starttime, stat.name);
	family_look(&family);
	all = calloc(family.count + 1, sizeof(*all));
	if (all)
		count = take_family(request, &family, all, &one);
	if (all && count)
		print_all(request, all, count);
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

	if (request->running_pid)
		return error_set(err, ESRCH,
				 "the recording %s has ended, but its program is still running; "
				 "use kymo backtrace --%s %d",
				 path, option, (int)request->running_pid);
	return error_set(err, ESRCH,
			 "--%s needs a running program, and the program of %s has ended; omit it "
			 "to see the last sampled stacks",
			 option, path);
}

/* Shows the last sampled stacks. Details that need the process are refused. */
static int answer_dead(const struct request *request, const char *path, struct kymo_error *err)
{
	const struct stacks_options *asked = &request->stacks;
	struct text_style style = text_style_of(stdout);
	struct stacks *stacks;
	size_t count;
	int rc;

	if (asked->native || asked->locals || asked->why)
		return refuse_dead(request, path, err);
	rc = last_stacks_take(path, &stacks, &count, err);
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
	if (request->running_pid)
		fprintf(stderr,
			"kymo backtrace: the program is still running; kymo backtrace %d shows its "
			"current stacks\n",
			(int)request->running_pid);
	last_stacks_free(stacks, count);
	return 0;
}

struct dead {
	const struct request *request;
	const char *path;
};

/* ---- a job that hangs ------------------------------------------------------------------------ */

static bool asks_for_hang(const struct request *request)
{
	const struct stacks_options *asked = &request->stacks;

	return asked->why && !asked->native && !asked->locals && !request->tree;
}

static int print_hang(const struct request *request, struct tables *tables, struct kymo_error *err)
{
	struct text_style style = text_style_of(stdout);
	struct buf json = { 0 };
	struct hang hang;
	int rc = hang_take(tables, &hang, err);

	if (!rc && request->json) {
		hang_json(&hang, &json);
		fwrite(buf_get(&json), 1, json.used, stdout);
	} else if (!rc) {
		hang_print(&hang, &style, stdout);
	}
	buf_fini(&json);
	hang_fini(&hang);
	return rc;
}

static int answer_hang(const struct request *request, const char *path, struct kymo_error *err)
{
	struct tables_options options = { .memory_limit_bytes = tables_own_memory() };
	struct tables *tables = NULL;
	int rc = tables_open(path, &options, &tables, err);

	if (!rc && hang_is_job(tables))
		rc = print_hang(request, tables, err);
	else if (!rc)
		rc = refuse_dead(request, path, err);
	tables_close(tables);
	return rc;
}

static int hang_local(void *context)
{
	const struct dead *dead = context;
	struct kymo_error err = { 0 };

	return answer_hang(dead->request, dead->path, &err) ? cmds_fail("backtrace", &err)
							    : cmds_finish("backtrace");
}

static int dead_local(void *context)
{
	const struct dead *dead = context;
	struct kymo_error err = { 0 };

	return answer_dead(dead->request, dead->path, &err) ? cmds_fail("backtrace", &err)
							    : cmds_finish("backtrace");
}

/* Asks the kymo serve of another machine. */
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
	char path[KYMO_PATH_BYTES] = "";
	pid_t pid;
	int status = backtrace_parse(&request, argc, argv);
	int rc;

	if (status >= 0)
		return status;
	if (http_client_is(request.target))
		return answer_remote(&request);
	rc = find_target(&request, &pid, path, sizeof(path), &err);
	if (!rc && path[0])
		cmds_say_latest(request.target, path);
	if (!rc && path[0] && asks_for_hang(&request) && (request.ranks > 1 || !pid))
		return cmds_guarded("backtrace", hang_local, &(struct dead){ &request, path });
	if (!rc && request.rank_count)
		return answer_ranks(&request, &err) ? cmds_fail("backtrace", &err)
						    : cmds_finish("backtrace");
	if (!rc && !pid)
		return cmds_guarded("backtrace", dead_local, &(struct dead){ &request, path });
	if (!rc)
		rc = request.tree ? answer_tree(&request, pid, &err)
				  : answer_one(&request, pid, &err);
	return rc ? cmds_fail("backtrace", &err) : cmds_finish("backtrace");
}
