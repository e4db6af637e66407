/*
 * Temporary files and folders with a name. A killed process cannot remove them, so the next
 * one that writes under the same stem does. The owner holds a lock on what it writes; the kernel
 * releases it when the owner dies, in every pid namespace.
 */
#ifndef KYMO_BASE_SCRATCH_SCRATCH_H
#define KYMO_BASE_SCRATCH_SCRATCH_H

/* Between the name of a file and the pid of its writer. */
#define SCRATCH_MARK ".kymo-tmp-"

/* Locks an open file or folder until it is closed. A file system without locks is fine: then
   nothing is ever swept there. */
void scratch_hold(int fd);
/* Opens and locks the folder; -1: it is not swept as long as it is new. Close it when done. */
int scratch_hold_folder(const char *path);
/* Removes files and folders in `directory` whose names are the stem and then digits, dots or six
   letters of mkdtemp(), that belong to this user, have not changed for a minute and are not
   locked. */
void scratch_sweep(int directory, const char *stem);
void scratch_sweep_path(const char *directory, const char *stem);
/* A file, or a folder with at most `levels` of folders in it. Follows no link. */
void scratch_remove(int directory, const char *name, int levels);

#endif
