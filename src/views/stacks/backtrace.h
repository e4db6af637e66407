/* Stacks of threads as text and as JSON. */
#ifndef KYMO_VIEWS_STACKS_BACKTRACE_H
#define KYMO_VIEWS_STACKS_BACKTRACE_H

#include <stddef.h>
#include <stdio.h>

#include "collect/backtrace/stacks.h"
#include "views/term/text.h"

/* Every thread of a process, its innermost frame first. */
void backtrace_print(const struct stacks *stacks, const struct text_style *style, FILE *out);
/* Many processes: threads with equal stacks and reasons for waiting are grouped, the smallest group
   first. */
void backtrace_print_groups(const struct stacks *stacks, size_t count,
			    const struct text_style *style, FILE *out);
/* A JSON array of all threads, the same for one process and for many. */
void backtrace_print_json(const struct stacks *stacks, size_t count, FILE *out);

/* Shared by backtrace.c and backtrace_tasks.c. One frame per line, indented. */
void backtrace_print_frames(const struct stacks_frame *frames, size_t count, int indent,
			    const struct text_style *style, FILE *out);
struct buf;
/* A JSON array of frames. */
void backtrace_json_frames(struct buf *out, const struct stacks_frame *frames, size_t count);
/* A member: "key": "text", or null. */
void backtrace_json_member(struct buf *out, const char *key, const char *text);
/* backtrace_tasks.c: tasks with equal stacks are grouped, the smallest group first. */
void backtrace_print_tasks(const struct stacks *stacks, size_t count,
			   const struct text_style *style, FILE *out);
void backtrace_print_tasks_of(const struct stacks_thread *thread, const struct text_style *style,
			      FILE *out);
void backtrace_json_tasks(struct buf *out, const struct stacks_thread *thread);

#endif
