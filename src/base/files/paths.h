/* Directories of recordings and their permissions. libc only, no malloc: the recorder uses it after
   fork. */
#ifndef KYMO_BASE_FILES_PATHS_H
#define KYMO_BASE_FILES_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/files/safe_path.h"

/*
 * The directory of live recordings: $KYMO_DIR, else /dev/shm/kymo-UID. Without a usable one:
 *
 * - tmpfs missing or below 256 MB: $XDG_STATE_HOME/kymo/live.
 * - /dev/shm/kymo-UID of another user: $XDG_RUNTIME_DIR/kymo (else /run/user/UID/kymo), then
 *   /dev/shm/kymo-UID-XXXXXX, a name that cannot be guessed; one that exists is used again.
 *
 * Creates it with mode 0700. Refuses a symbolic link, another owner, a mode with access for others,
 * and a path that safe_path.h refuses.
 */
int paths_root(char *out, size_t out_bytes, struct kymo_error *err);
int paths_root_open(struct safe_dir *out, struct kymo_error *err);
enum paths_fallback { PATHS_USUAL, PATHS_TMPFS_IS_SMALL, PATHS_TAKEN_BY_ANOTHER };
/* Where paths_root() has found its directory; callers report a fallback. */
enum paths_fallback paths_root_fallback(void);

#define PATHS_ROOTS_MOST 8
struct paths_roots {
	size_t count;
	char path[PATHS_ROOTS_MOST][KYMO_PATH_BYTES];
};
/* All that may contain recordings of this user: that of paths_root() first, then others that an
   earlier run has used as a fallback. -errno and *err if that of paths_root() is unusable; the
   others are listed in any case. */
int paths_roots(struct paths_roots *out, struct kymo_error *err);
/* Whether the path is in one of them. */
bool paths_in_roots(const char *path);
/* $XDG_STATE_HOME/kymo or ~/.local/state/kymo; created with mode 0700. */
int paths_state(char *out, size_t out_bytes, struct kymo_error *err);
int paths_state_open(struct safe_dir *out, struct kymo_error *err);
/* Creates ROOT/PROGRAM-YYYYMMDD-HHMMSS-PID with mode 0700 and returns its path. Never reuses a
   directory. The descriptor is of ROOT. */
int paths_make_run_at(const struct safe_dir *root, const char *program, pid_t pid, char *out,
		      size_t out_bytes, struct kymo_error *err);
/* Field 22 of /proc/PID/stat; 0: no such process. */
uint64_t paths_starttime(pid_t pid);
pid_t paths_parent(pid_t pid); /* 0: not visible from here */
/* "RUN/p<pid>-<starttime>". */
void paths_process(const char *run, pid_t pid, uint64_t starttime, char *out, size_t out_bytes);

#endif
