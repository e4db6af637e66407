#include "views/hang/hang.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "views/query/rows.h"
#include "views/term/format.h"
#include "views_sql.h"

#define RANGES_SHOWN 6

/* ---- rows ------------------------------------------------------------------------------------ */

/* The columns of hang_ranks.sql. */
enum column {
	RANK,
	HOST,
	PID,
	STATE,
	ROLE,
	OP,
	SEQ,
	GROUP,
	BYTES,
	WAITED,
	WANTED_OP,
	WANTED_SEQ,
	WANTED_GROUP,
	WAITING,
	WANTED,
	EXPECTED_OP,
	EXPECTED_BYTES,
	PLACE,
	ACTIVITY,
	WAITS_FOR,
	PLACE_NS,
	REASON,
	LAST_OP,
	LAST_SEQ,
	LAST_NS,
	STEP,
	AGE,
	PEER,
	ATTEMPT
};

static const char *const role_words[HANG_ROLE_COUNT] = { "absent", "differs", "elsewhere",
							 "unseen", "waits",   "apart" };

const char *hang_role_word(enum hang_role role)
{
	return role_words[role];
}

static enum hang_role role_of(const char *word)
{
	for (int i = 0; i < HANG_ROLE_COUNT; i++)
		if (!strcmp(role_words[i], word))
			return (enum hang_role)i;
	return HANG_APART;
}

static void hang_take_call(const struct rows *rows, struct hang_call *out, size_t op, size_t seq,
			   size_t ns)
{
	rows_copy_text(rows, op, out->op, sizeof(out->op));
	out->seq = rows_number(rows, seq, NAN);
	out->ns = rows_number(rows, ns, NAN);
}

/* The words of the column activity, as a sentence needs them. */
static void say_activity(const struct rows *rows, struct hang_rank *rank)
{
	static const struct {
		const char *activity, *words;
	} all[] = {
		{ "running", "running" },
		{ "ready", "ready to run, without a core" },
		{ "sleep", "sleeping" },
		{ "disk", "waiting for storage" },
		{ "lock", "waiting for a lock" },
		{ "GIL", "waiting for the GIL" },
		{ "socket", "waiting for a socket" },
		{ "pipe", "waiting for a pipe" },
		{ "child", "waiting for a child" },
		{ "device", "waiting for the device" },
		{ "collective", "waiting for other ranks" },
		{ "stopped", "stopped" },
		{ "wait", "waiting" },
	};
	char activity[32], target[128];

	rows_copy_text(rows, ACTIVITY, activity, sizeof(activity));
	rows_copy_text(rows, WAITS_FOR, target, sizeof(target));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].activity, activity))
			snprintf(rank->doing, sizeof(rank->doing), "%s%s%s%s", all[i].words,
				 target[0] ? " (" : "", target, target[0] ? ")" : "");
}

static void take_rank(const struct rows *rows, struct hang_rank *rank)
{
	char role[16];

	rank->rank = (int32_t)rows_number(rows, RANK, 0);
	rank->pid = (int32_t)rows_number(rows, PID, 0);
	rows_copy_text(rows, HOST, rank->host, sizeof(rank->host));
	rows_copy_text(rows, STATE, rank->state, sizeof(rank->state));
	rows_copy_text(rows, ROLE, role, sizeof(role));
	rank->role = role_of(role);
	hang_take_call(rows, &rank->in, OP, SEQ, WAITED);
	rows_copy_text(rows, GROUP, rank->in.group, sizeof(rank->in.group));
	hang_take_call(rows, &rank->wanted, WANTED_OP, WANTED_SEQ, WANTED);
	rows_copy_text(rows, WANTED_GROUP, rank->wanted.group, sizeof(rank->wanted.group));
	hang_take_call(rows, &rank->last, LAST_OP, LAST_SEQ, LAST_NS);
	rank->bytes = rows_number(rows, BYTES, NAN);
	rank->waiting = rows_number(rows, WAITING, NAN);
	rows_copy_text(rows, EXPECTED_OP, rank->expected_op, sizeof(rank->expected_op));
	rank->expected_bytes = rows_number(rows, EXPECTED_BYTES, NAN);
	rows_copy_text(rows, PLACE, rank->place, sizeof(rank->place));
	rank->place_ns = rows_number(rows, PLACE_NS, NAN);
	rows_copy_text(rows, REASON, rank->reason, sizeof(rank->reason));
	rank->step = rows_number(rows, STEP, NAN);
	rank->age_ns = rows_number(rows, AGE, NAN);
	rank->peer = rows_number(rows, PEER, NAN);
	rank->attempt = rows_number(rows, ATTEMPT, NAN);
	say_activity(rows, rank);
}

static int hang_take_row(const struct rows *rows, void *context)
{
	struct hang *hang = context;
	struct hang_rank *rank;

	if (!grow((void **)&hang->ranks, &hang->room, hang->count, sizeof(*hang->ranks)))
		return -ENOMEM;
	rank = &hang->ranks[hang->count++];
	memset(rank, 0, sizeof(*rank));
	take_rank(rows, rank);
	hang->live |= !strcmp(rank->state, "running") || !strcmp(rank->state, "unknown");
	return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Whether ranks wait in calls of different groups, so that a group has to be named. */
static bool has_groups(const struct hang *hang)
{
	const char *group = NULL;

	for (size_t i = 0; i < hang->count; i++) {
		const char *one = hang->ranks[i].in.group;

		if (one[0] && group && strcmp(one, group) != 0)
			return true;
		group = one[0] ? one : group;
	}
	return false;
}

void hang_add_call(struct buf *out, const struct hang *hang, const struct hang_call *call)
{
	buf_text(out, call->op);
	if (!isnan(call->seq))
		buf_print(out, " %.0f", call->seq);
	if (call->group[0] && has_groups(hang))
		buf_print(out, " of group %.40s", call->group);
}

static size_t range_of(const struct hang *hang, size_t first, size_t end)
{
	size_t next = first + 1;

	while (next < end && hang->ranks[next].rank == hang->ranks[next - 1].rank + 1)
		next++;
	return next;
}

static void add_range(struct buf *out, const struct hang_rank *first, const struct hang_rank *last)
{
	if (first == last)
		buf_print(out, "%d", first->rank);
	else
		buf_print(out, "%d%s%d", first->rank, last - first == 1 ? ", " : "-", last->rank);
}

void hang_add_ranks(struct buf *out, const struct hang *hang, size_t first, size_t count)
{
	size_t end = first + count, next, ranges = 0;

	buf_text(out, count == 1 ? "rank " : "ranks ");
	for (size_t i = first; i < end; i = next) {
		next = range_of(hang, i, end);
		if (++ranges > RANGES_SHOWN) {
			buf_print(out, " and %zu more", end - i);
			return;
		}
		buf_text(out, i > first ? ", " : "");
		add_range(out, &hang->ranks[i], &hang->ranks[next - 1]);
	}
	if (count == 1 && hang->hosts > 1 && hang->ranks[first].host[0])
		buf_print(out, " on host %s", hang->ranks[first].host);
}

static size_t count_role(const struct hang *hang, enum hang_role role, size_t *first)
{
	size_t count = 0;

	for (size_t i = 0; i < hang->count; i++) {
		if (hang->ranks[i].role != role)
			continue;
		if (!count++)
			*first = i;
	}
	return count;
}

/* ---- the sentence ---------------------------------------------------------------------------- */

static const char *waited(double ns, struct format_text *text)
{
	*text = format_duration(ns > 0 ? ns : 0, true);
	return text->text;
}

/* Ranks that are missing in the same call as the first. */
static size_t same_wanted(const struct hang *hang, size_t first, size_t count)
{
	const struct hang_call *call = &hang->ranks[first].wanted;
	size_t same = 1;

	while (same < count && !strcmp(hang->ranks[first + same].wanted.group, call->group) &&
	       hang->ranks[first + same].wanted.seq == call->seq)
		same++;
	return same;
}

static void say_absent(const struct hang *hang, size_t first, size_t count, struct buf *out)
{
	const struct hang_rank *rank = &hang->ranks[first];
	size_t same = same_wanted(hang, first, count);
	struct format_text text;

	hang_add_ranks(out, hang, first, same);
	buf_print(out, " %s not in ",
		  hang->live ? (same == 1 ? "is" : "are") : (same == 1 ? "was" : "were"));
	hang_add_call(out, hang, &rank->wanted);
	if (isnan(rank->wanted.seq))
		buf_text(out,
			 hang->live ? ", for which its peer waits" : ", for which its peer waited");
	else
		buf_print(out, ", in which %.0f rank%s %s", rank->waiting,
			  rank->waiting == 1 ? "" : "s",
			  hang->live ? (rank->waiting == 1 ? "waits" : "wait") : "waited");
	buf_print(out, " for %s%s", waited(rank->wanted.ns, &text),
		  hang->live ? "" : " before the end");
}

static void say_different(const struct hang *hang, size_t first, struct buf *out)
{
	const struct hang_rank *rank = &hang->ranks[first];

	buf_print(out, "ranks disagree at collective %.0f: ", rank->in.seq);
	hang_add_ranks(out, hang, first, 1);
	if (strcmp(rank->in.op, rank->expected_op) != 0)
		buf_print(out, " calls %s, the others %s", rank->in.op, rank->expected_op);
	else
		buf_print(out, " calls %s of %s bytes, the others of %s", rank->in.op,
			  format_count((uint64_t)fmax(rank->bytes, 0)).text,
			  format_count((uint64_t)fmax(rank->expected_bytes, 0)).text);
}

static void hang_say_elsewhere(const struct hang *hang, size_t first, struct buf *out)
{
	const struct hang_rank *rank = &hang->ranks[first];

	buf_text(out, "ranks wait for each other: ");
	hang_add_ranks(out, hang, first, 1);
	buf_print(out, " %s in ", hang->live ? "waits" : "waited");
	hang_add_call(out, hang, &rank->in);
	buf_print(out, ", %.0f other%s for it in ", rank->waiting, rank->waiting == 1 ? "" : "s");
	hang_add_call(out, hang, &rank->wanted);
}

static void say_unseen(const struct hang *hang, size_t first, size_t count, struct buf *out)
{
	const struct hang_rank *rank = &hang->ranks[first];
	struct format_text text;

	buf_print(out, "%.0f rank%s in ", rank->waiting, rank->waiting == 1 ? " waits" : "s wait");
	hang_add_call(out, hang, &rank->wanted);
	buf_print(out, " for %s; the data of ", waited(rank->wanted.ns, &text));
	hang_add_ranks(out, hang, first, same_wanted(hang, first, count));
	buf_text(out, " is older than that");
}

static void say_waiting(const struct hang *hang, size_t first, size_t count, struct buf *out)
{
	const struct hang_rank *rank = &hang->ranks[first];
	struct format_text text;

	hang_add_ranks(out, hang, first, count);
	buf_print(out, " %s in ",
		  hang->live ? (count == 1 ? "is" : "are") : (count == 1 ? "was" : "were"));
	hang_add_call(out, hang, &rank->in);
	buf_print(out, " for %s, and no rank is missing", waited(rank->in.ns, &text));
}

static void hang_say_nothing(const struct hang *hang, struct buf *out)
{
	struct format_text text;
	double least = NAN;

	for (size_t i = 0; i < hang->count; i++)
		if (!(hang->ranks[i].last.ns >= least))
			least = hang->ranks[i].last.ns;
	if (isnan(least))
		buf_text(out, "no collectives are recorded, so no rank can be named");
	else if (hang->live)
		buf_print(out,
			  "no rank waits for longer than 2 s: the last collective ended %s "
			  "ago",
			  waited(least, &text));
	else
		buf_text(out, "no rank waited in a collective at the end");
}

/* A rank of a running job may be only late. */
static bool is_only_late(const struct hang *hang)
{
	double most = 0;

	for (size_t i = 0; i < hang->count; i++) {
		most = fmax(most, hang->ranks[i].in.op[0] ? hang->ranks[i].in.ns : 0);
		most = fmax(most, hang->ranks[i].wanted.op[0] ? hang->ranks[i].wanted.ns : 0);
	}
	return hang->live && most < HANG_LEAST_NS;
}

static void hang_say(struct hang *hang)
{
	struct buf out = { 0 };
	size_t first = 0, count;

	if (is_only_late(hang))
		hang_say_nothing(hang, &out);
	else if ((count = count_role(hang, HANG_ABSENT, &first)))
		say_absent(hang, first, count, &out);
	else if (count_role(hang, HANG_DIFFERS, &first))
		say_different(hang, first, &out);
	else if (count_role(hang, HANG_ELSEWHERE, &first))
		hang_say_elsewhere(hang, first, &out);
	else if ((count = count_role(hang, HANG_UNSEEN, &first)))
		say_unseen(hang, first, count, &out);
	else if ((count = count_role(hang, HANG_WAITS, &first)))
		say_waiting(hang, first, count, &out);
	else
		hang_say_nothing(hang, &out);
	if (out.used && out.data[0] >= 'a' && out.data[0] <= 'z')
		out.data[0] = (char)(out.data[0] - 'a' + 'A');
	snprintf(hang->sentence, sizeof(hang->sentence), "%s.", buf_get(&out));
	buf_fini(&out);
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool hang_is_job(struct tables *tables)
{
	return tables_number(tables, "SELECT max(ranks) FROM dist.ranks", 0) > 1;
}

int hang_take(struct tables *tables, struct hang *out, struct kymo_error *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = rows_each(tables, sql_hang_ranks, hang_take_row, out, err);
	if (rc == -ENOMEM)
		error_set(err, ENOMEM, "out of memory for the ranks");
	if (rc)
		return rc;
	out->hosts = (size_t)tables_number(tables, "SELECT count(DISTINCT host) FROM dist.ranks",
					   0);
	if (out->live && tables_recording(tables))
		hang_add_live(out, tables_recording(tables));
	hang_say(out);
	return 0;
}

void hang_fini(struct hang *hang)
{
	free(hang->ranks);
	memset(hang, 0, sizeof(*hang));
}
