/* Reads /proc/PID/maps and finds the mapped files, also in another mount namespace. */
#ifndef KYMO_COLLECT_NATIVE_MAPS_H
#define KYMO_COLLECT_NATIVE_MAPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAPS_PATH_BYTES 1024

struct maps_row {
	uint64_t start, end, offset;
	uint64_t device, inode;
	char mode[5]; /* "r-xp" */
	/* in the process's mount namespace; "" for memory without a file */
	char path[MAPS_PATH_BYTES];
};

/* Calls `each` with every row until it returns nonzero. Returns that value, 0 at the end, or a
   negative errno. */
int maps_each(pid_t pid, int (*each)(void *context, const struct maps_row *row), void *context);
/* Opens a file that another process names, for reading. Only a regular file: a pipe or a device is
   never opened, because that alone may wait or have effects. A descriptor or a negative errno. */
int maps_open_regular(const char *path);
/* A path to open the mapped file, valid for other mount namespaces, too. */
void maps_file(pid_t pid, const struct maps_row *row, char *out, size_t out_bytes);

#endif
