/*
 * What is summed by stack: folded lines (a;b;c 1234, self time in ns, or samples) and pprof's
 * profile.proto, gzipped. A sample of pprof has three values: zones, their self time, and samples
 * of Python stacks.
 */
#include "views/export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "views/export/gzip.h"
#include "views/export/protobuf.h"
#include "views/query/rows.h"
#include "views/stacks/sampled.h"
#include "views/stacks/stacks.h"
#include "views/term/text.h"

#define DEPTH_MOST 4096 /* of a stack that is written; more is cut at its inner end */

enum { ZONES, SELF_NS, SAMPLES };

struct summed {
	struct stacks stacks;
	uint32_t path[DEPTH_MOST];
};

/* ---- summing -------------------------------------------------------------------------------- */

static int export_stacks_begin_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				    struct zone_walk_zone *parent)
{
	struct summed *own = ((struct export *)walk->context)->own;

	zone->tag = stacks_child(&own->stacks, parent ? (uint32_t)parent->tag : 0, zone->frame);
	return 0;
}

static int export_stacks_end_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				  struct zone_walk_zone *parent)
{
	struct summed *own = ((struct export *)walk->context)->own;
	struct stacks_node *node = &own->stacks.nodes[zone->tag];

	(void)parent;
	node->values[ZONES]++;
	node->values[SELF_NS] += (double)(zone->end_ns - zone->start_ns - zone->inside_ns);
	return 0;
}

static int export_stacks_add_sample(const struct sampled_stack *stack, void *context)
{
	struct export *export = context;
	struct summed *own = export->own;
	uint32_t node = 0;

	for (size_t i = 0; i < stack->depth; i++)
		node = stacks_child(&own->stacks, node, stack->frames[i]);
	own->stacks.nodes[node].values[SAMPLES] += (double)stack->count;
	return 0;
}

static int sum_zones(struct export *export)
{
	static const struct zone_walk_visitor visitor = { .begin = export_stacks_begin_zone,
							  .end = export_stacks_end_zone };

	return export_walk(export, &visitor);
}

static int sum_samples(struct export *export)
{
	return sampled_each(export->tables, &export->frames, export_stacks_add_sample, export,
			    export->err);
}

/* ---- folded --------------------------------------------------------------------------------- */

/* A ; would part a name in two, and the last blank ends the stack. */
static void add_folded_name(struct buf *out, const struct frames_one *frame)
{
	size_t from = out->used;

	text_visible(out, frame->name, frame->name_bytes);
	if (!frame->name_bytes)
		buf_char(out, '?');
	for (size_t i = from; i < out->used; i++)
		out->data[i] = (char)(out->data[i] == ';' ? ':' : out->data[i]);
}

static int write_folded(struct export *export, struct summed *own)
{
	int value = export->options->samples ? SAMPLES : SELF_NS, rc = 0;

	for (uint32_t i = 1; !rc && i < own->stacks.count; i++) {
		size_t depth;

		if (own->stacks.nodes[i].values[value] <= 0)
			continue;
		depth = stacks_path(&own->stacks, i, own->path, DEPTH_MOST);
		for (size_t k = 0; k < depth; k++) {
			if (k)
				buf_char(&export->buf, ';');
			add_folded_name(
				&export->buf,
				&export->frames.list[own->stacks.nodes[own->path[k]].frame]);
		}
		buf_print(&export->buf, " %.0f\n", own->stacks.nodes[i].values[value]);
		rc = export_flush(export, false);
	}
	return rc ? rc : export_flush(export, true);
}

/* ---- pprof ---------------------------------------------------------------------------------- */

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

/* Strings 0 to 6; then the name and the file of each frame. The first has to be "". */
static const char *const strings[] = {
	"", "zones", "count", "time", "nanoseconds", "samples", "?"
};
#define STRING_COUNT (sizeof(strings) / sizeof(strings[0]))

static void export_stacks_add_type(struct buf *out, struct buf *message, uint64_t type,
				   uint64_t unit)
{
	protobuf_number(message, 1, type);
	protobuf_number(message, 2, unit);
	protobuf_message(out, PROFILE_SAMPLE_TYPE, message);
}

static void add_pprof_head(struct export *export, struct buf *message)
{
	struct buf *out = &export->buf;

	for (size_t i = 0; i < STRING_COUNT; i++)
		protobuf_text(out, PROFILE_STRING, strings[i], strlen(strings[i]));
	export_stacks_add_type(out, message, 1, 2);
	export_stacks_add_type(out, message, 3, 4);
	export_stacks_add_type(out, message, 5, 2);
	protobuf_number(out, PROFILE_DEFAULT_TYPE, 3);
	protobuf_number(out, PROFILE_TIME,
			(uint64_t)tables_number(export->tables,
						"SELECT started_unix_ns FROM kymo.runs", 0));
	protobuf_number(
		out, PROFILE_DURATION,
		(uint64_t)tables_number(export->tables, "SELECT duration_ns FROM kymo.runs", 0));
}

/* A location and a function for each frame, both with its number + 1. */
static void export_stacks_add_frame(struct buf *out, struct buf *message, struct buf *line,
				    const struct frames_one *frame, uint64_t id)
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
			     struct summed *own, uint32_t node)
{
	size_t depth = stacks_path(&own->stacks, node, own->path, DEPTH_MOST);

	for (size_t k = depth; k; k--)
		protobuf_varint(packed, (uint64_t)own->stacks.nodes[own->path[k - 1]].frame + 1);
	protobuf_message(message, SAMPLE_LOCATIONS, packed);
	for (int i = 0; i < STACKS_VALUES; i++)
		protobuf_varint(packed, (uint64_t)own->stacks.nodes[node].values[i]);
	protobuf_message(message, SAMPLE_VALUES, packed);
	protobuf_message(out, PROFILE_SAMPLE, message);
}

static int write_pprof(struct export *export, struct summed *own)
{
	struct buf message = { 0 }, inner = { 0 };
	struct gzip gzip;
	int rc;

	gzip_begin(&gzip, export->out);
	add_pprof_head(export, &message);
	rc = gzip_write(&gzip, &export->buf, export->err);
	for (size_t i = 0; !rc && i < export->frames.count; i++) {
		export_stacks_add_frame(&export->buf, &message, &inner, &export->frames.list[i],
					i + 1);
		rc = gzip_write(&gzip, &export->buf, export->err);
	}
	for (uint32_t i = 1; !rc && i < own->stacks.count; i++) {
		const double *values = own->stacks.nodes[i].values;

		if (values[ZONES] <= 0 && values[SAMPLES] <= 0)
			continue;
		add_pprof_sample(&export->buf, &message, &inner, own, i);
		rc = gzip_write(&gzip, &export->buf, export->err);
	}
	if (!rc)
		rc = gzip_end(&gzip, export->err);
	buf_fini(&message);
	buf_fini(&inner);
	return rc;
}

/* ---- both ----------------------------------------------------------------------------------- */

static int summed(struct export *export, bool zones, bool samples,
		  int (*write)(struct export *export, struct summed *own))
{
	struct summed *own = malloc(sizeof(*own));
	int rc = 0;

	if (!own || stacks_init(&own->stacks)) {
		free(own);
		return error_set(export->err, ENOMEM, "no memory for stacks");
	}
	export->own = own;
	if (zones)
		rc = sum_zones(export);
	if (!rc && samples)
		rc = sum_samples(export);
	if (!rc)
		rc = write(export, own);
	stacks_fini(&own->stacks);
	free(own);
	return rc;
}

int export_folded(struct export *export)
{
	return summed(export, !export->options->samples, export->options->samples, write_folded);
}

int export_pprof(struct export *export)
{
	return summed(export, true, true, write_pprof);
}
