/* Where recordings are, and who may be there. libc only; no malloc: the recorder uses it after
   fork. */
#ifndef KYMO_BASE_FILES_PATHS_H
#define KYMO_BASE_FILES_PATHS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * The directory of live recordings: $KYMO_DIR, else /dev/shm/kymo-UID, else (tmpfs below 256 MB or
 * missing) $XDG_STATE_HOME/kymo/live. Makes it, 0700; refuses a symbolic link, another owner, or a
 * mode that lets others in.
 */
int paths_root(char *out, size_t out_bytes, struct kymo_error *err);
/* 1: the answer of paths_root() is not the tmpfs, because that is too small; callers say so. */
int paths_root_is_fallback(void);
/* $XDG_STATE_HOME/kymo or ~/.local/state/kymo; made 0700. */
int paths_state(char *out, size_t out_bytes, struct kymo_error *err);
/* Makes ROOT/PROGRAM-YYYYMMDD-HHMMSS-PID, 0700, and gives its path. Never an existing one. */
int paths_make_run(const char *root, const char *program, pid_t pid, char *out, size_t out_bytes,
		   struct kymo_error *err);
/* Field 22 of /proc/PID/stat; 0 where there is no such process. */
uint64_t paths_starttime(pid_t pid);
pid_t paths_parent(pid_t pid); /* 0: none that is seen from here */
/* "RUN/p<pid>-<starttime>". */
void paths_process(const char *run, pid_t pid, uint64_t starttime, char *out, size_t out_bytes);

#endif
