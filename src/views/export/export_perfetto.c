/*
 * Perfetto's protobuf: one message Trace, whose packets are written one after another. Names,
 * sources and places are interned; tracks are processes, threads and counters. Field numbers are
 * those of perfetto's public .proto files.
 */
#include "views/export/export.h"

#include <string.h>

#include "import/trace.h"
#include "views/export/export_rows.h"
#include "views/export/protobuf.h"
#include "views/query/rows.h"
#include "views/timeline/sampled_zones.h"
#include "views_sql.h"

enum { /* Trace, TracePacket */
       TRACE_PACKET = 1,
       PACKET_CLOCKS = 6,
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10,
       PACKET_EVENT = 11,
       PACKET_INTERNED = 12,
       PACKET_SEQUENCE_FLAGS = 13,
       PACKET_TRACK = 60,
};
enum { /* TrackDescriptor, ProcessDescriptor, ThreadDescriptor */
       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_THREAD = 4,
       TRACK_PARENT = 5,
       TRACK_COUNTER = 8,
       PROCESS_PID = 1,
       PROCESS_NAME = 6,
       THREAD_PID = 1,
       THREAD_TID = 2,
       THREAD_NAME = 5,
};
enum { /* TrackEvent */
       EVENT_CATEGORY_IIDS = 3,
       EVENT_ANNOTATION = 4,
       EVENT_TYPE = 9,
       EVENT_NAME_IID = 10,
       EVENT_TRACK = 11,
       EVENT_NAME = 23,
       EVENT_LOCATION_IID = 34,
       EVENT_DOUBLE = 44,
};
enum { EVENT_BEGIN = 1, EVENT_END = 2, EVENT_INSTANT = 3, EVENT_COUNTER = 4 };
enum { /* InternedData and what is in it */
       INTERNED_CATEGORY = 1,
       INTERNED_NAME = 2,
       INTERNED_LOCATION = 4,
       ENTRY_IID = 1,
       ENTRY_TEXT = 2,
       LOCATION_LINE = 4,
       ANNOTATION_TEXT = 6,
       ANNOTATION_INT = 4,
       ANNOTATION_NAME = 10,
       EVENT_CATEGORY = 22, /* of a TrackEvent, not interned */
};
enum { /* ClockSnapshot */
       SNAPSHOT_CLOCK = 1,
       CLOCK_ID = 1,
       CLOCK_TIMESTAMP = 2,
       CLOCK_REALTIME = 1,
       CLOCK_BOOTTIME = 6, /* the clock of packets */
};
enum { SEQUENCE = 1, CLEARED = 1, NEEDS_STATE = 2 };

struct perfetto {
	struct buf packet, event, message;
	size_t known; /* frames written so far */
	bool begun;
	uint64_t track; /* of the current thread */
	uint64_t counters; /* counted */
};

static uint64_t process_track(int32_t pid)
{
	return (uint64_t)1 << 62 | (uint32_t)pid;
}

static uint64_t thread_track(int32_t pid, int32_t tid)
{
	return (uint64_t)1 << 63 | (uint64_t)((uint32_t)pid & 0x7fffffff) << 32 | (uint32_t)tid;
}

static int end_packet(struct export *export)
{
	struct perfetto *own = export->own;

	protobuf_number(&own->packet, PACKET_SEQUENCE, SEQUENCE);
	protobuf_number(&own->packet, PACKET_SEQUENCE_FLAGS, own->begun ? NEEDS_STATE : CLEARED);
	own->begun = true;
	protobuf_message(&export->buf, TRACE_PACKET, &own->packet);
	return export_flush(export, false);
}

static void export_perfetto_add_time(struct perfetto *own, int64_t ns)
{
	protobuf_number(&own->packet, PACKET_TIMESTAMP, ns < 0 ? 0 : (uint64_t)ns);
}

/* ---- tracks --------------------------------------------------------------------------------- */

static int export_perfetto_process_row(const struct rows *rows, void *context)
{
	struct export *export = context;
	struct perfetto *own = export->own;
	int32_t pid = (int32_t)rows_number(rows, 0, 0);
	char name[256];

	rows_copy_text(rows, 1, name, sizeof(name));
	protobuf_number(&own->message, PROCESS_PID, (uint64_t)(int64_t)pid);
	protobuf_text(&own->message, PROCESS_NAME, name, strlen(name));
	protobuf_number(&own->event, TRACK_UUID, process_track(pid));
	protobuf_message(&own->event, TRACK_PROCESS, &own->message);
	protobuf_message(&own->packet, PACKET_TRACK, &own->event);
	return end_packet(export);
}

static int export_perfetto_add_thread(struct export *export, int32_t pid, int32_t tid,
				      const char *name)
{
	struct perfetto *own = export->own;

	protobuf_number(&own->message, THREAD_PID, (uint64_t)(int64_t)pid);
	protobuf_number(&own->message, THREAD_TID, (uint64_t)(int64_t)tid);
	protobuf_text(&own->message, THREAD_NAME, name, strlen(name));
	protobuf_number(&own->event, TRACK_UUID, thread_track(pid, tid));
	protobuf_number(&own->event, TRACK_PARENT, process_track(pid));
	protobuf_message(&own->event, TRACK_THREAD, &own->message);
	protobuf_message(&own->packet, PACKET_TRACK, &own->event);
	return end_packet(export);
}

/* From kymo.threads, since a thread may have marks and no zones. */
static int export_perfetto_thread_row(const struct rows *rows, void *context)
{
	char name[64];

	rows_copy_text(rows, 2, name, sizeof(name));
	return export_perfetto_add_thread(context, (int32_t)rows_number(rows, 0, 0),
					  (int32_t)rows_number(rows, 1, 0), name);
}

/* ---- zones ---------------------------------------------------------------------------------- */

static void add_entry(struct perfetto *own, uint32_t field, uint64_t iid, const char *text,
		      size_t bytes)
{
	protobuf_number(&own->message, ENTRY_IID, iid);
	protobuf_text(&own->message, ENTRY_TEXT, text, bytes);
	protobuf_message(&own->event, field, &own->message);
}

/* The packet that first uses a frame contains its texts. */
static void export_perfetto_intern(struct export *export, uint32_t number)
{
	struct perfetto *own = export->own;
	const struct name_entry *frame = &export->frames.list[number];
	uint64_t iid = (uint64_t)number + 1;

	if (number < own->known)
		return;
	own->known = (size_t)number + 1;
	add_entry(own, INTERNED_CATEGORY, iid, frame->source, frame->source_bytes);
	add_entry(own, INTERNED_NAME, iid, frame->name, frame->name_bytes);
	if (frame->file_bytes) {
		protobuf_number(&own->message, ENTRY_IID, iid);
		protobuf_text(&own->message, ENTRY_TEXT, frame->file, frame->file_bytes);
		protobuf_number(&own->message, LOCATION_LINE, (uint64_t)(int64_t)frame->line);
		protobuf_message(&own->event, INTERNED_LOCATION, &own->message);
	}
	protobuf_message(&own->packet, PACKET_INTERNED, &own->event);
}

/* Sampled stacks are a track of their own, which is no thread of the program. */
static int begin_samples(struct export *export, const struct zone_walk_thread *thread)
{
	struct perfetto *own = export->own;

	protobuf_number(&own->event, TRACK_UUID, own->track);
	protobuf_number(&own->event, TRACK_PARENT, process_track(thread->pid));
	protobuf_text(&own->event, TRACK_NAME, thread->name, strlen(thread->name));
	protobuf_message(&own->packet, PACKET_TRACK, &own->event);
	return end_packet(export);
}

static int export_perfetto_begin_thread(struct zone_walk *walk,
					const struct zone_walk_thread *thread)
{
	struct perfetto *own = ((struct export *)walk->context)->own;

	own->track = thread_track(thread->pid, thread->tid);
	return thread->tid >= SAMPLED_ZONES_TID ? begin_samples(walk->context, thread) : 0;
}

static void add_annotation(struct perfetto *own, const char *name)
{
	protobuf_text(&own->message, ANNOTATION_NAME, name, strlen(name));
	protobuf_message(&own->event, EVENT_ANNOTATION, &own->message);
}

static int export_perfetto_begin_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				      struct zone_walk_zone *parent)
{
	struct export *export = walk->context;
	struct perfetto *own = export->own;
	uint64_t iid = (uint64_t)zone->frame + 1;

	(void)parent;
	export_perfetto_add_time(own, zone->start_ns);
	export_perfetto_intern(export, zone->frame);
	protobuf_number(&own->event, EVENT_TYPE, EVENT_BEGIN);
	protobuf_number(&own->event, EVENT_TRACK, own->track);
	protobuf_number(&own->event, EVENT_CATEGORY_IIDS, iid);
	protobuf_number(&own->event, EVENT_NAME_IID, iid);
	if (walk->frames->list[zone->frame].file_bytes)
		protobuf_number(&own->event, EVENT_LOCATION_IID, iid);
	if (zone->step) {
		protobuf_number(&own->message, ANNOTATION_INT, (uint64_t)zone->step);
		add_annotation(own, "step");
	}
	if (zone->cut_ns && !zone->open) { /* as in the Chrome export */
		protobuf_number(&own->message, ANNOTATION_INT, (uint64_t)zone->cut_ns);
		add_annotation(own, TRACE_OWN_CUT);
	}
	protobuf_message(&own->packet, PACKET_EVENT, &own->event);
	return end_packet(export);
}

/* An open zone gets no end: the viewer shows it as unfinished. */
static int export_perfetto_end_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				    struct zone_walk_zone *parent)
{
	struct export *export = walk->context;
	struct perfetto *own = export->own;

	(void)parent;
	if (zone->open)
		return 0;
	export_perfetto_add_time(own, zone->end_ns);
	protobuf_number(&own->event, EVENT_TYPE, EVENT_END);
	protobuf_number(&own->event, EVENT_TRACK, own->track);
	protobuf_message(&own->packet, PACKET_EVENT, &own->event);
	return end_packet(export);
}

/* ---- marks and counters --------------------------------------------------------------------- */

static void export_perfetto_add_text(struct buf *out, uint32_t field, const struct rows *rows,
				     size_t column)
{
	struct tables_cell cell;

	tables_cell(rows->result, column, rows->row, &cell);
	protobuf_text(out, field, cell.kind == TABLES_TEXT ? cell.text : "",
		      cell.kind == TABLES_TEXT ? cell.text_bytes : 0);
}

static int export_perfetto_mark_row(const struct rows *rows, void *context)
{
	struct export *export = context;
	struct perfetto *own = export->own;

	export_perfetto_add_time(own, (int64_t)rows_number(rows, 0, 0));
	protobuf_number(&own->event, EVENT_TYPE, EVENT_INSTANT);
	protobuf_number(
		&own->event, EVENT_TRACK,
		thread_track((int32_t)rows_number(rows, 1, 0), (int32_t)rows_number(rows, 2, 0)));
	export_perfetto_add_text(&own->event, EVENT_NAME, rows, 3);
	export_perfetto_add_text(&own->message, ANNOTATION_TEXT, rows, 4);
	add_annotation(own, "text");
	protobuf_message(&own->packet, PACKET_EVENT, &own->event);
	return end_packet(export);
}

/* Rows come by process and name: the first of each creates the track. */
static int begin_counter(struct export *export, const struct rows *rows, int32_t pid)
{
	struct perfetto *own = export->own;

	protobuf_number(&own->event, TRACK_UUID, ++own->counters);
	protobuf_number(&own->event, TRACK_PARENT, process_track(pid));
	export_perfetto_add_text(&own->event, TRACK_NAME, rows, 2);
	protobuf_message(&own->event, TRACK_COUNTER, &own->message);
	protobuf_message(&own->packet, PACKET_TRACK, &own->event);
	return end_packet(export);
}

static int export_perfetto_counter_row(const struct rows *rows, void *context)
{
	struct export *export = context;
	struct perfetto *own = export->own;
	int rc = 0;

	if (rows_number(rows, 4, 0) == 1)
		rc = begin_counter(export, rows, (int32_t)rows_number(rows, 1, 0));
	if (rc)
		return rc;
	export_perfetto_add_time(own, (int64_t)rows_number(rows, 0, 0));
	protobuf_number(&own->event, EVENT_TYPE, EVENT_COUNTER);
	protobuf_number(&own->event, EVENT_TRACK, own->counters);
	protobuf_double(&own->event, EVENT_DOUBLE, rows_number(rows, 3, 0));
	protobuf_number(&own->message, ANNOTATION_INT, (uint64_t)rows_number(rows, 5, 0));
	add_annotation(own, "tid");
	protobuf_message(&own->packet, PACKET_EVENT, &own->event);
	return end_packet(export);
}

/* ---- steps and operations of devices --------------------------------------------------------- */

static uint64_t row_track(const struct export_row *row)
{
	return (uint64_t)1 << 61 | (uint64_t)((uint32_t)row->pid & 0x7fffffff) << 24 |
	       ((uint32_t)row->track & 0xffffff);
}

static int begin_row_track(struct export *export, const struct export_row *row)
{
	struct perfetto *own = export->own;

	protobuf_number(&own->event, TRACK_UUID, row_track(row));
	protobuf_number(&own->event, TRACK_PARENT, process_track(row->pid));
	protobuf_text(&own->event, TRACK_NAME, row->track_name, strlen(row->track_name));
	protobuf_message(&own->packet, PACKET_TRACK, &own->event);
	return end_packet(export);
}

static void add_row_arguments(struct perfetto *own, const struct export_row *row)
{
	struct tables_cell cell;
	const char *key;

	for (size_t i = 0; export_rows_argument(row, i, &key, &cell); i++) {
		if (cell.kind == TABLES_NULL)
			continue;
		if (cell.kind == TABLES_TEXT)
			protobuf_text(&own->message, ANNOTATION_TEXT, cell.text, cell.text_bytes);
		else
			protobuf_number(&own->message, ANNOTATION_INT,
					cell.kind == TABLES_UNSIGNED ? cell.unsigned_integer
								     : (uint64_t)cell.integer);
		add_annotation(own, key);
	}
}

static int row_event(struct export *export, const struct export_row *row, uint64_t type, int64_t ns)
{
	struct perfetto *own = export->own;

	export_perfetto_add_time(own, ns);
	protobuf_number(&own->event, EVENT_TYPE, type);
	protobuf_number(&own->event, EVENT_TRACK, row_track(row));
	if (type != EVENT_END) {
		protobuf_text(&own->event, EVENT_CATEGORY, row->category, strlen(row->category));
		protobuf_text(&own->event, EVENT_NAME,
			      row->name.kind == TABLES_TEXT ? row->name.text : "",
			      row->name.kind == TABLES_TEXT ? row->name.text_bytes : 0);
		add_row_arguments(own, row);
	}
	protobuf_message(&own->packet, PACKET_EVENT, &own->event);
	return end_packet(export);
}

static int export_perfetto_row(struct export *export, const struct export_row *row)
{
	int rc = row->begins ? begin_row_track(export, row) : 0;

	if (!rc)
		rc = row_event(export, row, row->has_times ? EVENT_BEGIN : EVENT_INSTANT,
			       row->start_ns);
	return rc || !row->has_times ? rc : row_event(export, row, EVENT_END, row->end_ns);
}

static void add_clock(struct perfetto *own, uint64_t id, uint64_t ns)
{
	protobuf_number(&own->message, CLOCK_ID, id);
	protobuf_number(&own->message, CLOCK_TIMESTAMP, ns);
	protobuf_message(&own->event, SNAPSHOT_CLOCK, &own->message);
}

/* When the recording began, by both clocks. */
static int add_clocks(struct export *export)
{
	struct perfetto *own = export->own;
	const double began = tables_number(
		export->tables, "SELECT started_unix_ns // 1000000000 FROM kymo.runs", 0);
	const double rest = tables_number(export->tables,
					  "SELECT started_unix_ns % 1000000000 FROM kymo.runs", 0);

	if (began <= 0 || began > 4e9)
		return 0;
	add_clock(own, CLOCK_BOOTTIME, 0);
	add_clock(own, CLOCK_REALTIME, (uint64_t)began * 1000000000 + (uint64_t)rest);
	protobuf_message(&own->packet, PACKET_CLOCKS, &own->event);
	return end_packet(export);
}

static int export_perfetto_write(struct export *export)
{
	static const struct zone_walk_visitor visitor = { export_perfetto_begin_thread,
							  export_perfetto_begin_zone,
							  export_perfetto_end_zone };
	struct perfetto own = { .known = 0 };
	int rc;

	export->own = &own;
	rc = rows_each(export->tables,
		       "SELECT pid, program FROM kymo.processes WHERE role = 'target' ORDER BY pid",
		       export_perfetto_process_row, export, export->err);
	if (!rc)
		rc = add_clocks(export);
	if (!rc)
		rc = rows_each(export->tables, sql_export_threads, export_perfetto_thread_row,
			       export, export->err);
	if (!rc)
		rc = export_walk(export, &visitor, true);
	if (!rc)
		rc = export_rows(export, export_perfetto_row);
	if (!rc)
		rc = rows_each(export->tables,
			       "SELECT ts_ns, pid, tid, name, text FROM trace.marks ORDER BY ts_ns",
			       export_perfetto_mark_row, export, export->err);
	if (!rc)
		rc = rows_each(export->tables, sql_export_counters, export_perfetto_counter_row,
			       export, export->err);
	if (!rc)
		rc = export_flush(export, true);
	buf_fini(&own.packet);
	buf_fini(&own.event);
	buf_fini(&own.message);
	return rc;
}

const struct export_format export_perfetto = {
	.name = "perfetto",
	.extension = ".perfetto-trace",
	.about = "zones, marks and counters for ui.perfetto.dev",
	.binary = true,
	.media_type = "application/octet-stream",
	.download = "kymo.perfetto-trace",
	.write = export_perfetto_write,
};
