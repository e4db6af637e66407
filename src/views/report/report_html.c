/* The report of one recording as a page: what is said as JSON, zones as packed columns. */
#include "views/report/page.h"
#include "views/report/report_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "views/report/blocks.h"
#include "views/term/format.h"
#include "views/query/json.h"
#include "views/query/rows.h"
#include "views/web.h"
#include "views/timeline/zoneflame.h"
#include "views/timeline/zonepack.h"

#define BUDGET_BYTES 4800000
#define BUDGET_LEAST 200000 /* for zones, whatever the rest takes */
#define SPANS 80

/* Whole detail, where not all of it fits: the slowest 20 steps, the first 5, 40 evenly chosen;
   without steps, evenly chosen hundredths of the run. */
static const char spans_sql[] =
	"WITH s AS (SELECT start_ns, start_ns + duration_ns AS end_ns, row_number() OVER (ORDER BY "
	"duration_ns DESC) AS slow, "
	"row_number() OVER (ORDER BY start_ns) AS n, count(*) OVER () AS c FROM " FACTS_STEPS_SQL
	"), r AS (SELECT max(duration_ns) AS d FROM kymo.runs) SELECT start_ns, end_ns FROM s "
	"WHERE slow <= 20 OR n <= 5 OR "
	"n % greatest(c // 40, 1) = 0 UNION ALL SELECT d * i // 10, d * i // 10 + d // 100 FROM r, "
	"range(10) t(i) WHERE NOT "
	"EXISTS (FROM s) ORDER BY 1 LIMIT 80";

struct spans {
	struct zonepack_span list[SPANS];
	size_t count;
};

static int span_row(const struct rows *rows, void *context)
{
	struct spans *spans = context;
	int64_t from = (int64_t)rows_number(rows, 0, 0), to = (int64_t)rows_number(rows, 1, 0);

	if (spans->count && from <= spans->list[spans->count - 1].to_ns) {
		if (to > spans->list[spans->count - 1].to_ns)
			spans->list[spans->count - 1].to_ns = to;
	} else if (spans->count < SPANS) {
		spans->list[spans->count++] = (struct zonepack_span){ from, to };
	}
	return 0;
}

/* ---- the zones' own blocks ------------------------------------------------------------------ */

static void report_html_add_lanes(struct buf *out, const struct zoneset *set)
{
	buf_text(out, ",\n\"lanes\":[");
	for (size_t i = 0; i < set->lane_count; i++) {
		const struct zoneset_lane *lane = &set->lanes[i];

		buf_print(out, "%s{\"id\":%zu,\"pid\":%d,\"tid\":%d,\"rows\":%u,\"kind\":\"%s\",",
			  i ? "," : "", i, lane->pid, lane->tid, lane->rows,
			  lane->queue ? "queue" : "thread");
		buf_text(out, "\"note\":\"");
		if (lane->rank >= 0)
			buf_print(out, "rank %d, ", lane->rank);
		if (lane->queue)
			buf_text(out, "device");
		else
			buf_print(out, "tid %d", lane->tid);
		buf_text(out, "\",\"name\":");
		json_text(out, lane->name, strlen(lane->name));
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

static void report_html_add_names(struct buf *out, const struct zoneset *set)
{
	buf_text(out, ",\n\"names\":{");
	zonenames_json(&set->names, NULL, 0, set->names.count, out);
	buf_char(out, '}');
}

/* What the footer says about the zones of this file. */
static void report_html_describe(struct buf *out, const struct zoneset *set,
				 const struct zonepack *pack)
{
	buf_print(out, "%s zones in this file", format_count(set->count).text);
	if (!set->count)
		buf_text(out, ": none were recorded");
	else if (pack->merged_ns)
		buf_print(out,
			  "; outside of chosen steps those shorter than %s are merged with their "
			  "neighbours (%s pieces)",
			  format_duration((double)pack->merged_ns, true).text,
			  format_count(pack->shown).text);
	else if (pack->quantum_ns > 1)
		buf_print(out, ", times rounded to %d ns", (int)pack->quantum_ns);
	else
		buf_text(out, ", all of them, exact");
	if (set->hidden)
		buf_print(out, "; %s more, of further threads, are not",
			  format_count(set->hidden).text);
}

static void add_tracks(struct buf *out, const struct zoneset *set, const struct zonepack *pack)
{
	struct buf detail = { 0 };

	report_html_describe(&detail, set, pack);
	buf_print(out,
		  ",\n\"zones\":{\"count\":%zu,\"quantum_ns\":%d,\"merged_ns\":%lld,\"end_ns\":%"
		  "lld,\"detail\":",
		  set->count, (int)pack->quantum_ns, (long long)pack->merged_ns,
		  (long long)set->end_ns);
	json_text(out, buf_get(&detail), detail.used);
	buf_text(out, "},\n\"tracks\":[");
	for (size_t i = 0; i < pack->track_count; i++) {
		const struct zonepack_track *track = &pack->tracks[i];

		buf_print(out,
			  "%s{\"lane\":%u,\"row\":%u,\"count\":%zu,\"gap_bytes\":%u,\"duration_"
			  "bytes\":%u,\"name_bytes\":%u,"
			  "\"merged\":%s}",
			  i ? "," : "", track->lane, track->row, track->count, track->gap_bytes,
			  track->duration_bytes, track->name_bytes,
			  pack->merged_ns ? "true" : "false");
	}
	buf_char(out, ']');
	buf_fini(&detail);
}

/* Merged zones no longer say who called whom: then the tree is made here, of all of them. What is
   below 0.02 % stays in what is above it. */
static int report_html_add_flame(struct buf *out, const struct zoneset *set, struct kymo_error *err)
{
	struct zoneflame flame;
	double whole_ns = 0;
	int64_t *place;
	size_t shown = 0;
	int rc = zoneflame_make(set, &flame);

	place = calloc(flame.count + 1, sizeof(*place));
	if (rc || !place)
		rc = error_set(err, ENOMEM, "out of memory for a flame graph of %zu zones",
			       set->count);
	for (size_t i = 0; !rc && i < flame.count; i++)
		if (flame.nodes[i].parent != ZONEFLAME_ROOT &&
		    flame.nodes[flame.nodes[i].parent].name < 0)
			whole_ns += flame.nodes[i].total_ns;
	buf_text(out, ",\n\"flame\":[");
	for (size_t i = 0; !rc && i < flame.count; i++) {
		const struct zoneflame_node *node = &flame.nodes[i];
		bool lane = node->parent == ZONEFLAME_ROOT;

		place[i] = -1;
		if (!lane && (place[node->parent] < 0 || node->total_ns < whole_ns / 5000))
			continue;
		place[i] = (int64_t)shown;
		buf_print(out, "%s[%lld,%lld,%.0f]", shown++ ? "," : "", (long long)node->name,
			  lane ? -1LL : (long long)place[node->parent], node->total_ns);
	}
	buf_char(out, ']');
	free(place);
	zoneflame_fini(&flame);
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* The blocks as one JSON text. */
static int gather_json(struct tables *tables, const struct facts *facts, struct buf *out,
		       struct kymo_error *err)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);
	int rc = memory ? blocks_write(tables, facts, memory, err) : -ENOMEM;

	if (memory && fclose(memory) && !rc)
		rc = -ENOMEM;
	buf_char(out, '{');
	if (!rc)
		buf_add(out, text, bytes);
	free(text);
	return rc == -ENOMEM ? error_set(err, ENOMEM, "out of memory for the report") : rc;
}

static int pack_zones(struct tables *tables, struct buf *json, struct zonepack *pack,
		      struct kymo_error *err)
{
	struct zoneset set = { 0 };
	struct spans spans = { .count = 0 };
	size_t taken, budget = BUDGET_LEAST;
	int rc = zoneset_gather(tables, &set, err);

	if (!rc)
		rc = rows_each(tables, spans_sql, span_row, &spans, err);
	if (!rc) {
		report_html_add_lanes(json, &set);
		report_html_add_names(json, &set);
		taken = json->used + web_script_bytes + web_style_bytes + 10000 +
			110 * set.track_count;
		if (taken < BUDGET_BYTES && (BUDGET_BYTES - taken) / 4 * 3 > budget)
			budget = (BUDGET_BYTES - taken) / 4 * 3;
		rc = zonepack_make(&set, spans.list, spans.count, budget, pack, err);
	}
	if (!rc)
		add_tracks(json, &set, pack);
	if (!rc && pack->merged_ns)
		rc = report_html_add_flame(json, &set, err);
	buf_char(json, '}');
	if (!rc && json->failed)
		rc = error_set(err, ENOMEM, "out of memory for the report");
	zoneset_fini(&set);
	return rc;
}

int report_html(struct tables *tables, FILE *out, struct kymo_error *err)
{
	struct zonepack pack = { 0 };
	struct buf json = { 0 };
	struct facts facts;
	int rc = facts_gather(tables, &facts, err);

	if (!rc)
		rc = gather_json(tables, &facts, &json, err);
	if (!rc)
		rc = pack_zones(tables, &json, &pack, err);
	if (!rc)
		page_write(out, facts.program, &json, pack.data, pack.bytes);
	zonepack_fini(&pack);
	buf_fini(&json);
	facts_fini(&facts);
	return rc;
}
