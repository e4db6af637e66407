#include "collect/move/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/atomic_file.h"

#define BLOCK_BYTES 4096u
#define BUFFER_BYTES (64u << 10)

static int write_at(int fd, const char *data, size_t bytes, off_t at)
{
	while (bytes) {
		ssize_t done = pwrite(fd, data, bytes, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		data += done;
		bytes -= (size_t)done;
		at += done;
	}
	return 0;
}

static bool is_zero(const char *block, size_t bytes)
{
	return !block[0] && !memcmp(block, block + 1, bytes - 1);
}

static int write_without_zeros(int to, const char *data, size_t bytes, off_t at)
{
	for (size_t done = 0; done < bytes; done += BLOCK_BYTES) {
		size_t block = bytes - done < BLOCK_BYTES ? bytes - done : BLOCK_BYTES;
		int rc = is_zero(data + done, block)
				 ? 0
				 : write_at(to, data + done, block, at + (off_t)done);

		if (rc)
			return rc;
	}
	return 0;
}

/* Copies through a buffer: to find zeros, or where sendfile() is not supported. */
static int pump_read(int from, int to, off_t at, off_t end, enum copy_how how)
{
	static char buffer[BUFFER_BYTES];

	while (at < end) {
		size_t want = end - at < (off_t)sizeof(buffer) ? (size_t)(end - at)
							       : sizeof(buffer);
		ssize_t got = pread(from, buffer, want, at);
		int rc;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : 0; /* 0: the file was truncated during the copy */
		rc = how == COPY_THIN ? write_without_zeros(to, buffer, (size_t)got, at)
				      : write_at(to, buffer, (size_t)got, at);
		if (rc)
			return rc;
		at += got;
	}
	return 0;
}

static int pump(int from, int to, off_t at, off_t end, enum copy_how how)
{
	if (how == COPY_THIN || lseek(to, at, SEEK_SET) < 0)
		return pump_read(from, to, at, end, how);
	while (at < end) {
		/* Advances `at` and the offset of `to`. */
		ssize_t done = sendfile(to, from, &at, (size_t)(end - at));

		if (done < 0 && (errno == EINVAL || errno == ENOSYS))
			return pump_read(from, to, at, end, how);
		if (done < 0 && errno != EINTR)
			return -errno;
		if (!done)
			break;
	}
	return 0;
}

/* Copies only data, not holes: a hostile file may have any length. */
static int pump_all(int from, int to, enum copy_how how, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t start = lseek(from, at, SEEK_DATA);
		off_t end;
		int rc;

		if (start < 0 && errno == ENXIO)
			break;
		if (start < 0)
			/* the file system does not report holes */
			return pump(from, to, at, size, how);
		end = lseek(from, start, SEEK_HOLE);
		if (end < 0 || end > size)
			end = size;
		rc = pump(from, to, start, end, how);
		if (rc)
			return rc;
		at = end > at ? end : size;
	}
	return 0;
}

static int copy_bytes(int from, int to, enum copy_how how, uint64_t *out_bytes)
{
	struct stat st;
	int rc;

	if (fstat(from, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	rc = pump_all(from, to, how, st.st_size);
	if (!rc && ftruncate(to, st.st_size))
		rc = -errno;
	if (!rc && !fstat(to, &st))
		*out_bytes = (uint64_t)st.st_blocks * 512u;
	return rc;
}

static int copy_to_temporary(int from_dir, int to_dir, const char *name, const char *temporary,
			     enum copy_how how, uint64_t *out_bytes)
{
	int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int to, rc;

	if (from < 0)
		return -errno;
	unlinkat(to_dir, temporary, 0); /* of a copy that was interrupted */
	to = openat(to_dir, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	rc = to < 0 ? -errno : copy_bytes(from, to, how, out_bytes);
	/* Some file systems report a full disk only here. */
	if (to >= 0 && close(to) && !rc)
		rc = -errno;
	close(from);
	return rc;
}

static int link_to_temporary(int from_dir, int to_dir, const char *name, const char *temporary,
			     uint64_t *out_bytes)
{
	struct stat st;

	unlinkat(to_dir, temporary, 0);
	if (linkat(from_dir, name, to_dir, temporary, 0))
		return -errno;
	if (fstatat(to_dir, temporary, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) {
		unlinkat(to_dir, temporary, 0);
		return -EINVAL;
	}
	*out_bytes = (uint64_t)st.st_blocks * 512u;
	return 0;
}

int copy_file(int from_dir, int to_dir, const char *name, enum copy_how how, uint64_t *out_bytes)
{
	char temporary[128];
	int rc = atomic_file_part_name(name, temporary, sizeof(temporary));

	if (rc)
		return rc;
	rc = -EXDEV;
	if (how == COPY_WHOLE)
		rc = link_to_temporary(from_dir, to_dir, name, temporary, out_bytes);
	if (rc)
		rc = copy_to_temporary(from_dir, to_dir, name, temporary, how, out_bytes);
	rc = atomic_file_publish(to_dir, temporary, name, rc);
	/* After success, too: renaming a link onto another link of the same file leaves both. */
	if (how == COPY_WHOLE)
		unlinkat(to_dir, temporary, 0);
	return rc;
}
