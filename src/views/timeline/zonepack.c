#include "views/timeline/zonepack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "views/timeline/byte_planes.h"

#define SAMPLE_SHARE 8 /* a quantum is first tried on an eighth of the zones */
#define MERGE_LEVEL_FIRST 10
#define MERGE_LEVEL_LAST 44
#define ENTRY_BYTES_GUESS 5 /* compressed, of a merged one */

/* What is written of one zone, or of several that were merged. */
struct entry {
	int64_t start_ns, end_ns, busy_ns;
	uint32_t name, n;
};

struct entries {
	struct entry *list;
	size_t count;
	bool merged;
};

struct plan {
	uint64_t quantum_ns;
	int level; /* 0: nothing is merged */
	const struct zonepack_span *keep;
	size_t keep_count;
	bool sample;
};

/* ---- merging -------------------------------------------------------------------------------- */

static void start_entry(struct entry *entry, const struct zoneset_zone *zone)
{
	*entry = (struct entry){ .start_ns = zone->start_ns,
				 .end_ns = zone->start_ns + zone->duration_ns,
				 .busy_ns = zone->duration_ns,
				 .name = zone->name,
				 .n = 1 };
}

/* Is this zone in a span of whole detail? *at only moves forward: zones come in order. */
static bool zonepack_is_kept(const struct plan *plan, const struct zoneset_zone *zone, size_t *at)
{
	while (*at < plan->keep_count && plan->keep[*at].to_ns < zone->start_ns)
		(*at)++;
	return *at < plan->keep_count &&
	       zone->start_ns + zone->duration_ns >= plan->keep[*at].from_ns;
}

/* Zones shorter than a bucket join those before them that began in the same bucket. */
static void merge_track(const struct zoneset *set, const struct zoneset_track *track,
			const struct plan *plan, struct entries *out)
{
	const struct zoneset_zone *zones = set->zones + track->first;
	int64_t bucket = INT64_C(1) << plan->level, longest = 0;
	bool open = false;
	size_t keep_at = 0;

	for (size_t i = 0; i < track->count; i++) {
		const struct zoneset_zone *zone = &zones[i];
		struct entry *last = out->count ? &out->list[out->count - 1] : NULL;
		bool small = zone->duration_ns < bucket && !zonepack_is_kept(plan, zone, &keep_at);

		if (small && open &&
		    last->start_ns >> plan->level == zone->start_ns >> plan->level) {
			last->end_ns = zone->start_ns + zone->duration_ns;
			last->busy_ns += zone->duration_ns;
			last->n++;
			if (zone->duration_ns > longest) {
				longest = zone->duration_ns;
				last->name = zone->name;
			}
			continue;
		}
		start_entry(&out->list[out->count++], zone);
		longest = zone->duration_ns;
		open = small;
	}
}

static void take_track(const struct zoneset *set, const struct zoneset_track *track,
		       const struct plan *plan, struct entries *out)
{
	size_t from = 0, count = track->count;

	out->count = 0;
	out->merged = plan->level > 0;
	if (out->merged) {
		merge_track(set, track, plan, out);
		return;
	}
	if (plan->sample && count > 64 * SAMPLE_SHARE) {
		from = count / 2 - count / (2 * SAMPLE_SHARE);
		count /= SAMPLE_SHARE;
	}
	for (size_t i = 0; i < count; i++)
		start_entry(&out->list[out->count++], &set->zones[track->first + from + i]);
}

/* ---- planes --------------------------------------------------------------------------------- */

static uint64_t most_of(const uint64_t *values, size_t count)
{
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++)
		most |= values[i];
	return most;
}

/* Starts and ends are rounded, not lengths: so neighbours never overlap and errors do not add
   up. */
static void zonepack_add_track(struct buf *out, const struct entries *entries, uint64_t quantum,
			       uint64_t *values, struct zonepack_track *about)
{
	uint64_t end = 0;

	about->count = entries->count;
	for (size_t i = 0; i < entries->count; i++) {
		uint64_t start = (uint64_t)entries->list[i].start_ns / quantum;

		values[i] = start > end ? start - end : 0;
		end = (uint64_t)entries->list[i].end_ns / quantum;
	}
	about->gap_bytes = byte_planes_width(most_of(values, entries->count));
	byte_planes_add(out, values, entries->count, about->gap_bytes);
	for (size_t i = 0; i < entries->count; i++)
		values[i] = (uint64_t)entries->list[i].end_ns / quantum -
			    (uint64_t)entries->list[i].start_ns / quantum;
	about->duration_bytes = byte_planes_width(most_of(values, entries->count));
	byte_planes_add(out, values, entries->count, about->duration_bytes);
	for (size_t i = 0; i < entries->count; i++)
		values[i] = entries->list[i].name;
	about->name_bytes = byte_planes_width(most_of(values, entries->count));
	byte_planes_add(out, values, entries->count, about->name_bytes);
	if (!entries->merged)
		return;
	for (size_t i = 0; i < entries->count; i++)
		values[i] = entries->list[i].n;
	byte_planes_add(out, values, entries->count, 4);
	for (size_t i = 0; i < entries->count; i++)
		values[i] = (uint64_t)entries->list[i].busy_ns / quantum;
	byte_planes_add(out, values, entries->count, about->duration_bytes);
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

struct work {
	const struct zoneset *set;
	struct entry *list;
	uint64_t *values;
	struct zonepack *out;
};

static size_t count_entries(const struct work *work, const struct plan *plan)
{
	struct entries entries = { .list = work->list };
	size_t count = 0;

	for (size_t i = 0; i < work->set->track_count; i++) {
		take_track(work->set, &work->set->tracks[i], plan, &entries);
		count += entries.count;
	}
	return count;
}

/* Writes all tracks by the plan; their compressed size in out->bytes. */
static int try_plan(const struct work *work, const struct plan *plan)
{
	struct entries entries = { .list = work->list };
	struct zonepack *out = work->out;
	struct buf planes = { 0 };
	int rc;

	out->shown = 0;
	for (size_t i = 0; i < work->set->track_count; i++) {
		const struct zoneset_track *track = &work->set->tracks[i];

		take_track(work->set, track, plan, &entries);
		out->tracks[i].lane = track->lane;
		out->tracks[i].row = track->row;
		zonepack_add_track(&planes, &entries, plan->quantum_ns, work->values,
				   &out->tracks[i]);
		out->shown += entries.count;
	}
	free(out->data);
	out->data = NULL;
	rc = planes.failed || planes.used > UINT32_MAX / 2
		     ? -ENOMEM
		     : squeeze(&planes, &out->data, &out->bytes);
	buf_fini(&planes);
	out->quantum_ns = plan->quantum_ns;
	out->merged_ns = plan->level ? INT64_C(1) << plan->level : 0;
	return rc;
}

/* 1: fits. 0: does not. */
static int zonepack_fits(const struct work *work, struct plan *plan, size_t budget)
{
	int rc;

	plan->sample = true;
	rc = try_plan(work, plan);
	if (rc || (double)work->out->bytes * SAMPLE_SHARE > (double)budget * 1.1)
		return rc;
	plan->sample = false;
	rc = try_plan(work, plan);
	return rc ? rc : work->out->bytes <= budget;
}

static int fit_merged(const struct work *work, struct plan *plan, size_t budget)
{
	int rc = 0;

	plan->sample = false;
	for (plan->level = MERGE_LEVEL_FIRST; plan->level <= MERGE_LEVEL_LAST; plan->level++) {
		if (count_entries(work, plan) > budget / ENTRY_BYTES_GUESS)
			continue;
		rc = try_plan(work, plan);
		if (rc || work->out->bytes <= budget)
			return rc ? rc : 1;
	}
	return 0;
}

static int fit(const struct work *work, const struct zonepack_span *keep, size_t keep_count,
	       size_t budget)
{
	static const uint64_t quanta[] = { 1, 4, 16, 64, 256 };
	struct plan plan = { .keep = keep, .keep_count = keep_count };
	int rc = 0;

	/* No use in trying what cannot fit: less than 2 bytes a zone has not been seen. */
	for (size_t i = 0; i < 5 && !rc && work->set->count / 2 < budget; i++) {
		plan.quantum_ns = quanta[i];
		rc = zonepack_fits(work, &plan, budget);
	}
	plan.quantum_ns = 16;
	if (!rc)
		rc = fit_merged(work, &plan, budget);
	plan.keep_count = 0;
	return rc ? rc : fit_merged(work, &plan, budget);
}

int zonepack_make(const struct zoneset *set, const struct zonepack_span *keep, size_t keep_count,
		  size_t budget, struct zonepack *out, struct kymo_error *err)
{
	struct work work = { .set = set, .out = out };
	size_t longest = 1;
	int rc = -ENOMEM;

	*out = (struct zonepack){ .quantum_ns = 1, .track_count = set->track_count };
	for (size_t i = 0; i < set->track_count; i++)
		longest = set->tracks[i].count > longest ? set->tracks[i].count : longest;
	work.list = malloc(longest * sizeof(*work.list));
	work.values = malloc(longest * sizeof(*work.values));
	out->tracks = calloc(set->track_count + 1, sizeof(*out->tracks));
	if (work.list && work.values && out->tracks)
		rc = fit(&work, keep, keep_count, budget);
	free(work.list);
	free(work.values);
	if (rc > 0)
		return 0;
	if (!rc)
		return error_set(err, EFBIG, "the zones do not fit into %zu bytes, even merged",
				 budget);
	return error_set(err, -rc, "cannot pack %zu zones: %s", set->count, strerror(-rc));
}

void zonepack_fini(struct zonepack *pack)
{
	free(pack->data);
	free(pack->tracks);
	*pack = (struct zonepack){ 0 };
}
