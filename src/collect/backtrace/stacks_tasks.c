/* The tasks of asyncio, each with the thread of its event loop. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/python/pytasks.h"
#include "collect/backtrace/stacks.h"

/* The thread with this ident; the first thread if it is unknown or the loop is not running. */
static struct stacks_thread *stacks_tasks_thread_of(struct stacks *stacks,
						    const struct pystack *stack, uint64_t ident)
{
	uint64_t state = 0;

	for (size_t i = 0; ident && i < stack->thread_count; i++)
		if (stack->threads[i].ident == ident)
			state = stack->threads[i].state;
	for (size_t i = 0; state && i < stacks->thread_count; i++)
		if (stacks->threads[i].python_state == state)
			return &stacks->threads[i];
	return &stacks->threads[0];
}

static struct stacks_task *add_task(struct stacks_thread *thread)
{
	size_t count = thread->task_count;

	if (!grow_short((void **)&thread->tasks, count, sizeof(*thread->tasks)))
		return NULL;
	memset(&thread->tasks[count], 0, sizeof(*thread->tasks));
	thread->task_count++;
	return &thread->tasks[count];
}

static void copy_task(struct stacks_task *task, const struct pytasks_one *from,
		      const struct pymemory *memory, const struct stacks_options *options)
{
	task->name = strdup(from->name);
	task->waits_for = from->waits_for[0] ? strdup(from->waits_for) : NULL;
	task->begun = from->state != PYTASKS_NEW;
	task->missed = from->state == PYTASKS_MISSED;
	task->frames = calloc(from->frame_count + 1, sizeof(*task->frames));
	task->frame_count = task->frames ? from->frame_count : 0;
	for (size_t i = 0; i < task->frame_count; i++)
		stacks_copy_frame(&task->frames[i], &from->frames[i], memory, options);
}

/* ---- links between tasks --------------------------------------------------------------------- */

static void stacks_tasks_add_name(char ***names, size_t *count, const char *name)
{
	if (!grow_short((void **)names, *count, sizeof(**names)))
		return;
	(*names)[*count] = strdup(name);
	if ((*names)[*count])
		(*count)++;
}

/* The place of each task; thread is NULL for a running task, which is not listed. */
struct placed {
	struct stacks_thread *thread;
	size_t at;
};

static struct stacks_task *task_at(const struct placed *placed)
{
	return placed->thread ? &placed->thread->tasks[placed->at] : NULL;
}

static void add_links(const struct pytasks *tasks, const struct placed *placed)
{
	for (size_t i = 0; i < tasks->link_count; i++) {
		const struct pytasks_link *link = &tasks->links[i];
		struct stacks_task *waiting = task_at(&placed[link->waiting]);
		struct stacks_task *awaited = task_at(&placed[link->awaited]);

		if (waiting)
			stacks_tasks_add_name(&waiting->awaits, &waiting->awaits_count,
					      tasks->all[link->awaited].name);
		if (awaited)
			stacks_tasks_add_name(&awaited->awaited_by, &awaited->awaited_by_count,
					      tasks->all[link->waiting].name);
	}
}

void stacks_add_tasks(struct stacks *stacks, struct pystack *stack,
		      const struct stacks_options *options)
{
	struct pytasks tasks;
	struct placed *placed;

	pytasks_read(stack, &tasks);
	placed = calloc(tasks.count + 1, sizeof(*placed));
	for (size_t i = 0; placed && i < tasks.count; i++) {
		const struct pytasks_one *from = &tasks.all[i];
		struct stacks_thread *thread = stacks_tasks_thread_of(stacks, stack, from->ident);
		struct stacks_task *task;

		if (from->state == PYTASKS_RUNNING)
			continue;
		task = add_task(thread);
		if (!task)
			continue;
		copy_task(task, from, &stack->memory, options);
		placed[i] = (struct placed){ thread, thread->task_count - 1 };
	}
	if (placed)
		add_links(&tasks, placed);
	stacks->tasks_cut = tasks.cut;
	free(placed);
	pytasks_free(&tasks);
}

static void free_names(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

void stacks_free_tasks(struct stacks_thread *thread)
{
	for (size_t i = 0; i < thread->task_count; i++) {
		struct stacks_task *task = &thread->tasks[i];

		free(task->name);
		free(task->waits_for);
		stacks_free_frames(task->frames, task->frame_count);
		free_names(task->awaits, task->awaits_count);
		free_names(task->awaited_by, task->awaited_by_count);
	}
	free(thread->tasks);
	thread->tasks = NULL;
	thread->task_count = 0;
}
