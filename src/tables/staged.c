#include "tables/staged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int staged_name(const char *path, char *out, size_t out_bytes, struct kymo_error *err)
{
	int written = snprintf(out, out_bytes, "%s.tmp-%ld", path, (long)getpid()), fd;

	if (written < 0 || (size_t)written >= out_bytes) {
		out[0] = 0;
		return error_set(err, ENAMETOOLONG, "cannot write a file with a name of %zu bytes",
				 strlen(path));
	}
	/* Tried now, so that the reason is the system's own; DuckDB wants to make the file
	   itself. */
	fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		out[0] = 0;
		return error_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	}
	close(fd);
	unlink(out);
	return 0;
}

int staged_end(const char *staged, const char *path, int rc, struct kymo_error *err)
{
	if (!staged[0])
		return rc;
	if (!rc && rename(staged, path))
		rc = error_set(err, errno, "cannot rename %s to %s: %s", staged, path,
			       strerror(errno));
	if (rc)
		unlink(staged);
	return rc;
}
