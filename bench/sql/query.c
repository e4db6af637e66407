/*
 * Queries over a recording, read from its files by our scan, against the same over DuckDB's own
 * in-memory table with the same columns and rows, in one session of one process, in turn.
 *
 *	query RECORDING
 *		query.QUERY (ratio), query.QUERY.s, query.QUERY.own_s; query.open_s, query.rows
 */
#include "bench.h"
#include "tables/tables.h"

#define REPETITIONS 7

static const struct {
	const char *key;
	const char *sql; /* %s: the table */
} queries[] = {
	{ "scan", "SELECT count(*), sum(duration_ns), max(start_ns) FROM %s" },
	{ "filter", "SELECT count(*) FROM %s WHERE duration_ns > 1000 AND depth = 2" },
	{ "group",
	  "SELECT name, count(*), sum(duration_ns), max(duration_ns) FROM %s GROUP BY name" },
	{ "group_step", "SELECT step, count(*), sum(duration_ns) FROM %s GROUP BY step" },
	{ "top", "SELECT name, start_ns, duration_ns FROM %s ORDER BY duration_ns DESC LIMIT 10" },
};

static void die(const char *what, const struct kymo_error *err)
{
	fprintf(stderr, "query: %s: %s\n", what, err->text);
	exit(1);
}

/* Reads the result to its end; the first value of the first row is the answer. */
static double ask(struct tables *tables, const char *sql)
{
	struct tables_result *result = NULL;
	struct tables_cell cell = { 0 };
	struct kymo_error err;
	double first = 0;
	int64_t rows;
	bool any = false;

	if (tables_query(tables, sql, &result, &err))
		die(sql, &err);
	while ((rows = tables_next(result, &err)) > 0) {
		if (!any)
			tables_cell(result, 0, 0, &cell);
		any = true;
		first = cell.kind == TABLES_DOUBLE ? cell.real : (double)cell.integer;
	}
	if (rows < 0)
		die(sql, &err);
	tables_result_close(result);
	return first;
}

static double seconds_for(struct tables *tables, const char *query, const char *table)
{
	char sql[512];
	uint64_t from;

	snprintf(sql, sizeof(sql), query, table);
	from = bench_now_ns();
	ask(tables, sql);
	return (double)(bench_now_ns() - from) / 1e9;
}

static void emit(const char *query, const char *suffix, const char *unit, double *samples)
{
	char key[64];

	snprintf(key, sizeof(key), "query.%s%s", query, suffix);
	bench_emit_samples(key, unit, samples, REPETITIONS);
}

static void compare(struct tables *tables, const char *key, const char *sql)
{
	double ours[REPETITIONS], own[REPETITIONS], ratio[REPETITIONS];

	seconds_for(tables, sql, "trace.zones");
	seconds_for(tables, sql, "own");
	for (int i = 0; i < REPETITIONS; i++) {
		ours[i] = seconds_for(tables, sql, "trace.zones");
		own[i] = seconds_for(tables, sql, "own");
		ratio[i] = ours[i] / own[i];
	}
	emit(key, "", "x", ratio);
	emit(key, ".s", "s", ours);
	emit(key, ".own_s", "s", own);
}

int main(int argc, char **argv)
{
	struct tables_options options = { .unsafe = true }; /* to make a table */
	struct tables *tables = NULL;
	struct kymo_error err;
	uint64_t from = bench_now_ns();

	if (argc != 2) {
		fprintf(stderr, "usage: query RECORDING\n");
		return 2;
	}
	if (tables_open(argv[1], &options, &tables, &err))
		die(argv[1], &err);
	bench_emit("query.open_s", "s", (double)(bench_now_ns() - from) / 1e9);
	bench_emit("query.rows", "", ask(tables, "SELECT count(*) FROM trace.zones"));
	ask(tables, "CREATE TABLE own AS SELECT name, start_ns, duration_ns, depth, tid, step FROM "
		    "trace.zones");
	for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++)
		compare(tables, queries[i].key, queries[i].sql);
	tables_close(tables);
	return 0;
}
