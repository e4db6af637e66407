/* Copying a file from one half of a run to the other: aside, then renamed, so that there is never
   half of one. */
#ifndef KYMO_COLLECT_MOVE_COPY_H
#define KYMO_COLLECT_MOVE_COPY_H

#include <stdbool.h>
#include <stdint.h>

enum copy_how {
	COPY_WHOLE, /* as it is; holes stay holes */
	COPY_THIN, /* pages of zeros become holes: a segment that was made ready and hardly used */
};

/* Copies FROM_DIR/name to TO_DIR/name, 0600; a file of that name there is replaced as a whole. On
   the same file system a COPY_WHOLE is a second link. A file that shrinks meanwhile is copied as
   far as it goes. *out_bytes: space taken. 0 or a negative errno; nothing is left behind then. */
int copy_file(int from_dir, int to_dir, const char *name, enum copy_how how, uint64_t *out_bytes);
/* True for errors that say that the place is full, rather than that something is wrong with the
   file. */
bool copy_is_full(int error);

#endif
