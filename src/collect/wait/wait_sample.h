/* What a thread did at each sample of it, with few reads: an unchanged call is looked up once. */
#ifndef KYMO_COLLECT_WAIT_WAIT_SAMPLE_H
#define KYMO_COLLECT_WAIT_WAIT_SAMPLE_H

#include "collect/wait/wait_kind.h"

/* Of one thread; all zero before its first sample. */
struct wait_sample {
	struct wait_call call; /* of the last sample */
	struct wait_answer found; /* by the call alone */
	struct wait_answer answer;
	bool known; /* call and found are those of a waiting thread */
	bool ran; /* it was running or ready */
	uint64_t run_ns, delay_ns; /* of the kernel, as of schedule_ns */
	uint64_t schedule_ns; /* 0: not read yet */
};

/* Answers for a thread whose state was just read. True: its system call or state is not that of
   the last sample. Frames are not considered. */
bool wait_sample_take(struct wait_sample *sample, pid_t pid, pid_t tid, char state,
		      struct wait_peers *peers, uint64_t now_ns);
/* Whether a thread that is in the state R was without a core for most of the time since then. */
bool wait_sample_is_ready(const struct wait_sample *before, uint64_t run_ns, uint64_t delay_ns,
			  uint64_t now_ns);

#endif
