/* The two directories of a supervised run: the live one, in memory, and the one on disk. */
#ifndef KYMO_COLLECT_HALVES_H
#define KYMO_COLLECT_HALVES_H

#include "collect/collect.h"

struct halves {
	int live_fd, disk_fd;
	bool made_disk; /* the directory on disk is ours to remove */
	char live[KYMO_PATH_BYTES]; /* absolute */
	char disk[KYMO_PATH_BYTES]; /* absolute */
	char shown[KYMO_PATH_BYTES]; /* disk, as the user gave it or would */
	struct kymo_run_file run;
};

/* Makes both, with a `run` file in each that names the other. 0, or a negative errno and *err:
   nothing is left then. */
int halves_make(struct halves *halves, const struct collect_options *options,
		struct kymo_error *err);
/* Those of a run whose supervisor is gone: from now on we are it. As halves_make(). */
int halves_take_over(struct halves *halves, const char *live, const char *disk,
		     struct kymo_error *err);
/* Who the target is, into both. */
void halves_started(struct halves *halves, pid_t pid, uint64_t starttime);
/* How it ended, into both; NULL: nobody told. ran_on: it had not, when that was last known. */
void halves_ended(struct halves *halves, const int *wstatus, bool ran_on, uint64_t not_recorded);
/* Removes the live half, which must hold no process any more. False: it could not. */
bool halves_drop_live(struct halves *halves);
/* Undoes halves_make(). */
void halves_remove(struct halves *halves);
void halves_close(struct halves *halves);

#endif
