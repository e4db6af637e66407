/*
 * A signal that somebody sends may be meant for us alone (`kill PID`: the program has to get it
 * from us) or for a whole group of processes (`kill %1`, timeout, a service manager: the program
 * has got it already, and would count it twice). The kernel does not say which. So a second
 * process of ours, in the same groups, blocks all signals and does nothing but be asked whether it
 * got one too.
 */
#ifndef KYMO_COLLECT_RUN_WITNESS_H
#define KYMO_COLLECT_RUN_WITNESS_H

#include <stdint.h>
#include <sys/types.h>

struct witness {
	pid_t pid;
	int fd; /* -1: there is none */
	uint32_t question; /* number of the last one */
};

enum witness_answer { WITNESS_NO, WITNESS_YES, WITNESS_SILENT };

/* With all signals blocked, and before the program is there to send any. Where it fails, the
   witness stays silent. */
void witness_start(struct witness *witness);
/* Did it get that signal too? */
enum witness_answer witness_got(struct witness *witness, int signal_number);
void witness_end(struct witness *witness);

#endif
