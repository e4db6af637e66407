#include "base/files/readat.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES_MAX (1u << 20)

uint64_t readat_size(const struct readat *file)
{
	struct stat st;

	if (!file->whole)
		return file->bytes;
	if (file->fd < 0 || fstat(file->fd, &st) || st.st_size < 0)
		return 0;
	return (uint64_t)st.st_size;
}

static size_t copy_from_fd(int fd, uint64_t at, char *out, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got = pread(fd, out + done, bytes - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

size_t readat_copy(const struct readat *file, uint64_t at, void *out, size_t bytes)
{
	if (!file->whole) {
		if (at >= file->bytes)
			return 0;
		if (bytes > file->bytes - at)
			bytes = (size_t)(file->bytes - at);
	}
	if (at > INT64_MAX - file->offset - bytes)
		return 0;
	if (file->memory) {
		memcpy(out, file->memory + file->offset + at, bytes);
		return bytes;
	}
	return file->fd < 0 ? 0 : copy_from_fd(file->fd, file->offset + at, out, bytes);
}

/* Blocks that a file system compresses look like holes here; lseek() distinguishes them. */
static bool may_have_holes(const struct readat *file)
{
	struct stat st;

	return !file->memory && file->fd >= 0 && !fstat(file->fd, &st) && st.st_size > 0 &&
	       (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size;
}

bool readat_stored(const struct readat *file, uint64_t at, uint64_t end, uint64_t *out_from,
		   uint64_t *out_to)
{
	off_t data, hole;

	*out_from = at;
	*out_to = end;
	if (at >= end)
		return false;
	if (!may_have_holes(file) || at > INT64_MAX - file->offset)
		return true;
	data = lseek(file->fd, (off_t)(file->offset + at), SEEK_DATA);
	if (data < 0)
		return errno != ENXIO; /* ENXIO: a hole up to the end of the file */
	hole = lseek(file->fd, data, SEEK_HOLE);
	*out_from = (uint64_t)data - file->offset;
	if (hole > data && (uint64_t)hole - file->offset < end)
		*out_to = (uint64_t)hole - file->offset;
	return *out_from < end;
}

size_t readat_copy_stored(const struct readat *file, uint64_t at, void *out, size_t bytes)
{
	const uint64_t size = readat_size(file);
	uint64_t from, to, got;

	if (at >= size)
		return 0;
	if (bytes > size - at)
		bytes = (size_t)(size - at);
	for (uint64_t next = at; readat_stored(file, next, at + bytes, &from, &to); next = to) {
		got = readat_copy(file, from, (char *)out + (from - at), (size_t)(to - from));
		if (got < to - from)
			return (size_t)(from - at + got);
	}
	return bytes;
}

void readat_close(struct readat *file)
{
	const struct readat none = READAT_NONE;

	if (file->owned && file->fd >= 0)
		close(file->fd);
	*file = none;
}

static int wrong_version(uint32_t version, const char *label, struct kymo_error *err)
{
	return error_set(
		err, EPROTO,
		"%s has format version %u, but this kymo reads versions %u to %u; use %s kymo",
		label, version, KYMO_FORMAT_OLDEST, KYMO_FORMAT_VERSION,
		version > KYMO_FORMAT_VERSION ? "a newer" : "an older");
}

int readat_head(const struct readat *file, const char *magic, void *out, size_t out_bytes,
		const char *label, struct kymo_error *err)
{
	struct kymo_file_head head;
	size_t wanted;

	memset(out, 0, out_bytes);
	memset(&head, 0, sizeof(head));
	readat_copy(file, 0, &head, sizeof(head));
	if (!memcmp(head.magic, "\0\0\0\0\0\0\0", sizeof(head.magic)))
		return error_set(err, ENODATA, "%s is empty: the program ended while creating it",
				 label);
	if (!readat_all(file, 0, &head, sizeof(head)))
		return error_set(err, EPROTO, "%s is truncated: it has %llu bytes", label,
				 (unsigned long long)readat_size(file));
	if (memcmp(head.magic, magic, sizeof(head.magic)))
		return error_set(err, EPROTO, "%s is not a kymo file: it does not begin with %s",
				 label, magic);
	if (head.version < KYMO_FORMAT_OLDEST || head.version > KYMO_FORMAT_VERSION)
		return wrong_version(head.version, label, err);
	if (head.head_bytes < sizeof(head) || head.head_bytes > HEAD_BYTES_MAX)
		return error_set(err, EPROTO, "%s is damaged: it claims a header of %u bytes",
				 label, head.head_bytes);
	wanted = head.head_bytes < out_bytes ? head.head_bytes : out_bytes;
	if (!readat_all(file, 0, out, wanted))
		return error_set(err, EPROTO, "%s is truncated: it has %llu bytes, its header %u",
				 label, (unsigned long long)readat_size(file), head.head_bytes);
	return 0;
}
