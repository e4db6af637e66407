#include "collect/move/spare_segments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/atomic_file.h"
#include "base/format.h"

#define TEMPORARY ".spare.part"
#define ZEROS_BYTES (64u << 10)

static void spare_segments_name_of(char out[32], unsigned number)
{
	snprintf(out, 32, KYMO_SPARE_NAME, number);
}

/* Written, not only allocated: written pages are mapped together with their neighbours, at a third
   of the cost. */
static int write_zeros(int fd, uint64_t bytes)
{
	static const char zeros[ZEROS_BYTES];

	while (bytes) {
		ssize_t done = write(fd, zeros, bytes < sizeof(zeros) ? bytes : sizeof(zeros));

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		bytes -= (uint64_t)done;
	}
	return 0;
}

static int spare_segments_make(int live_fd, const char *name, uint64_t bytes)
{
	int fd, rc;

	unlinkat(live_fd, TEMPORARY, 0); /* left by a killed collector */
	fd = openat(live_fd, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = write_zeros(fd, bytes);
	close(fd);
	return atomic_file_publish(live_fd, TEMPORARY, name, rc);
}

static bool is_of_size(int live_fd, const char *name, uint64_t bytes)
{
	struct stat st;

	return !fstatat(live_fd, name, &st, AT_SYMLINK_NOFOLLOW) && (uint64_t)st.st_size == bytes;
}

/* A partially written size matches no segment. */
static void spare_segments_announce(int control_fd, uint64_t bytes)
{
	const off_t at = offsetof(struct kymo_control, spare_bytes);
	uint64_t announced = 0;
	ssize_t done = pread(control_fd, &announced, sizeof(announced), at);

	if (done == (ssize_t)sizeof(announced) && announced != bytes)
		done = pwrite(control_fd, &bytes, sizeof(bytes), at);
	(void)done; /* after a failure the program takes no spare segment */
}

int spare_segments_keep(int live_fd, int control_fd, uint64_t bytes, unsigned count)
{
	int made = 0;

	for (unsigned i = 0; i < count && i < KYMO_SPARES_MOST; i++) {
		char name[32];
		int rc;

		spare_segments_name_of(name, i);
		if (is_of_size(live_fd, name, bytes))
			continue;
		rc = spare_segments_make(live_fd, name, bytes);
		if (rc)
			return rc;
		made++;
	}
	spare_segments_announce(control_fd, bytes);
	return made;
}

void spare_segments_remove(int live_fd)
{
	unlinkat(live_fd, TEMPORARY, 0);
	for (unsigned i = 0; i < KYMO_SPARES_MOST; i++) {
		char name[32];

		spare_segments_name_of(name, i);
		unlinkat(live_fd, name, 0);
	}
}
