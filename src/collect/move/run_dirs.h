/* The two directories of a supervised run: the live one, in memory, and the one on disk. */
#ifndef KYMO_COLLECT_MOVE_RUN_DIRS_H
#define KYMO_COLLECT_MOVE_RUN_DIRS_H

#include "collect/run/collect.h"

struct run_dirs {
	int live_fd, disk_fd;
	bool made_disk; /* the directory on disk is ours to remove */
	char live[KYMO_PATH_BYTES]; /* absolute */
	char disk[KYMO_PATH_BYTES]; /* absolute */
	char shown[KYMO_PATH_BYTES]; /* disk, as the user gave it or would */
	struct kymo_run_file run;
};

/* Makes both, with a `run` file in each that names the other. 0, or a negative errno and *err:
   nothing is left then. */
int run_dirs_make(struct run_dirs *halves, const struct collect_options *options,
		  struct kymo_error *err);
/* Those of a run whose supervisor is gone: from now on we are it. As run_dirs_make(). */
int run_dirs_take_over(struct run_dirs *halves, const char *live, const char *disk,
		       struct kymo_error *err);
/* Who the target is, into both. */
void run_dirs_started(struct run_dirs *halves, pid_t pid, uint64_t starttime);
/* How it ended, into both; NULL: nobody told. ran_on: it had not, when that was last known. */
void run_dirs_ended(struct run_dirs *halves, const int *wstatus, bool ran_on,
		    uint64_t not_recorded);
/* Removes the live half, which must hold no process any more. False: it could not. */
bool run_dirs_drop_live(struct run_dirs *halves);
/* Undoes run_dirs_make(). */
void run_dirs_remove(struct run_dirs *halves);
void run_dirs_close(struct run_dirs *halves);

#endif
