/* Inspecting recordings without opening them, to list and remove them (discover.c, user_index.c,
   resolve.c, remove.c). */
#ifndef KYMO_STORE_DISCOVER_H
#define KYMO_STORE_DISCOVER_H

#include "base/files/run_files.h"
#include "store/store.h"

/* Reads program, times and state, but no rows. -ENOENT: not a recording. Other errors: it cannot be
   read; entry->unreadable has the reason. With other_half, the live directory of a supervised run
   stands for the one on disk. */
int discover_inspect(const char *path, bool other_half, struct store_entry *entry);
/* Disk space of the recording's files in one directory. */
uint64_t discover_bytes_in(int directory);
/* Whether a file name is kymo's: "run", "s1.0", or the remains of a copy, ".s1.0.part". */
bool discover_is_ours(const char *name, bool in_process);
/* Removes dead recordings in a directory, oldest first, until the rest takes at most most_bytes.
   Returns the number removed. */
int discover_prune(const char *root, uint64_t most_bytes);
/* The whole user index, to be freed by the caller, or NULL; and its next line, or NULL. The latter
   modifies the text. */
char *discover_index_text(void);
char *discover_next_line(char **rest);
/* Removes a path from the index. */
void discover_forget(const char *path);

#endif
