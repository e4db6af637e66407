#include "views/timeline/job_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "views/query/output.h"
#include "views/query/rows.h"
#include "views/timeline/step_map.h"
#include "views_sql.h"

#define COLUMNS_MOST 800
#define ROWS_MOST 128

/* ---- the map -------------------------------------------------------------------------------- */

static int job_page_step(const struct rows *rows, void *context)
{
	return step_map_add(context, (int32_t)rows_number(rows, 0, -1),
			    (int64_t)rows_number(rows, 1, -1), (int64_t)rows_number(rows, 2, 0),
			    (int64_t)rows_number(rows, 3, -1));
}

static int job_page_wait(const struct rows *rows, void *context)
{
	step_map_add_wait(context, (int32_t)rows_number(rows, 0, -1),
			  (int64_t)rows_number(rows, 1, -1), (int64_t)rows_number(rows, 2, -1));
	return 0;
}

static void job_page_base64(struct buf *out, const signed char *cells, size_t count)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < count; i += 3) {
		uint32_t word = 0;

		for (size_t k = 0; k < 3; k++)
			word = word << 8 | (i + k < count ? (unsigned char)cells[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			buf_char(out, i + k > count ? '=' : letters[word >> (18 - 6 * k) & 63]);
	}
}

/* When the first step of a column began, on the first rank that has it. */
static int64_t job_page_start(const struct step_map *map, int64_t step)
{
	for (size_t i = 0; i < map->rank_count; i++) {
		const struct step_map_rank *rank = &map->ranks[i];
		uint64_t at = (uint64_t)(step - rank->first);

		if (step >= rank->first && at < rank->count && rank->steps[at].duration_ns >= 0)
			return rank->steps[at].start_ns;
	}
	return 0;
}

static void job_page_times(const struct step_map *map, const struct step_map_part *part, bool ends,
			   struct buf *out)
{
	uint64_t steps = (uint64_t)(part->to - part->from);

	for (size_t i = 0; i < part->columns; i++) {
		int64_t step = part->from +
			       (int64_t)((i * steps + part->columns - 1) / part->columns);
		double median = map->median_ns[step - map->first];
		int64_t start = job_page_start(map, step);

		buf_print(out, "%s%" PRId64, i ? "," : "",
			  ends && median > 0 ? start + (int64_t)median : start);
	}
}

static int job_page_map(const struct step_map *map, enum step_map_value of, struct buf *out)
{
	struct step_map_part part = { .to = INT64_MAX,
				      .end_rank = SIZE_MAX,
				      .columns = COLUMNS_MOST,
				      .rows = ROWS_MOST,
				      .of = of };
	signed char *cells;
	int rc = step_map_cells(map, &part, &cells);

	if (rc)
		return rc;
	buf_char(out, '{');
	step_map_json(map, &part, out);
	buf_text(out, ",\"cells\":\"");
	job_page_base64(out, cells, part.columns * part.rows);
	buf_text(out, "\",\"starts\":[");
	job_page_times(map, &part, false, out);
	buf_text(out, "],\"ends\":[");
	job_page_times(map, &part, true, out);
	buf_text(out, "]}");
	free(cells);
	return 0;
}

static int job_page_add_maps(struct tables *tables, struct buf *json, struct kymo_error *err)
{
	struct step_map map = { 0 };
	int rc = rows_each(tables, sql_page_steps, job_page_step, &map, err);

	if (!rc)
		rc = rows_each(tables, sql_page_waits, job_page_wait, &map, err);
	if (!rc)
		rc = step_map_settle(&map);
	buf_text(json, ",\n\"maps\":[");
	if (!rc && map.rank_count > 1)
		rc = job_page_map(&map, STEP_MAP_DURATION, json);
	if (!rc && map.rank_count > 1 && map.waits) {
		buf_char(json, ',');
		rc = job_page_map(&map, STEP_MAP_WAIT, json);
	}
	buf_char(json, ']');
	step_map_fini(&map);
	return rc;
}

/* ---- joins ---------------------------------------------------------------------------------- */

static int job_page_rows(struct tables *tables, const char *sql, FILE *out, struct kymo_error *err)
{
	struct output_options options = { .limit = UINT64_MAX };
	struct output_count count = { 0 };
	struct tables_result *result = NULL;
	int rc = tables_query(tables, sql, &result, err);

	if (!rc)
		rc = output_json_write(result, &options, out, &count, err);
	tables_result_close(result);
	return rc;
}

static int job_page_add_joins(struct tables *tables, struct buf *json, struct kymo_error *err)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);
	int rc = memory ? 0 : -ENOMEM;

	if (!rc) {
		fputs(",\n\"joined\":{\"collectives\":", memory);
		rc = job_page_rows(tables, sql_page_collectives, memory, err);
		fputs(",\"launches\":", memory);
		if (!rc)
			rc = job_page_rows(tables, sql_page_launches, memory, err);
		fputs(",\"links\":", memory);
		if (!rc)
			rc = job_page_rows(tables, sql_page_links, memory, err);
		fputs("}", memory);
	}
	if (memory && fclose(memory) && !rc)
		rc = -ENOMEM;
	if (!rc)
		buf_add(json, text, bytes);
	free(text);
	return rc;
}

int job_page_add(struct tables *tables, struct buf *json, struct kymo_error *err)
{
	int rc = job_page_add_maps(tables, json, err);

	if (!rc)
		rc = job_page_add_joins(tables, json, err);
	return rc == -ENOMEM ? error_set(err, ENOMEM, "out of memory for the ranks of the report")
			     : rc;
}
