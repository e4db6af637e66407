#include "collect/wait/wait_host.h"

#include <string.h>

#include "collect/wait/wait_kind.h"

/* Called by one thread, the collector's. */
void wait_host_look(pid_t pid, pid_t tid, char state, struct host_threads_wait *out)
{
	static struct wait_peers peers;
	struct wait_answer answer;
	struct wait_call call;

	wait_kind_of_thread(pid, tid, state, &peers, &call, &answer);
	out->activity = wait_kind_word(answer.kind);
	memcpy(out->target, answer.target, sizeof(out->target));
}
