#include "views/status/list.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/files/paths.h"
#include "store/store.h"
#include "store/job.h"
#include "views/term/format.h"
#include "views/status/now.h"
#include "views/query/json.h"

/* Steps and ranks require opening the recording: only small ones, within a limit of time. */
#define OPEN_BYTES_MOST (8u << 20)
#define OPEN_NS_MOST 25000000u
#define ENDED_SHOWN 20 /* without --all */
#define LIVE_NS_MOST 250000000u /* live ones matter most */

struct item {
	const struct store_entry *entry;
	char state[64];
	char started[24];
	struct format_text ran, steps_text;
	uint64_t ended_unix_ns; /* 0: running or unknown */
	struct job_ranks ranks; /* steps -1: unknown */
	struct now now; /* of a live one that was opened */
};

struct list {
	struct store_entry *entries;
	struct item *items;
	size_t count;
	size_t shown; /* the first ones */
	char latest[KYMO_PATH_BYTES];
	char cwd[PATH_MAX];
};

/* ---- one recording -------------------------------------------------------------------------- */

static void describe_state(struct item *item)
{
	const struct store_entry *entry = item->entry;
	const char *signal_name;
	size_t used;

	if (entry->state == STORE_LIVE)
		snprintf(item->state, sizeof(item->state), "live");
	else if (entry->wstatus_known && WIFSIGNALED(entry->wstatus)) {
		signal_name = sigabbrev_np(WTERMSIG(entry->wstatus));
		if (signal_name)
			snprintf(item->state, sizeof(item->state), "SIG%s", signal_name);
		else
			snprintf(item->state, sizeof(item->state), "signal %d",
				 WTERMSIG(entry->wstatus));
	} else if (entry->wstatus_known && WIFEXITED(entry->wstatus))
		snprintf(item->state, sizeof(item->state), "exit %d", WEXITSTATUS(entry->wstatus));
	else
		snprintf(item->state, sizeof(item->state), "%s",
			 entry->state == STORE_KILLED	 ? "killed"
			 : entry->state == STORE_LOST	 ? "lost"
			 : entry->state == STORE_UNKNOWN ? "unknown"
			 : entry->ran_on		 ? "detached"
							 : "ended");
	used = strlen(item->state);
	if (entry->kind == STORE_JOB)
		snprintf(item->state + used, sizeof(item->state) - used, ", %u run%s", entry->runs,
			 entry->runs == 1 ? "" : "s");
	else if (item->ranks.recorded > 1)
		snprintf(item->state + used, sizeof(item->state) - used, ", %u ranks",
			 item->ranks.recorded);
	else if (item->ranks.rank >= 0)
		snprintf(item->state + used, sizeof(item->state) - used, ", rank %d/%d",
			 item->ranks.rank, item->ranks.ranks);
}

static void describe_times(struct item *item, bool utf8)
{
	uint64_t now_ns = clock_realtime_ns(), end_ns = item->ended_unix_ns;
	time_t started = (time_t)(item->entry->started_unix_ns / 1000000000u);
	struct tm local;

	snprintf(item->ran.text, sizeof(item->ran.text), "-");
	snprintf(item->started, sizeof(item->started), "-");
	if (!item->entry->started_unix_ns || !localtime_r(&started, &local))
		return;
	/* The time of day for the last 24 hours, otherwise the date. */
	strftime(item->started, sizeof(item->started),
		 now_ns / 1000000000u - (uint64_t)started < 86400 ? "%T" : "%F", &local);
	if (!end_ns)
		end_ns = item->entry->state == STORE_LIVE ? now_ns : 0;
	/* A packed file would have to be opened: its time is that of the file. */
	if (end_ns >= item->entry->started_unix_ns && !store_kind_is_sql(item->entry->kind))
		item->ran = format_clock((double)(end_ns - item->entry->started_unix_ns), utf8);
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void list_look_inside(struct item *item)
{
	struct recording *recording = NULL;

	if (store_kind_is_sql(item->entry->kind) || item->entry->unreadable[0] ||
	    (item->entry->bytes > OPEN_BYTES_MOST && item->entry->state != STORE_LIVE) ||
	    store_open(item->entry->path, &recording, NULL))
		return;
	job_ranks(recording, &item->ranks);
	if (item->entry->state == STORE_LIVE)
		now_look(recording, &item->now);
	/* The time of its end was not recorded: the last row is the best estimate. */
	else if (item->entry->started_unix_ns && recording->duration_ns > 0 &&
		 item->entry->kind == STORE_SNAPSHOT)
		item->ended_unix_ns = item->entry->started_unix_ns +
				      (uint64_t)recording->duration_ns;
	else if (item->entry->started_unix_ns && recording->duration_ns > 0 &&
		 !recording->run.ended)
		item->ended_unix_ns = later_of(item->ended_unix_ns,
					       item->entry->started_unix_ns +
						       (uint64_t)recording->duration_ns);
	store_close(recording);
}

/* CPU time of this process, not wall-clock time, so that a busy machine shows the same list. */
static uint64_t processor_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* Live ones come first; all of them are shown. */
static size_t count_shown(const struct list *list, bool all)
{
	size_t live = 0;

	while (live < list->count && list->entries[live].state == STORE_LIVE)
		live++;
	return all || list->count - live <= ENDED_SHOWN ? list->count : live + ENDED_SHOWN;
}

static int list_gather(struct list *list, bool utf8, bool all, struct kymo_error *err)
{
	uint64_t began_ns;
	int rc = store_list(&list->entries, &list->count, err);

	if (rc)
		return rc;
	store_list_jobs(list->entries, &list->count);
	list->items = calloc(list->count + 1, sizeof(*list->items));
	if (!list->items)
		return error_set(err, ENOMEM, "out of memory for a list of %zu recordings",
				 list->count);
	if (!getcwd(list->cwd, sizeof(list->cwd)))
		list->cwd[0] = '\0';
	/* Fails if there is no recording; then none is marked as the latest. */
	if (store_resolve(NULL, list->latest, sizeof(list->latest), NULL))
		list->latest[0] = '\0';
	list->shown = count_shown(list, all);
	began_ns = processor_ns(); /* not counting the search */
	for (size_t i = 0; i < list->shown; i++) {
		struct item *item = &list->items[i];

		*item = (struct item){ .entry = &list->entries[i],
				       .ended_unix_ns = list->entries[i].ended_unix_ns,
				       .ranks = { .rank = -1, .ranks = -1, .steps = -1 } };
		if (processor_ns() - began_ns <
		    (item->entry->state == STORE_LIVE ? LIVE_NS_MOST : OPEN_NS_MOST))
			list_look_inside(item);
		describe_state(item);
		describe_times(item, utf8);
		item->steps_text = item->ranks.steps < 0
					   ? (struct format_text){ "?" }
					   : format_count_short((uint64_t)item->ranks.steps);
	}
	return 0;
}

static void fini(struct list *list)
{
	free(list->items);
	free(list->entries);
}

static size_t widest(const struct list *list, const char *(*get)(const struct item *item),
		     size_t least, size_t most)
{
	size_t width = least, one;

	for (size_t i = 0; i < list->shown; i++) {
		if (list->entries[i].unreadable[0])
			continue;
		one = text_width(get(&list->items[i]), strlen(get(&list->items[i])));
		width = one > width ? one : width;
	}
	return width > most ? most : width;
}

static const char *get_program(const struct item *item)
{
	return item->entry->program;
}

static const char *get_steps(const struct item *item)
{
	return item->steps_text.text;
}

static const char *get_state(const struct item *item)
{
	return item->state;
}

/* ---- printing ------------------------------------------------------------------------------- */

struct widths {
	size_t program, state, steps;
};

#define OTHER_COLUMNS 33 /* of a line: between and beside program, state, steps and recording */
#define NAME_MOST 28 /* columns that programs leave to names: "pid 12345 (sixteen columns)" */

/* Whether its name refers to it, and not to a newer recording or a file. */
static bool is_meant_by_own_name(const struct list *list, const struct store_entry *entry)
{
	return store_called(entry->name, list->entries, list->count) == entry;
}

static size_t widest_name(const struct list *list)
{
	size_t width = strlen("pid 12345"), one;

	for (size_t i = 0; i < list->shown; i++) {
		const struct store_entry *entry = &list->entries[i];

		one = text_width(entry->name, strlen(entry->name));
		if (one && !is_meant_by_own_name(list, entry))
			one += strlen("pid 12345 ()");
		width = one > width ? one : width;
	}
	return width > NAME_MOST ? NAME_MOST : width;
}

/* Names have priority over programs: they were chosen by the user. */
static struct widths choose_widths(const struct list *list, const struct text_style *style)
{
	size_t columns = (size_t)style->columns;
	struct widths widths = { .program = widest(list, get_program, 7, columns > 80 ? 40 : 16),
				 .state = widest(list, get_state, 5, 40),
				 .steps = widest(list, get_steps, 5, 9) };
	size_t others = OTHER_COLUMNS + widths.state + widths.steps + widest_name(list);

	if (columns < others + widths.program)
		widths.program = columns > others + 7 ? columns - others : 7;
	return widths;
}

static void print_unreadable(const struct item *item, const struct widths *widths,
			     const struct text_style *style, FILE *out)
{
	struct buf line = { 0 }, reason = { 0 };
	const char *slash = strrchr(item->entry->path, '/');
	size_t room = (size_t)style->columns - widths->program - 2;

	text_fit(&line, slash && slash[1] ? slash + 1 : item->entry->path, widths->program, -1,
		 style);
	buf_print(&reason, "unreadable: %s", item->entry->unreadable);
	buf_text(&line, "  ");
	if (style->terminal)
		text_fit(&line, buf_get(&reason), room, 0, style);
	else
		text_visible(&line, buf_get(&reason), reason.used);
	fprintf(out, "%s\n", buf_get(&line));
	buf_fini(&reason);
	buf_fini(&line);
}

/* A path relative to the working directory, if it is below it. */
static const char *short_path(const struct list *list, const char *path)
{
	size_t cwd = strlen(list->cwd);

	if (cwd > 1 && !strncmp(path, list->cwd, cwd) && path[cwd] == '/')
		return path + cwd + 1;
	return path;
}

/* A pid refers to its newest recording, or to that of the running process with this pid. */
static bool is_newest_of_pid(const struct list *list, const struct store_entry *entry)
{
	if (entry->pid <= 0 || (entry->state != STORE_LIVE && paths_starttime(entry->pid)))
		return false;
	for (size_t i = 0; i < list->count; i++)
		if (&list->entries[i] != entry && list->entries[i].pid == entry->pid &&
		    list->entries[i].started_unix_ns >= entry->started_unix_ns)
			return false;
	return true;
}

static const char *list_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A file in the working directory is referred to by its path. */
static bool is_meant_by_file_name(const struct list *list, const struct store_entry *entry)
{
	const char *path = short_path(list, entry->path);

	return !strchr(path, '/') ||
	       store_called(list_base_name(path), list->entries, list->count) == entry;
}

/* For a recording without a unique name: the pid if it is live, "latest", its path, or the file
   name or pid if the path is too long. */
static void list_add_target(struct buf *line, const struct list *list, const struct item *item,
			    size_t room)
{
	const struct store_entry *entry = item->entry;
	const char *path = short_path(list, entry->path), *name = list_base_name(path);
	bool by_pid = is_newest_of_pid(list, entry), by_name = is_meant_by_file_name(list, entry);

	if (by_pid && entry->state == STORE_LIVE)
		buf_print(line, "pid %d", entry->pid);
	else if (!strcmp(entry->path, list->latest))
		buf_text(line, "latest");
	else if (text_width(path, strlen(path)) <= room)
		text_visible(line, path, strlen(path));
	else if (by_pid && entry->kind == STORE_DIRECTORY &&
		 (!by_name || text_width(name, strlen(name)) > room))
		buf_print(line, "pid %d", entry->pid);
	else if (by_name)
		text_visible(line, name, strlen(name));
	else
		text_visible(line, path, strlen(path)); /* too long, but correct */
}

/* The TARGET that refers to it: its name, or another one followed by its name. */
static void add_recording(struct buf *line, const struct list *list, const struct item *item,
			  size_t room, const struct text_style *style)
{
	const char *name = item->entry->name;
	struct buf target = { 0 };
	size_t used;

	if (text_width(name, strlen(name)) <= room && is_meant_by_own_name(list, item->entry)) {
		text_visible(line, name, strlen(name));
		return;
	}
	list_add_target(&target, list, item, room);
	used = text_width(buf_get(&target), target.used) + strlen(" ()");
	buf_add(line, buf_get(&target), target.used);
	if (name[0] && !strstr(buf_get(&target), name)) {
		buf_text(line, " (");
		text_fit(line, name, room > used + 16 ? room - used : 16, 0, style);
		buf_char(line, ')');
	}
	buf_fini(&target);
}

static void list_print_item(const struct list *list, const struct item *item,
			    const struct widths *widths, const struct text_style *style, FILE *out)
{
	struct buf line = { 0 };
	size_t used;

	text_fit(&line,
		 item->entry->program[0] ? item->entry->program : list_base_name(item->entry->path),
		 widths->program, -1, style);
	buf_text(&line, "  ");
	text_pad(&line, item->state, widths->state, -1);
	buf_text(&line, "  ");
	text_pad(&line, item->started, 10, -1);
	text_pad(&line, item->ran.text, 8, 1);
	buf_char(&line, ' ');
	text_pad(&line, item->steps_text.text, widths->steps, 1);
	buf_char(&line, ' ');
	text_pad(&line, format_bytes((double)item->entry->bytes).text, 7, 1);
	buf_text(&line, "  ");
	used = text_width(buf_get(&line), line.used);
	add_recording(&line, list, item,
		      used < (size_t)style->columns ? (size_t)style->columns - used : 0, style);
	fprintf(out, "%s\n", buf_get(&line));
	buf_fini(&line);
	if (item->now.known)
		now_print(&item->now, style, out);
}

static void print_table(const struct list *list, const struct text_style *style, FILE *out)
{
	struct widths widths = choose_widths(list, style);

	fprintf(out, "%s%-*s  %-*s  %-10s%8s %*s %7s  %s%s\n", text_paint(style, TEXT_BOLD),
		(int)widths.program, "PROGRAM", (int)widths.state, "STATE", "STARTED", "RAN",
		(int)widths.steps, "STEPS", "SIZE", "RECORDING", text_plain(style));
	for (size_t i = 0; i < list->shown; i++) {
		if (list->entries[i].unreadable[0])
			print_unreadable(&list->items[i], &widths, style, out);
		else
			list_print_item(list, &list->items[i], &widths, style, out);
	}
	if (list->shown < list->count)
		fprintf(out, "%s and %s more: kymo ls --all\n", style->utf8 ? "…" : "...",
			format_count(list->count - list->shown).text);
}

int list_print(const struct text_style *style, bool all, FILE *out, struct kymo_error *err)
{
	struct list list = { 0 };
	int rc = list_gather(&list, style->utf8, all, err);

	if (!rc && list.count)
		print_table(&list, style, out);
	else if (!rc)
		fprintf(stderr, "no recordings yet; record one with kymo run -- PROGRAM\n");
	fini(&list);
	return rc;
}

static void add_key_text(struct buf *out, const char *key, const char *text)
{
	buf_print(out, "\"%s\":", key);
	if (text[0])
		json_text(out, text, strlen(text));
	else
		buf_text(out, "null");
}

static void add_item(struct buf *out, const struct item *item)
{
	static const char *const kinds[] = { [STORE_NONE] = "",
					     [STORE_DIRECTORY] = "directory",
					     [STORE_SNAPSHOT] = "snapshot",
					     [STORE_PACKED] = "packed",
					     [STORE_LAKE] = "lake",
					     [STORE_JOB] = "job" };
	static const char *const states[] = { [STORE_LIVE] = "live",
					      [STORE_ENDED] = "ended",
					      [STORE_KILLED] = "killed",
					      [STORE_LOST] = "lost",
					      [STORE_UNKNOWN] = "unknown" };
	const struct store_entry *entry = item->entry;

	add_key_text(out, "path", entry->path);
	buf_char(out, ',');
	add_key_text(out, "program", entry->program);
	buf_char(out, ',');
	add_key_text(out, "name", entry->name);
	buf_char(out, ',');
	add_key_text(out, "kind", kinds[entry->kind]);
	buf_char(out, ',');
	add_key_text(out, "state", entry->unreadable[0] ? "unreadable" : states[entry->state]);
	buf_char(out, ',');
	add_key_text(out, "unreadable", entry->unreadable);
	buf_print(out, ",\"pid\":%d,\"started_unix_ns\":%" PRIu64 ",\"ended_unix_ns\":", entry->pid,
		  entry->started_unix_ns);
	buf_print(out, item->ended_unix_ns ? "%" PRIu64 : "null", item->ended_unix_ns);
	if (entry->wstatus_known && WIFEXITED(entry->wstatus))
		buf_print(out, ",\"exit_code\":%d", WEXITSTATUS(entry->wstatus));
	if (entry->wstatus_known && WIFSIGNALED(entry->wstatus))
		buf_print(out, ",\"signal\":%d", WTERMSIG(entry->wstatus));
	buf_print(out, ",\"bytes\":%" PRIu64, entry->bytes);
	if (item->ranks.steps >= 0)
		buf_print(out, ",\"steps\":%" PRId64, item->ranks.steps);
	if (item->now.last_row_age_ns >= 0 && item->now.known)
		buf_print(out, ",\"last_row_age_ns\":%" PRId64, item->now.last_row_age_ns);
	if (item->now.longest[0]) {
		buf_char(out, ',');
		add_key_text(out, "open_zone", item->now.longest);
		buf_print(out, ",\"open_zone_age_ns\":%" PRId64, item->now.longest_age_ns);
	}
	if (entry->kind == STORE_JOB)
		buf_print(out, ",\"runs\":%u,\"live_runs\":%u", entry->runs, entry->live_runs);
	if (item->ranks.rank >= 0)
		buf_print(out, ",\"rank\":%d", item->ranks.rank);
	if (item->ranks.ranks >= 0)
		buf_print(out, ",\"ranks\":%d", item->ranks.ranks);
}

int list_print_json(FILE *out, struct kymo_error *err)
{
	struct list list = { 0 };
	struct buf buf = { 0 };
	int rc = list_gather(&list, false, true, err);

	buf_char(&buf, '[');
	for (size_t i = 0; !rc && i < list.count; i++) {
		buf_text(&buf, i ? ",\n{" : "\n{");
		add_item(&buf, &list.items[i]);
		buf_char(&buf, '}');
	}
	buf_text(&buf, list.count ? "\n]\n" : "]\n");
	if (!rc)
		fputs(buf_get(&buf), out);
	buf_fini(&buf);
	fini(&list);
	return rc;
}
