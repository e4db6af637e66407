/* Figures of an interval: its regions from the model; steps, modules and samples by SQL. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "serve/children/children.h"
#include "serve/serve_inside.h"
#include "views/verdicts/facts.h"
#include "views/query/json.h"
#include "views/timeline/zone_pieces.h"

#define REGIONS_MOST 500
#define HISTOGRAMS_MOST 16384 /* 45 MB; further regions have no quantiles */

/* All names with equal text and source. */
struct region {
	uint32_t name; /* the first of them */
	bool namesake; /* a region of another file has the same name */
	uint64_t count;
	double self_ns, total_ns; /* within the interval */
	int64_t least_ns, most_ns; /* whole durations */
	uint64_t *histogram; /* of these, in ticks of the first one's clock; NULL: none */
	const struct store_clock *clock;
};

struct ranging {
	const struct zone_model *model;
	int64_t from_ns, to_ns;
	struct rank_set ranks;
	uint32_t *region_of; /* name -> region */
	struct region *regions;
	size_t region_count, histogram_count;
	uint64_t zones, threads;
	bool failed;
};

/* ---- regions -------------------------------------------------------------------------------- */

static int by_text(const void *left, const void *right, void *context)
{
	const struct zone_model *model = context;
	const uint32_t *a = left, *b = right;
	const struct name_entry *x = &model->names.list[*a], *y = &model->names.list[*b];
	size_t bytes = x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes;
	int order = memcmp(x->name, y->name, bytes);

	if (!order && x->name_bytes != y->name_bytes)
		order = x->name_bytes < y->name_bytes ? -1 : 1;
	return order ? order : strcmp(x->source, y->source);
}

/* As in trace.regions: names that differ only by line are one region; names of Python that differ
   by file are not. */
static int by_region(const void *left, const void *right, void *context)
{
	const struct zone_model *model = context;
	const uint32_t *a = left, *b = right;
	const struct name_entry *x = &model->names.list[*a], *y = &model->names.list[*b];
	int order = by_text(left, right, context);

	if (order || strcmp(x->source, "python") != 0)
		return order;
	if (x->file_bytes != y->file_bytes)
		return x->file_bytes < y->file_bytes ? -1 : 1;
	return memcmp(x->file, y->file, x->file_bytes);
}

static bool make_regions(struct ranging *to)
{
	const struct zone_model *model = to->model;
	size_t count = model->names.count;
	uint32_t *order = malloc((count + 1) * sizeof(*order));

	to->region_of = malloc((count + 1) * sizeof(*to->region_of));
	to->regions = calloc(count + 1, sizeof(*to->regions));
	if (order && to->region_of && to->regions) {
		for (size_t i = 0; i < count; i++)
			order[i] = (uint32_t)i;
		qsort_r(order, count, sizeof(*order), by_region, (void *)model);
		for (size_t i = 0; i < count; i++) {
			if (!i || by_region(&order[i - 1], &order[i], (void *)model)) {
				to->regions[to->region_count].name = order[i];
				if (i && !by_text(&order[i - 1], &order[i], (void *)model))
					to->regions[to->region_count - 1].namesake =
						to->regions[to->region_count].namesake = true;
				to->region_count++;
			}
			to->region_of[order[i]] = (uint32_t)to->region_count - 1;
		}
	}
	to->failed = !order || !to->region_of || !to->regions;
	free(order);
	return !to->failed;
}

/* The same duration in ticks of another clock: processes of a recording may use different ones. */
static uint64_t ticks_of_clock(uint64_t ticks, const struct store_clock *from,
			       const struct store_clock *to)
{
	if (from->mult == to->mult || !to->mult)
		return ticks;
	return (uint64_t)((double)ticks * ((double)from->mult / (double)to->mult));
}

static void answer_range_add_duration(struct ranging *to, struct region *region,
				      const struct store_clock *clock, uint64_t ticks)
{
	int64_t duration_ns = store_clock_span_ns(clock, ticks);

	if (!region->count || duration_ns < region->least_ns)
		region->least_ns = duration_ns;
	if (duration_ns > region->most_ns)
		region->most_ns = duration_ns;
	if (!region->count++ && to->histogram_count < HISTOGRAMS_MOST) {
		region->clock = clock;
		region->histogram = calloc(KYMO_HIST_BUCKETS, sizeof(*region->histogram));
		to->histogram_count += region->histogram != NULL;
	}
	if (region->histogram)
		region->histogram[hist_bucket(ticks_of_clock(ticks, clock, region->clock))]++;
}

/* `above`: the nearest track of the lane over this one. Clocks round, so the middle of a zone
   determines its parent. */
static uint64_t answer_range_add_track(struct ranging *to, const struct zone_model_track *track,
				       const struct zone_model_track *above)
{
	const struct store_clock *clock = &to->model->clocks[to->model->lanes[track->lane].clock];
	uint32_t at = above ? zone_pieces_first(to->model, above, to->from_ns) : 0;
	uint64_t count = 0;

	for (uint32_t i = zone_pieces_first(to->model, track, to->from_ns); i < track->count; i++) {
		struct zone_piece zone = zone_pieces_zone(to->model, track, i);
		struct region *region = &to->regions[to->region_of[zone.name]];
		int64_t from = zone.start_ns > to->from_ns ? zone.start_ns : to->from_ns;
		int64_t until = zone.end_ns < to->to_ns ? zone.end_ns : to->to_ns;

		if (zone.start_ns >= to->to_ns)
			break;
		answer_range_add_duration(to, region, clock, track->duration[i]);
		region->total_ns += (double)(until - from);
		region->self_ns += (double)(until - from);
		if (above && zone_pieces_contain(to->model, above, from + (until - from) / 2, &at))
			to->regions[to->region_of[above->name[at]]].self_ns -= (double)(until -
											from);
		count++;
	}
	return count;
}

/* Operations of a queue are not nested and are not regions. */
static void answer_range_add_lanes(struct ranging *to)
{
	for (size_t lane = 0; lane < to->model->lane_count; lane++) {
		const struct zone_model_lane *about = &to->model->lanes[lane];
		const struct zone_model_track *above = NULL;
		uint64_t before = to->zones;

		if (!zone_model_is_thread(about) || !rank_set_has(&to->ranks, about->rank))
			continue;
		for (uint32_t row = 0; row < about->rows; row++) {
			const struct zone_model_track *track = zone_model_track(to->model, lane,
										row);

			if (!track)
				continue;
			to->zones += answer_range_add_track(to, track, above);
			above = track;
		}
		to->threads += to->zones > before;
	}
}

static int answer_range_by_self(const void *left, const void *right)
{
	const struct region *a = left, *b = right;

	if (!a->count != !b->count)
		return a->count ? -1 : 1;
	if (a->self_ns != b->self_ns)
		return a->self_ns < b->self_ns ? 1 : -1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static void add_quantiles(struct buf *out, const struct region *region)
{
	static const struct {
		const char *key;
		double share;
	} all[] = { { "p50_ns", 0.5 }, { "p90_ns", 0.9 }, { "p99_ns", 0.99 } };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (region->histogram)
			buf_print(out, ",\"%s\":%" PRId64, all[i].key,
				  hist_quantile(region->histogram, all[i].share,
						store_clock_tick_ns(region->clock),
						region->least_ns, region->most_ns));
		else
			buf_print(out, ",\"%s\":null", all[i].key);
}

/* As src/views/verdicts/sql/parts/regions.sql. */
static void add_label(struct buf *out, const struct zone_model *model, const struct region *region)
{
	const struct name_entry *name = &model->names.list[region->name];
	struct buf label = { 0 };

	buf_add(&label, name->name, name->name_bytes);
	if (region->namesake && name->file_bytes)
		buf_print(&label, " (%s)", facts_place(name->file));
	json_text(out, buf_get(&label), label.used);
	buf_fini(&label);
}

static void answer_range_add_region(struct buf *out, const struct zone_model *model,
				    const struct region *region)
{
	const struct name_entry *name = &model->names.list[region->name];

	buf_text(out, "{\"name\":");
	add_label(out, model, region);
	buf_text(out, ",\"source\":");
	json_text(out, name->source, name->source_bytes);
	buf_print(out,
		  ",\"count\":%" PRIu64 ",\"self_ns\":%.0f,\"total_ns\":%.0f"
		  ",\"min_ns\":%" PRId64 ",\"max_ns\":%" PRId64,
		  region->count, region->self_ns > 0 ? region->self_ns : 0, region->total_ns,
		  region->least_ns, region->most_ns);
	add_quantiles(out, region);
	buf_char(out, '}');
}

static void write_regions(struct ranging *to, struct buf *out)
{
	size_t count = 0;

	qsort(to->regions, to->region_count, sizeof(*to->regions), answer_range_by_self);
	while (count < to->region_count && to->regions[count].count)
		count++;
	buf_print(out,
		  "{\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64 ",\"zones\":%" PRIu64
		  ",\"threads\":%" PRIu64 ",\"region_count\":%zu,\"regions\":[",
		  to->from_ns, to->to_ns, to->zones, to->threads, count);
	for (size_t i = 0; i < count && i < REGIONS_MOST; i++) {
		buf_text(out, i ? ",\n" : "\n");
		answer_range_add_region(out, to->model, &to->regions[i]);
	}
	buf_text(out, "]");
}

static void answer_range_gather(struct ranging *to, struct buf *out)
{
	if (make_regions(to)) {
		answer_range_add_lanes(to);
		write_regions(to, out);
	}
	for (size_t i = 0; to->regions && i < to->region_count; i++)
		free(to->regions[i].histogram);
	free(to->regions);
	free(to->region_of);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static int write_rest(struct target *target, const struct ranging *asked, struct buf *out,
		      struct kymo_error *err)
{
	struct children_ask ask = { .question = { .kind = QUESTION_RANGE,
						  .timeout_ms = 60000,
						  .answer_bytes = UINT64_C(256) << 20,
						  .background = true,
						  .from_ns = asked->from_ns,
						  .to_ns = asked->to_ns,
						  .ranks = asked->ranks } };
	int rc = target_ask(target, &ask, err);

	if (!rc)
		rc = children_read_answer(&ask, out, err);
	if (!rc)
		buf_text(out, "}\n");
	return rc;
}

void answer_range(struct request *request)
{
	struct target *target = request_target(request);
	struct kymo_error err = { 0 };
	struct ranging asked = { .failed = false };
	int rc;

	if (!target || !request_number(request, "from", 0, &asked.from_ns) ||
	    !request_number(request, "to", -1, &asked.to_ns))
		return;
	if (asked.from_ns < 0 || asked.to_ns <= asked.from_ns ||
	    !rank_set_read(&asked.ranks, request_get(request, "ranks"))) {
		answer_error(request, 400, "0 ≤ from < to, ranks=0,3,8-15",
			     "from and to are not an interval, or ranks is not a list of ranks");
		return;
	}
	rc = target_look(target, 1000000000u, NULL, &err);
	if (!rc) {
		asked.model = &target->feed.model;
		pthread_rwlock_rdlock(&target->feed_lock);
		answer_range_gather(&asked, &request->answer);
		pthread_rwlock_unlock(&target->feed_lock);
		rc = asked.failed ? error_set(&err, ENOMEM, "out of memory for the regions")
				  : write_rest(target, &asked, &request->answer, &err);
	}
	if (rc)
		answer_failed(request, rc, &err);
}
