#include "views/timeline/rank_set.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A number at *text, which is moved behind it; -1: there is none. */
static int32_t rank_set_number(const char **text)
{
	char *end;
	long value;

	if (!isdigit((unsigned char)**text))
		return -1;
	value = strtol(*text, &end, 10);
	*text = end;
	return value <= INT32_MAX ? (int32_t)value : -1;
}

bool rank_set_read(struct rank_set *set, const char *text)
{
	set->count = 0;
	if (!text || !*text)
		return true;
	for (;; text++) {
		int32_t from = rank_set_number(&text), to = from;

		if (from >= 0 && *text == '-') {
			text++;
			to = rank_set_number(&text);
		}
		if (from < 0 || to < from || set->count == RANK_SET_MOST)
			return false;
		set->ranges[set->count].from = from;
		set->ranges[set->count++].to = to;
		if (*text != ',')
			return !*text;
	}
}

bool rank_set_has(const struct rank_set *set, int32_t rank)
{
	if (!set || !set->count)
		return true;
	for (size_t i = 0; i < set->count; i++)
		if (rank >= set->ranges[i].from && rank <= set->ranges[i].to)
			return true;
	return false;
}

void rank_set_sql(const struct rank_set *set, const char *column, struct buf *out)
{
	if (!set || !set->count) {
		buf_text(out, "true");
		return;
	}
	for (size_t i = 0; i < set->count; i++)
		buf_print(out, "%s%s BETWEEN %d AND %d", i ? " OR " : "(", column,
			  set->ranges[i].from, set->ranges[i].to);
	buf_char(out, ')');
}

/* Tables of pages. Those without ranks are cut by process. */
static const struct {
	const char *table;
	bool by_process;
} rank_set_tables[] = {
	{ "trace.steps", false },      { "trace.counters", false },	{ "trace.zones", false },
	{ "trace.open_zones", false }, { "python.torch_trace", false }, { "python.samples", false },
	{ "native.samples", true },    { "device.launches", false },	{ "device.ops", false },
	{ "device.gaps", false },      { "device.queues", false },	{ "device.models", false },
	{ "device.breakdown", false }, { "dist.collectives", false },
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
		buf_print(out, "(SELECT * FROM %s WHERE ", rank_set_tables[table].table);
		if (rank_set_tables[table].by_process)
			buf_text(out, "pid IN (SELECT pid FROM kymo.processes WHERE ");
		rank_set_sql(set, "rank", out);
		buf_text(out, rank_set_tables[table].by_process ? "))" : ")");
		sql += strlen(rank_set_tables[table].table);
	}
}
