/*
 * OpenTelemetry's spans: an ExportTraceServiceRequest. The run is the root, or a child of the span
 * that TRACEPARENT named when it was started; zones, steps and operations of devices are below it.
 * The identity of a span follows from what it is, so that two exports of it agree.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "views/export/export_rows.h"
#include "views/export/otlp.h"
#include "views/export/protobuf.h"

enum { /* ScopeSpans, Span, Status */
       SCOPE_SPAN = 2,
       SPAN_TRACE = 1,
       SPAN_ID = 2,
       SPAN_PARENT = 4,
       SPAN_NAME = 5,
       SPAN_KIND = 6,
       SPAN_START = 7,
       SPAN_END = 8,
       SPAN_ATTRIBUTE = 9,
       SPAN_STATUS = 15,
       STATUS_CODE = 3,
};
enum { KIND_INTERNAL = 1, STATUS_ERROR = 2 };

static uint64_t span_id(const char *kind, const int64_t *words, size_t count)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *kind; kind++)
		hash = (hash ^ (unsigned char)*kind) * 0x100000001b3u;
	for (size_t i = 0; i < count; i++) {
		hash = (hash ^ (uint64_t)words[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
		hash *= 0xbf58476d1ce4e5b9u;
		hash ^= hash >> 32;
	}
	return hash ? hash : 1;
}

static void span_bytes(struct buf *out, uint32_t field, uint64_t id)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(id >> (56 - 8 * i));
	protobuf_bytes(out, field, bytes, sizeof(bytes));
}

/* All but its attributes, which the caller adds to otlp->item before otlp_end_span(). */
static void otlp_begin_span(struct otlp *otlp, uint64_t id, uint64_t parent, const char *name,
			    size_t name_bytes, int64_t start_ns, int64_t end_ns)
{
	struct buf *out = &otlp->item;

	protobuf_bytes(out, SPAN_TRACE, otlp->parent.trace, sizeof(otlp->parent.trace));
	span_bytes(out, SPAN_ID, id);
	if (parent)
		span_bytes(out, SPAN_PARENT, parent);
	protobuf_text(out, SPAN_NAME, name, name_bytes);
	protobuf_number(out, SPAN_KIND, KIND_INTERNAL);
	protobuf_fixed64(out, SPAN_START, (uint64_t)(otlp->epoch_ns + start_ns));
	protobuf_fixed64(out, SPAN_END, (uint64_t)(otlp->epoch_ns + end_ns));
}

static int otlp_end_span(struct export *export)
{
	struct otlp *otlp = export->own;

	protobuf_message(&otlp->items, SCOPE_SPAN, &otlp->item);
	return otlp_flush(export, otlp, false);
}

static int write_root(struct export *export)
{
	struct otlp *otlp = export->own;
	uint64_t parent = 0;

	for (size_t i = 0; i < sizeof(otlp->parent.span); i++)
		parent = parent << 8 | otlp->parent.span[i];
	otlp_begin_span(otlp, otlp->root, parent, otlp->program, strlen(otlp->program), 0,
			otlp->duration_ns);
	if (otlp->failed) {
		protobuf_number(&otlp->part, STATUS_CODE, STATUS_ERROR);
		protobuf_message(&otlp->item, SPAN_STATUS, &otlp->part);
	}
	return otlp_end_span(export);
}

/* ---- zones ---------------------------------------------------------------------------------- */

static int otlp_begin_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
			   struct zone_walk_zone *parent)
{
	int64_t words[] = { walk->at->pid,
			    walk->at->tid,
			    walk->at->lane,
			    zone->start_ns,
			    zone->depth,
			    zone->frame,
			    (int64_t)(parent ? parent->tag : 0) };

	zone->tag = span_id("zone", words, sizeof(words) / sizeof(words[0]));
	/* Equal ones in one place: of no time, one after another. */
	if (parent && parent->since_ns == (int64_t)zone->tag)
		zone->tag++;
	if (parent)
		parent->since_ns = (int64_t)zone->tag;
	return 0;
}

static int otlp_end_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
			 struct zone_walk_zone *parent)
{
	struct export *export = walk->context;
	struct otlp *otlp = export->own;
	const struct name_entry *frame = &walk->frames->list[zone->frame];
	struct buf *out = &otlp->item;

	otlp_begin_span(otlp, zone->tag, parent ? parent->tag : otlp->root, frame->name,
			frame->name_bytes, zone->start_ns, zone->end_ns);
	otlp_text(otlp, out, SPAN_ATTRIBUTE, "kymo.source", frame->source, frame->source_bytes);
	otlp_number(otlp, out, SPAN_ATTRIBUTE, "process.pid", walk->at->pid);
	otlp_number(otlp, out, SPAN_ATTRIBUTE, "thread.id", walk->at->tid);
	if (walk->at->name[0])
		otlp_text(otlp, out, SPAN_ATTRIBUTE, "thread.name", walk->at->name,
			  strlen(walk->at->name));
	if (walk->at->rank >= 0)
		otlp_number(otlp, out, SPAN_ATTRIBUTE, "kymo.rank", walk->at->rank);
	if (zone->step)
		otlp_number(otlp, out, SPAN_ATTRIBUTE, "kymo.step", zone->step);
	if (frame->file_bytes) {
		otlp_text(otlp, out, SPAN_ATTRIBUTE, "code.file.path", frame->file,
			  frame->file_bytes);
		otlp_number(otlp, out, SPAN_ATTRIBUTE, "code.line.number", frame->line);
	}
	if (zone->open)
		otlp_number(otlp, out, SPAN_ATTRIBUTE, "kymo.open", 1);
	return otlp_end_span(export);
}

/* ---- steps and operations ------------------------------------------------------------------- */

static int otlp_row(struct export *export, const struct export_row *row)
{
	struct otlp *otlp = export->own;
	int64_t words[] = { row->pid, row->track, row->start_ns, row->end_ns, (int64_t)row->row };
	struct tables_cell cell;
	const char *key;
	char name[64];

	if (!row->has_times)
		return 0;
	otlp_begin_span(otlp, span_id(row->category, words, sizeof(words) / sizeof(words[0])),
			otlp->root, row->name.kind == TABLES_TEXT ? row->name.text : "",
			row->name.kind == TABLES_TEXT ? row->name.text_bytes : 0, row->start_ns,
			row->end_ns);
	otlp_text(otlp, &otlp->item, SPAN_ATTRIBUTE, "kymo.track", row->track_name,
		  strlen(row->track_name));
	otlp_number(otlp, &otlp->item, SPAN_ATTRIBUTE, "process.pid", row->pid);
	for (size_t i = 0; export_rows_argument(row, i, &key, &cell); i++) {
		snprintf(name, sizeof(name), "kymo.%s", key);
		if (cell.kind == TABLES_INTEGER)
			otlp_number(otlp, &otlp->item, SPAN_ATTRIBUTE, name, cell.integer);
		else if (cell.kind == TABLES_DOUBLE)
			otlp_real(otlp, &otlp->item, SPAN_ATTRIBUTE, name, cell.real);
		else if (cell.kind == TABLES_TEXT)
			otlp_text(otlp, &otlp->item, SPAN_ATTRIBUTE, name, cell.text,
				  cell.text_bytes);
	}
	return otlp_end_span(export);
}

static int export_otlp_write(struct export *export)
{
	static const struct zone_walk_visitor visitor = { .begin = otlp_begin_zone,
							  .end = otlp_end_zone };
	struct otlp otlp = { .epoch_ns = 0 };
	int rc = otlp_begin(export, &otlp);

	export->own = &otlp;
	if (!rc)
		rc = write_root(export);
	if (!rc)
		rc = export_walk(export, &visitor, false);
	if (!rc)
		rc = export_rows(export, otlp_row);
	if (!rc)
		rc = otlp_flush(export, &otlp, true);
	otlp_end(&otlp);
	return rc;
}

const struct export_format export_otlp = {
	.name = "otlp",
	.extension = ".otlp",
	.about = "spans of OpenTelemetry: an ExportTraceServiceRequest",
	.binary = true,
	.media_type = "application/x-protobuf",
	.download = "kymo.otlp",
	.write = export_otlp_write,
};
