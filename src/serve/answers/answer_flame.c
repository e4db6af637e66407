/* Flame graphs of a stretch of time: of zones out of the index, of samples by SQL. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "serve/serve_inside.h"
#include "views/query/json.h"
#include "views/query/rows.h"
#include "views/timeline/zoneflame.h"

#define LEAST_SHARE 5000 /* what is less than that part of the whole stays in what is above it */

struct flame_request {
	int64_t from_ns, to_ns, thread;
};

/* ---- zones ---------------------------------------------------------------------------------- */

static void answer_flame_cut(struct zoneset_zone *zone, const struct flame_request *asked)
{
	int64_t end = zone->start_ns + zone->duration_ns;

	zone->start_ns = zone->start_ns < asked->from_ns ? asked->from_ns : zone->start_ns;
	end = end > asked->to_ns ? asked->to_ns : end;
	zone->duration_ns = end > zone->start_ns ? end - zone->start_ns : 0;
}

static int copy_track(const struct zoneindex *index, const struct zoneindex_track *track,
		      const struct flame_request *asked, struct zoneset *out)
{
	size_t first = out->count;

	for (uint32_t i = zoneindex_first(index, track, asked->from_ns); i < track->count; i++) {
		struct zoneindex_piece piece = zoneindex_zone(index, track, i);

		if (piece.start_ns >= asked->to_ns)
			break;
		if (!grow((void **)&out->zones, &out->room, out->count, sizeof(*out->zones)))
			return -ENOMEM;
		out->zones[out->count] = (struct zoneset_zone){ .start_ns = piece.start_ns,
								.duration_ns = piece.busy_ns,
								.name = piece.name,
								.lane = track->lane,
								.row = track->row };
		answer_flame_cut(&out->zones[out->count++], asked);
	}
	out->tracks[out->track_count++] = (struct zoneset_track){
		.lane = track->lane, .row = track->row, .first = first, .count = out->count - first
	};
	return 0;
}

static int answer_flame_copy_range(const struct zoneindex *index, const struct flame_request *asked,
				   struct zoneset *out)
{
	int rc = 0;

	out->tracks = calloc(index->track_count + 1, sizeof(*out->tracks));
	if (!out->tracks)
		return -ENOMEM;
	for (size_t lane = 0; lane < index->lane_count; lane++)
		for (uint32_t row = 0; row < index->lanes[lane].rows && !rc; row++)
			if (index->lanes[lane].tracks[row] &&
			    (asked->thread < 0 || asked->thread == (int64_t)lane))
				rc = copy_track(index,
						&index->tracks[index->lanes[lane].tracks[row] - 1],
						asked, out);
	return rc;
}

/* Which of the index's names the answer has: place + 1. */
static void add_flame_names(struct buf *out, const struct zoneindex *index, const uint32_t *place,
			    size_t count)
{
	uint32_t *name = calloc(count + 1, sizeof(*name));

	for (size_t i = 0; name && i < index->names.count; i++)
		if (place[i])
			name[place[i] - 1] = (uint32_t)i;
	buf_text(out, ",\"names\":{");
	zonenames_json(&index->names, name, 0, name ? count : 0, out);
	buf_char(out, '}');
	free(name);
}

static double whole_of(const struct zoneflame *flame)
{
	double whole_ns = 0;

	for (size_t i = 0; i < flame->count; i++)
		if (flame->nodes[i].parent != ZONEFLAME_ROOT &&
		    flame->nodes[flame->nodes[i].parent].name < 0)
			whole_ns += flame->nodes[i].total_ns;
	return whole_ns;
}

static void add_nodes(struct buf *out, const struct zoneindex *index, const struct zoneflame *flame,
		      uint32_t *place, int64_t *shown_at)
{
	double whole_ns = whole_of(flame);
	struct buf lanes = { 0 };
	size_t shown = 0, names = 0;

	buf_print(out, ",\"total\":%.0f,\"nodes\":[", whole_ns);
	for (size_t i = 0; i < flame->count; i++) {
		const struct zoneflame_node *node = &flame->nodes[i];
		bool lane = node->parent == ZONEFLAME_ROOT;
		int64_t name = node->name;

		shown_at[i] = -1;
		if (!lane &&
		    (shown_at[node->parent] < 0 || node->total_ns < whole_ns / LEAST_SHARE))
			continue;
		if (!lane && !place[name])
			place[name] = (uint32_t)++names;
		shown_at[i] = (int64_t)shown;
		buf_print(out, "%s[%" PRId64 ",%" PRId64 ",%.0f]", shown++ ? "," : "",
			  lane ? name : (int64_t)place[name] - 1,
			  lane ? -1 : shown_at[node->parent], node->total_ns);
		if (lane) {
			const struct zoneindex_lane *about = &index->lanes[-1 - name];

			buf_print(&lanes, "%s{\"id\":%" PRId64 ",\"note\":\"tid %d\",\"name\":",
				  lanes.used ? "," : "", -1 - name, about->tid);
			json_text(&lanes, about->name, strlen(about->name));
			buf_char(&lanes, '}');
		}
	}
	buf_print(out, "],\"lanes\":[%s]", buf_get(&lanes));
	buf_fini(&lanes);
	add_flame_names(out, index, place, names);
}

static void flame_of_zones(struct request *request, struct target *target,
			   const struct flame_request *asked)
{
	const struct zoneindex *index = &target->feed.index;
	struct zoneset set = { 0 };
	struct zoneflame flame = { 0 };
	uint32_t *place = calloc(index->names.count + 1, sizeof(*place));
	int64_t *shown_at = NULL;
	int rc = place ? answer_flame_copy_range(index, asked, &set) : -ENOMEM;

	if (!rc)
		rc = zoneflame_make(&set, &flame);
	shown_at = rc ? NULL : calloc(flame.count + 1, sizeof(*shown_at));
	if (shown_at) {
		buf_print(&request->answer, "{\"of\":\"zones\",\"unit\":\"ns\",\"gen\":%u",
			  target->feed.gen);
		add_nodes(&request->answer, index, &flame, place, shown_at);
		buf_text(&request->answer, "}\n");
	} else {
		answer_error(request, 503, "ask for less time",
			     "out of memory for the flame graph");
	}
	free(shown_at);
	free(place);
	zoneflame_fini(&flame);
	zoneset_fini(&set);
}

/* ---- samples -------------------------------------------------------------------------------- */

/* A tree, of names by their place in `names`. */
struct tree {
	struct buf nodes, names;
	struct {
		int64_t parent;
		uint32_t name;
	} list[65536];
	double totals[65536];
	size_t count, name_count;
	char *name_list[32768];
	double total;
};

static uint32_t tree_name(struct tree *tree, const char *text, size_t bytes)
{
	for (size_t i = 0; i < tree->name_count; i++)
		if (strlen(tree->name_list[i]) == bytes && !memcmp(tree->name_list[i], text, bytes))
			return (uint32_t)i;
	if (tree->name_count == 32768)
		return 0;
	tree->name_list[tree->name_count] = strndup(text, bytes);
	return tree->name_list[tree->name_count] ? (uint32_t)tree->name_count++ : 0;
}

static int64_t tree_child(struct tree *tree, int64_t parent, uint32_t name, double count)
{
	for (size_t i = parent < 0 ? 0 : (size_t)parent + 1; i < tree->count; i++)
		if (tree->list[i].parent == parent && tree->list[i].name == name) {
			tree->totals[i] += count;
			return (int64_t)i;
		}
	if (tree->count == 65536)
		return parent;
	tree->list[tree->count].parent = parent;
	tree->list[tree->count].name = name;
	tree->totals[tree->count] = count;
	return (int64_t)tree->count++;
}

/* thread, frames parted by U+0001 (outermost first), count */
static int sample_row(const struct rows *rows, void *context)
{
	struct tree *tree = context;
	double count = rows_number(rows, 2, 0);
	char *thread = rows_take_text(rows, 0), *stack = rows_take_text(rows, 1);
	int64_t at = -1;

	if (thread && stack) {
		at = tree_child(tree, -1, tree_name(tree, thread, strlen(thread)), count);
		for (const char *frame = stack; *frame;) {
			size_t bytes = strcspn(frame, "\x01");

			at = tree_child(tree, at, tree_name(tree, frame, bytes), count);
			frame += bytes + (frame[bytes] != 0);
		}
		tree->total += count;
	}
	free(thread);
	free(stack);
	return 0;
}

static void tree_json(const struct tree *tree, struct buf *out)
{
	buf_print(out,
		  "{\"of\":\"samples\",\"unit\":\"samples\",\"gen\":1,\"total\":%.0f,\"nodes\":[",
		  tree->total);
	for (size_t i = 0; i < tree->count; i++)
		buf_print(out, "%s[%u,%" PRId64 ",%.0f]", i ? "," : "", tree->list[i].name,
			  tree->list[i].parent, tree->totals[i]);
	buf_text(out, "],\"lanes\":[],\"names\":{\"name\":[");
	for (size_t i = 0; i < tree->name_count; i++) {
		buf_text(out, i ? "," : "");
		json_text(out, tree->name_list[i], strlen(tree->name_list[i]));
	}
	buf_text(out, "],\"source\":[");
	for (size_t i = 0; i < tree->name_count; i++)
		buf_text(out, i ? ",\"python\"" : "\"python\"");
	buf_text(out, "],\"file\":[");
	for (size_t i = 0; i < tree->name_count; i++)
		buf_text(out, i ? ",\"\"" : "\"\"");
	buf_text(out, "],\"line\":[");
	for (size_t i = 0; i < tree->name_count; i++)
		buf_text(out, i ? ",0" : "0");
	buf_text(out, "]}}\n");
}

static void flame_of_samples(struct request *request, struct target *target,
			     const struct flame_request *asked)
{
	struct tables_options options = { .memory_limit_bytes = UINT64_C(512) << 20,
					  .timeout_ms = 60000 };
	struct tree *tree = calloc(1, sizeof(*tree));
	struct tables *tables = NULL;
	struct kymo_error err = { 0 };
	struct buf sql = { 0 };
	int rc = tree ? target_open_tables(target, &options, &tables, &err)
		      : error_set(&err, ENOMEM, "no memory for the flame graph");

	buf_print(&sql,
		  "SELECT coalesce(thread, 'tid ' || tid), array_to_string(list_reverse(stack), "
		  "chr(1)), count(*) FROM "
		  "python.samples WHERE len(stack) > 0 AND ts_ns >= %" PRId64
		  " AND ts_ns < %" PRId64,
		  asked->from_ns, asked->to_ns);
	if (asked->thread >= 0)
		buf_print(&sql, " AND tid = %" PRId64, asked->thread);
	buf_text(&sql, " GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 10000");
	if (!rc)
		rc = rows_each(tables, buf_get(&sql), sample_row, tree, &err);
	if (rc)
		answer_failed(request, rc, &err);
	else
		tree_json(tree, &request->answer);
	tables_close(tables);
	for (size_t i = 0; tree && i < tree->name_count; i++)
		free(tree->name_list[i]);
	free(tree);
	buf_fini(&sql);
}

void answer_flame(struct request *request)
{
	const char *of = request_get(request, "of");
	struct flame_request asked;
	struct kymo_error err = { 0 };
	struct target *target = request_target(request);
	int rc;

	if (!target || !request_number(request, "from", 0, &asked.from_ns) ||
	    !request_number(request, "to", INT64_MAX, &asked.to_ns) ||
	    !request_number(request, "thread", -1, &asked.thread))
		return;
	if (of && !strcmp(of, "samples")) {
		flame_of_samples(request, target, &asked);
		return;
	}
	if (of && *of && strcmp(of, "zones")) {
		answer_error(request, 400, "zones or samples", "no flame graph of %.40s", of);
		return;
	}
	rc = target_look(target, 1000000000u, NULL, &err);
	if (rc) {
		answer_failed(request, rc, &err);
		return;
	}
	pthread_rwlock_rdlock(&target->feed_lock);
	flame_of_zones(request, target, &asked);
	pthread_rwlock_unlock(&target->feed_lock);
}
