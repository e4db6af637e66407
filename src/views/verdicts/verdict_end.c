#include "views/verdicts/verdict_end.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "views/query/rows.h"
#include "views/term/format.h"
#include "views/term/text.h"
#include "views/verdicts/where.h"
#include "views_sql.h"

#define FAILURE_BYTES 400
#define HANG_SHARE 0.1 /* of the run without progress, before a program was ended */

static int where_row(const struct rows *rows, void *context)
{
	rows_copy_text(rows, 0, context, 400);
	return 1;
}

void verdict_end_say_where(struct tables *tables, const char *sql, char *out, size_t room)
{
	struct buf text = { 0 };
	char where[400] = "";

	rows_each(tables, sql, where_row, where, NULL);
	text_visible(&text, where, strlen(where));
	snprintf(out, room, "%s", buf_get(&text));
	buf_fini(&text);
}

/* The usual causes. The last row is for an exit status and for other signals. */
static const struct {
	const char *signal, *advice;
} endings[] = {
	{ "SIGSEGV", "run it with python -X faulthandler, or keep a core dump, to find the line" },
	{ "SIGBUS", "check for a truncated mapped file, or a full /dev/shm" },
	{ "SIGABRT", "its last message names the check that failed" },
	{ "SIGFPE", "check for an integer division by zero" },
	{ "SIGILL", "check for code that was built for another CPU" },
	{ "SIGKILL", "check for the out-of-memory killer (dmesg) or a limit of the job" },
	{ "", "read its own messages; kymo backtrace shows the last stacks" },
};

/* Ctrl-C or the end of a job is not a failure. */
static bool is_request(const struct facts *facts)
{
	static const char *const signals[] = { "SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE" };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!strcmp(facts->signal, signals[i]))
			return true;
	return facts->exit_code == 130 || facts->exit_code == 143;
}

/* Of a message of many lines, keeps the first and the place at its end: "KeyError: 'x'
   (train.py:3)". */
static void keep_first_line(char *text, size_t bytes)
{
	char *end = strchr(text, '\n'), *place, *at;
	char kept[FAILURE_BYTES] = "";

	if (!end)
		return;
	for (at = end; (place = strstr(at, " (")); at = place + 1)
		snprintf(kept, sizeof(kept), "%s", place);
	snprintf(end, bytes - (size_t)(end - text), "%s%s", end[1] ? " …" : "", kept);
}

static int failure_row(const struct rows *rows, void *context)
{
	rows_copy_text(rows, 0, context, FAILURE_BYTES);
	keep_first_line(context, FAILURE_BYTES);
	return 1;
}

/* With the uncaught exception if Python recorded it. */
static void verdict_say_failure(struct tables *tables, const struct facts *facts, const char *ran,
				struct verdict *out)
{
	char failure[FAILURE_BYTES] = "";
	struct buf text = { 0 };

	if (tables)
		rows_each(tables, sql_verdict_failure, failure_row, failure, NULL);
	text_visible(&text, failure, strlen(failure));
	if (failure[0])
		snprintf(out->sentence, sizeof(out->sentence),
			 "The program failed: %.300s, exit status %.0f after %s.", buf_get(&text),
			 facts->exit_code, ran);
	else
		snprintf(out->sentence, sizeof(out->sentence),
			 "The program failed with exit status %.0f after %s.", facts->exit_code,
			 ran);
	buf_fini(&text);
}

/* By a signal, or together with the collector, so that the end was not observed. */
static bool ended_from_outside(const struct facts *facts)
{
	return facts->signal[0] || (!facts->live && !facts->saved && facts->exit_code < 0);
}

struct hang {
	char reason[400];
	double since_ns;
	char place[576];
};

static int hang_row(const struct rows *rows, void *context)
{
	struct hang *hang = context;

	rows_copy_text(rows, 0, hang->reason, sizeof(hang->reason));
	hang->since_ns = rows_number(rows, 1, 0);
	rows_copy_text(rows, 2, hang->place, sizeof(hang->place));
	return 1;
}

static const char *hang_advice(const char *reason)
{
	static const struct {
		const char *begin, *advice;
	} advice[] = {
		{ "deadlock: thread", "take the locks in the same order in all threads" },
		{ "deadlock: process",
		  "read and write pipes in an order that no side waits for the "
		  "other; communicate() of subprocess does" },
		{ "rank ", "call the same collective operations in all ranks, in the same order" },
		{ "the event loop", "await the operation, or move it to a thread: "
				    "asyncio.to_thread()" },
	};

	for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++)
		if (!strncmp(reason, advice[i].begin, strlen(advice[i].begin)))
			return advice[i].advice;
	return "kymo backtrace shows the last stacks of all threads";
}

/* A program that was ended while it made no progress: the collector has kept what it waited for. */
static bool say_hang(struct tables *tables, const struct facts *facts, bool utf8,
		     struct verdict *out)
{
	struct hang hang = { .reason = "" };
	struct buf reason = { 0 };
	double idle_ns;

	rows_each(tables, sql_verdict_autopsy, hang_row, &hang, NULL);
	idle_ns = facts->duration_ns - hang.since_ns;
	if (!hang.reason[0] || idle_ns < HANG_SHARE * facts->duration_ns)
		return false;
	text_visible(&reason, hang.reason, strlen(hang.reason));
	snprintf(out->sentence, sizeof(out->sentence),
		 "The program made no progress for %s before %s%s: %.380s.",
		 format_duration(idle_ns, utf8).text,
		 facts->signal[0]		 ? "it was ended by "
		 : strcmp(facts->how, "unknown") ? "its end"
						 : "its last data",
		 facts->signal, buf_get(&reason));
	snprintf(out->advice, sizeof(out->advice), "%s", hang_advice(hang.reason));
	where_set(out, hang.place, -1);
	out->query = "SELECT ts_ns, text FROM trace.marks WHERE name LIKE 'no progress%'";
	buf_fini(&reason);
	return true;
}

struct oom {
	double limit_bytes, used_bytes, kills;
	bool found;
};

static int oom_row(const struct rows *rows, void *context)
{
	*(struct oom *)context = (struct oom){ .limit_bytes = rows_number(rows, 0, 0),
					       .used_bytes = rows_number(rows, 1, 0),
					       .kills = rows_number(rows, 2, 0),
					       .found = true };
	return 1;
}

static int held_row(const struct rows *rows, void *context)
{
	struct buf *out = context;
	char site[160];

	rows_copy_text(rows, 0, site, sizeof(site));
	buf_print(out, "; most of it, %s, was allocated in ",
		  format_bytes(rows_number(rows, 1, 0)).text);
	text_visible(out, site, strlen(site));
	return 1;
}

struct rise {
	char place[576];
	double share;
};

static int rise_row(const struct rows *rows, void *context)
{
	struct rise *rise = context;

	rows_copy_text(rows, 0, rise->place, sizeof(rise->place));
	rise->share = rows_number(rows, 1, -1);
	return 1;
}

/* Without recorded allocations: the function that ran while memory was taken. */
static void say_rise(struct tables *tables, struct buf *held, struct verdict *out)
{
	struct rise rise = { .place = "", .share = -1 };

	rows_each(tables, sql_verdict_memory_rise, rise_row, &rise, NULL);
	if (!rise.place[0])
		return;
	where_set(out, rise.place, rise.share);
	if (held->used)
		return;
	buf_text(held, "; memory grew most in ");
	text_visible(held, out->where_function, strlen(out->where_function));
}

/* Replaces the sentence on SIGKILL if memory ran out in the program's control group. */
static void say_out_of_memory(struct tables *tables, const char *ran, struct verdict *out)
{
	struct buf held = { 0 };
	struct oom oom = { 0 };

	rows_each(tables, sql_verdict_oom, oom_row, &oom, NULL);
	if (!oom.found)
		return;
	rows_each(tables, sql_verdict_memory_held, held_row, &held, NULL);
	say_rise(tables, &held, out);
	if (oom.kills > 0)
		snprintf(out->sentence, sizeof(out->sentence),
			 "The program ran out of memory and was killed after %s: its control group "
			 "reached its limit of %s%.200s.",
			 ran, format_bytes(oom.limit_bytes).text, buf_get(&held));
	else
		snprintf(out->sentence, sizeof(out->sentence),
			 "The program was killed by SIGKILL after %s, probably because memory ran "
			 "out: its control group used %s of %s%.200s.",
			 ran, format_bytes(oom.used_bytes).text, format_bytes(oom.limit_bytes).text,
			 buf_get(&held));
	buf_fini(&held);
	snprintf(out->advice, sizeof(out->advice),
		 "use less memory (smaller batches, fewer workers), or raise the group's limit%s",
		 strstr(out->sentence, "allocated in")
			 ? ""
			 : "; kymo run --memory names the call sites");
}

/* Where the main thread was last seen. */
static void verdict_end_where(struct tables *tables, struct verdict *out)
{
	struct rise last = { .place = "" };

	rows_each(tables, sql_verdict_last_place, rise_row, &last, NULL);
	where_set(out, last.place, -1);
}

bool verdict_end_say(struct tables *tables, const struct facts *facts, bool utf8,
		     struct verdict *out)
{
	struct format_text ran = format_clock(facts->duration_ns, utf8);
	size_t i = 0;

	*out = (struct verdict){ .name = VERDICT_ENDED, .view = "timeline", .query = "" };
	if (tables && ended_from_outside(facts) && say_hang(tables, facts, utf8, out))
		return true;
	if ((!facts->signal[0] && facts->exit_code <= 0) || is_request(facts))
		return false;
	if (facts->signal[0])
		snprintf(out->sentence, sizeof(out->sentence),
			 "The program was killed by %s after %s.", facts->signal, ran.text);
	else
		verdict_say_failure(tables, facts, ran.text, out);
	while (endings[i].signal[0] && strcmp(endings[i].signal, facts->signal) != 0)
		i++;
	snprintf(out->advice, sizeof(out->advice), "%s", endings[i].advice);
	if (tables && facts->signal[0])
		verdict_end_where(tables, out);
	if (tables && !strcmp(facts->signal, "SIGKILL"))
		say_out_of_memory(tables, ran.text, out);
	if (tables)
		verdict_end_say_where(tables, sql_verdict_open_zones, out->evidence,
				      sizeof(out->evidence));
	if (out->evidence[0]) {
		out->query = "FROM trace.open_zones";
	} else if (tables && facts->signal[0]) {
		verdict_end_say_where(tables, sql_verdict_last_stack, out->evidence,
				      sizeof(out->evidence));
		out->query = out->evidence[0] ? "FROM python.backtrace" : "";
	}
	return true;
}
