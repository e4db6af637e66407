/* The two directories of a supervised run: the live directory in memory and the disk directory. */
#ifndef KYMO_COLLECT_MOVE_RUN_DIRS_H
#define KYMO_COLLECT_MOVE_RUN_DIRS_H

#include "base/files/safe_path.h"
#include "collect/collect.h"

struct run_dirs {
	int live_fd, disk_fd;
	struct safe_dir parent; /* of the disk directory, with its name */
	bool made_disk; /* created by us, to be removed on failure */
	bool complete; /* all data is on disk */
	char live[KYMO_PATH_BYTES]; /* absolute */
	char disk[KYMO_PATH_BYTES]; /* absolute */
	char shown[KYMO_PATH_BYTES]; /* the disk directory as the user would type it */
	struct kymo_run_file run;
};

/* Creates both, with a `run` file in each that names the other. 0, or a negative errno and *err,
   with nothing left behind. */
int run_dirs_make(struct run_dirs *dirs, const struct collect_options *options,
		  struct kymo_error *err);
/* Takes over the directories of a run whose supervisor has ended. Returns like run_dirs_make(). */
int run_dirs_take_over(struct run_dirs *dirs, const char *live, const char *disk,
		       struct kymo_error *err);
/* Writes dirs->run to both. */
void run_dirs_write(struct run_dirs *dirs);
/* Writes the pid of the program to both. */
void run_dirs_started(struct run_dirs *dirs, pid_t pid, uint64_t starttime);
/* The end of the program is now, however long the collector works after it. */
void run_dirs_note_end(struct run_dirs *dirs);
/* Writes the wait status to both; NULL: unknown. ran_on: the program was still running at the end
   of the recording. complete: the disk has all data, so that its file names no live directory. */
void run_dirs_ended(struct run_dirs *dirs, const int *wstatus, bool ran_on, uint64_t not_recorded,
		    bool complete);
/* Removes the live directory, which must contain no process. False: failed. */
bool run_dirs_drop_live(struct run_dirs *dirs);
/* Undoes run_dirs_make(). */
void run_dirs_remove(struct run_dirs *dirs);
void run_dirs_close(struct run_dirs *dirs);

#endif
