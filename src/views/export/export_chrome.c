/*
 * Chrome's trace event format: an object with traceEvents, times in microseconds with a fraction.
 * Zones are complete events (X), open ones begins (B), marks instants (i), counters C, names of
 * processes and threads metadata (M). Steps and operations of devices are complete events of tracks
 * of their own. kymo import makes the same rows of them again.
 */
#include "views/export/export.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "import/trace.h"
#include "views/export/export_rows.h"
#include "views/query/json.h"
#include "views/query/rows.h"
#include "views/term/format.h"
#include "views/timeline/sampled_zones.h"
#include "views_sql.h"

/* Without a double, which would lose nanoseconds in a long run. */
static void add_us(struct buf *out, int64_t ns)
{
	uint64_t value = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

	buf_print(out, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", value / 1000,
		  (unsigned int)(value % 1000));
}

static void add_member(struct buf *out, const char *key, const char *text, size_t bytes)
{
	buf_print(out, "\"%s\":", key);
	json_text(out, text, bytes);
}

static void export_chrome_add_name(struct buf *out, const char *what, int32_t pid, int32_t tid,
				   const char *name)
{
	buf_print(out, "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{", pid, tid,
		  what);
	add_member(out, "name", name, strlen(name));
	buf_text(out, "}},\n");
}

static int export_chrome_process_row(const struct rows *rows, void *context)
{
	struct export *export = context;
	char name[256];
	int32_t pid = (int32_t)rows_number(rows, 0, 0);

	rows_copy_text(rows, 1, name, sizeof(name));
	export_chrome_add_name(&export->buf, "process_name", pid, 0, name);
	return export_flush(export, false);
}

static int export_chrome_thread_row(const struct rows *rows, void *context)
{
	struct export *export = context;
	char name[64];

	rows_copy_text(rows, 2, name, sizeof(name));
	export_chrome_add_name(&export->buf, "thread_name", (int32_t)rows_number(rows, 0, 0),
			       (int32_t)rows_number(rows, 1, 0), name);
	return export_flush(export, false);
}

static int export_chrome_begin_thread(struct zone_walk *walk, const struct zone_walk_thread *thread)
{
	struct export *export = walk->context;

	if (thread->name[0] && thread->tid >= SAMPLED_ZONES_TID) /* others: see thread_row */
		export_chrome_add_name(&export->buf, "thread_name", thread->pid, thread->tid,
				       thread->name);
	return export_flush(export, false);
}

/* A zone that ends after the one around it is cut there: viewers nest by time. Start and duration
   are rounded, so that this may be 1 ns; kymo import adds it again. */
static void export_chrome_add_place(struct buf *out, const struct name_entry *frame,
				    const struct zone_walk_zone *zone)
{
	buf_print(out, ",\"args\":{\"step\":%" PRId64, zone->step);
	if (zone->cut_ns && !zone->open)
		buf_print(out, ",\"" TRACE_OWN_CUT "\":%" PRId64, zone->cut_ns);
	if (frame->file_bytes) {
		buf_char(out, ',');
		add_member(out, "file", frame->file, frame->file_bytes);
		buf_print(out, ",\"line\":%d", frame->line);
	}
	buf_char(out, '}');
}

static int export_chrome_begin_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				    struct zone_walk_zone *parent)
{
	struct export *export = walk->context;
	const struct name_entry *frame = &walk->frames->list[zone->frame];
	struct buf *out = &export->buf;

	(void)parent;
	buf_print(out, "{\"ph\":\"%c\",\"pid\":%d,\"tid\":%d,", zone->open ? 'B' : 'X',
		  walk->at->pid, walk->at->tid);
	add_member(out, "name", frame->name, frame->name_bytes);
	buf_char(out, ',');
	add_member(out, "cat", frame->source, frame->source_bytes);
	buf_text(out, ",\"ts\":");
	add_us(out, zone->start_ns);
	if (!zone->open) {
		buf_text(out, ",\"dur\":");
		add_us(out, zone->end_ns - zone->start_ns);
	}
	export_chrome_add_place(out, frame, zone);
	buf_text(out, "},\n");
	return export_flush(export, false);
}

static void add_row_text(struct buf *out, const char *key, const struct rows *rows, size_t column)
{
	struct tables_cell cell;

	tables_cell(rows->result, column, rows->row, &cell);
	add_member(out, key, cell.kind == TABLES_TEXT ? cell.text : "",
		   cell.kind == TABLES_TEXT ? cell.text_bytes : 0);
}

static int export_chrome_mark_row(const struct rows *rows, void *context)
{
	struct export *export = context;
	struct buf *out = &export->buf;

	buf_print(out, "{\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%d,\"ts\":",
		  (int)rows_number(rows, 1, 0), (int)rows_number(rows, 2, 0));
	add_us(out, (int64_t)rows_number(rows, 0, 0));
	buf_char(out, ',');
	add_row_text(out, "name", rows, 3);
	buf_text(out, ",\"args\":{");
	add_row_text(out, "text", rows, 4);
	buf_text(out, "}},\n");
	return export_flush(export, false);
}

static int export_chrome_counter_row(const struct rows *rows, void *context)
{
	struct export *export = context;
	struct buf *out = &export->buf;
	double value = rows_number(rows, 3, NAN);

	/* JSON cannot represent NaN and infinities. */
	if (!isfinite(value))
		return 0;
	/* A viewer needs no tid; kymo import gives the value to the thread. */
	buf_print(out, "{\"ph\":\"C\",\"pid\":%d,\"tid\":%d,\"ts\":", (int)rows_number(rows, 1, 0),
		  (int)rows_number(rows, 4, 0));
	add_us(out, (int64_t)rows_number(rows, 0, 0));
	buf_char(out, ',');
	add_row_text(out, "name", rows, 2);
	buf_print(out, ",\"args\":{\"value\":%s}},\n", format_double(value).text);
	return export_flush(export, false);
}

/* ---- steps and operations of devices --------------------------------------------------------- */

static void export_chrome_argument(struct buf *out, const char *key, const struct tables_cell *cell)
{
	buf_char(out, ',');
	if (cell->kind == TABLES_TEXT)
		add_member(out, key, cell->text, cell->text_bytes);
	else if (cell->kind == TABLES_UNSIGNED)
		buf_print(out, "\"%s\":%" PRIu64, key, cell->unsigned_integer);
	else
		buf_print(out, "\"%s\":%" PRId64, key, cell->integer);
}

static int export_chrome_row(struct export *export, const struct export_row *row)
{
	const int32_t tid = EXPORT_ROWS_TID + row->track;
	struct buf *out = &export->buf;
	struct tables_cell cell;
	const char *key;

	if (row->begins)
		export_chrome_add_name(out, "thread_name", row->pid, tid, row->track_name);
	buf_print(out, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,\"cat\":\"%s\",",
		  row->has_times ? "X" : "i", row->pid, tid, row->category);
	add_member(out, "name", row->name.kind == TABLES_TEXT ? row->name.text : "",
		   row->name.kind == TABLES_TEXT ? row->name.text_bytes : 0);
	buf_text(out, ",\"ts\":");
	add_us(out, row->start_ns);
	if (row->has_times) {
		buf_text(out, ",\"dur\":");
		add_us(out, row->end_ns - row->start_ns);
	}
	buf_text(out, ",\"args\":{\"kymo\":1");
	for (size_t i = 0; export_rows_argument(row, i, &key, &cell); i++)
		if (cell.kind != TABLES_NULL)
			export_chrome_argument(out, key, &cell);
	buf_text(out, "}},\n");
	return export_flush(export, false);
}

/* When the recording began: with it times are those of the day, and kymo import starts there. */
static void export_chrome_end(struct export *export)
{
	const double began = tables_number(
		export->tables, "SELECT started_unix_ns // 1000000000 FROM kymo.runs", 0);
	const double rest = tables_number(export->tables,
					  "SELECT started_unix_ns % 1000000000 FROM kymo.runs", 0);

	buf_text(&export->buf, "\n],\"otherData\":{\"recorder\":\"kymo " KYMO_VERSION "\"}");
	if (began > 0 && began < 4e9)
		buf_print(&export->buf, ",\"baseTimeNanoseconds\":%" PRId64,
			  (int64_t)began * 1000000000 + (int64_t)rest);
	buf_text(&export->buf, "}\n");
}

static int export_chrome_write(struct export *export)
{
	static const struct zone_walk_visitor visitor = { .thread = export_chrome_begin_thread,
							  .begin = export_chrome_begin_zone };
	char program[256];
	int rc;

	buf_text(&export->buf, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	rc = rows_each(export->tables,
		       "SELECT pid, program FROM kymo.processes WHERE role = 'target' ORDER BY pid",
		       export_chrome_process_row, export, export->err);
	if (!rc)
		rc = rows_each(export->tables, sql_export_threads, export_chrome_thread_row, export,
			       export->err);
	if (!rc)
		rc = export_walk(export, &visitor, true);
	if (!rc)
		rc = export_rows(export, export_chrome_row);
	if (!rc)
		rc = rows_each(export->tables,
			       "SELECT ts_ns, pid, tid, name, text FROM trace.marks ORDER BY ts_ns",
			       export_chrome_mark_row, export, export->err);
	if (!rc)
		rc = rows_each(
			export->tables,
			"SELECT ts_ns, pid, name, value, tid FROM trace.counters ORDER BY ts_ns",
			export_chrome_counter_row, export, export->err);
	if (rc)
		return rc;
	/* Every event ends with a comma but this one. */
	export_program(export, program, sizeof(program));
	buf_text(&export->buf,
		 "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"trace_name\",\"args\":{");
	add_member(&export->buf, "name", program, strlen(program));
	buf_text(&export->buf, "}}");
	export_chrome_end(export);
	return export_flush(export, true);
}

const struct export_format export_chrome = {
	.name = "chrome",
	.extension = ".json",
	.about = "the same as Chrome's trace event JSON",
	.media_type = "application/json",
	.download = "kymo.trace.json",
	.write = export_chrome_write,
};
