#include "views/stacks/backtrace.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "views/term/format.h"
#include "views/query/json.h"

#define FUNC_COLUMNS_MOST 38
#define PIDS_SHOWN 8
#define HELD_NS_MOST 5000000u /* the documented limit */

/* ---- text ------------------------------------------------------------------------------------ */

static const char *state_words(char state)
{
	switch (state) {
	case 'R': return "running";
	case 'S': return "waiting";
	case 'D': return "waiting, uninterruptible";
	case 'T': return "stopped";
	case 't': return "stopped by a debugger";
	case 'Z': return "ended";
	default: return "";
	}
}

static size_t func_columns(const struct stacks_frame *frames, size_t count)
{
	size_t widest = 12;

	for (size_t i = 0; i < count; i++) {
		const char *func = frames[i].func ? frames[i].func : "";
		size_t width = text_width(func, strlen(func));

		if (width > widest)
			widest = width;
	}
	return widest < FUNC_COLUMNS_MOST ? widest : FUNC_COLUMNS_MOST;
}

static void print_locals(const struct stacks_frame *frame, int indent, FILE *out)
{
	struct buf line = { 0 };

	for (size_t i = 0; i < frame->local_count; i++) {
		buf_reset(&line);
		buf_print(&line, "%*s", indent + 4, "");
		text_visible(&line, frame->locals[i].name, strlen(frame->locals[i].name));
		buf_text(&line, " = ");
		text_visible(&line, frame->locals[i].value, strlen(frame->locals[i].value));
		fprintf(out, "%s\n", buf_get(&line));
	}
	buf_fini(&line);
}

static void print_frame(const struct stacks_frame *frame, size_t columns, int indent,
			const struct text_style *style, FILE *out)
{
	struct buf line = { 0 }, place = { 0 };
	size_t used = columns + (size_t)indent + 4;
	size_t left = (size_t)style->columns > used ? (size_t)style->columns - used : 20;

	buf_print(&line, "%*s", indent, "");
	text_fit(&line, frame->func ? frame->func : "?", columns, -1, style);
	buf_text(&line, "  ");
	if (frame->file)
		buf_text(&place, frame->file);
	if (frame->line)
		buf_print(&place, ":%d", frame->line);
	if (frame->native)
		buf_text(&line, text_paint(style, TEXT_DIM));
	if (style->terminal)
		text_fit(&line, buf_get(&place), left, 0, style);
	else
		text_visible(&line, buf_get(&place), place.used);
	if (frame->native)
		buf_text(&line, text_plain(style));
	fprintf(out, "%s\n", buf_get(&line));
	print_locals(frame, indent, out);
	buf_fini(&line);
	buf_fini(&place);
}

void backtrace_print_frames(const struct stacks_frame *frames, size_t count, int indent,
			    const struct text_style *style, FILE *out)
{
	size_t columns = func_columns(frames, count);

	for (size_t i = 0; i < count; i++)
		print_frame(&frames[i], columns, indent, style, out);
}

/* For a running program, without --native. */
static const char *native_hint(const struct stacks *stacks)
{
	return stacks->state && !stacks->held_ns && !stacks->without_native[0]
		       ? "; --native shows native frames"
		       : "";
}

/* hint: printed for the first thread without frames, then cleared; NULL: the program has no Python,
   which was printed above. */
static void print_frames(const struct stacks_thread *thread, const char **hint,
			 const struct text_style *style, FILE *out)
{
	backtrace_print_frames(thread->frames, thread->frame_count, 2, style, out);
	if (thread->missed)
		fputs("  (its stack changed during every attempt to read it)\n", out);
	else if (!thread->frame_count && thread->python)
		fputs("  (runs no Python function)\n", out);
	else if (!thread->frame_count && *hint) {
		fprintf(out, "  (not a Python thread%s)\n", *hint);
		*hint = "";
	}
}

static void print_thread(const struct stacks_thread *thread, const char **hint,
			 const struct text_style *style, FILE *out)
{
	struct buf name = { 0 };

	text_visible(&name, thread->name, strlen(thread->name));
	fprintf(out, "%sThread %d \"%s\"%s", text_paint(style, TEXT_BOLD), (int)thread->tid,
		buf_get(&name), text_plain(style));
	if (state_words(thread->state)[0])
		fprintf(out, ", %s", state_words(thread->state));
	if (!thread->taken_ns)
		fprintf(out, ", %s before the end",
			format_duration((double)thread->age_ns, style->utf8).text);
	fprintf(out, "%s\n", thread->gil ? ", holds the GIL" : "");
	if (thread->why)
		text_paragraph(out, thread->why, 2, "  ", false, style);
	print_frames(thread, hint, style, out);
	backtrace_print_tasks_of(thread, style, out);
	buf_fini(&name);
}

static void print_deadlock(const struct stacks *stacks, FILE *out)
{
	if (stacks->deadlock[0])
		text_line(out, "%s", stacks->deadlock);
}

void backtrace_print(const struct stacks *stacks, const struct text_style *style, FILE *out)
{
	const char *hint = stacks->without_python[0] ? NULL : native_hint(stacks);
	struct buf program = { 0 };

	text_visible(&program, stacks->program, strlen(stacks->program));
	fprintf(out, "%s, pid %d", buf_get(&program), (int)stacks->pid);
	if (stacks->python_version)
		fprintf(out, ", Python %u.%u.%u", stacks->python_version >> 24,
			stacks->python_version >> 16 & 0xff, stacks->python_version >> 8 & 0xff);
	fprintf(out, ", %zu thread%s%s\n", stacks->thread_count,
		stacks->thread_count == 1 ? "" : "s",
		stacks->state ? "" : "; the recording has ended, these are the last stacks taken");
	if (stacks->without_python[0])
		text_line(out, "no Python frames: %s%s", stacks->without_python,
			  native_hint(stacks));
	if (stacks->without_native[0])
		text_line(out, "%s", stacks->without_native);
	if (stacks->unfinished[0])
		text_line(out, "%s", stacks->unfinished);
	print_deadlock(stacks, out);
	if (stacks->held_ns > HELD_NS_MOST)
		fprintf(out,
			"a thread was stopped for %s, longer than the limit of 5 ms: the machine "
			"is busy\n",
			format_duration((double)stacks->held_ns, style->utf8).text);
	if (stacks->tasks_cut)
		fputs("not all asyncio tasks are shown\n", out);
	for (size_t i = 0; i < stacks->thread_count; i++) {
		fputc('\n', out);
		print_thread(&stacks->threads[i], &hint, style, out);
	}
	buf_fini(&program);
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct member {
	const struct stacks_thread *thread;
	size_t group_count; /* of its group */
	size_t order; /* of its group's first member */
};

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static bool same_stack(const struct stacks_thread *a, const struct stacks_thread *b)
{
	if (a->frame_count != b->frame_count || a->python != b->python || a->missed != b->missed)
		return false;
	for (size_t i = 0; i < a->frame_count; i++)
		if (a->frames[i].line != b->frames[i].line ||
		    !same_text(a->frames[i].func, b->frames[i].func) ||
		    !same_text(a->frames[i].file, b->frames[i].file))
			return false;
	/* Threads without Python frames are equal only within a process. */
	return a->frame_count || a->python || a->pid == b->pid;
}

static const char *past_number(const char *at, const char *end)
{
	if (at < end && isdigit((unsigned char)*at))
		while (at < end && (*at == 'x' || isxdigit((unsigned char)*at)))
			at++;
	return at;
}

/* Ignores numbers: descriptors, ports, addresses and threads differ between processes. */
static bool same_kind_of_reason(const struct stacks_thread *a, const struct stacks_thread *b)
{
	const char *one = a->why ? a->why : "", *one_end = one + a->reason_bytes;
	const char *other = b->why ? b->why : "", *other_end = other + b->reason_bytes;

	if (a->pid == b->pid && a->waits_for != b->waits_for)
		return false;
	for (;;) {
		one = past_number(one, one_end);
		other = past_number(other, other_end);
		if (one == one_end || other == other_end)
			return one == one_end && other == other_end;
		if (*one++ != *other++)
			return false;
	}
}

static bool same_reason(const struct stacks_thread *a, const struct stacks_thread *b)
{
	return a->reason_bytes == b->reason_bytes &&
	       (!a->reason_bytes || !memcmp(a->why, b->why, a->reason_bytes));
}

static int compare_members(const void *a, const void *b)
{
	const struct member *one = a, *other = b;

	if (one->group_count != other->group_count)
		return one->group_count < other->group_count ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
}

static size_t backtrace_gather(const struct stacks *stacks, size_t count, struct member *members)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < stacks[i].thread_count; k++)
			members[used++] = (struct member){ &stacks[i].threads[k], 0, SIZE_MAX };
	for (size_t i = 0; i < used; i++) {
		if (members[i].order != SIZE_MAX)
			continue;
		for (size_t k = i; k < used; k++)
			if (members[k].order == SIZE_MAX &&
			    same_stack(members[i].thread, members[k].thread) &&
			    same_kind_of_reason(members[i].thread, members[k].thread)) {
				members[k].order = i;
				members[i].group_count++;
			}
	}
	for (size_t i = 0; i < used; i++)
		members[i].group_count = members[members[i].order].group_count;
	qsort(members, used, sizeof(*members), compare_members);
	return used;
}

/* The time and the zone differ between members. */
static void print_reason(const struct member *members, size_t count, const struct text_style *style,
			 FILE *out)
{
	const struct stacks_thread *first = members[0].thread;
	struct buf reason = { 0 };
	bool same = true;

	if (!first->why)
		return;
	for (size_t i = 1; same && i < count; i++)
		same = same_reason(first, members[i].thread);
	buf_text(&reason, same ? "" : "the first ");
	buf_text(&reason, first->why);
	if (same && count > 1 && reason.used > first->reason_bytes) {
		buf_reset(&reason);
		buf_print(&reason, "%.*s; the first %s", (int)first->reason_bytes, first->why,
			  first->why + first->reason_bytes + strlen(", "));
	}
	text_paragraph(out, buf_get(&reason), 2, "  ", false, style);
	buf_fini(&reason);
}

static void backtrace_print_group(const struct member *members, size_t count, const char **hint,
				  const struct text_style *style, FILE *out)
{
	fprintf(out, "\n%s%zu thread%s%s:", text_paint(style, TEXT_BOLD), count,
		count == 1 ? "" : "s", text_plain(style));
	for (size_t i = 0; i < count && i < PIDS_SHOWN; i++) {
		const struct stacks_thread *thread = members[i].thread;
		struct buf name = { 0 };

		text_visible(&name, thread->name, strlen(thread->name));
		fprintf(out, "%s %d/%d \"%s\"%s", i ? "," : "", (int)thread->pid, (int)thread->tid,
			buf_get(&name), thread->gil ? " (GIL)" : "");
		buf_fini(&name);
	}
	fprintf(out, "%s\n", count > PIDS_SHOWN ? ", …" : "");
	print_reason(members, count, style, out);
	print_frames(members[0].thread, hint, style, out);
}

void backtrace_print_groups(const struct stacks *stacks, size_t count,
			    const struct text_style *style, FILE *out)
{
	size_t all = 0, groups = 0, used;
	const char *hint = count ? native_hint(&stacks[0]) : "";
	struct member *members;
	bool asked_why;

	for (size_t i = 0; i < count; i++)
		all += stacks[i].thread_count;
	members = calloc(all + 1, sizeof(*members));
	if (!members)
		return;
	used = backtrace_gather(stacks, count, members);
	asked_why = used && members[0].thread->why;
	for (size_t i = 0; i < used; i += members[i].group_count)
		groups++;
	fprintf(out, "%zu process%s, %zu thread%s, %zu different stack%s; smallest group first\n",
		count, count == 1 ? "" : "es", all, all == 1 ? "" : "s", groups,
		groups == 1 ? ""
		: asked_why ? "s and reasons"
			    : "s");
	for (size_t i = 0; i < count; i++)
		print_deadlock(&stacks[i], out);
	for (size_t i = 0; i < used; i += members[i].group_count)
		backtrace_print_group(&members[i], members[i].group_count, &hint, style, out);
	backtrace_print_tasks(stacks, count, style, out);
	free(members);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void backtrace_json_member(struct buf *out, const char *key, const char *text)
{
	buf_print(out, "\"%s\": ", key);
	if (text)
		json_text(out, text, strlen(text));
	else
		buf_text(out, "null");
}

static void add_locals(struct buf *out, const struct stacks_frame *frame)
{
	buf_text(out, ", \"locals\": {");
	for (size_t i = 0; i < frame->local_count; i++) {
		buf_text(out, i ? ", " : "");
		json_text(out, frame->locals[i].name, strlen(frame->locals[i].name));
		buf_text(out, ": ");
		json_text(out, frame->locals[i].value, strlen(frame->locals[i].value));
	}
	buf_char(out, '}');
}

static void backtrace_add_frame(struct buf *out, const struct stacks_frame *frame, size_t depth)
{
	buf_text(out, depth ? ",\n    {" : "\n    {");
	backtrace_json_member(out, "func", frame->func);
	buf_text(out, ", ");
	backtrace_json_member(out, "file", frame->file);
	if (frame->line)
		buf_print(out, ", \"lineno\": %d", frame->line);
	else
		buf_text(out, ", \"lineno\": null");
	buf_print(out, ", \"depth\": %zu, \"frame_type\": \"%s\"", depth,
		  frame->native ? "Native" : "Python");
	if (frame->locals)
		add_locals(out, frame);
	buf_char(out, '}');
}

void backtrace_json_frames(struct buf *out, const struct stacks_frame *frames, size_t count)
{
	buf_char(out, '[');
	for (size_t i = 0; i < count; i++)
		backtrace_add_frame(out, &frames[i], i);
	buf_char(out, ']');
}

static void backtrace_add_thread(struct buf *out, const struct stacks_thread *thread)
{
	char state[2] = { thread->state, '\0' };
	uint64_t age_ns = thread->taken_ns ? clock_monotonic_ns() - thread->taken_ns
					   : thread->age_ns;

	buf_print(out, "{\"pid\": %d, \"tid\": %d, ", (int)thread->pid, (int)thread->tid);
	backtrace_json_member(out, "thread", thread->name);
	buf_text(out, ", ");
	backtrace_json_member(out, "state", thread->state ? state : NULL);
	buf_print(out, ", \"age_ns\": %" PRIu64 ", \"held_ns\": %" PRIu64, age_ns, thread->held_ns);
	buf_print(out, ", \"python\": %s, \"gil\": %s, \"missed\": %s",
		  thread->python ? "true" : "false", thread->gil ? "true" : "false",
		  thread->missed ? "true" : "false");
	if (thread->why) {
		buf_text(out, ", ");
		backtrace_json_member(out, "why", thread->why);
		if (thread->waits_for)
			buf_print(out, ", \"waits_for\": %d", (int)thread->waits_for);
		else
			buf_text(out, ", \"waits_for\": null");
	}
	buf_text(out, ", \"frames\": ");
	backtrace_json_frames(out, thread->frames, thread->frame_count);
	backtrace_json_tasks(out, thread);
	buf_char(out, '}');
}

void backtrace_print_json(const struct stacks *stacks, size_t count, FILE *out)
{
	struct buf text = { 0 };
	bool first = true;

	buf_char(&text, '[');
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < stacks[i].thread_count; k++) {
			buf_text(&text, first ? "" : ",\n ");
			backtrace_add_thread(&text, &stacks[i].threads[k]);
			first = false;
		}
	buf_text(&text, "]\n");
	fputs(buf_get(&text), out);
	buf_fini(&text);
}
