/* All zones of one name: the distribution of their durations, and the longest ones. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "serve/serve_inside.h"
#include "views/query/json.h"
#include "views/timeline/zone_pieces.h"

#define SLOWEST 20
#define STEPS 4 /* buckets per power of two */
#define BUCKETS (64 * STEPS)

struct place {
	const struct zone_model_track *track;
	uint32_t at;
	int64_t start_ns, duration_ns;
};

struct gathered {
	uint64_t count, buckets[BUCKETS];
	double total_ns;
	int64_t *durations; /* of all zones; sorted at the end */
	size_t room;
	struct place slowest[SLOWEST];
	size_t slowest_count;
	struct place before, after; /* the nearest ones around `at` */
	bool failed;
};

static size_t bucket_of(int64_t ns)
{
	double place = ns > 1 ? log2((double)ns) * STEPS : 0;

	return place < BUCKETS - 1 ? (size_t)place : BUCKETS - 1;
}

static void note_slow(struct gathered *to, const struct place *place)
{
	size_t at = to->slowest_count;

	if (at == SLOWEST && place->duration_ns <= to->slowest[SLOWEST - 1].duration_ns)
		return;
	at = at == SLOWEST ? SLOWEST - 1 : to->slowest_count++;
	for (; at && to->slowest[at - 1].duration_ns < place->duration_ns; at--)
		to->slowest[at] = to->slowest[at - 1];
	to->slowest[at] = *place;
}

static void note(struct gathered *to, const struct place *place, int64_t at_ns)
{
	to->failed = !grow((void **)&to->durations, &to->room, to->count, sizeof(*to->durations));
	if (to->failed)
		return;
	to->durations[to->count++] = place->duration_ns;
	to->total_ns += (double)place->duration_ns;
	to->buckets[bucket_of(place->duration_ns)]++;
	note_slow(to, place);
	if (at_ns < 0)
		return;
	if (place->start_ns < at_ns && (!to->before.track || place->start_ns > to->before.start_ns))
		to->before = *place;
	if (place->start_ns > at_ns && (!to->after.track || place->start_ns < to->after.start_ns))
		to->after = *place;
}

static void answer_name_gather_track(const struct zone_model *model,
				     const struct zone_model_track *track, const bool *wanted,
				     const int64_t range[3], struct gathered *to)
{
	for (uint32_t i = zone_pieces_first(model, track, range[0]);
	     i < track->count && !to->failed; i++) {
		struct zone_piece zone;
		struct place place = { .track = track, .at = i };

		if (!wanted[track->name[i]])
			continue;
		zone = zone_pieces_zone(model, track, i);
		if (zone.start_ns >= range[1])
			break;
		place.start_ns = zone.start_ns;
		place.duration_ns = zone.busy_ns;
		note(to, &place, range[2]);
	}
}

static int by_length(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Nearest rank. */
static int64_t answer_name_quantile(const struct gathered *from, double share)
{
	size_t at = (size_t)ceil(share * (double)from->count);

	return from->durations[at ? at - 1 : 0];
}

static void answer_name_add_place(struct buf *out, const char *key, const struct place *place)
{
	buf_print(out, ",\"%s\":", key);
	if (!place->track)
		buf_text(out, "null");
	else
		buf_print(out,
			  "{\"lane\":%u,\"row\":%u,\"start_ns\":%" PRId64
			  ",\"duration_ns\":%" PRId64 "}",
			  place->track->lane, place->track->row, place->start_ns,
			  place->duration_ns);
}

static void add_histogram(struct buf *out, const struct gathered *from)
{
	size_t first = bucket_of(from->durations[0]),
	       last = bucket_of(from->durations[from->count - 1]);

	buf_text(out, ",\"histogram\":{\"edges_ns\":[");
	for (size_t i = first; i <= last + 1; i++)
		buf_print(out, "%s%.0f", i > first ? "," : "",
			  i ? floor(exp2((double)i / STEPS)) : 0);
	buf_text(out, "],\"counts\":[");
	for (size_t i = first; i <= last; i++)
		buf_print(out, "%s%" PRIu64, i > first ? "," : "", from->buckets[i]);
	buf_text(out, "]}");
}

static void write_name(struct buf *out, const struct zone_model *model, size_t name,
		       struct gathered *from)
{
	const struct name_entry *about = &model->names.list[name];

	buf_text(out, "{\"name\":");
	json_text(out, about->name, about->name_bytes);
	buf_text(out, ",\"source\":");
	json_text(out, about->source, about->source_bytes);
	buf_text(out, ",\"file\":");
	json_text(out, about->file, about->file_bytes);
	buf_print(out, ",\"line\":%d,\"count\":%" PRIu64 ",\"total_ns\":%.0f", about->line,
		  from->count, from->total_ns);
	if (from->count) {
		qsort(from->durations, from->count, sizeof(*from->durations), by_length);
		buf_print(out,
			  ",\"min_ns\":%" PRId64 ",\"p50_ns\":%" PRId64 ",\"p90_ns\":%" PRId64
			  ",\"p99_ns\":%" PRId64 ",\"max_ns\":%" PRId64 ",\"mean_ns\":%.1f",
			  from->durations[0], answer_name_quantile(from, 0.5),
			  answer_name_quantile(from, 0.9), answer_name_quantile(from, 0.99),
			  from->durations[from->count - 1], from->total_ns / (double)from->count);
		add_histogram(out, from);
	}
	buf_text(out, ",\"slowest\":[");
	for (size_t i = 0; i < from->slowest_count; i++)
		buf_print(out,
			  "%s{\"lane\":%u,\"row\":%u,\"start_ns\":%" PRId64
			  ",\"duration_ns\":%" PRId64 "}",
			  i ? "," : "", from->slowest[i].track->lane, from->slowest[i].track->row,
			  from->slowest[i].start_ns, from->slowest[i].duration_ns);
	buf_char(out, ']');
	answer_name_add_place(out, "previous", &from->before);
	answer_name_add_place(out, "next", &from->after);
	buf_text(out, "}\n");
}

/* Marks the requested names. Returns the first; -1: none; -2: the error was answered. */
static int64_t mark_names(struct request *request, const struct zone_model *model, bool *wanted)
{
	const char *name = request_get(request, "name"), *source = request_get(request, "source");
	int64_t id, first = -1;

	if (!request_number(request, "id", -1, &id))
		return -2;
	for (size_t i = 0; i < model->names.count; i++) {
		const struct name_entry *one = &model->names.list[i];

		wanted[i] = id >= 0 ? (size_t)id == i
				    : name && one->name_bytes == strlen(name) &&
					      !memcmp(one->name, name, one->name_bytes) &&
					      (!source || !strcmp(source, one->source));
		if (wanted[i] && first < 0)
			first = (int64_t)i;
	}
	return first;
}

static void answer_from(struct request *request, const struct zone_model *model)
{
	struct gathered to = { .count = 0 };
	bool *wanted = calloc(model->names.count + 1, sizeof(*wanted));
	int64_t range[3], first = wanted ? mark_names(request, model, wanted) : -2;

	if (first >= 0 && request_number(request, "from", INT64_MIN / 4, &range[0]) &&
	    request_number(request, "to", INT64_MAX, &range[1]) &&
	    request_number(request, "at", -1, &range[2])) {
		for (size_t i = 0; i < model->track_count; i++)
			answer_name_gather_track(model, &model->tracks[i], wanted, range, &to);
		if (to.failed)
			answer_error(request, 503, NULL, "out of memory for the zones");
		else
			write_name(&request->answer, model, (size_t)first, &to);
	} else if (first == -1) {
		answer_error(request, 404, "/api/zones lists the names", "no zone has this name");
	}
	free(to.durations);
	free(wanted);
}

void answer_name(struct request *request)
{
	struct target *target = request_target(request);
	struct kymo_error err = { 0 };
	int rc;

	if (!target)
		return;
	rc = target_look(target, 1000000000u, NULL, &err);
	if (rc) {
		answer_failed(request, rc, &err);
		return;
	}
	pthread_rwlock_rdlock(&target->feed_lock);
	answer_from(request, &target->feed.model);
	pthread_rwlock_unlock(&target->feed_lock);
}
