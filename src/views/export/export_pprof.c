/*
 * pprof's profile.proto, gzipped. A sample has three values: zones, their self time, and samples of
 * Python stacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "views/export/export_stacks.h"
#include "views/export/protobuf.h"

enum { /* Profile */
       PROFILE_SAMPLE_TYPE = 1,
       PROFILE_SAMPLE = 2,
       PROFILE_LOCATION = 4,
       PROFILE_FUNCTION = 5,
       PROFILE_STRING = 6,
       PROFILE_TIME = 9,
       PROFILE_DURATION = 10,
       PROFILE_DEFAULT_TYPE = 14,
};
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4, LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

/* Strings 0 to 7; then the name and the file of each frame. The first has to be "". */
static const char *const strings[] = { "",	  "zones", "count",  "time", "nanoseconds",
				       "samples", "?",	   "sampled" };
#define STRING_COUNT (sizeof(strings) / sizeof(strings[0]))

static void export_pprof_add_type(struct buf *out, struct buf *message, uint64_t type,
				  uint64_t unit)
{
	protobuf_number(message, 1, type);
	protobuf_number(message, 2, unit);
	protobuf_message(out, PROFILE_SAMPLE_TYPE, message);
}

static void add_pprof_head(struct export *export, const struct export_stacks *own,
			   struct buf *message)
{
	struct buf *out = &export->buf;

	for (size_t i = 0; i < STRING_COUNT; i++)
		protobuf_text(out, PROFILE_STRING, strings[i], strlen(strings[i]));
	export_pprof_add_type(out, message, 1, 2);
	export_pprof_add_type(out, message, 3, 4);
	export_pprof_add_type(out, message, 5, 2);
	if (own->weighted)
		export_pprof_add_type(out, message, 7, 4);
	protobuf_number(out, PROFILE_DEFAULT_TYPE, own->weighted && !own->marked ? 7 : 3);
	protobuf_number(out, PROFILE_TIME,
			(uint64_t)tables_number(export->tables,
						"SELECT min(started_unix_ns) FROM kymo.runs", 0));
	protobuf_number(out, PROFILE_DURATION,
			(uint64_t)tables_number(export->tables,
						"SELECT max(duration_ns) FROM kymo.runs", 0));
}

/* A location and a function for each frame, both with its number + 1. */
static void export_pprof_add_frame(struct buf *out, struct buf *message, struct buf *line,
				   const struct name_entry *frame, uint64_t id)
{
	uint64_t name = STRING_COUNT + 2 * (id - 1);

	protobuf_text(out, PROFILE_STRING, frame->name, frame->name_bytes);
	protobuf_text(out, PROFILE_STRING, frame->file, frame->file_bytes);
	name = frame->name_bytes ? name : 6;
	protobuf_number(message, FUNCTION_ID, id);
	protobuf_number(message, FUNCTION_NAME, name);
	protobuf_number(message, FUNCTION_SYSTEM_NAME, name);
	protobuf_number(message, FUNCTION_FILE, STRING_COUNT + 2 * (id - 1) + 1);
	protobuf_message(out, PROFILE_FUNCTION, message);
	protobuf_number(line, LINE_FUNCTION, id);
	protobuf_number(line, LINE_NUMBER, (uint64_t)(int64_t)frame->line);
	protobuf_number(message, LOCATION_ID, id);
	protobuf_message(message, LOCATION_LINE, line);
	protobuf_message(out, PROFILE_LOCATION, message);
}

/* Innermost first. */
static void add_pprof_sample(struct buf *out, struct buf *message, struct buf *packed,
			     struct export_stacks *own, uint32_t node)
{
	size_t depth = call_tree_path(&own->tree, node, own->path, EXPORT_STACKS_DEPTH);

	for (size_t k = depth; k; k--)
		protobuf_varint(packed, (uint64_t)own->tree.nodes[own->path[k - 1]].frame + 1);
	protobuf_message(message, SAMPLE_LOCATIONS, packed);
	for (int i = 0; i <= (own->weighted ? EXPORT_SAMPLED_NS : EXPORT_SAMPLES); i++)
		protobuf_varint(packed, (uint64_t)own->tree.nodes[node].values[i]);
	protobuf_message(message, SAMPLE_VALUES, packed);
	protobuf_message(out, PROFILE_SAMPLE, message);
}

static void add_pprof_stacks(struct export *export, struct export_stacks *own)
{
	struct buf *out = &export->buf, message = { 0 }, inner = { 0 };

	add_pprof_head(export, own, &message);
	for (size_t i = 0; i < export->frames.count; i++)
		export_pprof_add_frame(out, &message, &inner, &export->frames.list[i], i + 1);
	for (uint32_t i = 1; i < own->tree.count; i++) {
		const double *values = own->tree.nodes[i].values;

		if (values[EXPORT_ZONES] > 0 || values[EXPORT_SAMPLES] > 0)
			add_pprof_sample(out, &message, &inner, own, i);
	}
	out->failed |= message.failed || inner.failed;
	buf_fini(&message);
	buf_fini(&inner);
}

static int put_gzipped(gzFile file, const struct buf *buf)
{
	const char *data = buf_get(buf);
	size_t done = 0;

	while (done < buf->used) {
		size_t left = buf->used - done;
		int put = gzwrite(file, data + done, left < 1u << 30 ? (unsigned)left : 1u << 30);

		if (put <= 0)
			return -1;
		done += (size_t)put;
	}
	return 0;
}

/* Through the file's descriptor: nothing is buffered in `out` yet. */
static int write_gzipped(FILE *out, const struct buf *buf, struct kymo_error *err)
{
	int fd = fcntl(fileno(out), F_DUPFD_CLOEXEC, 0);
	gzFile file = fd < 0 ? NULL : gzdopen(fd, "wb");
	int failed;

	errno = 0;
	if (!file) {
		if (fd >= 0)
			close(fd);
		return error_set(err, ENOMEM, "cannot write the result: no memory for zlib");
	}
	failed = put_gzipped(file, buf);
	failed |= gzclose(file) != Z_OK;
	if (!failed)
		return 0;
	return error_set(err, errno ? errno : EIO, "cannot write the result: %s",
			 strerror(errno ? errno : EIO));
}

static int write_pprof(struct export *export, struct export_stacks *own)
{
	add_pprof_stacks(export, own);
	if (export->buf.failed)
		return error_set(export->err, ENOMEM, "out of memory while writing the result");
	return write_gzipped(export->out, &export->buf, export->err);
}

static int export_pprof_write(struct export *export)
{
	return export_stacks(export, true, true, write_pprof);
}

const struct export_format export_pprof = {
	.name = "pprof",
	.extension = ".pb.gz",
	.about = "self time by stack, and samples, for pprof",
	.binary = true,
	.media_type = "application/octet-stream",
	.download = "kymo.pb.gz",
	.write = export_pprof_write,
};
