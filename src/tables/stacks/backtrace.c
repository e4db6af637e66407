/* kymo_meta('backtrace'): the stacks of the processes of a live recording, taken while the query
   runs; otherwise the last ones recorded. */
#include "tables/scan/meta.h"

#include <stdlib.h>

#include "base/clock.h"
#include "collect/host/proc.h"
#include "collect/backtrace/stacks.h"
#include "tables/stacks/stack_nodes.h"

struct kept {
	struct stacks *all;
	size_t count;
};

static void backtrace_release(void *pointer)
{
	struct kept *kept = pointer;

	for (size_t i = 0; i < kept->count; i++)
		stacks_free(&kept->all[i]);
	free(kept->all);
	free(kept);
}

struct backtrace_of {
	const struct store_process *process; /* NULL: it does not record */
	uint64_t now_ns;
};

static struct meta_cell *backtrace_fill_frame(struct meta_cell *cell,
					      const struct stacks_thread *thread,
					      const struct stacks_frame *frame, size_t depth,
					      const struct backtrace_of *of)
{
	meta_number(&cell[0], thread->pid);
	meta_number(&cell[1], thread->tid);
	meta_text(&cell[2], thread->name);
	meta_text(&cell[3], frame->func);
	meta_text(&cell[4], frame->file);
	if (frame->line)
		meta_number(&cell[5], frame->line);
	meta_number(&cell[6], (int64_t)depth);
	meta_text(&cell[7], frame->native ? "Native" : "Python");
	meta_number(&cell[8], (int64_t)(of->now_ns - thread->taken_ns));
	if (of->process && of->process->rank >= 0)
		meta_number(&cell[10], of->process->rank);
	if (of->process)
		meta_host(&cell[11], of->process->host);
	return cell;
}

static void fill_tasks(struct meta_rows *rows, const struct stacks_thread *thread,
		       const struct backtrace_of *of)
{
	for (size_t i = 0; i < thread->task_count; i++) {
		const struct stacks_task *task = &thread->tasks[i];

		for (size_t k = 0; k < task->frame_count; k++)
			meta_text(&backtrace_fill_frame(meta_add(rows), thread, &task->frames[k], k,
							of)[9],
				  task->name && task->name[0] ? task->name : "?");
	}
}

static void fill_process(struct meta_rows *rows, const struct stacks *stacks,
			 const struct store_process *process)
{
	const struct backtrace_of of = { process, clock_monotonic_ns() };

	for (size_t i = 0; i < stacks->thread_count; i++) {
		for (size_t k = 0; k < stacks->threads[i].frame_count; k++)
			backtrace_fill_frame(meta_add(rows), &stacks->threads[i],
					     &stacks->threads[i].frames[k], k, &of);
		fill_tasks(rows, &stacks->threads[i], &of);
	}
}

static void backtrace_take(struct meta_rows *rows, struct kept *kept, pid_t pid,
			   const struct store_process *process)
{
	struct stacks_options options = { 0 };

	for (size_t i = 0; i < kept->count; i++)
		if (kept->all[i].pid == pid)
			return;
	if (!stacks_take(pid, &options, &kept->all[kept->count], NULL))
		fill_process(rows, &kept->all[kept->count++], process);
}

/* The recording processes and the program itself, which may not record. A process that cannot be
   read has no rows. */
static void fill_live(struct meta_rows *rows, const struct tables *tables)
{
	const struct recording *recording = tables->recording;
	struct kept *kept;

	kept = calloc(1, sizeof(*kept));
	if (kept)
		kept->all = calloc(recording->process_count + recording->run_count,
				   sizeof(*kept->all));
	if (!kept || !kept->all) {
		free(kept);
		rows->failed = true;
		return;
	}
	rows->kept = kept;
	rows->release = backtrace_release;
	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->processes[i].state == STORE_LIVE &&
		    recording->processes[i].role == KYMO_ROLE_TARGET &&
		    proc_alive(recording->processes[i].pid,
			       recording->processes[i].control.starttime))
			backtrace_take(rows, kept, recording->processes[i].pid,
				       &recording->processes[i]);
	for (size_t i = 0; i < recording->run_count; i++)
		if (recording->runs[i].run.target_pid &&
		    proc_alive(recording->runs[i].run.target_pid,
			       recording->runs[i].run.target_starttime))
			backtrace_take(rows, kept, recording->runs[i].run.target_pid, NULL);
}

void backtrace_fill(struct meta_rows *rows, const struct tables *tables)
{
	if (tables->recording->live)
		fill_live(rows, tables);
	if (!rows->count && !rows->failed)
		stack_nodes_fill_last(rows, tables);
}
