/* The names in a directory, by system call: opendir() allocates. */
#ifndef KYMO_BASE_FILES_DIR_NAMES_H
#define KYMO_BASE_FILES_DIR_NAMES_H

/* Calls each(name, context) until it returns something else than 0, and returns that. "." and ".."
   are among the names. */
int dir_names_each(int directory, int (*each)(const char *name, void *context), void *context);

#endif
