/* Why the processes of a program make no progress, from their stacks, as one sentence. */
#ifndef KYMO_COLLECT_RUN_AUTOPSY_REASON_H
#define KYMO_COLLECT_RUN_AUTOPSY_REASON_H

#include "base/buf.h"
#include "collect/host/family.h"

#define AUTOPSY_REASON_BYTES 512
#define AUTOPSY_PLACE_BYTES 480

struct autopsy_reason {
	/* "deadlock: …", "rank 1 is absent …", "the event loop …", "MainThread waits for …"; "" if
	   nothing is known */
	char sentence[AUTOPSY_REASON_BYTES];
	/* the function of the program's own code, "wait_for_reply (/home/a/app.py:12)"; "": none */
	char place[AUTOPSY_PLACE_BYTES];
	struct buf threads; /* each thread on a line, with what it waits for and its frames */
};

/* Takes the stacks of all processes, as `kymo backtrace --why` does. */
void autopsy_reason_find(const struct family *family, struct autopsy_reason *out);
void autopsy_reason_fini(struct autopsy_reason *reason);

#endif
