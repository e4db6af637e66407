/* The part without stdio and memory of its own, which libkymo uses inside the recorded program. */
#include "base/files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int atomic_file_part_name(const char *name, char *out, size_t out_bytes)
{
	const char *slash = strrchr(name, '/');
	int folder = slash ? (int)(slash + 1 - name) : 0;
	int length = snprintf(out, out_bytes, "%.*s.%s.part", folder, name, name + folder);

	return length < 0 || (size_t)length >= out_bytes ? -ENAMETOOLONG : 0;
}

int atomic_file_publish(int directory, const char *part, const char *name, int rc)
{
	if (!rc && renameat(directory, part, directory, name))
		rc = -errno;
	if (rc)
		unlinkat(directory, part, 0);
	return rc;
}

/* Writing beyond RLIMIT_FSIZE raises SIGXFSZ, so no write begins there. */
static int atomic_file_write(int fd, const char *bytes, size_t count)
{
	struct rlimit limit;
	size_t written = 0;

	if (getrlimit(RLIMIT_FSIZE, &limit))
		limit.rlim_cur = RLIM_INFINITY;
	while (written < count) {
		ssize_t done = written < limit.rlim_cur
				       ? write(fd, bytes + written, count - written)
				       : (errno = EFBIG, -1);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		written += (size_t)done;
	}
	return 0;
}

int atomic_file_put(int directory, const char *name, const void *bytes, size_t count)
{
	char part[KYMO_PATH_BYTES + 16];
	int rc = atomic_file_part_name(name, part, sizeof(part));
	int fd;

	if (rc)
		return rc;
	/* Left by a writer that was killed, or a link to another file: never written through. */
	unlinkat(directory, part, 0);
	fd = openat(directory, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	rc = atomic_file_write(fd, bytes, count);
	/* Some file systems report only here that there was no room. */
	if (close(fd) && !rc)
		rc = -errno;
	return atomic_file_publish(directory, part, name, rc);
}
