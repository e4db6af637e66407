/*
 * SQLite files that `nsys export` wrote. They may come from anyone, and SQLite is not ours: a child
 * with limits of memory and CPU time reads the file and writes a trace in JSON into a pipe, which
 * is read as any other trace. The child opens it read-only and immutable, refuses a file whose
 * tables are views or virtual, and selects plain columns of the tables that it knows; those with
 * the environment of the program are not among them.
 */
#ifndef KYMO_IMPORT_NSYS_NSYS_H
#define KYMO_IMPORT_NSYS_NSYS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "import/input/input.h"

#define NSYS_MAGIC "SQLite format 3" /* with its NUL */

struct nsys_child {
	pid_t pid;
	struct nsys_shared *shared; /* what the child tells beside the trace */
	uint64_t cpu_seconds;
};

/* Begins to read the file: *input is the pipe. */
int nsys_open(struct nsys_child *child, struct input *input, const char *path,
	      struct kymo_error *err);
/* After input_close(). A negative errno and *err: the file cannot be read. *damage: only a part. */
int nsys_close(struct nsys_child *child, struct kymo_error *damage, struct kymo_error *err);

/* In the child, and for fuzzing: writes the trace into fd. A negative errno and *err: nothing of it
   can be read; 0 with *damage: only a part. */
int nsys_write(int fd, const char *path, struct kymo_error *damage, struct kymo_error *err);

#endif
