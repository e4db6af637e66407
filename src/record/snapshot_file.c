#include "record/snapshot_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/page_memory.h"

void kymo__snapshot_file_write_at(struct snapshot_file *writer, const char *bytes, size_t count,
				  uint64_t at)
{
	if (count > writer->most || at > writer->most - count)
		writer->error = writer->error ? writer->error : -EFBIG;
	while (count && !writer->error) {
		ssize_t done = pwrite(writer->fd, bytes, count, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			writer->error = done ? -errno : -EIO;
			break;
		}
		bytes += done;
		count -= (size_t)done;
		at += (uint64_t)done;
	}
}

void kymo__snapshot_file_flush(struct snapshot_file *writer)
{
	kymo__snapshot_file_write_at(writer, writer->buffer, writer->buffered,
				     writer->at - writer->buffered);
	writer->buffered = 0;
}

void kymo__snapshot_file_add(struct snapshot_file *writer, const void *bytes, size_t count)
{
	const char *from = bytes;

	while (count && !writer->error) {
		size_t room = SNAPSHOT_FILE_BUFFER_BYTES - writer->buffered;
		size_t part = count < room ? count : room;

		memcpy(writer->buffer + writer->buffered, from, part);
		writer->buffered += part;
		writer->at += part;
		from += part;
		count -= part;
		if (writer->buffered == SNAPSHOT_FILE_BUFFER_BYTES)
			kymo__snapshot_file_flush(writer);
	}
}

void kymo__snapshot_file_add_zeros(struct snapshot_file *writer, size_t count)
{
	static const char zeros[256];

	for (; count > sizeof(zeros); count -= sizeof(zeros))
		kymo__snapshot_file_add(writer, zeros, sizeof(zeros));
	kymo__snapshot_file_add(writer, zeros, count);
}

void kymo__snapshot_file_begin(struct snapshot_file *writer, const char *process, const char *name)
{
	void *entries;
	struct kymo_snapshot_entry *entry;
	int length;

	kymo__snapshot_file_add_zeros(writer, (size_t)(-writer->at & 63));
	entries = page_memory_grow(writer->entries, &writer->room_bytes,
				   (writer->count + 1) * sizeof(*entry));
	if (!entries) {
		writer->error = writer->error ? writer->error : -ENOMEM;
		return;
	}
	writer->entries = entries;
	entry = &writer->entries[writer->count++];
	memset(entry, 0, sizeof(*entry));
	length = snprintf(entry->path, sizeof(entry->path), "%s%s%s", process ? process : "",
			  process ? "/" : "", name);
	if ((size_t)length >= sizeof(entry->path))
		writer->error = writer->error ? writer->error : -ENAMETOOLONG;
	entry->offset = writer->at;
}

struct kymo_snapshot_entry *kymo__snapshot_file_end(struct snapshot_file *writer)
{
	struct kymo_snapshot_entry *entry = writer->count ? &writer->entries[writer->count - 1]
							  : &writer->nowhere;

	entry->bytes = writer->at - entry->offset;
	return entry;
}
