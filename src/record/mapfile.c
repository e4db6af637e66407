/* Mapped files that grow. No descriptor stays open: the program's descriptor table is left
   alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "record/record.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static int mapfile_path_of(const char *name, char *out, size_t out_bytes)
{
	int length = snprintf(out, out_bytes, "%s/%s", kymo__process.dir, name);

	return length > 0 && (size_t)length < out_bytes ? 0 : -ENAMETOOLONG;
}

static void held_bytes_add(int64_t bytes)
{
	if (kymo__process.control)
		kymo__fetch_add_relaxed(&kymo__process.control->held_bytes, (uint64_t)bytes);
}

bool kymo__room_for(size_t bytes, size_t file_bytes)
{
	struct statvfs fs;
	struct rlimit limit;
	uint64_t held, moved, free_bytes;

	/* Beyond the limit the kernel would send SIGXFSZ. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    file_bytes > limit.rlim_cur)
		return false;
	if (!kymo__process.control)
		return true; /* setup: a few pages */
	if (statvfs(kymo__process.dir, &fs))
		return false;
	held = kymo__load_relaxed(&kymo__process.control->held_bytes);
	moved = kymo__load_relaxed(&kymo__process.control->moved_bytes);
	held -= moved < held ? moved : held;
	free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (kymo__load_relaxed(&kymo__process.ending))
		return bytes < free_bytes;
	if (held + bytes > kymo__process.budget_bytes)
		return false;
	/* The program needs the tmpfs, too: use at most an eighth of what would be free without
	   kymo. */
	return bytes < free_bytes && held + bytes <= (free_bytes + held) / 8;
}

/* An unpopulated page would cost 1.5 µs within a zone. Older kernels cannot populate. */
static void populate(char *base, size_t from, size_t to, int how)
{
	size_t start = from & ~(size_t)4095;

	madvise(base + start, to - start, how);
}

/* If the address space is limited, the program needs it: reserve little, and be full earlier. */
static size_t reserve_within_limits(size_t reserve, size_t initial)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return reserve;
	return reserve / 32 > initial ? reserve / 32 : initial;
}

/* ---- the collector's spare files ---------------------------------------------------------- */

/* A missing page would raise SIGBUS on a full tmpfs. */
static bool is_whole(int fd, size_t bytes)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	       st.st_uid == geteuid() && (uint64_t)st.st_size == bytes &&
	       (uint64_t)st.st_blocks * 512 >= bytes;
}

/* rename() arbitrates between threads. Dying after it leaves the same as dying in create_new(): a
   file without a head, beyond segment_next. */
static bool rename_spare(unsigned number, const char *path)
{
	char name[32], spare[KYMO_PATH_BYTES + 64];

	snprintf(name, sizeof(name), KYMO_SPARE_NAME, number);
	return !mapfile_path_of(name, spare, sizeof(spare)) && !rename(spare, path);
}

/* Allocating and zeroing a page here takes 2 µs, mapping an existing one a quarter of that.
   -ENOENT: there is none. */
static int take_spare(const char *path, size_t bytes)
{
	const struct kymo_control *control = kymo__process.control;

	if (!control || kymo__load_relaxed(&control->spare_bytes) != bytes)
		return -ENOENT;
	for (unsigned i = 0; i < KYMO_SPARES_MOST; i++) {
		int fd;

		if (!rename_spare(i, path))
			continue;
		fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0 && is_whole(fd, bytes))
			return fd;
		if (fd >= 0)
			close(fd);
		unlink(path);
	}
	return -ENOENT;
}

/* ---- files --------------------------------------------------------------------------------- */

/* A descriptor, or a negative errno and no file. */
static int create_new(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	if (!fallocate(fd, 0, 0, (off_t)bytes) ||
	    (errno == EOPNOTSUPP && !ftruncate(fd, (off_t)bytes)))
		return fd;
	rc = -errno;
	close(fd);
	unlink(path);
	return rc;
}

int kymo__mapfile_create(struct kymo__mapfile *file, const char *name, size_t reserve,
			 size_t initial)
{
	char path[KYMO_PATH_BYTES + 64];
	/* An existing zero page is mapped by a read together with its neighbours, and is writable
	   at once. */
	int how = MADV_POPULATE_READ;
	void *base;
	int rc = mapfile_path_of(name, path, sizeof(path));
	int fd;

	if (rc)
		return rc;
	if (!kymo__room_for(initial, initial))
		return -ENOSPC;
	reserve = reserve_within_limits(reserve, initial);
	fd = take_spare(path, initial);
	if (fd < 0) {
		how = MADV_POPULATE_WRITE;
		fd = create_new(path, initial);
	}
	if (fd < 0)
		return fd;
	base = mmap(NULL, reserve, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	rc = base == MAP_FAILED ? -errno : 0;
	close(fd);
	if (rc) {
		unlink(path);
		return rc;
	}
	file->base = base;
	file->reserved = reserve;
	kymo__store_release(&file->allocated, initial);
	held_bytes_add((int64_t)initial);
	populate(base, 0, initial, how);
	return 0;
}

int kymo__mapfile_grow(struct kymo__mapfile *file, const char *name, size_t need)
{
	char path[KYMO_PATH_BYTES + 64];
	size_t had = kymo__load_acquire(&file->allocated);
	int rc, fd;

	if (need <= had)
		return 0;
	if (need > file->reserved || !kymo__room_for(need - had, need))
		return -ENOSPC;
	rc = mapfile_path_of(name, path, sizeof(path));
	if (rc)
		return rc;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	/* Idempotent: two threads may do it at once. */
	if (fallocate(fd, 0, 0, (off_t)need) && (errno != EOPNOTSUPP || ftruncate(fd, (off_t)need)))
		rc = -errno;
	close(fd);
	if (rc)
		return rc;
	populate(file->base, had, need, MADV_POPULATE_WRITE);
	while (need > had && !kymo__cas_weak_release_acquire(&file->allocated, &had, need))
		;
	if (need > had)
		held_bytes_add((int64_t)(need - had));
	return 0;
}

void kymo__mapfile_close(struct kymo__mapfile *file)
{
	if (file->base)
		munmap(file->base, file->reserved);
	memset(file, 0, sizeof(*file));
}

void kymo__mapfile_begun(void *head, const char *magic, size_t head_bytes)
{
	struct kymo_file_head *at = head;
	uint64_t word;

	at->version = KYMO_FORMAT_VERSION;
	at->head_bytes = (uint32_t)head_bytes;
	memcpy(&word, magic, sizeof(word));
	kymo__store_release((uint64_t *)head, word);
}

void kymo__unlink(const char *name)
{
	char path[KYMO_PATH_BYTES + 64];
	struct stat st;

	if (!mapfile_path_of(name, path, sizeof(path)) && !stat(path, &st) && !unlink(path))
		held_bytes_add(-(int64_t)st.st_size);
}
