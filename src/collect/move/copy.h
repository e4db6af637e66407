/* Copies a file between the directories of a run: to a temporary name, then renamed, so that it is
   never incomplete. */
#ifndef KYMO_COLLECT_MOVE_COPY_H
#define KYMO_COLLECT_MOVE_COPY_H

#include <stdbool.h>
#include <stdint.h>

enum copy_how {
	COPY_WHOLE, /* unchanged; holes stay holes */
	COPY_THIN, /* pages of zeros become holes, for segments that are mostly unused */
};

/* Copies FROM_DIR/name to TO_DIR/name with mode 0600 and replaces an existing file atomically. On
   the same file system COPY_WHOLE makes a second link. A file that shrinks during the copy is
   copied up to its new end. *out_bytes: disk space used. 0, or a negative errno and no file. */
int copy_file(int from_dir, int to_dir, const char *name, enum copy_how how, uint64_t *out_bytes);

#endif
