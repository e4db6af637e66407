/* asyncio tasks that are not running. There may be thousands, most of them at one place. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "views/stacks/backtrace.h"
#include "views/term/format.h"
#include "views/query/json.h"

#define NAMES_SHOWN 8

struct member {
	const struct stacks_task *task;
	pid_t pid;
	uint64_t hash; /* of its stack */
	size_t order;
	size_t group_count;
};

/* ---- groups ---------------------------------------------------------------------------------- */

static uint64_t backtrace_tasks_hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return (hash ^ 0xff) * 0x100000001b3ull;
}

static uint64_t hash_task(const struct stacks_task *task)
{
	uint64_t hash = backtrace_tasks_hash_text(0xcbf29ce484222325ull, task->waits_for);

	hash = hash * 31 + (task->begun ? 2u : 0u) + (task->missed ? 1u : 0u);
	for (size_t i = 0; i < task->frame_count; i++) {
		hash = backtrace_tasks_hash_text(hash, task->frames[i].func);
		hash = backtrace_tasks_hash_text(hash, task->frames[i].file);
		hash = (hash ^ (uint64_t)(unsigned)task->frames[i].line) * 0x100000001b3ull;
	}
	/* Tasks that wait for different tasks are not grouped. */
	for (size_t i = 0; i < task->awaits_count; i++)
		hash = backtrace_tasks_hash_text(hash, task->awaits[i]);
	return hash;
}

static int by_hash(const void *a, const void *b)
{
	const struct member *one = a, *other = b;

	if (one->hash != other->hash)
		return one->hash < other->hash ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
}

/* The smallest group first, groups of one size in the order of their first members. */
static int by_group(const void *a, const void *b)
{
	const struct member *one = a, *other = b;

	if (one->group_count != other->group_count)
		return one->group_count < other->group_count ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
}

static void form_groups(struct member *members, size_t count)
{
	qsort(members, count, sizeof(*members), by_hash);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && members[end].hash == members[i].hash;)
			end++;
		for (size_t k = i; k < end; k++)
			members[k].group_count = end - i;
		for (size_t k = i + 1; k < end; k++)
			members[k].order = members[i].order; /* they stay together */
	}
	qsort(members, count, sizeof(*members), by_group);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void backtrace_tasks_add_quoted(struct buf *out, const char *name)
{
	buf_char(out, '"');
	text_visible(out, name, strlen(name));
	buf_char(out, '"');
}

static void backtrace_tasks_add_names(struct buf *out, char *const *names, size_t count)
{
	for (size_t i = 0; i < count && i < NAMES_SHOWN; i++) {
		buf_text(out, i ? ", " : "");
		backtrace_tasks_add_quoted(out, names[i]);
	}
	if (count > NAMES_SHOWN)
		buf_print(out, " and %s more", format_count(count - NAMES_SHOWN).text);
}

static void add_what(struct buf *out, const struct stacks_task *task, bool one)
{
	if (task->missed)
		buf_text(out, one ? ", changed during every attempt to read it"
				  : ", changed during every attempt to read them");
	else if (!task->begun)
		buf_text(out, ", not started");
	else if (task->awaits_count) {
		buf_print(out, ", %s for task%s ", one ? "waits" : "wait",
			  task->awaits_count == 1 ? "" : "s");
		backtrace_tasks_add_names(out, task->awaits, task->awaits_count);
	} else if (task->waits_for) {
		buf_print(out, ", %s for a ", one ? "waits" : "wait");
		if (!strcmp(task->waits_for, "_asyncio.Future"))
			buf_text(out, "future");
		else
			text_visible(out, task->waits_for, strlen(task->waits_for));
	} else
		buf_text(out, one ? ", is ready to run" : ", are ready to run");
}

static bool same_names(const struct stacks_task *a, const struct stacks_task *b)
{
	if (a->awaited_by_count != b->awaited_by_count)
		return false;
	for (size_t i = 0; i < a->awaited_by_count; i++)
		if (strcmp(a->awaited_by[i], b->awaited_by[i]) != 0)
			return false;
	return true;
}

static void add_awaited_by(struct buf *out, const struct member *members, size_t count)
{
	const struct stacks_task *first = members[0].task;

	for (size_t i = 1; i < count; i++)
		if (!same_names(first, members[i].task))
			return;
	if (!first->awaited_by_count)
		return;
	buf_text(out, "; awaited by ");
	backtrace_tasks_add_names(out, first->awaited_by, first->awaited_by_count);
}

static void backtrace_tasks_print_group(const struct member *members, size_t count, bool with_pid,
					int indent, const struct text_style *style, FILE *out)
{
	struct buf line = { 0 };

	if (count == 1)
		buf_text(&line, "Task ");
	else
		buf_print(&line, "%s tasks ", format_count(count).text);
	for (size_t i = 0; i < count && i < NAMES_SHOWN; i++) {
		buf_text(&line, i ? ", " : "");
		if (with_pid)
			buf_print(&line, "%d/", (int)members[i].pid);
		backtrace_tasks_add_quoted(&line,
					   members[i].task->name ? members[i].task->name : "?");
	}
	if (count > NAMES_SHOWN)
		buf_text(&line, ", …");
	add_what(&line, members[0].task, count == 1);
	add_awaited_by(&line, members, count);
	fprintf(out, "\n%*s%s%s%s\n", indent, "", text_paint(style, TEXT_BOLD), buf_get(&line),
		text_plain(style));
	backtrace_print_frames(members[0].task->frames, members[0].task->frame_count, indent + 2,
			       style, out);
	buf_fini(&line);
}

static void backtrace_tasks_gather(const struct stacks_thread *thread, struct member *members,
				   size_t *used)
{
	for (size_t i = 0; i < thread->task_count; i++, (*used)++)
		members[*used] = (struct member){ .task = &thread->tasks[i],
						  .pid = thread->pid,
						  .hash = hash_task(&thread->tasks[i]),
						  .order = *used };
}

static void backtrace_tasks_print_all(struct member *members, size_t count, bool with_pid,
				      int indent, const struct text_style *style, FILE *out)
{
	form_groups(members, count);
	for (size_t i = 0; i < count; i += members[i].group_count)
		backtrace_tasks_print_group(&members[i], members[i].group_count, with_pid, indent,
					    style, out);
}

void backtrace_print_tasks_of(const struct stacks_thread *thread, const struct text_style *style,
			      FILE *out)
{
	struct member *members = calloc(thread->task_count + 1, sizeof(*members));
	size_t used = 0;

	if (members) {
		backtrace_tasks_gather(thread, members, &used);
		backtrace_tasks_print_all(members, used, false, 2, style, out);
	}
	free(members);
}

void backtrace_print_tasks(const struct stacks *stacks, size_t count,
			   const struct text_style *style, FILE *out)
{
	size_t all = 0, used = 0;
	struct member *members;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < stacks[i].thread_count; k++)
			all += stacks[i].threads[k].task_count;
	members = calloc(all + 1, sizeof(*members));
	for (size_t i = 0; members && i < count; i++)
		for (size_t k = 0; k < stacks[i].thread_count; k++)
			backtrace_tasks_gather(&stacks[i].threads[k], members, &used);
	if (members)
		backtrace_tasks_print_all(members, used, true, 0, style, out);
	free(members);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_json_names(struct buf *out, const char *key, char *const *names, size_t count)
{
	buf_print(out, ", \"%s\": [", key);
	for (size_t i = 0; i < count; i++) {
		buf_text(out, i ? ", " : "");
		json_text(out, names[i], strlen(names[i]));
	}
	buf_char(out, ']');
}

static const char *backtrace_tasks_state_word(const struct stacks_task *task)
{
	if (task->missed)
		return "missed";
	if (!task->begun)
		return "new";
	return task->waits_for ? "waiting" : "ready";
}

void backtrace_json_tasks(struct buf *out, const struct stacks_thread *thread)
{
	if (!thread->task_count)
		return;
	buf_text(out, ", \"tasks\": [");
	for (size_t i = 0; i < thread->task_count; i++) {
		const struct stacks_task *task = &thread->tasks[i];

		buf_text(out, i ? ",\n   {" : "\n   {");
		backtrace_json_member(out, "task", task->name);
		buf_print(out, ", \"state\": \"%s\", ", backtrace_tasks_state_word(task));
		backtrace_json_member(out, "waits_for", task->waits_for);
		add_json_names(out, "awaits", task->awaits, task->awaits_count);
		add_json_names(out, "awaited_by", task->awaited_by, task->awaited_by_count);
		buf_text(out, ", \"frames\": ");
		backtrace_json_frames(out, task->frames, task->frame_count);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}
