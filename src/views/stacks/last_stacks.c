#include "views/stacks/last_stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "views/stacks/backtrace.h"
#include "views/term/format.h"
#include "views/query/rows.h"
#include "views_sql.h"

#define FRAMES_SHOWN 6u /* in a summary */

/* Rows are sorted by process, thread, and from the innermost frame outwards. */
struct gathered {
	struct stacks *all;
	size_t count;
};

/* A new item, zeroed, at the end of a list; NULL: out of memory. */
static void *last_stacks_add_item(void **list, size_t *count, size_t each)
{
	char *item;

	if (!grow_short(list, *count, each))
		return NULL;
	item = (char *)*list + (*count)++ * each;
	return memset(item, 0, each);
}

static struct stacks *process_of(struct gathered *gathered, const struct rows *rows)
{
	pid_t pid = (pid_t)rows_number(rows, 0, 0);
	struct stacks *last = gathered->count ? &gathered->all[gathered->count - 1] : NULL;

	if (last && last->pid == pid)
		return last;
	last = last_stacks_add_item((void **)&gathered->all, &gathered->count, sizeof(*last));
	if (!last)
		return NULL;
	last->pid = pid;
	rows_copy_text(rows, 7, last->program, sizeof(last->program));
	return last;
}

static struct stacks_thread *last_stacks_thread_of(struct stacks *process, const struct rows *rows)
{
	pid_t tid = (pid_t)rows_number(rows, 1, 0);
	struct stacks_thread *last = process->thread_count
					     ? &process->threads[process->thread_count - 1]
					     : NULL;

	if (last && last->tid == tid)
		return last;
	last = last_stacks_add_item((void **)&process->threads, &process->thread_count,
				    sizeof(*last));
	if (!last)
		return NULL;
	last->pid = process->pid;
	last->tid = tid;
	last->python = true;
	last->age_ns = rows_count(rows, 6);
	rows_copy_text(rows, 2, last->name, sizeof(last->name));
	return last;
}

static int last_stacks_add_frame(const struct rows *rows, void *context)
{
	struct stacks *process = process_of(context, rows);
	struct stacks_thread *thread = process ? last_stacks_thread_of(process, rows) : NULL;
	struct stacks_frame *frame = thread ? last_stacks_add_item((void **)&thread->frames,
								   &thread->frame_count,
								   sizeof(*frame))
					    : NULL;

	if (!frame)
		return -ENOMEM;
	frame->func = rows_take_text(rows, 3);
	frame->file = rows_take_text(rows, 4);
	frame->line = (int)rows_number(rows, 5, 0);
	return 0;
}

int last_stacks_take(const char *path, struct stacks **out, size_t *out_count,
		     struct kymo_error *err)
{
	struct tables_options options = { 0 };
	struct gathered gathered = { 0 };
	struct tables *tables = NULL;
	int rc = tables_open(path, &options, &tables, err);

	if (!rc)
		rc = rows_each(tables, sql_last_stacks, last_stacks_add_frame, &gathered, err);
	tables_close(tables);
	if (!rc && !gathered.count)
		rc = error_set(err, ENODATA, "the recording %s has ended and has no Python stacks",
			       path);
	else if (rc == -ENOMEM)
		error_set(err, ENOMEM, "out of memory for the stacks of %s", path);
	if (rc)
		last_stacks_free(gathered.all, gathered.count);
	*out = rc ? NULL : gathered.all;
	*out_count = rc ? 0 : gathered.count;
	return rc;
}

void last_stacks_free(struct stacks *stacks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		stacks_free(&stacks[i]);
	free(stacks);
}

/* ---- in a few lines ---- */

static const struct stacks_thread *main_thread(const struct stacks *process)
{
	for (size_t i = 0; i < process->thread_count; i++)
		if (process->threads[i].tid == process->pid)
			return &process->threads[i];
	return &process->threads[0];
}

static void print_last_thread(const struct stacks_thread *thread, const struct text_style *style,
			      FILE *out)
{
	size_t shown = thread->frame_count < FRAMES_SHOWN ? thread->frame_count : FRAMES_SHOWN;
	struct text_style fitted = *style;
	struct buf name = { 0 };

	fitted.terminal = true; /* lines of the first screen fit a pipe's 80 columns, too */
	text_visible(&name, thread->name, strlen(thread->name));
	fprintf(out, "  Last stack, %s before the end, of thread \"%s\":\n",
		format_duration((double)thread->age_ns, style->utf8).text, buf_get(&name));
	backtrace_print_frames(thread->frames, shown, 4, &fitted, out);
	if (shown < thread->frame_count)
		fprintf(out, "    and %s outer frame%s\n",
			format_count(thread->frame_count - shown).text,
			thread->frame_count - shown == 1 ? "" : "s");
	buf_fini(&name);
}

/* The recording that has just been made is the latest: a path that does not fit is left out. */
static void print_next_command(const char *path, size_t threads, const struct text_style *style,
			       FILE *out)
{
	struct buf line = { 0 }, where = { 0 };

	buf_print(&line, "  All threads (%s): kymo backtrace", format_count(threads).text);
	text_visible(&where, path, strlen(path));
	if (line.used + 1 + text_width(path, strlen(path)) <= (size_t)style->columns)
		fprintf(out, "%s %s\n", buf_get(&line), buf_get(&where));
	else
		fprintf(out, "%s\n", buf_get(&line));
	buf_fini(&line);
	buf_fini(&where);
}

bool last_stacks_print(const char *path, const struct text_style *style, FILE *out)
{
	struct stacks *all;
	size_t count, threads = 0;

	if (last_stacks_take(path, &all, &count, NULL))
		return false;
	print_last_thread(main_thread(&all[0]), style, out);
	for (size_t i = 0; i < count; i++)
		threads += all[i].thread_count;
	print_next_command(path, threads, style, out);
	last_stacks_free(all, count);
	return true;
}
