#include "collect/wait/wait_sample.h"

#include <stdio.h>
#include <string.h>

#include "collect/host/host_threads.h"
#include "collect/host/proc.h"

#define SCHEDULE_EVERY_NS 40000000ull /* the kernel's figures are read as often as this */

bool wait_sample_is_ready(const struct wait_sample *before, uint64_t run_ns, uint64_t delay_ns,
			  uint64_t now_ns)
{
	uint64_t past_ns = now_ns - before->schedule_ns, ran_ns = run_ns - before->run_ns;

	if (!before->schedule_ns || run_ns < before->run_ns || delay_ns < before->delay_ns)
		return false;
	/* The delay is counted when it ends: before that, the thread has not run. */
	return delay_ns - before->delay_ns > ran_ns || (before->ran && ran_ns < past_ns / 4);
}

static void take_running(struct wait_sample *sample, pid_t pid, pid_t tid, uint64_t now_ns)
{
	struct host_threads_schedule now;
	char path[64], text[128];

	sample->answer.target[0] = '\0';
	if (sample->schedule_ns && now_ns - sample->schedule_ns < SCHEDULE_EVERY_NS) {
		if (!sample->ran || sample->answer.kind != WAIT_READY)
			sample->answer.kind = WAIT_RUNNING;
		sample->ran = true;
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	sample->answer.kind = WAIT_RUNNING;
	if (proc_read(path, text, sizeof(text)) <= 0 || !host_threads_parse_schedstat(text, &now))
		return;
	if (wait_sample_is_ready(sample, now.run_ns, now.delay_ns, now_ns))
		sample->answer.kind = WAIT_READY;
	sample->run_ns = now.run_ns;
	sample->delay_ns = now.delay_ns;
	sample->schedule_ns = now_ns;
	sample->ran = true;
}

static bool is_same_call(const struct wait_call *a, const struct wait_call *b)
{
	return a->number == b->number && a->number >= 0 && a->argument[0] == b->argument[0] &&
	       a->argument[1] == b->argument[1];
}

bool wait_sample_take(struct wait_sample *sample, pid_t pid, pid_t tid, char state,
		      struct wait_peers *peers, uint64_t now_ns)
{
	enum wait_kind kind = wait_kind_of_state(state);
	struct wait_call call;
	bool was_known = sample->known;

	sample->known = false;
	if (kind == WAIT_RUNNING) {
		take_running(sample, pid, tid, now_ns);
		return was_known;
	}
	sample->ran = false;
	if (was_known && !wait_call_read(pid, tid, &call) && is_same_call(&call, &sample->call)) {
		sample->answer = sample->found;
		sample->known = true;
		return false;
	}
	wait_kind_of_thread(pid, tid, state, peers, &sample->call, &sample->found);
	sample->answer = sample->found;
	sample->known = sample->found.kind != WAIT_RUNNING;
	return true;
}
