#include "views/export/export_rows.h"

#include <string.h>

#include "import/trace.h"
#include "views/query/rows.h"
#include "views_sql.h"

enum {
	COLUMN_PID,
	COLUMN_TRACK_NAME,
	COLUMN_TRACK,
	COLUMN_NAME,
	COLUMN_START,
	COLUMN_END,
	ARGUMENTS
};

struct export_rows_context {
	struct export *export;
	int (*write)(struct export *export, const struct export_row *row);
	const char *category;
	int32_t pid, track; /* of the row before */
};

static int export_rows_row(const struct rows *rows, void *context)
{
	struct export_rows_context *own = context;
	struct export_row row = { .category = own->category,
				  .result = rows->result,
				  .row = rows->row,
				  .columns = tables_column_count(rows->result) };
	struct tables_cell start, end;

	row.pid = (int32_t)rows_number(rows, COLUMN_PID, 0);
	row.track = (int32_t)rows_number(rows, COLUMN_TRACK, 0);
	row.begins = row.track != own->track || row.pid != own->pid;
	own->track = row.track;
	own->pid = row.pid;
	rows_copy_text(rows, COLUMN_TRACK_NAME, row.track_name, sizeof(row.track_name));
	tables_cell(rows->result, COLUMN_NAME, rows->row, &row.name);
	tables_cell(rows->result, COLUMN_START, rows->row, &start);
	tables_cell(rows->result, COLUMN_END, rows->row, &end);
	row.has_times = start.kind == TABLES_INTEGER && end.kind == TABLES_INTEGER &&
			end.integer >= start.integer;
	row.start_ns = start.kind == TABLES_INTEGER ? start.integer : 0;
	row.end_ns = end.kind == TABLES_INTEGER ? end.integer : row.start_ns;
	return own->write(own->export, &row);
}

int export_rows(struct export *export,
		int (*write)(struct export *export, const struct export_row *row))
{
	struct export_rows_context steps = { .export = export,
					     .write = write,
					     .category = TRACE_OWN_STEPS };
	struct export_rows_context ops = { .export = export,
					   .write = write,
					   .category = TRACE_OWN_OPS };
	int rc = rows_each(export->tables, sql_export_steps, export_rows_row, &steps, export->err);

	return rc ? rc
		  : rows_each(export->tables, sql_export_ops, export_rows_row, &ops, export->err);
}

bool export_rows_argument(const struct export_row *row, size_t number, const char **key,
			  struct tables_cell *out)
{
	if (number >= row->columns - ARGUMENTS)
		return false;
	*key = tables_column_name(row->result, ARGUMENTS + number);
	tables_cell(row->result, ARGUMENTS + number, row->row, out);
	return true;
}
