/* Looking at recordings without opening them, for lists and for what removes them (find.c, index.c,
   resolve.c, remove.c). */
#ifndef KYMO_STORE_DISCOVER_H
#define KYMO_STORE_DISCOVER_H

#include "base/files/run_files.h"
#include "store/store.h"

/* Who, when and whether it runs; not the rows. -ENOENT: no recording. Another error: one that
   cannot be read, said in entry->unreadable. With other_half, the live half of a supervised run
   stands for the one on disk. */
int discover_inspect(const char *path, bool other_half, struct store_entry *entry);
/* Space taken by the recording's files in one directory. */
uint64_t discover_bytes_in(int directory);
/* "run", "s1.0", and what is left of copying one: ".s1.0.part". */
bool discover_is_ours(const char *name, bool in_process);
/* Removes dead recordings in a directory, oldest first, until they take at most so much; returns
   how many. */
int discover_prune(const char *root, uint64_t most_bytes);
/* The index: all of it, to be freed, or NULL; and its next line, or NULL, which cuts the text into
   lines. */
char *discover_index_text(void);
char *discover_next_line(char **rest);
/* Takes a path out of it. */
void discover_forget(const char *path);

#endif
