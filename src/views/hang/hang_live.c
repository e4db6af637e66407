/* The stacks of ranks that run on this machine, for those that a reader is shown. */
#include "views/hang/hang.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "collect/backtrace/own_code.h"
#include "collect/backtrace/stacks.h"
#include "collect/native/process_memory.h"
#include "store/store.h"

#define RANKS_MOST 8
#define WITHIN_NS 2000000000ull

/* Its pid is one of our namespace. */
static bool runs_here(const struct recording *recording, const struct hang_rank *rank)
{
	struct stat ns;

	if (stat("/proc/self/ns/pid", &ns))
		return false;
	for (size_t i = 0; i < recording->process_count; i++) {
		const struct store_process *process = &recording->processes[i];

		if (process->pid == rank->pid && process->state == STORE_LIVE &&
		    !strcmp(process->host, rank->host))
			return process->control.pid_namespace == (uint64_t)ns.st_ino;
	}
	return false;
}

/* The innermost frame of the program's own code. */
static void take_place(const struct stacks_thread *thread, struct hang_rank *rank)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct stacks_frame *frame = &thread->frames[i];

		if (!frame->func || !frame->file ||
		    !own_code_is(frame->file, strlen(frame->file), ""))
			continue;
		snprintf(rank->place, sizeof(rank->place), "%.200s (%.250s:%d)", frame->func,
			 frame->file, frame->line);
		return;
	}
}

static void take_main(const struct stacks *stacks, struct hang_rank *rank)
{
	for (size_t i = 0; i < stacks->thread_count; i++) {
		const struct stacks_thread *thread = &stacks->threads[i];

		if (thread->tid != stacks->pid)
			continue;
		if (thread->why)
			snprintf(rank->doing, sizeof(rank->doing), "%.*s",
				 (int)thread->reason_bytes, thread->why);
		/* A sample has the same place and also tells since when. */
		if (!rank->place[0])
			take_place(thread, rank);
	}
	if (stacks->deadlock[0])
		snprintf(rank->doing, sizeof(rank->doing), "%.250s", stacks->deadlock);
}

void hang_add_live(struct hang *hang, const struct recording *recording)
{
	const struct stacks_options options = { .why = true };
	size_t taken = 0;

	process_memory_begin(WITHIN_NS);
	for (size_t i = 0; i < hang->count && taken < RANKS_MOST && !process_memory_late(); i++) {
		struct hang_rank *rank = &hang->ranks[i];
		struct stacks stacks;

		if (rank->role > HANG_ELSEWHERE || !runs_here(recording, rank) ||
		    stacks_take(rank->pid, &options, &stacks, NULL))
			continue;
		take_main(&stacks, rank);
		stacks_free(&stacks);
		taken++;
	}
	process_memory_set_deadline(0);
}
