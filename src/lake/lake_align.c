/* Clocks of the hosts of a job, from the calls in its lake: the same computation as for a directory
   of recordings (store/host_clocks.h), on a recording that has hosts and ranks alone. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "lake/lake_file.h"
#include "lake/lake_tidy.h"
#include "lake_sql.h"
#include "store/clocks/clock_calls.h"
#include "store/host_clocks.h"
#include "tables/catalog/catalog.h"
#include "tables/sql_fill.h"

#define CALLS_MOST (UINT64_C(2) << 20) /* rows that are read */

struct lake_align {
	struct lake_listing listing;
	struct lake_place place;
	struct recording recording; /* runs and processes alone */
	size_t run_room, process_room;
	struct clock_calls calls;
	struct lake_aligned *out;
};

/* ---- what is read ------------------------------------------------------- */

static bool lake_align_add_rank(struct lake_align *align, const char *host, int32_t rank)
{
	struct recording *made = &align->recording;
	struct store_process *process;

	if (!made->run_count || strcmp(made->runs[made->run_count - 1].host, host) != 0) {
		struct store_run *run;

		if (!grow((void **)&made->runs, &align->run_room, made->run_count, sizeof(*run)))
			return false;
		run = &made->runs[made->run_count++];
		memset(run, 0, sizeof(*run));
		snprintf(run->host, sizeof(run->host), "%s", host);
	}
	if (!grow((void **)&made->processes, &align->process_room, made->process_count,
		  sizeof(*process)))
		return false;
	process = &made->processes[made->process_count++];
	memset(process, 0, sizeof(*process));
	process->run = (uint32_t)(made->run_count - 1);
	process->rank = rank;
	process->host = "";
	return true;
}

static int read_ranks(struct lake_align *align, struct kymo_error *err)
{
	struct tables_result *result = NULL;
	int64_t count = 0;
	int rc = tables_query(align->place.tables, sql_align_ranks, &result, err);

	while (!rc && (count = tables_next(result, err)) > 0)
		for (size_t row = 0; !rc && row < (size_t)count; row++) {
			struct tables_cell host, rank;
			char name[80];

			tables_cell(result, 0, row, &host);
			tables_cell(result, 1, row, &rank);
			snprintf(name, sizeof(name), "%.*s", (int)host.text_bytes, host.text);
			if (!lake_align_add_rank(align, name, (int32_t)rank.integer))
				rc = error_set(err, ENOMEM, "no memory for the ranks of the job");
		}
	tables_result_close(result);
	return rc ? rc : (int)count;
}

static uint64_t unsigned_cell(struct tables_result *result, size_t column, size_t row)
{
	struct tables_cell cell = { 0 };

	tables_cell(result, column, row, &cell);
	return cell.kind == TABLES_UNSIGNED ? cell.unsigned_integer : (uint64_t)cell.integer;
}

static bool lake_align_add_call(struct clock_calls *calls, struct tables_result *result, size_t row)
{
	struct clock_call call = {
		.key = { .seq = unsigned_cell(result, 0, row),
			 .group = (uint32_t)unsigned_cell(result, 1, row),
			 .members = (uint32_t)unsigned_cell(result, 2, row),
			 .op = (uint32_t)unsigned_cell(result, 3, row),
			 .attempt = (int32_t)unsigned_cell(result, 4, row) },
		.domain = (uint32_t)unsigned_cell(result, 5, row),
		.arrival_ns = (int64_t)unsigned_cell(result, 6, row),
		.end_ns = (int64_t)unsigned_cell(result, 7, row),
	};

	if (!clock_calls_is_time(call.arrival_ns) || !clock_calls_is_time(call.end_ns))
		return true;
	if (!grow((void **)&calls->list, &calls->room, calls->count, sizeof(call)))
		return false;
	calls->list[calls->count++] = call;
	return true;
}

/* Its files as they are: the table of the session is on aligned clocks if it was aligned before. */
static void name_files(const struct lake_align *align, const struct lake_table *table,
		       struct buf *out)
{
	struct buf path = { 0 };

	buf_text(out, "read_parquet([");
	for (size_t i = 0; i < table->count; i++) {
		buf_reset(&path);
		lake_file_path(&align->listing.job, table->schema, table->name,
			       table->files[i].name, &path);
		buf_text(out, i ? ", " : "");
		catalog_quote_text(out, buf_get(&path));
	}
	buf_text(out, "], hive_partitioning = false, union_by_name = true)");
	buf_fini(&path);
}

static int read_calls(struct lake_align *align, struct kymo_error *err)
{
	const struct lake_table *table = lake_find(&align->listing, "dist", "collectives");
	struct tables_result *result = NULL;
	struct buf files = { 0 }, sql = { 0 };
	uint64_t rows = 0;
	int64_t count = 0;
	int rc;

	if (!table)
		return 0;
	name_files(align, table, &files);
	buf_print(&sql, "SELECT count(*) FROM %s", buf_get(&files));
	rc = lake_file_number(align->place.tables, buf_get(&sql), &rows, err);
	buf_reset(&sql);
	sql_fill(&sql, sql_align_calls,
		 (struct sql_value[]){ { "files", .text = buf_get(&files) },
				       { "every", .number = (int64_t)(rows / CALLS_MOST + 1) },
				       { NULL } });
	if (!rc)
		rc = tables_query(align->place.tables, buf_get(&sql), &result, err);
	while (!rc && (count = tables_next(result, err)) > 0)
		for (size_t row = 0; !rc && row < (size_t)count; row++)
			if (!lake_align_add_call(&align->calls, result, row))
				rc = error_set(err, ENOMEM, "no memory for the calls of the job");
	tables_result_close(result);
	buf_fini(&files);
	buf_fini(&sql);
	return rc ? rc : (int)count;
}

/* ---- what is written ------------------------------------------------------- */

static void lake_align_add_clock(struct buf *rows, const struct store_host_clock *clock,
				 int32_t rank, const char *host)
{
	static const char *const methods[] = { [STORE_ALIGN_SAME] = "same clock",
					       [STORE_ALIGN_FITTED] = "collectives",
					       [STORE_ALIGN_NONE] = "wall clock",
					       [STORE_ALIGN_REFUSED] = "refused" };

	buf_print(rows, "%s(%d, ", rows->used ? ", " : "", (int)rank);
	catalog_quote_text(rows, host);
	buf_print(rows, ", %" PRIu32 ", %" PRId64 ", %" PRId64 ", %.17g::DOUBLE, ", clock->domain,
		  clock->t0_ns, clock->offset_ns, clock->drift * 1e6);
	if (clock->error_ns >= 0)
		buf_print(rows, "%" PRId64, clock->error_ns);
	else
		buf_text(rows, "NULL");
	buf_print(rows, ", %" PRIu32 ", '%s', %s, ", clock->used, methods[clock->method],
		  clock->applied ? "true" : "false");
	if (clock->reason[0])
		catalog_quote_text(rows, clock->reason);
	else
		buf_text(rows, "NULL");
	buf_char(rows, ')');
}

static void count_host(struct lake_aligned *out, const struct store_host_clock *clock)
{
	out->aligned += clock->method == STORE_ALIGN_FITTED || clock->method == STORE_ALIGN_SAME;
	out->refused += clock->method == STORE_ALIGN_REFUSED;
	if (clock->method == STORE_ALIGN_FITTED && clock->error_ns > out->error_ns)
		out->error_ns = clock->error_ns;
}

static int write_clocks(struct lake_align *align, struct kymo_error *err)
{
	const struct recording *made = &align->recording;
	struct buf rows = { 0 }, query = { 0 };
	struct lake_file_content content = {
		.schema = "dist", .table = "clocks", .name = "aligned", .replace = true
	};
	int rc;

	for (size_t i = 0; i < made->process_count; i++)
		for (size_t k = 0; k < made->host_clock_count; k++)
			if (made->host_clocks[k].domain == made->processes[i].domain)
				lake_align_add_clock(&rows, &made->host_clocks[k],
						     made->processes[i].rank,
						     made->runs[made->processes[i].run].host);
	for (size_t k = 0; k < made->host_clock_count; k++)
		if (!k || made->host_clocks[k].domain != made->host_clocks[k - 1].domain)
			count_host(align->out, &made->host_clocks[k]);
	if (!rows.used)
		return error_set(err, ENODATA,
				 "the job has no ranks whose clocks could be aligned");
	sql_fill(&query, sql_align_clocks,
		 (struct sql_value[]){ { "rows", .text = buf_get(&rows) }, { NULL } });
	content.query = buf_get(&query);
	rc = rows.failed || query.failed ? error_set(err, ENOMEM, "no memory for dist.clocks")
					 : lake_file_write(&align->place, &content, NULL, err);
	buf_fini(&rows);
	buf_fini(&query);
	return rc;
}

static int align_job(struct lake_align *align, struct kymo_error *err)
{
	int rc = read_ranks(align, err);

	if (!rc)
		rc = read_calls(align, err);
	if (rc)
		return rc;
	align->out->hosts = align->recording.run_count;
	if (align->recording.run_count)
		host_clocks_align_calls(&align->recording, &align->calls);
	return write_clocks(align, err);
}

int lake_align(const char *path, struct lake_aligned *out, struct kymo_error *err)
{
	/* Only internal SQL runs here, and it writes a file. */
	const struct tables_options options = { .unsafe = true,
						.memory_limit_bytes = tables_own_memory() };
	struct lake_align align = { .out = out, .place.lake = -1 };
	int rc = lake_list(path, &align.listing, err);

	memset(out, 0, sizeof(*out));
	if (!rc)
		rc = lake_place_open(&align.place, &align.listing.job, err);
	if (!rc)
		rc = tables_open(path, &options, &align.place.tables, err);
	if (!rc)
		rc = align_job(&align, err);
	tables_close(align.place.tables);
	lake_place_close(&align.place);
	free(align.calls.list);
	free(align.recording.runs);
	free(align.recording.processes);
	free(align.recording.host_clocks);
	lake_listing_fini(&align.listing);
	return rc;
}
