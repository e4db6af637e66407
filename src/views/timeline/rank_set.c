#include "views/timeline/rank_set.h"

#include <ctype.h>
#include <stdlib.h>

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
