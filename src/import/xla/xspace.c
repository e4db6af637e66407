#include "import/xla/xspace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "import/input/protobuf_read.h"

#define DEPTH_MOST 128u
#define ABSOLUTE_NS (INT64_C(1) << 58) /* a line's time that is greater counts since 1970 */
#define PS_MOST (UINT64_C(1) << 62)

enum { /* XSpace, XPlane, an entry of a map */
       SPACE_PLANE = 1,
       PLANE_NAME = 2,
       PLANE_LINE = 3,
       PLANE_EVENTS = 4,
       PLANE_STATS = 5,
       PLANE_STAT = 6,
       ENTRY_KEY = 1,
       ENTRY_VALUE = 2,
       METADATA_NAME = 2,
};
enum { /* XLine, XEvent, XStat */
       LINE_NAME = 2,
       LINE_TIMESTAMP = 3,
       LINE_EVENT = 4,
       EVENT_METADATA = 1,
       EVENT_OFFSET = 2,
       EVENT_DURATION = 3,
       EVENT_STAT = 4,
       STAT_METADATA = 1,
       STAT_UINT = 3,
       STAT_INT = 4,
       STAT_TEXT = 5,
       STAT_REF = 7,
};

/* Names by id, of a plane's events or stats. */
struct named {
	uint64_t id;
	struct xspace_text name;
};
struct named_list {
	struct named *list;
	size_t count, room;
};

struct plane {
	struct xspace *space;
	struct xspace_text name;
	struct named_list events, stats;
	uint64_t hlo_op, hlo_module; /* ids of stats; 0: unknown */
	int64_t start_ns; /* of the session */
	bool is_host, bad, full;
};

static struct xspace_text xspace_field_text(const struct protobuf_field *field)
{
	const uint64_t most = 4096;

	if (field->wire != 2)
		return (struct xspace_text){ 0 };
	return (struct xspace_text){ (const char *)field->at,
				     (uint32_t)(field->value < most ? field->value : most) };
}

static bool xspace_text_is(struct xspace_text text, const char *word)
{
	return text.bytes == strlen(word) && !memcmp(text.at, word, text.bytes);
}

static bool text_begins(struct xspace_text text, const char *word)
{
	return text.bytes >= strlen(word) && !memcmp(text.at, word, strlen(word));
}

/* ---- names --------------------------------------------------------------------------------- */

static void take_entry(struct plane *plane, struct named_list *list,
		       const struct protobuf_field *entry)
{
	struct protobuf_reader reader = protobuf_read_message(entry), inner;
	struct protobuf_field field;
	struct named named = { 0 };

	while (protobuf_read_next(&reader, &field)) {
		if (field.number == ENTRY_KEY)
			named.id = field.value;
		if (field.number != ENTRY_VALUE)
			continue;
		inner = protobuf_read_message(&field);
		while (protobuf_read_next(&inner, &field))
			if (field.number == METADATA_NAME)
				named.name = xspace_field_text(&field);
		reader.bad |= inner.bad;
	}
	plane->bad |= reader.bad;
	if (grow((void **)&list->list, &list->room, list->count, sizeof(*list->list)))
		list->list[list->count++] = named;
	else
		plane->full = true;
}

static int compare_named(const void *left, const void *right)
{
	const struct named *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

static struct xspace_text xspace_name_of(const struct named_list *list, uint64_t id)
{
	const struct named key = { .id = id };
	const struct named *found = list->count ? bsearch(&key, list->list, list->count,
							  sizeof(key), compare_named)
						: NULL;

	return found ? found->name : (struct xspace_text){ 0 };
}

static void sort_names(struct named_list *list)
{
	if (list->count)
		qsort(list->list, list->count, sizeof(*list->list), compare_named);
}

static uint64_t xspace_id_of(const struct named_list *list, const char *word)
{
	for (size_t i = 0; i < list->count; i++)
		if (xspace_text_is(list->list[i].name, word))
			return list->list[i].id;
	return 0;
}

/* ---- events -------------------------------------------------------------------------------- */

struct stat_value {
	uint64_t id, number;
	struct xspace_text text;
};

static struct stat_value read_stat(struct plane *plane, const struct protobuf_field *message)
{
	struct protobuf_reader reader = protobuf_read_message(message);
	struct protobuf_field field;
	struct stat_value value = { 0 };

	while (protobuf_read_next(&reader, &field)) {
		if (field.number == STAT_METADATA)
			value.id = field.value;
		else if (field.number == STAT_UINT || field.number == STAT_INT)
			value.number = field.value;
		else if (field.number == STAT_TEXT)
			value.text = xspace_field_text(&field);
		else if (field.number == STAT_REF)
			value.text = xspace_name_of(&plane->stats, field.value);
	}
	plane->bad |= reader.bad;
	return value;
}

static void xspace_take_event(struct plane *plane, const struct protobuf_field *message,
			      int64_t line_ns)
{
	struct protobuf_reader reader = protobuf_read_message(message);
	struct protobuf_field field;
	struct xspace *space = plane->space;
	struct xspace_op op = { .line = (uint32_t)space->line_count - 1 };
	uint64_t offset_ps = 0, duration_ps = 0;
	bool wanted = !plane->is_host;

	while (protobuf_read_next(&reader, &field)) {
		struct stat_value stat;

		switch (field.number) {
		case EVENT_METADATA: op.name = xspace_name_of(&plane->events, field.value); break;
		case EVENT_OFFSET: offset_ps = field.value; break;
		case EVENT_DURATION: duration_ps = field.value; break;
		case EVENT_STAT:
			stat = read_stat(plane, &field);
			wanted |= stat.id && stat.id == plane->hlo_op;
			if (stat.id && stat.id == plane->hlo_module)
				op.module = stat.text;
			break;
		default: break;
		}
	}
	plane->bad |= reader.bad;
	if (!wanted || !op.name.bytes || offset_ps > PS_MOST || duration_ps > PS_MOST)
		return;
	op.start_ns = line_ns + (int64_t)(offset_ps / 1000);
	op.duration_ns = (int64_t)(duration_ps / 1000);
	if (grow((void **)&space->ops, &space->op_room, space->op_count, sizeof(op)))
		space->ops[space->op_count++] = op;
	else
		plane->full = true;
}

static void xspace_take_line(struct plane *plane, const struct protobuf_field *message)
{
	struct protobuf_reader reader = protobuf_read_message(message);
	struct protobuf_field field;
	struct xspace *space = plane->space;
	struct xspace_line line = { .plane = plane->name };
	int64_t at_ns = 0;

	while (protobuf_read_next(&reader, &field)) {
		if (field.number == LINE_NAME)
			line.name = xspace_field_text(&field);
		if (field.number == LINE_TIMESTAMP && field.value < PS_MOST)
			at_ns = (int64_t)field.value;
	}
	plane->bad |= reader.bad;
	if (!grow((void **)&space->lines, &space->line_room, space->line_count, sizeof(line))) {
		plane->full = true;
		return;
	}
	space->lines[space->line_count++] = line;
	if (at_ns < ABSOLUTE_NS)
		at_ns += plane->start_ns;
	reader = protobuf_read_message(message);
	while (protobuf_read_next(&reader, &field) && !plane->full)
		if (field.number == LINE_EVENT)
			xspace_take_event(plane, &field, at_ns);
}

/* ---- planes -------------------------------------------------------------------------------- */

static void read_metadata(struct plane *plane, const struct protobuf_field *message)
{
	struct protobuf_reader reader = protobuf_read_message(message);
	struct protobuf_field field;

	while (protobuf_read_next(&reader, &field)) {
		if (field.number == PLANE_NAME)
			plane->name = xspace_field_text(&field);
		else if (field.number == PLANE_EVENTS)
			take_entry(plane, &plane->events, &field);
		else if (field.number == PLANE_STATS)
			take_entry(plane, &plane->stats, &field);
	}
	plane->bad |= reader.bad;
	sort_names(&plane->events);
	sort_names(&plane->stats);
	plane->is_host = text_begins(plane->name, "/host:");
	plane->hlo_op = xspace_id_of(&plane->stats, "hlo_op");
	plane->hlo_module = xspace_id_of(&plane->stats, "hlo_module");
}

/* The time at which the session began: the stat of a plane of its own. */
static void xspace_read_start(struct plane *plane, const struct protobuf_field *message)
{
	struct protobuf_reader reader = protobuf_read_message(message);
	const uint64_t wanted = xspace_id_of(&plane->stats, "profile_start_time");
	struct protobuf_field field;

	while (wanted && protobuf_read_next(&reader, &field))
		if (field.number == PLANE_STAT) {
			struct stat_value stat = read_stat(plane, &field);

			if (stat.id == wanted && stat.number < PS_MOST)
				plane->start_ns = (int64_t)stat.number;
		}
}

static void xspace_read_lines(struct plane *plane, const struct protobuf_field *message)
{
	struct protobuf_reader reader = protobuf_read_message(message);
	struct protobuf_field field;

	while (protobuf_read_next(&reader, &field) && !plane->full)
		if (field.number == PLANE_LINE)
			xspace_take_line(plane, &field);
}

/* start: only the session's start is read. */
static int read_planes(struct xspace *space, struct protobuf_reader reader, int64_t *start_ns,
		       bool start)
{
	struct protobuf_field field;
	bool bad = false, full = false;

	while (!full && protobuf_read_next(&reader, &field)) {
		struct plane plane = { .space = space, .start_ns = *start_ns };

		if (field.number != SPACE_PLANE)
			continue;
		read_metadata(&plane, &field);
		if (start && xspace_text_is(plane.name, "Task Environment"))
			xspace_read_start(&plane, &field);
		else if (!start && (plane.is_host || text_begins(plane.name, "/device:")))
			xspace_read_lines(&plane, &field);
		*start_ns = plane.start_ns;
		bad |= plane.bad;
		full |= plane.full;
		free(plane.events.list);
		free(plane.stats.list);
	}
	return full ? -ENOMEM : bad || reader.bad ? -EINVAL : 0;
}

/* ---- depths -------------------------------------------------------------------------------- */

static int xspace_compare_ops(const void *left, const void *right)
{
	const struct xspace_op *a = left, *b = right;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->duration_ns < b->duration_ns) - (a->duration_ns > b->duration_ns);
}

static void set_depths(struct xspace *space)
{
	int64_t ends[DEPTH_MOST];
	uint32_t depth = 0;

	for (size_t i = 0; i < space->op_count; i++) {
		struct xspace_op *op = &space->ops[i];

		if (i && op->line != op[-1].line)
			depth = 0;
		while (depth && ends[depth - 1] <= op->start_ns)
			depth--;
		op->depth = depth;
		if (depth < DEPTH_MOST)
			ends[depth++] = op->start_ns + op->duration_ns;
	}
}

int xspace_read(struct xspace *out, const void *bytes, size_t count)
{
	const struct protobuf_reader reader = { bytes, (const unsigned char *)bytes + count,
						false };
	int64_t start_ns = 0;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = read_planes(out, reader, &start_ns, true);
	if (!rc)
		rc = read_planes(out, reader, &start_ns, false);
	if (out->op_count)
		qsort(out->ops, out->op_count, sizeof(*out->ops), xspace_compare_ops);
	set_depths(out);
	return rc;
}

void xspace_free(struct xspace *space)
{
	free(space->lines);
	free(space->ops);
	memset(space, 0, sizeof(*space));
}
