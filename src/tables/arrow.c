/* Writes a result as an Arrow IPC stream: DuckDB converts chunks to Arrow arrays, nanoarrow
   writes them. */
#include "tables/tables.h"

#include <errno.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>

#include "tables/arrow_enums.h"
#include "tables/scan/cell.h"
#include "tables/query_watchdog.h"

struct writer {
	struct tables_result *result;
	int fd;
	int write_error; /* errno of the last write */
	duckdb_arrow_options options;
	struct ArrowSchema schema; /* as DuckDB returns them */
	struct ArrowSchema plain; /* as written */
	struct ArrowArrayView view;
	struct ArrowIpcWriter ipc;
	struct ArrowError why;
};

static ArrowErrorCode fd_write(struct ArrowIpcOutputStream *stream, const void *bytes,
			       int64_t count, int64_t *written, struct ArrowError *why)
{
	struct writer *writer = stream->private_data;
	ssize_t done;

	do
		done = write(writer->fd, bytes, (size_t)count);
	while (done < 0 && errno == EINTR);
	*written = done < 0 ? 0 : done;
	writer->write_error = done < 0 ? errno : 0;
	if (done < 0)
		ArrowErrorSet(why, "%s", strerror(errno));
	return writer->write_error;
}

static void fd_release(struct ArrowIpcOutputStream *stream)
{
	stream->release = NULL;
}

static int arrow_failed(const struct writer *writer, const char *doing, struct kymo_error *err)
{
	if (writer->write_error)
		return error_set(err, writer->write_error, "cannot write the Arrow stream: %s",
				 strerror(writer->write_error));
	return error_set(err, EIO, "%s: %s", doing,
			 writer->why.message[0] ? writer->why.message : "no reason is given");
}

static int duck_failed(duckdb_error_data error, const char *doing, struct kymo_error *err)
{
	int rc = 0;

	if (error && duck.error_data_has_error(error))
		rc = error_set(err, EIO, "%s: %s", doing, duck.error_data_message(error));
	duck.destroy_error_data(&error);
	return rc;
}

static int make_schema(struct writer *writer, struct kymo_error *err)
{
	struct tables_result *result = writer->result;
	duckdb_logical_type *types = calloc(result->column_count + 1, sizeof(types[0]));
	const char **names = calloc(result->column_count + 1, sizeof(names[0]));
	int rc;

	for (size_t i = 0; types && names && i < result->column_count; i++) {
		types[i] = result->columns[i].type;
		names[i] = result->columns[i].name;
	}
	if (types && names)
		rc = duck_failed(duck.to_arrow_schema(writer->options, types, names,
						      result->column_count, &writer->schema),
				 "cannot convert the columns to Arrow", err);
	else
		rc = error_set(err, ENOMEM, "no memory for the Arrow schema");
	free(types);
	free(names);
	return rc;
}

static int arrow_start(struct writer *writer, struct kymo_error *err)
{
	struct ArrowIpcOutputStream stream = { fd_write, fd_release, writer };
	int rc = make_schema(writer, err);

	if (rc)
		return rc;
	if (arrow_enums_plain_schema(&writer->schema, &writer->plain) ||
	    ArrowArrayViewInitFromSchema(&writer->view, &writer->plain, &writer->why) ||
	    ArrowIpcWriterInit(&writer->ipc, &stream) ||
	    ArrowIpcWriterWriteSchema(&writer->ipc, &writer->plain, &writer->why))
		return arrow_failed(writer, "cannot write the Arrow schema", err);
	return 0;
}

static int write_chunk(struct writer *writer, struct kymo_error *err)
{
	struct ArrowArray array = { .release = NULL };
	int rc = duck_failed(
		duck.data_chunk_to_arrow(writer->options, writer->result->chunk, &array),
		"cannot convert the rows to Arrow", err);

	if (!rc && (arrow_enums_plain_array(&writer->schema, &array, &writer->why) ||
		    ArrowArrayViewSetArray(&writer->view, &array, &writer->why) ||
		    ArrowIpcWriterWriteArrayView(&writer->ipc, &writer->view, &writer->why)))
		rc = arrow_failed(writer, "cannot write rows as Arrow", err);
	if (array.release)
		array.release(&array);
	return rc;
}

static int arrow_write_all(struct writer *writer, struct kymo_error *err)
{
	int64_t count = 0;
	int rc = arrow_start(writer, err);

	while (!rc && (count = tables_next(writer->result, err)) > 0)
		rc = write_chunk(writer, err);
	if (!rc && count < 0)
		rc = (int)count;
	/* The end of the stream; without it readers report a truncated one. */
	if (!rc && ArrowIpcWriterWriteArrayView(&writer->ipc, NULL, &writer->why))
		rc = arrow_failed(writer, "cannot end the Arrow stream", err);
	return rc;
}

int tables_write_arrow(struct tables_result *result, int fd, struct kymo_error *err)
{
	struct writer writer = { .result = result, .fd = fd };
	int rc;

	ArrowArrayViewInitFromType(&writer.view, NANOARROW_TYPE_UNINITIALIZED);
	writer.options = duck.result_get_arrow_options(&result->result);
	rc = arrow_write_all(&writer, err);
	if (writer.ipc.private_data)
		ArrowIpcWriterReset(&writer.ipc);
	ArrowArrayViewReset(&writer.view);
	if (writer.schema.release)
		writer.schema.release(&writer.schema);
	if (writer.plain.release)
		writer.plain.release(&writer.plain);
	duck.destroy_arrow_options(&writer.options);
	return rc;
}
