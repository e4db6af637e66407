/* Zones of a stretch of time for a picture: pieces of every track, as planes of bytes behind a
   header in JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve_inside.h"
#include "views/query/json.h"
#include "views/timeline/byte_planes.h"

#define LANES_SHOWN 256
#define WIDTH_MOST 16384
#define LEVEL_MOST 44
#define PIECES_MOST 4000000u

struct zones_request {
	int64_t from_ns, to_ns, level, names_from, gen;
	const char *lanes; /* NULL: all that are shown */
};

/* ---- what was asked ------------------------------------------------------------------------- */

static bool read_zones(struct request *request, const struct feed *feed, struct zones_request *out)
{
	int64_t width, end_ns = feed->now_ns > feed->end_ns ? feed->now_ns : feed->end_ns;

	out->lanes = request_get(request, "lanes");
	if (!request_number(request, "from", 0, &out->from_ns) ||
	    !request_number(request, "to", end_ns + 1, &out->to_ns) ||
	    !request_number(request, "width", 1024, &width) ||
	    !request_number(request, "level", -1, &out->level) ||
	    !request_number(request, "names_from", 0, &out->names_from) ||
	    !request_number(request, "gen", -1, &out->gen))
		return false;
	if (out->to_ns < out->from_ns || width < 1 || width > WIDTH_MOST ||
	    out->level > LEVEL_MOST) {
		answer_error(request, 400, "0 ≤ from ≤ to, 1 ≤ width ≤ 16384, level ≤ 44",
			     "this is no stretch of time, or no width of a picture");
		return false;
	}
	if (out->level < 0) {
		out->level = 0;
		while (out->level < LEVEL_MOST &&
		       INT64_C(2) << out->level <= (out->to_ns - out->from_ns) / width)
			out->level++;
	}
	return true;
}

static bool answer_zones_is_wanted(const struct zones_request *asked, uint32_t lane)
{
	const char *at = asked->lanes;
	char *end;

	if (!at || !*at)
		return true;
	for (;; at = end + 1) {
		if (strtoul(at, &end, 10) == lane && end != at)
			return true;
		if (*end != ',')
			return false;
	}
}

/* ---- lanes and names ------------------------------------------------------------------------ */

/* The main thread of each process first, then by the number of zones; queues last. */
static int answer_zones_by_importance(const void *left, const void *right, void *context)
{
	const struct zoneindex_lane *lanes = context;
	const uint32_t *a = left, *b = right;
	const struct zoneindex_lane *x = &lanes[*a], *y = &lanes[*b];
	bool x_main = x->pid == x->tid && x->kind == ZONEINDEX_THREAD,
	     y_main = y->pid == y->tid && y->kind == ZONEINDEX_THREAD;

	if ((x->kind == ZONEINDEX_QUEUE) != (y->kind == ZONEINDEX_QUEUE))
		return x->kind == ZONEINDEX_QUEUE ? 1 : -1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x_main != y_main)
		return y_main - x_main;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return *a < *b ? -1 : *a > *b;
}

/* Places of the lanes that are shown, in order; NULL: no memory. */
static uint32_t *order_lanes(const struct zoneindex *index, size_t *count)
{
	uint32_t *order = malloc((index->lane_count + 1) * sizeof(*order));

	if (!order)
		return NULL;
	for (size_t i = 0; i < index->lane_count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, index->lane_count, sizeof(*order), answer_zones_by_importance, index->lanes);
	*count = index->lane_count < LANES_SHOWN ? index->lane_count : LANES_SHOWN;
	return order;
}

static void add_lane(struct buf *out, const struct zoneindex *index, uint32_t at, size_t order)
{
	static const char *const kinds[] = { "thread", "task", "queue" };
	const struct zoneindex_lane *lane = &index->lanes[at];

	buf_print(out,
		  "%s{\"id\":%u,\"order\":%zu,\"pid\":%d,\"tid\":%d,\"rank\":", order ? "," : "",
		  at, order, lane->pid, lane->tid);
	buf_print(out, lane->rank >= 0 ? "%d" : "null", lane->rank);
	buf_print(out, ",\"rows\":%u,\"count\":%" PRIu64 ",\"kind\":\"%s\",\"note\":\"", lane->rows,
		  lane->count, kinds[lane->kind]);
	if (lane->rank >= 0)
		buf_print(out, "rank %d, ", lane->rank);
	if (lane->kind == ZONEINDEX_QUEUE)
		buf_text(out, "device");
	else
		buf_print(out, "tid %d", lane->tid);
	buf_text(out, "\",\"name\":");
	json_text(out, lane->name, strlen(lane->name));
	buf_char(out, '}');
}

static void answer_zones_add_names(struct buf *out, const struct zonenames *names, int64_t first)
{
	size_t from = first < 0 ? 0 : (size_t)first > names->count ? names->count : (size_t)first;

	buf_print(out, ",\"names\":{\"from\":%zu,\"count\":%zu,", from, names->count);
	zonenames_json(names, NULL, from, names->count - from, out);
	buf_char(out, '}');
}

/* ---- planes --------------------------------------------------------------------------------- */

enum column { GAP, DURATION, NAME, COUNT, BUSY };

static uint64_t answer_zones_value_of(const struct zoneindex_piece *list, size_t i,
				      enum column column)
{
	int64_t before = i ? list[i - 1].end_ns : list[0].start_ns;

	switch (column) {
	case GAP: return list[i].start_ns > before ? (uint64_t)(list[i].start_ns - before) : 0;
	case DURATION: return (uint64_t)(list[i].end_ns - list[i].start_ns);
	case NAME: return list[i].name;
	case COUNT: return list[i].n;
	default: return (uint64_t)list[i].busy_ns;
	}
}

/* Its bytes a number. */
static unsigned answer_zones_add_column(struct buf *out, const struct zoneindex_pieces *pieces,
					enum column column, unsigned bytes, uint64_t *values)
{
	uint64_t most = 0;

	for (size_t i = 0; i < pieces->count; i++) {
		values[i] = answer_zones_value_of(pieces->list, i, column);
		most |= values[i];
	}
	bytes = bytes ? bytes : byte_planes_width(most);
	byte_planes_add(out, values, pieces->count, bytes);
	return bytes;
}

static void answer_zones_add_track(struct buf *json, struct buf *planes,
				   const struct zoneindex_track *track,
				   struct zoneindex_pieces *pieces, uint64_t *values, bool first)
{
	unsigned gap, duration, name;

	/* Clocks round: a piece that would begin before the end of the last begins there. */
	for (size_t i = 1; i < pieces->count; i++) {
		struct zoneindex_piece *piece = &pieces->list[i];
		int64_t before = piece[-1].end_ns;

		piece->start_ns = piece->start_ns < before ? before : piece->start_ns;
		piece->end_ns = piece->end_ns < piece->start_ns ? piece->start_ns : piece->end_ns;
	}
	gap = answer_zones_add_column(planes, pieces, GAP, 0, values);
	duration = answer_zones_add_column(planes, pieces, DURATION, 0, values);
	name = answer_zones_add_column(planes, pieces, NAME, 0, values);
	if (pieces->merged) {
		answer_zones_add_column(planes, pieces, COUNT, 4, values);
		if (duration)
			answer_zones_add_column(planes, pieces, BUSY, duration, values);
	}
	buf_print(json,
		  "%s{\"lane\":%u,\"row\":%u,\"count\":%zu,\"base_ns\":%" PRId64
		  ",\"gap_bytes\":%u,\"duration_bytes\":%u,\"name_bytes\":%u,\"merged\":%s}",
		  first ? "" : ",", track->lane, track->row, pieces->count,
		  pieces->list[0].start_ns, gap, duration, name, pieces->merged ? "true" : "false");
}

/* ---- the answer ----------------------------------------------------------------------------- */

struct gathering {
	struct buf json, planes;
	struct zoneindex_pieces pieces;
	uint64_t *values;
	size_t value_room, piece_count;
	bool first, failed;
};

static void answer_zones_gather_track(struct gathering *to, const struct zoneindex *index,
				      const struct zoneindex_track *track,
				      const struct zones_request *asked)
{
	to->pieces.count = 0;
	to->pieces.merged = false;
	zoneindex_pieces(index, track, asked->from_ns, asked->to_ns, (unsigned)asked->level,
			 &to->pieces);
	to->piece_count += to->pieces.count;
	if (to->pieces.count > to->value_room) {
		free(to->values);
		to->value_room = to->pieces.room;
		to->values = malloc(to->value_room * sizeof(*to->values));
	}
	to->failed |= to->pieces.failed || (to->value_room && !to->values);
	if (to->failed || !to->pieces.count)
		return;
	answer_zones_add_track(&to->json, &to->planes, track, &to->pieces, to->values, to->first);
	to->first = false;
}

static void answer_zones_add_head(struct buf *out, const struct feed *feed,
				  const struct zones_request *asked)
{
	const struct zoneindex *index = &feed->index;

	buf_print(out,
		  "{\"gen\":%u,\"level\":%" PRId64 ",\"bucket_ns\":%" PRId64 ",\"from_ns\":%" PRId64
		  ",\"to_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"now_ns\":%" PRId64
		  ",\"live\":%s,\"count\":%" PRIu64 ",\"indexed\":1,\"hidden\":%" PRIu64
		  ",\"forgotten\":%" PRIu64 ",\"rows_overwritten\":%" PRIu64
		  ",\"lane_count\":%zu,\"lanes\":[",
		  feed->gen, asked->level, INT64_C(1) << asked->level, asked->from_ns, asked->to_ns,
		  feed->end_ns, feed->now_ns, feed->live ? "true" : "false", index->count,
		  index->hidden, index->forgotten, feed->zones_overwritten, index->lane_count);
}

static void answer_zones_add_open(struct buf *out, const struct feed *feed)
{
	buf_text(out, ",\"open\":[");
	for (size_t i = 0; i < feed->open_count; i++)
		buf_print(out, "%s{\"lane\":%u,\"row\":%u,\"name\":%u,\"start_ns\":%" PRId64 "}",
			  i ? "," : "", feed->open[i].lane, feed->open[i].row, feed->open[i].name,
			  feed->open[i].start_ns);
	buf_text(out, "],\"tracks\":[");
}

static void put_together(struct request *request, struct gathering *from)
{
	uint32_t bytes;

	/* Planes begin at a multiple of 8. */
	buf_text(&from->json, "]}");
	buf_fill(&from->json, ' ', (8 - from->json.used % 8) % 8);
	bytes = (uint32_t)from->json.used;
	buf_add(&request->answer, "KZP1", 4);
	buf_add(&request->answer, &bytes, 4);
	buf_add(&request->answer, buf_get(&from->json), from->json.used);
	buf_add(&request->answer, buf_get(&from->planes), from->planes.used);
	request->answer.failed |= from->json.failed || from->planes.failed;
	request->type = "application/octet-stream";
}

static void answer_zones_gather(struct request *request, const struct feed *feed,
				const struct zones_request *asked)
{
	struct gathering to = { .first = true };
	const struct zoneindex *index = &feed->index;
	size_t shown = 0;
	uint32_t *order = order_lanes(index, &shown);

	answer_zones_add_head(&to.json, feed, asked);
	for (size_t i = 0; order && i < shown; i++)
		add_lane(&to.json, index, order[i], i);
	buf_char(&to.json, ']');
	answer_zones_add_names(&to.json, &index->names, asked->names_from);
	answer_zones_add_open(&to.json, feed);
	for (size_t i = 0; order && i < shown && to.piece_count < PIECES_MOST && !to.failed; i++) {
		const struct zoneindex_lane *lane = &index->lanes[order[i]];

		for (uint32_t row = 0; row < lane->rows && answer_zones_is_wanted(asked, order[i]);
		     row++)
			if (lane->tracks[row])
				answer_zones_gather_track(
					&to, index, &index->tracks[lane->tracks[row] - 1], asked);
	}
	if (to.piece_count >= PIECES_MOST)
		answer_error(request, 413, "ask for less time, fewer lanes or a higher level",
			     "that would be more than %u pieces", PIECES_MOST);
	else if (!order || to.failed)
		answer_error(request, 503, NULL, "out of memory for the zones");
	else
		put_together(request, &to);
	free(order);
	free(to.values);
	free(to.pieces.list);
	buf_fini(&to.json);
	buf_fini(&to.planes);
}

void answer_zones(struct request *request)
{
	struct target *target = request_target(request);
	struct zones_request asked;
	struct kymo_error err = { 0 };
	int rc;

	if (!target)
		return;
	rc = target_look(target, 100000000u, NULL, &err);
	if (rc) {
		answer_failed(request, rc, &err);
		return;
	}
	pthread_rwlock_rdlock(&target->feed_lock);
	if (read_zones(request, &target->feed, &asked)) {
		answer_zones_gather(request, &target->feed, &asked);
		if (request->status == 200)
			snprintf(request->etag, sizeof(request->etag),
				 "\"z%u-%" PRIu64 "-%" PRIu64 "-%zu\"", target->feed.gen,
				 target->feed.index.count, target->feed.index.forgotten,
				 target->feed.live ? (size_t)target->feed.now_ns : 0);
	}
	pthread_rwlock_unlock(&target->feed_lock);
}
