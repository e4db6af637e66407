/* The report of one recording as a page: JSON, and zones as packed columns. */
#include "views/report/page.h"
#include "views/report/report_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "views/report/blocks.h"
#include "views/source/source_files.h"
#include "views/term/format.h"
#include "views/query/json.h"
#include "views/query/rows.h"
#include "views_sql.h"
#include "views/web.h"
#include "views/timeline/job_page.h"
#include "views/timeline/sampled_zones.h"
#include "views/timeline/zone_flame.h"
#include "views/timeline/zone_gather.h"
#include "views/timeline/zone_pack.h"

#define BUDGET_BYTES 4800000
#define BUDGET_LEAST 200000 /* for zones, however large the rest is */
#define SPANS 80
#define TITLE_BYTES 400

struct spans {
	struct zone_pack_span list[SPANS];
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
		spans->list[spans->count++] = (struct zone_pack_span){ from, to };
	}
	return 0;
}

/* ---- zones ---------------------------------------------------------------------------------- */

static void report_html_add_lanes(struct buf *out, const struct zone_model *model)
{
	buf_text(out, ",\n\"lanes\":[");
	for (size_t i = 0; i < model->lane_count; i++) {
		const struct zone_model_lane *lane = &model->lanes[i];

		buf_print(out, "%s{\"id\":%zu,\"pid\":%d,\"tid\":%d,\"rows\":%u,", i ? "," : "", i,
			  lane->pid, lane->tid, lane->rows);
		zone_model_lane_json(lane, out);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

static void report_html_add_names(struct buf *out, const struct zone_model *model)
{
	buf_text(out, ",\n\"names\":{");
	name_table_json(&model->names, NULL, 0, model->names.count, out);
	buf_char(out, '}');
}

static void describe_samples(struct buf *out, const struct zone_model *model, uint64_t thinned)
{
	buf_print(out, ", %s of them made of stack samples, since the program marked nothing",
		  format_count(model->sampled).text);
	if (thinned)
		buf_print(out, "; %s samples are left out, evenly over the run",
			  format_count(thinned).text);
}

/* The note on zones in the footer. */
static void report_html_describe(struct buf *out, const struct zone_model *model,
				 const struct zone_pack *pack, uint64_t thinned)
{
	buf_print(out, "%s zones in this file", format_count(model->count).text);
	if (model->sampled)
		describe_samples(out, model, thinned);
	if (!model->count)
		buf_text(out, ": none were recorded");
	else if (pack->merged_ns)
		buf_print(out,
			  "; outside the selected steps, zones shorter than %s are merged with "
			  "their neighbours (%s pieces)",
			  format_duration((double)pack->merged_ns, true).text,
			  format_count(pack->shown).text);
	else if (pack->quantum_ns > 1)
		buf_print(out, ", times rounded to %d ns", (int)pack->quantum_ns);
	else if (!model->sampled)
		buf_text(out, ", complete and exact");
	if (model->hidden)
		buf_print(out, "; %s zones of further threads are left out",
			  format_count(model->hidden).text);
}

/* A tick of the clock, in whose buckets quantiles are computed; processes of one machine share it.
   1 if it is unknown, as in a packed recording. */
static double bucket_ns(const struct tables *tables)
{
	const struct recording *recording = tables_recording(tables);

	return recording && recording->process_count
		       ? store_clock_tick_ns(&recording->processes[0].clock)
		       : 1;
}

static void add_tracks(struct tables *tables, struct buf *out, const struct zone_model *model,
		       const struct zone_pack *pack)
{
	struct buf detail = { 0 };

	report_html_describe(&detail, model, pack,
			     model->sampled ? sampled_zones_thinned(tables) : 0);
	buf_print(out,
		  ",\n\"zones\":{\"count\":%zu,\"quantum_ns\":%d,\"tick_ns\":%.17g,"
		  "\"merged_ns\":%lld,\"end_ns\":%lld,\"detail\":",
		  (size_t)model->count, (int)pack->quantum_ns, bucket_ns(tables),
		  (long long)pack->merged_ns, (long long)zone_model_end_ns(model));
	json_text(out, buf_get(&detail), detail.used);
	buf_text(out, "},\n\"tracks\":[");
	for (size_t i = 0; i < pack->track_count; i++) {
		const struct zone_planes *track = &pack->tracks[i];

		buf_print(out,
			  "%s{\"lane\":%u,\"row\":%u,\"count\":%zu,\"gap_bytes\":%u,\"duration_"
			  "bytes\":%u,\"name_bytes\":%u,"
			  "\"merged\":%s}",
			  i ? "," : "", track->lane, track->row, track->count, track->gap_bytes,
			  track->duration_bytes, track->name_bytes,
			  track->merged ? "true" : "false");
	}
	buf_char(out, ']');
	buf_fini(&detail);
}

/* Merged zones have no callers, so the tree is made here, from all zones. */
static int report_html_add_flame(struct buf *out, const struct zone_model *model,
				 struct kymo_error *err)
{
	const struct zone_flame_range all = { INT64_MIN, INT64_MAX, -1, NULL };
	struct call_tree tree;
	int rc = zone_flame_make(model, &all, &tree);

	buf_text(out, ",\n\"flame\":[");
	if (!rc)
		rc = zone_flame_json(&tree, NULL, NULL, out);
	buf_char(out, ']');
	call_tree_fini(&tree);
	if (rc)
		return error_set(err, ENOMEM, "out of memory for a flame graph of %zu zones",
				 (size_t)model->count);
	return 0;
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

static int pack_zones(struct tables *tables, struct buf *json, struct zone_pack *pack,
		      struct kymo_error *err)
{
	struct zone_model model = { 0 };
	struct spans spans = { .count = 0 };
	size_t taken, budget = BUDGET_LEAST;
	int rc = zone_gather(tables, &model, err);

	if (!rc)
		rc = rows_each(tables, sql_report_spans, span_row, &spans, err);
	if (!rc) {
		report_html_add_lanes(json, &model);
		report_html_add_names(json, &model);
		taken = json->used + web_script_bytes + web_style_bytes + 10000 +
			110 * model.track_count;
		if (taken < BUDGET_BYTES && (BUDGET_BYTES - taken) / 4 * 3 > budget)
			budget = (BUDGET_BYTES - taken) / 4 * 3;
		rc = zone_pack_make(&model, spans.list, spans.count, budget, pack, err);
	}
	if (!rc)
		add_tracks(tables, json, &model, pack);
	if (!rc && pack->merged_ns)
		rc = report_html_add_flame(json, &model, err);
	buf_char(json, '}');
	if (!rc && json->failed)
		rc = error_set(err, ENOMEM, "out of memory for the report");
	zone_model_fini(&model);
	return rc;
}

static int report_html_add_sources(struct tables *tables, struct report_options *options,
				   struct buf *json, struct kymo_error *err)
{
	buf_text(json, ",\n\"sources\":");
	return source_files_document(tables, options->no_source, json, &options->texts, err);
}

int report_html(struct tables *tables, struct report_options *options, FILE *out,
		struct kymo_error *err)
{
	struct zone_pack pack = { 0 };
	struct buf json = { 0 };
	char title[TITLE_BYTES];
	struct facts facts;
	int rc = facts_gather(tables, &facts, err);

	if (!rc)
		rc = gather_json(tables, &facts, &json, err);
	if (!rc)
		rc = job_page_add(tables, &json, err);
	if (!rc)
		rc = report_html_add_sources(tables, options, &json, err);
	if (!rc)
		rc = pack_zones(tables, &json, &pack, err);
	if (!rc) {
		snprintf(title, sizeof(title), "%s · %s", facts.program, tables_name(tables));
		page_write(out, title, &json, pack.data, pack.bytes);
	}
	zone_pack_fini(&pack);
	buf_fini(&json);
	facts_fini(&facts);
	return rc;
}
