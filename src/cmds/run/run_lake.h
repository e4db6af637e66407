/* kymo run --lake: a helper process writes the recording into a lake while the program runs. */
#ifndef KYMO_CMDS_RUN_RUN_LAKE_H
#define KYMO_CMDS_RUN_RUN_LAKE_H

#include <stdbool.h>
#include <sys/types.h>

struct run_lake {
	const char *directory; /* NULL: none */
	const char *tier; /* "0", "1" or "2"; NULL: 1 */
	int to, from; /* pipes of the helper; -1: it does not run */
	pid_t pid;
};

/* -1, or the exit status if the tier is invalid. */
int run_lake_tier(struct run_lake *lake, const char *tier);
/* Starts the helper, with the lowest priority. An error is reported and does not stop the run.
   hold: gets the descriptors that the collector must not close. */
void run_lake_start(struct run_lake *lake, int *hold);
/* The recording is complete: waits for the last flush, but not longer than a minute. */
void run_lake_end(struct run_lake *lake, const char *recording);

#endif
