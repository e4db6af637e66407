/* /proc/PID/maps, and the files behind it, also of a process in another mount namespace. */
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
	char path[MAPS_PATH_BYTES]; /* as the process sees it; "" for memory without a file */
};

/* Calls `each` with every row until it gives non-zero, which is returned; 0 at the end, or a
   negative errno. */
int maps_each(pid_t pid, int (*each)(void *context, const struct maps_row *row), void *context);
/* A path by which we can open that file: below /proc/PID/root, so that other mount namespaces
   work. */
void maps_file(pid_t pid, const struct maps_row *row, char *out, size_t out_bytes);

#endif
