/* Directories of recordings and their permissions. libc only, no malloc: the recorder uses it after
   fork. */
#ifndef KYMO_BASE_FILES_PATHS_H
#define KYMO_BASE_FILES_PATHS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * The directory of live recordings: $KYMO_DIR, else /dev/shm/kymo-UID, else (tmpfs missing or below
 * 256 MB) $XDG_STATE_HOME/kymo/live. Creates it with mode 0700. Refuses a symbolic link, another
 * owner, or a mode with access for others.
 */
int paths_root(char *out, size_t out_bytes, struct kymo_error *err);
/* 1: paths_root() is not on tmpfs, because that is too small; callers report it. */
int paths_root_is_fallback(void);
/* $XDG_STATE_HOME/kymo or ~/.local/state/kymo; created with mode 0700. */
int paths_state(char *out, size_t out_bytes, struct kymo_error *err);
/* Creates ROOT/PROGRAM-YYYYMMDD-HHMMSS-PID with mode 0700 and returns its path. Never reuses a
   directory. */
int paths_make_run(const char *root, const char *program, pid_t pid, char *out, size_t out_bytes,
		   struct kymo_error *err);
/* Field 22 of /proc/PID/stat; 0: no such process. */
uint64_t paths_starttime(pid_t pid);
pid_t paths_parent(pid_t pid); /* 0: not visible from here */
/* "RUN/p<pid>-<starttime>". */
void paths_process(const char *run, pid_t pid, uint64_t starttime, char *out, size_t out_bytes);

#endif
