#include "collect/run/autopsy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

#include "base/buf.h"
#include "collect/backtrace/own_code.h"
#include "collect/backtrace/stacks.h"
#include "collect/native/process_memory.h"

#define IDLE_NS 2000000000ull
#define AGAIN_NS 10000000000ull
#define IDLE_SHARE 0.02 /* of a core */
#define WITHIN_NS 1000000000ull
#define PROCESSES_MOST 8

/* ---- whether it is idle ---------------------------------------------------------------------- */

static uint64_t family_ticks(const struct family *family)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < family->count; i++)
		ticks += family->members[i].cpu_ticks;
	return ticks;
}

static bool has_rested(const struct autopsy *autopsy, uint64_t ticks, uint64_t now_ns)
{
	double past_s = (double)(now_ns - autopsy->looked_ns) / 1e9;
	double used_s = (double)(ticks > autopsy->cpu_ticks ? ticks - autopsy->cpu_ticks : 0) /
			(double)sysconf(_SC_CLK_TCK);

	return ticks >= autopsy->cpu_ticks && used_s <= IDLE_SHARE * past_s + 0.011;
}

/* ---- the reason ------------------------------------------------------------------------------ */

static const char *base_name(const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	return slash ? slash + 1 : file ? file : "?";
}

/* The innermost frame of the program's own code. */
static const struct stacks_frame *own_frame(const struct stacks_thread *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct stacks_frame *frame = &thread->frames[i];

		if (!frame->native && frame->file &&
		    own_code_is(frame->file, strlen(frame->file), ""))
			return frame;
	}
	return NULL;
}

static void autopsy_add_place(struct buf *out, const char *between,
			      const struct stacks_thread *thread)
{
	const struct stacks_frame *frame = own_frame(thread);

	if (frame && frame->func)
		buf_print(out, "%s%s (%s:%d)", between, frame->func, base_name(frame->file),
			  frame->line);
}

/* "; first is in first (dead.py:6)", for the threads that wait for another one. */
static void add_places(struct buf *out, const struct stacks *stacks)
{
	for (size_t i = 0; i < stacks->thread_count; i++) {
		const struct stacks_thread *thread = &stacks->threads[i];

		if (!thread->waits_for || !own_frame(thread))
			continue;
		buf_print(out, "; %s", thread->name);
		autopsy_add_place(out, " is in ", thread);
	}
}

/* A deadlock, or what the main thread waits for. */
static void add_reason(struct buf *out, const struct stacks *stacks)
{
	const struct stacks_thread *main = NULL;

	for (size_t i = 0; i < stacks->thread_count && !main; i++)
		if (stacks->threads[i].tid == stacks->pid)
			main = &stacks->threads[i];
	if (stacks->deadlock[0]) {
		buf_text(out, stacks->deadlock);
		add_places(out, stacks);
	} else if (main && main->why) {
		buf_print(out, "%s %.*s", main->name, (int)main->reason_bytes, main->why);
		autopsy_add_place(out, ", in ", main);
	}
}

/* Processes with a deadlock come first; one reason is enough. */
static void find_reason(const struct family *family, char *out, size_t out_bytes)
{
	struct stacks_options options = { .why = true };
	struct stacks stacks;
	struct buf text = { 0 };

	out[0] = '\0';
	process_memory_begin(WITHIN_NS);
	for (size_t i = 0; i < family->count && i < PROCESSES_MOST; i++) {
		if (family->members[i].gone ||
		    stacks_take(family->members[i].pid, &options, &stacks, NULL))
			continue;
		buf_reset(&text);
		add_reason(&text, &stacks);
		if (text.used && (!out[0] || stacks.deadlock[0]))
			snprintf(out, out_bytes, "%s", buf_get(&text));
		stacks_free(&stacks);
		if (!strncmp(out, "deadlock", 8))
			break;
	}
	buf_fini(&text);
}

static void autopsy_take(struct autopsy *autopsy, const struct family *family, uint64_t now_ns)
{
	char reason[sizeof(autopsy->reason)];

	find_reason(family, reason, sizeof(reason));
	if (reason[0] && (!autopsy->taken_ns || strcmp(reason, autopsy->reason) != 0)) {
		kymo_mark(AUTOPSY_MARK, reason);
		strcpy(autopsy->reason, reason);
	}
	autopsy->taken_ns = now_ns;
}

void autopsy_look(struct autopsy *autopsy, const struct family *family, uint64_t now_ns)
{
	uint64_t ticks = family_ticks(family);
	bool rested = autopsy->looked_ns && has_rested(autopsy, ticks, now_ns);

	if (!rested) {
		if (autopsy->taken_ns)
			kymo_mark(AUTOPSY_END, "");
		autopsy->idle_since_ns = autopsy->taken_ns = 0;
	} else if (!autopsy->idle_since_ns) {
		autopsy->idle_since_ns = autopsy->looked_ns;
	}
	autopsy->cpu_ticks = ticks;
	autopsy->looked_ns = now_ns;
	if (autopsy->idle_since_ns && now_ns - autopsy->idle_since_ns >= IDLE_NS &&
	    (!autopsy->taken_ns || now_ns - autopsy->taken_ns >= AGAIN_NS))
		autopsy_take(autopsy, family, now_ns);
}
