/* Built without sqlite3.h. */
#include <errno.h>

#include "import/nsys/nsys.h"

int nsys_open(struct nsys_child *child, struct input *input, const char *path,
	      struct kymo_error *err)
{
	(void)child;
	(void)input;
	(void)path;
	return error_set(err, ENOTSUP,
			 "it is an SQLite file, and this kymo was built without sqlite3.h; install "
			 "libsqlite3-dev and build it again");
}

int nsys_close(struct nsys_child *child, struct kymo_error *damage, struct kymo_error *err)
{
	(void)child;
	(void)damage;
	(void)err;
	return 0;
}
