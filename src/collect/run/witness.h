/*
 * A signal may be sent to kymo alone (`kill PID`), and then has to be passed on to the program, or
 * to a group of processes (`kill %1`, timeout, a service manager), and then the program has
 * received it already. The kernel does not tell these cases apart. The witness is a second process
 * in the same groups that blocks all signals and answers whether it received a signal, too.
 */
#ifndef KYMO_COLLECT_RUN_WITNESS_H
#define KYMO_COLLECT_RUN_WITNESS_H

#include <stdint.h>
#include <sys/types.h>

struct witness {
	pid_t pid;
	int fd; /* -1: no witness */
	uint32_t question; /* number of the last question */
};

enum witness_answer { WITNESS_NO, WITNESS_YES, WITNESS_SILENT };

/* Call it with all signals blocked, before the program starts. After a failure all answers are
   WITNESS_SILENT. */
void witness_start(struct witness *witness);
/* Has the witness received that signal, too? */
enum witness_answer witness_got(struct witness *witness, int signal_number);
void witness_end(struct witness *witness);

#endif
