/* Changes the settings of a process from outside, in its control page (base/settings.h). For one
   thread; call guard_install() first. */
#ifndef KYMO_COLLECT_RUN_CONFIGURE_H
#define KYMO_COLLECT_RUN_CONFIGURE_H

#include "base/error.h"
#include "base/settings.h"

/* fd: the file `control`, open for reading and writing. *out_old: the previous value. 1: changed;
   0: it already had the value; a negative errno and *err: the file is truncated, invalid or
   locked. */
int configure_process(int fd, const struct settings_key *key, const struct settings_value *value,
		      struct settings_value *out_old, struct kymo_error *err);
/* The author of a change: "kymo config, pid 4711, alice". */
void configure_by(const char *command, char *out, size_t out_bytes);
/* Frees the unused space of this process's own files in a live directory, after it has written its
   rows. */
void configure_give_back(const char *directory);

#endif
