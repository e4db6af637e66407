#include "views/timeline/zone_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define SAMPLE_SHARE 8 /* a quantum is first tried on an eighth of the zones */
#define MERGE_LEVEL_FIRST 10
#define MERGE_LEVEL_LAST 44
#define PIECE_BYTES_GUESS 5 /* compressed, of a merged one */

struct plan {
	uint64_t quantum_ns;
	unsigned level; /* 0: nothing is merged */
	const struct zone_pack_span *keep;
	size_t keep_count;
	bool sample;
};

struct work {
	const struct zone_model *model;
	const struct zone_model_track **tracks; /* those with zones, by lane and row */
	struct zone_pieces pieces; /* of one track */
	uint64_t *values;
	struct zone_pack *out;
};

/* ---- pieces of a track ---------------------------------------------------------------------- */

/* The first zone that starts after t. Zones do not overlap, so that is the first that ends after t
   or the next one. */
static uint32_t zone_pack_first_after(const struct work *work, const struct zone_model_track *track,
				      int64_t t_ns)
{
	uint32_t at = zone_pieces_first(work->model, track, t_ns);

	while (at < track->count && zone_pieces_zone(work->model, track, at).start_ns <= t_ns)
		at++;
	return at;
}

/* Zones that touch a kept span as they are, those between the spans merged. */
static void zone_pack_merge(struct work *work, const struct zone_model_track *track,
			    const struct plan *plan)
{
	uint32_t at = 0;

	for (size_t i = 0; i < plan->keep_count; i++) {
		uint32_t first = zone_pieces_first(work->model, track, plan->keep[i].from_ns - 1);
		uint32_t end = zone_pack_first_after(work, track, plan->keep[i].to_ns);

		first = first > at ? first : at;
		zone_pieces_add_zones(work->model, track, at, first, plan->level, &work->pieces);
		zone_pieces_add_zones(work->model, track, first, end, 0, &work->pieces);
		at = end > first ? end : first;
	}
	zone_pieces_add_zones(work->model, track, at, track->count, plan->level, &work->pieces);
}

static void zone_pack_take(struct work *work, const struct zone_model_track *track,
			   const struct plan *plan)
{
	uint32_t from = 0, count = track->count;

	work->pieces.count = 0;
	if (plan->level) {
		zone_pack_merge(work, track, plan);
		return;
	}
	if (plan->sample && count > 64 * SAMPLE_SHARE) {
		from = count / 2 - count / (2 * SAMPLE_SHARE);
		count /= SAMPLE_SHARE;
	}
	zone_pieces_add_zones(work->model, track, from, from + count, 0, &work->pieces);
}

/* ---- trying --------------------------------------------------------------------------------- */

static int squeeze(const struct buf *planes, unsigned char **out, size_t *out_bytes)
{
	z_stream stream = { 0 };
	size_t room;
	int rc;

	if (deflateInit2(&stream, 6, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	room = deflateBound(&stream, planes->used);
	*out = malloc(room + 1);
	if (!*out) {
		deflateEnd(&stream);
		return -ENOMEM;
	}
	stream.next_in = (unsigned char *)buf_get(planes);
	stream.avail_in = (uInt)planes->used;
	stream.next_out = *out;
	stream.avail_out = (uInt)room;
	rc = deflate(&stream, Z_FINISH);
	*out_bytes = stream.total_out;
	deflateEnd(&stream);
	return rc == Z_STREAM_END ? 0 : -EIO;
}

static size_t zone_pack_count(struct work *work, const struct plan *plan)
{
	size_t count = 0;

	for (size_t i = 0; i < work->out->track_count; i++) {
		zone_pack_take(work, work->tracks[i], plan);
		count += work->pieces.count;
	}
	return count;
}

/* Writes all tracks by the plan; their compressed size is in out->bytes. */
static int zone_pack_try(struct work *work, const struct plan *plan)
{
	struct zone_pack *out = work->out;
	struct buf planes = { 0 };
	int rc;

	out->shown = 0;
	for (size_t i = 0; i < out->track_count && !work->pieces.failed; i++) {
		const struct zone_model_track *track = work->tracks[i];

		zone_pack_take(work, track, plan);
		out->tracks[i] = (struct zone_planes){ .lane = track->lane,
						       .row = track->row,
						       .merged = plan->level > 0 };
		zone_planes_add(&planes, &work->pieces, 0, plan->quantum_ns, work->values,
				&out->tracks[i]);
		out->shown += work->pieces.count;
	}
	free(out->data);
	out->data = NULL;
	rc = work->pieces.failed || planes.failed || planes.used > UINT32_MAX / 2
		     ? -ENOMEM
		     : squeeze(&planes, &out->data, &out->bytes);
	buf_fini(&planes);
	out->quantum_ns = plan->quantum_ns;
	out->merged_ns = plan->level ? INT64_C(1) << plan->level : 0;
	return rc;
}

/* 1: fits. 0: does not. */
static int zone_pack_fits(struct work *work, struct plan *plan, size_t budget)
{
	int rc;

	plan->sample = true;
	rc = zone_pack_try(work, plan);
	if (rc || (double)work->out->bytes * SAMPLE_SHARE > (double)budget * 1.1)
		return rc;
	plan->sample = false;
	rc = zone_pack_try(work, plan);
	return rc ? rc : work->out->bytes <= budget;
}

static int zone_pack_fit_merged(struct work *work, struct plan *plan, size_t budget)
{
	int rc = 0;

	plan->sample = false;
	for (plan->level = MERGE_LEVEL_FIRST; plan->level <= MERGE_LEVEL_LAST; plan->level++) {
		if (zone_pack_count(work, plan) > budget / PIECE_BYTES_GUESS)
			continue;
		rc = zone_pack_try(work, plan);
		if (rc || work->out->bytes <= budget)
			return rc ? rc : 1;
	}
	return 0;
}

static int zone_pack_fit(struct work *work, const struct zone_pack_span *keep, size_t keep_count,
			 size_t budget)
{
	static const uint64_t quanta[] = { 1, 4, 16, 64, 256 };
	struct plan plan = { .keep = keep, .keep_count = keep_count };
	int rc = 0;

	/* A zone takes at least 2 bytes in practice: more zones than that are not tried. */
	for (size_t i = 0; i < 5 && !rc && work->model->count / 2 < budget; i++) {
		plan.quantum_ns = quanta[i];
		rc = zone_pack_fits(work, &plan, budget);
	}
	plan.quantum_ns = 16;
	if (!rc)
		rc = zone_pack_fit_merged(work, &plan, budget);
	plan.keep_count = 0;
	return rc ? rc : zone_pack_fit_merged(work, &plan, budget);
}

/* Lists the tracks and makes room for the numbers of the longest. */
static bool zone_pack_begin(struct work *work)
{
	const struct zone_model *model = work->model;
	size_t longest = 1, count = 0;

	work->tracks = calloc(model->track_count + 1, sizeof(struct zone_model_track *));
	work->out->tracks = calloc(model->track_count + 1, sizeof(*work->out->tracks));
	if (!work->tracks || !work->out->tracks)
		return false;
	for (size_t lane = 0; lane < model->lane_count; lane++)
		for (uint32_t row = 0; row < model->lanes[lane].rows; row++) {
			const struct zone_model_track *track = zone_model_track(model, lane, row);

			if (!track || !track->count)
				continue;
			work->tracks[count++] = track;
			longest = track->count > longest ? track->count : longest;
		}
	work->out->track_count = count;
	work->values = malloc(longest * sizeof(*work->values));
	return work->values;
}

int zone_pack_make(const struct zone_model *model, const struct zone_pack_span *keep,
		   size_t keep_count, size_t budget, struct zone_pack *out, struct kymo_error *err)
{
	struct work work = { .model = model, .out = out };
	int rc = -ENOMEM;

	*out = (struct zone_pack){ .quantum_ns = 1 };
	if (zone_pack_begin(&work))
		rc = zone_pack_fit(&work, keep, keep_count, budget);
	free(work.tracks);
	free(work.values);
	free(work.pieces.list);
	if (rc > 0)
		return 0;
	if (!rc)
		return error_set(err, EFBIG, "the zones do not fit into %zu bytes, even merged",
				 budget);
	return error_set(err, -rc, "cannot pack %zu zones: %s", (size_t)model->count,
			 strerror(-rc));
}

void zone_pack_fini(struct zone_pack *pack)
{
	free(pack->data);
	free(pack->tracks);
	*pack = (struct zone_pack){ 0 };
}
