#include "collect/run/autopsy_reason.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/backtrace/own_code.h"
#include "collect/backtrace/stacks.h"
#include "collect/host/proc.h"
#include "collect/native/process_memory.h"
#include "collect/run/autopsy_links.h"
#include "collect/wait/wait_kind.h"

#define WITHIN_NS 1000000000ull
#define THREADS_BYTES_MOST 16384
#define FRAMES_SHOWN 6
#define COLLECTIVE_FRAMES 8

struct autopsy_process {
	pid_t pid;
	int rank; /* -1: none */
	struct stacks stacks;
	const struct stacks_thread *main;
};

struct autopsy_all {
	struct autopsy_process one[AUTOPSY_LINKS_MOST];
	size_t count;
};

/* ---- frames ---------------------------------------------------------------------------------- */

static const char *base_name(const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	return slash ? slash + 1 : file ? file : "?";
}

/* Of a native frame: its module, or its source if that is known, is not one of the system. glibc
   names its sources from its own folder. */
static bool is_own_native(const struct stacks_frame *frame)
{
	static const char *const system[] = { "/usr/", "/build/", "./", "../sysdeps/", "../csu/" };

	if (!strcmp(frame->func, "_start"))
		return false;
	if (frame->line <= 0)
		return own_code_is_native(frame->file, strlen(frame->file), "", 0, "");
	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		if (!strncmp(frame->file, system[i], strlen(system[i])))
			return false;
	return true;
}

/* The innermost frame of the program's own code. */
static const struct stacks_frame *own_frame(const struct stacks_thread *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct stacks_frame *frame = &thread->frames[i];

		if (!frame->file || !frame->func)
			continue;
		if (frame->native ? is_own_native(frame)
				  : own_code_is(frame->file, strlen(frame->file), ""))
			return frame;
	}
	return NULL;
}

static bool autopsy_add_place(struct buf *out, const char *between,
			      const struct stacks_thread *thread)
{
	const struct stacks_frame *frame = own_frame(thread);

	if (!frame)
		return false;
	buf_print(out, "%s%s (%s", between, frame->func, base_name(frame->file));
	if (frame->line > 0)
		buf_print(out, ":%d", frame->line);
	buf_char(out, ')');
	return true;
}

static void keep_place(struct autopsy_reason *out, const struct stacks_thread *thread)
{
	const struct stacks_frame *frame = own_frame(thread);

	if (!frame)
		return;
	if (frame->line > 0)
		snprintf(out->place, sizeof(out->place), "%s (%s:%d)", frame->func, frame->file,
			 frame->line);
	else
		snprintf(out->place, sizeof(out->place), "%s (%s)", frame->func, frame->file);
}

/* "MainThread waits for …, in main (app.py:3)". */
static void autopsy_add_thread(struct buf *out, const struct stacks_thread *thread)
{
	buf_print(out, "%s %.*s", thread->name, (int)thread->reason_bytes,
		  thread->why ? thread->why : "");
	autopsy_add_place(out, ", in ", thread);
}

static bool has_frame(const struct stacks_thread *thread, const char *func, const char *file)
{
	for (size_t i = 0; i < thread->frame_count; i++)
		if (thread->frames[i].func && thread->frames[i].file &&
		    strstr(thread->frames[i].func, func) && strstr(thread->frames[i].file, file))
			return true;
	return false;
}

/* ---- reasons --------------------------------------------------------------------------------- */

static const struct stacks_thread *next_of(const struct stacks *stacks,
					   const struct stacks_thread *thread)
{
	for (size_t i = 0; thread->waits_for && i < stacks->thread_count; i++)
		if (stacks->threads[i].tid == thread->waits_for)
			return &stacks->threads[i];
	return NULL;
}

/* Whether the waits lead back to the thread, as they do not from one that joins another. */
static bool is_in_cycle(const struct stacks *stacks, const struct stacks_thread *thread)
{
	const struct stacks_thread *at = thread;

	for (size_t i = 0; at && i < stacks->thread_count; i++) {
		at = next_of(stacks, at);
		if (at == thread)
			return true;
	}
	return false;
}

/* "; first is in first (dead.py:6)", for the threads that wait for each other. */
static void add_places(struct buf *out, const struct stacks *stacks, struct autopsy_reason *reason)
{
	for (size_t i = 0; i < stacks->thread_count; i++) {
		const struct stacks_thread *thread = &stacks->threads[i];

		if (!is_in_cycle(stacks, thread) || !own_frame(thread))
			continue;
		buf_print(out, "; %s", thread->name);
		autopsy_add_place(out, " is in ", thread);
		if (!reason->place[0])
			keep_place(reason, thread);
	}
}

static bool find_locked(const struct autopsy_all *all, struct buf *out,
			struct autopsy_reason *reason)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->one[i].stacks.deadlock[0]) {
			buf_text(out, all->one[i].stacks.deadlock);
			add_places(out, &all->one[i].stacks, reason);
			return true;
		}
	return false;
}

/* The name of the collective operation that a thread is in, or NULL. */
static const char *collective_of(const struct stacks_thread *thread)
{
	static struct wait_answer answer;
	struct wait_frame frames[COLLECTIVE_FRAMES];
	size_t count = 0;

	for (size_t i = 0; i < thread->frame_count && count < COLLECTIVE_FRAMES; i++)
		if (thread->frames[i].func && thread->frames[i].file)
			frames[count++] = (struct wait_frame){ thread->frames[i].func,
							       thread->frames[i].file };
	answer = (struct wait_answer){ WAIT_LOCK, "" };
	wait_kind_refine(frames, count, &answer);
	return answer.kind == WAIT_COLLECTIVE ? answer.target : NULL;
}

/* A rank that does not take part in the collective operation that another one waits in. */
static bool find_absent(const struct autopsy_all *all, struct buf *out,
			struct autopsy_reason *reason)
{
	const struct autopsy_process *waits = NULL, *absent = NULL;

	for (size_t i = 0; i < all->count; i++) {
		const struct autopsy_process *one = &all->one[i];

		if (one->rank < 0 || !one->main || !one->main->frame_count)
			continue;
		if (collective_of(one->main))
			waits = waits ? waits : one;
		else
			absent = absent ? absent : one;
	}
	if (!waits || !absent)
		return false;
	buf_print(out, "rank %d is absent from %s, in which rank %d waits", absent->rank,
		  collective_of(waits->main), waits->rank);
	autopsy_add_place(out, " in ", waits->main);
	buf_print(out, "; rank %d: ", absent->rank);
	autopsy_add_thread(out, absent->main);
	keep_place(reason, absent->main);
	return true;
}

static const struct autopsy_process *stuck_waker(const struct autopsy_all *all,
						 const struct autopsy_link *links,
						 const struct autopsy_link *one)
{
	for (size_t k = 0; k < all->count; k++)
		if (one->wakers[k] && links[k].stuck)
			return &all->one[k];
	return NULL;
}

static void autopsy_add_link(const struct autopsy_all *all, const struct autopsy_link *links,
			     size_t i, struct buf *out)
{
	static const char *const words[] = { "", "waits to read from", "waits to write to",
					     "waits for the end of" };
	const struct autopsy_process *other = stuck_waker(all, links, &links[i]);

	buf_print(out, "%sprocess %d %s %s", out->used ? "; " : "deadlock: ", (int)links[i].pid,
		  words[links[i].kind], other == &all->one[i] ? "itself" : "process ");
	if (other && other != &all->one[i])
		buf_print(out, "%d", (int)other->pid);
	if (all->one[i].main)
		autopsy_add_place(out, " in ", all->one[i].main);
}

/* Processes that wait for each other through pipes, or for a child. */
static bool find_linked(const struct autopsy_all *all, struct buf *out,
			struct autopsy_reason *reason)
{
	struct autopsy_link links[AUTOPSY_LINKS_MOST];

	memset(links, 0, sizeof(links));
	for (size_t i = 0; i < all->count; i++) {
		links[i].pid = all->one[i].pid;
		links[i].single = all->one[i].stacks.thread_count == 1;
	}
	if (!autopsy_links_find(links, all->count))
		return false;
	for (size_t i = 0; i < all->count; i++) {
		if (!links[i].stuck)
			continue;
		autopsy_add_link(all, links, i, out);
		if (!reason->place[0] && all->one[i].main)
			keep_place(reason, all->one[i].main);
	}
	return true;
}

/* A thread that runs an event loop and is in a function of the program, not in the loop's wait. */
static bool find_blocked_loop(const struct autopsy_all *all, struct buf *out,
			      struct autopsy_reason *reason)
{
	for (size_t i = 0; i < all->count; i++)
		for (size_t k = 0; k < all->one[i].stacks.thread_count; k++) {
			const struct stacks_thread *thread = &all->one[i].stacks.threads[k];

			if (!thread->frame_count || !thread->why ||
			    !has_frame(thread, "_run_once", "/asyncio/base_events.py") ||
			    strstr(thread->frames[0].file ? thread->frames[0].file : "",
				   "/selectors.py"))
				continue;
			buf_print(out, "the event loop is blocked: ");
			autopsy_add_thread(out, thread);
			keep_place(reason, thread);
			return true;
		}
	return false;
}

/* The main thread of the program; of a child that it waits for, if that has one. */
static void find_main(const struct autopsy_all *all, struct buf *out, struct autopsy_reason *reason)
{
	const struct stacks_thread *main = NULL;

	for (size_t i = 0; i < all->count; i++) {
		const struct stacks_thread *one = all->one[i].main;

		if (!one || !one->why)
			continue;
		if (!main || strstr(main->why, "child process"))
			main = one;
	}
	if (!main)
		return;
	autopsy_add_thread(out, main);
	keep_place(reason, main);
}

/* ---- all threads ----------------------------------------------------------------------------- */

static void list_thread(struct buf *out, const struct stacks_thread *thread)
{
	buf_print(out, "%d/%d \"%s\" %s\n", (int)thread->pid, (int)thread->tid, thread->name,
		  thread->why ? thread->why : "");
	for (size_t i = 0; i < thread->frame_count && i < FRAMES_SHOWN; i++)
		buf_print(out, "    %s (%s:%d)\n",
			  thread->frames[i].func ? thread->frames[i].func : "?",
			  thread->frames[i].file ? thread->frames[i].file : "?",
			  thread->frames[i].line);
}

static void list_threads(const struct autopsy_all *all, struct buf *out)
{
	for (size_t i = 0; i < all->count; i++)
		for (size_t k = 0; k < all->one[i].stacks.thread_count; k++)
			if (out->used < THREADS_BYTES_MOST)
				list_thread(out, &all->one[i].stacks.threads[k]);
}

/* ---- taking them ----------------------------------------------------------------------------- */

static int autopsy_rank_of(pid_t pid)
{
	char path[48], text[65536];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	bytes = proc_read(path, text, sizeof(text));
	for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(text + at) + 1)
		if (!strncmp(text + at, "RANK=", 5))
			return (int)strtol(text + at + 5, NULL, 10);
	return -1;
}

/* A program without Python is stopped for a moment, for its native frames: it does nothing. */
static bool take_stacks(pid_t pid, struct stacks *out)
{
	struct stacks_options options = { .why = true };

	if (stacks_take(pid, &options, out, NULL))
		return false;
	if (out->python_version)
		return true;
	stacks_free(out);
	options.native = true;
	return !stacks_take(pid, &options, out, NULL);
}

static void take_all(const struct family *family, struct autopsy_all *all)
{
	for (size_t i = 0; i < family->count && all->count < AUTOPSY_LINKS_MOST; i++) {
		struct autopsy_process *one = &all->one[all->count];

		if (family->members[i].gone || !take_stacks(family->members[i].pid, &one->stacks))
			continue;
		one->pid = family->members[i].pid;
		one->rank = autopsy_rank_of(one->pid);
		one->main = NULL;
		for (size_t k = 0; k < one->stacks.thread_count && !one->main; k++)
			if (one->stacks.threads[k].tid == one->pid)
				one->main = &one->stacks.threads[k];
		all->count++;
	}
}

void autopsy_reason_find(const struct family *family, struct autopsy_reason *out)
{
	struct autopsy_all *all = calloc(1, sizeof(*all));
	struct buf text = { 0 };

	memset(out, 0, sizeof(*out));
	if (!all)
		return;
	process_memory_begin(WITHIN_NS);
	take_all(family, all);
	if (!find_locked(all, &text, out) && !find_absent(all, &text, out) &&
	    !find_linked(all, &text, out) && !find_blocked_loop(all, &text, out))
		find_main(all, &text, out);
	snprintf(out->sentence, sizeof(out->sentence), "%s", buf_get(&text));
	list_threads(all, &out->threads);
	process_memory_set_deadline(0);
	for (size_t i = 0; i < all->count; i++)
		stacks_free(&all->one[i].stacks);
	buf_fini(&text);
	free(all);
}

void autopsy_reason_fini(struct autopsy_reason *reason)
{
	buf_fini(&reason->threads);
}
