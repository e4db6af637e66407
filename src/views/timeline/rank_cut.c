/* Queries of some ranks. Apart from rank_set.c, which needs no SQL. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "tables/catalog/catalog.h"
#include "views/timeline/rank_set.h"

/* Tables of pages. Those that are sums over processes have no ranks: their queries are cut. */
static const struct {
	const char *table;
	bool summed;
} rank_set_tables[] = {
	{ "trace.steps", false },	 { "trace.counters", false },
	{ "trace.zones", false },	 { "trace.open_zones", false },
	{ "trace.regions", false },	 { "python.samples", false },
	{ "python.torch_trace", false }, { "native.samples", false },
	{ "device.launches", false },	 { "device.ops", false },
	{ "device.gaps", false },	 { "device.queues", false },
	{ "device.models", false },	 { "device.breakdown", false },
	{ "device.memory", false },	 { "dist.collectives", false },
	{ "host.process", false },	 { "host.io", false },
	{ "host.program", true },	 { "alloc.timeline", false },
	{ "alloc.sites", false },	 { "alloc.allocations", false },
	{ "kymo.streams", false },
};

static bool rank_set_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The index of the table whose name begins at `sql`; -1: none. */
static int rank_set_table(const char *sql)
{
	for (size_t i = 0; i < sizeof(rank_set_tables) / sizeof(rank_set_tables[0]); i++) {
		size_t bytes = strlen(rank_set_tables[i].table);

		if (!strncmp(sql, rank_set_tables[i].table, bytes) && !rank_set_is_word(sql[bytes]))
			return (int)i;
	}
	return -1;
}

static const char *rank_set_view(const char *table)
{
	for (size_t i = 0; i < catalog_view_count; i++) {
		size_t bytes = strlen(catalog_views[i].schema);

		if (!strncmp(table, catalog_views[i].schema, bytes) && table[bytes] == '.' &&
		    !strcmp(table + bytes + 1, catalog_views[i].name))
			return catalog_views[i].sql;
	}
	return "";
}

/* The table, as a query in parentheses. */
static void rank_set_cut_table(const struct rank_set *set, int table, struct buf *out)
{
	const char *name = rank_set_tables[table].table;

	if (rank_set_tables[table].summed) {
		buf_char(out, '(');
		rank_set_cut(set, rank_set_view(name), out);
	} else {
		buf_print(out, "(SELECT * FROM %s WHERE ", name);
		rank_set_sql(set, "rank", out);
	}
	buf_char(out, ')');
}

void rank_set_cut(const struct rank_set *set, const char *sql, struct buf *out)
{
	const char *begin = sql;

	if (!set || !set->count) {
		buf_text(out, sql);
		return;
	}
	while (*sql) {
		bool inside = sql > begin && rank_set_is_word(sql[-1]);
		int table = inside ? -1 : rank_set_table(sql);

		if (table < 0) {
			buf_char(out, *sql++);
			continue;
		}
		rank_set_cut_table(set, table, out);
		sql += strlen(rank_set_tables[table].table);
	}
}

int rank_set_each(const struct rank_set *set, struct tables *tables, const char *sql,
		  int (*each)(const struct rows *rows, void *context), void *context,
		  struct kymo_error *err)
{
	struct buf cut = { 0 };
	int rc;

	rank_set_cut(set, sql, &cut);
	rc = cut.failed ? error_set(err, ENOMEM, "out of memory for a query of some ranks")
			: rows_each(tables, buf_get(&cut), each, context, err);
	buf_fini(&cut);
	return rc;
}

double rank_set_value(const struct rank_set *set, struct tables *tables, const char *sql,
		      double fallback)
{
	struct buf cut = { 0 };
	double value;

	rank_set_cut(set, sql, &cut);
	value = cut.failed ? fallback : tables_number(tables, buf_get(&cut), fallback);
	buf_fini(&cut);
	return value;
}
