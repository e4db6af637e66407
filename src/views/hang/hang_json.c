#include "views/hang/hang.h"

#include <math.h>
#include <string.h>

#include "views/query/json.h"
#include "views/term/format.h"
#include "views/verdicts/where.h"

static void hang_json_text(struct buf *out, const char *key, const char *text)
{
	buf_print(out, ",\"%s\":", key);
	if (text[0])
		json_text(out, text, strlen(text));
	else
		buf_text(out, "null");
}

static void hang_json_number(struct buf *out, const char *key, double number)
{
	buf_print(out, ",\"%s\":%s", key, format_number(number, "null").text);
}

static void hang_json_call(struct buf *out, const char *key, const struct hang_call *call)
{
	buf_print(out, ",\"%s\":", key);
	if (!call->op[0]) {
		buf_text(out, "null");
		return;
	}
	buf_text(out, "{\"op\":");
	json_text(out, call->op, strlen(call->op));
	hang_json_number(out, "seq", call->seq);
	hang_json_text(out, "group", call->group);
	hang_json_number(out, "age_ns", call->ns);
	buf_char(out, '}');
}

static void add_rank(struct buf *out, const struct hang_rank *rank)
{
	const struct hang_call none = { .op = "" };
	struct verdict place = { .where_share = -1 };
	bool is_away = rank->role == HANG_ABSENT || rank->role == HANG_UNSEEN;

	buf_print(out, "{\"rank\":%d", rank->rank);
	hang_json_text(out, "host", rank->host);
	hang_json_number(out, "pid", rank->pid ? rank->pid : NAN);
	hang_json_text(out, "state", rank->state);
	hang_json_number(out, "attempt", rank->attempt);
	hang_json_text(out, "role", hang_role_word(rank->role));
	hang_json_call(out, "in", is_away ? &none : &rank->in);
	hang_json_call(out, "wanted_in", &rank->wanted);
	hang_json_call(out, "last", &rank->last);
	buf_text(out, ",\"where\":");
	where_set(&place, rank->place, -1);
	where_add_json(out, &place);
	hang_json_text(out, "doing", rank->doing);
	hang_json_number(out, "doing_ns", rank->place_ns);
	hang_json_text(out, "reason", rank->reason);
	hang_json_number(out, "step", rank->step);
	hang_json_number(out, "age_ns", rank->age_ns);
	buf_char(out, '}');
}

void hang_json(const struct hang *hang, struct buf *out)
{
	buf_text(out, "{\"sentence\":");
	json_text(out, hang->sentence, strlen(hang->sentence));
	buf_print(out, ",\"live\":%s,\"ranks\":[", hang->live ? "true" : "false");
	for (size_t i = 0; i < hang->count; i++) {
		buf_text(out, i ? ",\n" : "\n");
		add_rank(out, &hang->ranks[i]);
	}
	buf_text(out, "]}\n");
}
