/* Zones of an interval: the pieces of every track, as planes of bytes after a header in JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve_inside.h"
#include "views/query/json.h"
#include "views/timeline/zone_planes.h"

#define WIDTH_MOST 16384
#define LEVEL_MOST 44
#define PIECES_MOST 4000000u

struct zones_request {
	int64_t from_ns, to_ns, level, names_from, gen;
	const char *lanes; /* NULL: all */
	struct rank_set ranks;
	bool complete; /* zones that no thread made are read, too */
};

/* ---- parameters ----------------------------------------------------------------------------- */

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
	if (!rank_set_read(&out->ranks, request_get(request, "ranks"))) {
		answer_error(request, 400, "ranks=0,3,8-15", "ranks is not a list of ranks");
		return false;
	}
	if (out->to_ns < out->from_ns || width < 1 || width > WIDTH_MOST ||
	    out->level > LEVEL_MOST) {
		answer_error(request, 400, "0 ≤ from ≤ to, 1 ≤ width ≤ 16384, level ≤ 44",
			     "from and to are not an interval, or width or level is out of range");
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

static void answer_zones_add_lane(struct buf *out, const struct zone_model *model, uint32_t at,
				  size_t order)
{
	const struct zone_model_lane *lane = &model->lanes[at];

	buf_print(out, "%s{\"id\":%u,\"order\":%zu,\"pid\":%d,\"tid\":%d", order ? "," : "", at,
		  order, lane->pid, lane->tid);
	buf_print(out, ",\"rows\":%u,\"count\":%" PRIu64 ",", lane->rows, lane->count);
	zone_model_lane_json(lane, out);
	buf_char(out, '}');
}

static void answer_zones_add_names(struct buf *out, const struct name_table *names, int64_t first)
{
	size_t from = first < 0 ? 0 : (size_t)first > names->count ? names->count : (size_t)first;

	buf_print(out, ",\"names\":{\"from\":%zu,\"count\":%zu,", from, names->count);
	name_table_json(names, NULL, from, names->count - from, out);
	buf_char(out, '}');
}

/* ---- planes --------------------------------------------------------------------------------- */

/* Clocks round: a piece that would begin before the end of the last begins there. */
static void answer_zones_part(struct zone_pieces *pieces)
{
	for (size_t i = 1; i < pieces->count; i++) {
		struct zone_piece *piece = &pieces->list[i];
		int64_t before = piece[-1].end_ns;

		piece->start_ns = piece->start_ns < before ? before : piece->start_ns;
		piece->end_ns = piece->end_ns < piece->start_ns ? piece->start_ns : piece->end_ns;
	}
}

static void answer_zones_add_track(struct buf *json, struct buf *planes,
				   const struct zone_model_track *track, struct zone_pieces *pieces,
				   uint64_t *values, bool first)
{
	struct zone_planes about = { .merged = pieces->merged };

	answer_zones_part(pieces);
	zone_planes_add(planes, pieces, pieces->list[0].start_ns, 1, values, &about);
	buf_print(json,
		  "%s{\"lane\":%u,\"row\":%u,\"count\":%zu,\"base_ns\":%" PRId64
		  ",\"gap_bytes\":%u,\"duration_bytes\":%u,\"name_bytes\":%u,\"merged\":%s}",
		  first ? "" : ",", track->lane, track->row, about.count, pieces->list[0].start_ns,
		  about.gap_bytes, about.duration_bytes, about.name_bytes,
		  about.merged ? "true" : "false");
}

/* ---- the answer ----------------------------------------------------------------------------- */

struct gathering {
	struct buf json, planes;
	struct zone_pieces pieces;
	uint64_t *values;
	size_t value_room, piece_count;
	bool first, failed;
};

static void answer_zones_gather_track(struct gathering *to, const struct zone_model *model,
				      const struct zone_model_track *track,
				      const struct zones_request *asked)
{
	to->pieces.count = 0;
	to->pieces.merged = false;
	zone_pieces_add_time(model, track, asked->from_ns, asked->to_ns, (unsigned)asked->level,
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

static void answer_zones_gather_lane(struct gathering *to, const struct zone_model *model,
				     uint32_t lane, const struct zones_request *asked)
{
	for (uint32_t row = 0; row < model->lanes[lane].rows; row++) {
		const struct zone_model_track *track = zone_model_track(model, lane, row);

		if (track)
			answer_zones_gather_track(to, model, track, asked);
	}
}

static void answer_zones_add_head(struct buf *out, const struct feed *feed,
				  const struct zones_request *asked, size_t hidden)
{
	const struct zone_model *model = &feed->model;

	buf_print(out,
		  "{\"gen\":%u,\"level\":%" PRId64 ",\"bucket_ns\":%" PRId64 ",\"from_ns\":%" PRId64
		  ",\"to_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"now_ns\":%" PRId64
		  ",\"live\":%s,\"count\":%" PRIu64 ",\"indexed\":%s,\"hidden\":%" PRIu64
		  ",\"forgotten\":%" PRIu64 ",\"rows_overwritten\":%" PRIu64
		  ",\"lane_count\":%zu,\"lanes_hidden\":%zu,\"lanes\":[",
		  feed->gen, asked->level, INT64_C(1) << asked->level, asked->from_ns, asked->to_ns,
		  feed->end_ns, feed->now_ns, feed->live ? "true" : "false", model->count,
		  asked->complete ? "1" : "0.5", model->hidden, model->forgotten,
		  feed->zones_overwritten, model->lane_count, hidden);
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
	const struct zone_model *model = &feed->model;
	size_t shown = 0, hidden = 0;
	uint32_t *order = zone_model_order(model, &asked->ranks, &shown, &hidden);

	answer_zones_add_head(&to.json, feed, asked, hidden);
	for (size_t i = 0; order && i < shown; i++)
		answer_zones_add_lane(&to.json, model, order[i], i);
	buf_char(&to.json, ']');
	answer_zones_add_names(&to.json, &model->names, asked->names_from);
	answer_zones_add_open(&to.json, feed);
	for (size_t i = 0; order && i < shown && to.piece_count < PIECES_MOST && !to.failed; i++)
		if (answer_zones_is_wanted(asked, order[i]))
			answer_zones_gather_lane(&to, model, order[i], asked);
	if (to.piece_count >= PIECES_MOST)
		answer_error(request, 413, "request less time, fewer lanes or a higher level",
			     "the answer would have more than %u pieces", PIECES_MOST);
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
	asked.complete = target_look_devices(target, !request_get(request, "partial"));
	pthread_rwlock_rdlock(&target->feed_lock);
	if (read_zones(request, &target->feed, &asked)) {
		answer_zones_gather(request, &target->feed, &asked);
		if (request->status == 200)
			snprintf(request->etag, sizeof(request->etag),
				 "\"z%u-%d-%" PRIu64 "-%" PRIu64 "-%zu\"", target->feed.gen,
				 asked.complete, target->feed.model.count,
				 target->feed.model.forgotten,
				 target->feed.live ? (size_t)target->feed.now_ns : 0);
	}
	pthread_rwlock_unlock(&target->feed_lock);
}
