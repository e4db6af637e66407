/* Changing the settings of a process from outside, in its control page (base/settings.h). One
   thread; guard_install() comes first. */
#ifndef KYMO_COLLECT_RUN_CONFIGURE_H
#define KYMO_COLLECT_RUN_CONFIGURE_H

#include "base/error.h"
#include "base/settings.h"

/* fd: the file `control`, open for reading and writing. *out_old: what was there. 1: changed; 0: it
   was so already; a negative errno and a sentence: the file was cut, is none of ours, or somebody
   else is at it. */
int configure_process(int fd, const struct settings_key *key, const struct settings_value *value,
		      struct settings_value *out_old, struct kymo_error *err);
/* "kymo config, pid 4711, alice": this process, for the row. */
void configure_by(const char *command, char *out, size_t out_bytes);
/* Gives back what this process's own files in a live half do not use; after it has written its
   row. */
void configure_give_back(const char *directory);

#endif
