#include "views/top/top_screen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "views/term/format.h"

#define THREADS_BESIDE 0.4 /* of the lines of both tables */
#define SPARK_LEAST 8
#define TABLE_LEAST 3 /* lines, with the header */

/* Each line is plain text first, so that its width is known; then it is cut, escaped, painted. */
static void top_screen_add_line(struct buf *out, struct buf *line, enum text_paint paint,
				const struct text_style *style)
{
	while (line->used && line->data[line->used - 1] == ' ')
		line->data[--line->used] = '\0';
	buf_text(out, text_paint(style, paint));
	text_fit(out, buf_get(line), (size_t)style->columns, 0, style);
	buf_text(out, text_plain(style));
	buf_char(out, '\n');
	buf_reset(line);
}

/* ---- the head ------------------------------------------------------------------------------- */

static void draw_title(struct buf *out, struct buf *line, const struct top_data *data,
		       const struct top_view *view, const struct text_style *style)
{
	buf_text(line, "kymo top  ");
	text_visible(line, data->program, strlen(data->program));
	buf_print(line, "  pid %d  ", data->pid);
	text_visible(line, data->live ? "live" : data->end,
		     strlen(data->live ? "live" : data->end));
	buf_print(line, "  %s", format_clock(data->duration_ns, style->utf8).text);
	if (view->paused)
		buf_text(line, "  PAUSED");
	top_screen_add_line(out, line, TEXT_BOLD, style);
}

/* As many of the last steps as fit. */
static void draw_spark(struct buf *line, const struct top_data *data,
		       const struct text_style *style)
{
	size_t used = text_width(buf_get(line), line->used);
	size_t room = (size_t)style->columns > used ? (size_t)style->columns - used : 0;
	size_t count = data->spark_count < room ? data->spark_count : room;

	if (count >= SPARK_LEAST)
		text_sparkline(line, data->spark_ns + data->spark_count - count, count, style);
}

/* "steps    75.8/s  median 9.68 ms  p99 33.3 ms  last 20,787  ▁▁▂▁" */
static void draw_steps(struct buf *out, struct buf *line, const struct top_data *data,
		       const struct text_style *style)
{
	double rate = data->span_ns > 0 ? (double)data->steps / (data->span_ns / 1e9) : 0;
	double idle_ns = data->duration_ns - data->last_step_ns;

	if (data->last_step_ns < 0)
		return;
	if (data->steps)
		buf_print(line, "steps    %.3g/s  median %s  p99 %s", rate,
			  format_duration(data->median_ns, style->utf8).text,
			  format_duration(data->p99_ns, style->utf8).text);
	else
		buf_print(line, "steps    none ended for %s",
			  format_clock(idle_ns, style->utf8).text);
	buf_print(line, "  last %s  ", format_count(data->last_step).text);
	draw_spark(line, data, style);
	top_screen_add_line(out, line, TEXT_PLAIN, style);
}

static void draw_phases(struct buf *out, struct buf *line, const struct top_data *data,
			const struct text_style *style)
{
	static const char *const words[] = { "data", "forward", "backward", "optimizer" };
	double rest_ns = data->total_ns;

	for (size_t i = 0; i < 4 && data->total_ns > 0; i++) {
		if (data->phase_ns[i] <= 0)
			continue;
		buf_print(line, "%s%s %.0f %%", line->used ? "  " : "step     ", words[i],
			  100 * data->phase_ns[i] / data->total_ns);
		rest_ns -= data->phase_ns[i];
	}
	if (!line->used)
		return;
	buf_print(line, "  other %.0f %%", rest_ns > 0 ? 100 * rest_ns / data->total_ns : 0);
	top_screen_add_line(out, line, TEXT_PLAIN, style);
}

static void draw_memory(struct buf *out, struct buf *line, const struct top_data *data,
			const struct text_style *style)
{
	if (data->rss_bytes < 0)
		return;
	buf_print(line, "memory   %s", format_bytes(data->rss_bytes).text);
	if (data->processes > 1)
		buf_print(line, " in %s processes", format_count(data->processes).text);
	else if (data->peak_bytes > 0)
		buf_print(line, ", peak %s", format_bytes(data->peak_bytes).text);
	if (data->cpu_pct >= 0)
		buf_print(line, "   CPU %s of a core", format_percent(data->cpu_pct / 100).text);
	top_screen_add_line(out, line, TEXT_PLAIN, style);
}

static void draw_devices(struct buf *out, struct buf *line, const struct top_data *data,
			 const struct text_style *style)
{
	for (size_t i = 0; i < data->device_count; i++) {
		const struct top_device *device = &data->devices[i];

		buf_text(line, i ? ",  " : "devices  ");
		text_fit(line, device->name, 24, 0, style);
		if (device->busy >= 0)
			buf_print(line, " busy %s", format_percent(device->busy).text);
		if (device->used_bytes >= 0)
			buf_print(line, " %s", format_bytes(device->used_bytes).text);
	}
	if (line->used)
		top_screen_add_line(out, line, TEXT_PLAIN, style);
}

/* Ranks that fall behind are what matters: the slowest, the median and the fastest of many. */
static void draw_ranks(struct buf *out, struct buf *line, const struct top_data *data,
		       const struct text_style *style)
{
	for (size_t i = 0; i < data->rank_count && data->rank_count > 1; i++) {
		const struct top_rank *rank = &data->ranks[i];

		buf_print(line, "%s%d: step %s, %.3g/s", i ? "   " : "ranks    ", rank->rank,
			  format_count(rank->last).text,
			  (double)rank->steps / (data->window_ns / 1e9));
	}
	if (line->used)
		top_screen_add_line(out, line, TEXT_PLAIN, style);
}

static void draw_losses(struct buf *out, struct buf *line, const struct top_data *data,
			const struct text_style *style)
{
	bool lost = data->overwritten || data->dropped;

	buf_text(line, "losses   ");
	buf_print(line, "%s of %s rows",
		  lost ? format_count(data->overwritten + data->dropped).text : "none",
		  format_count(data->emitted).text);
	if (data->overhead_pct >= 0)
		buf_print(line, "   overhead %s", format_percent(data->overhead_pct / 100).text);
	if (data->kymo_pct >= 0)
		buf_print(line, "   recorder %s of a core",
			  format_percent(data->kymo_pct / 100).text);
	top_screen_add_line(out, line, lost ? TEXT_YELLOW : TEXT_PLAIN, style);
}

/* ---- tables --------------------------------------------------------------------------------- */

static enum top_sort sorted_by;
static double sorted_within_ns;

static double sort_key(const struct top_place *place)
{
	double waiting_ns = place->self_ns - place->running_ns;

	/* Idle threads wait many times as long as the screen shows: their time counts once. */
	return sorted_by == TOP_BY_SELF	   ? place->running_ns + fmin(waiting_ns, sorted_within_ns)
	       : sorted_by == TOP_BY_TOTAL ? place->total_ns
					   : place->running_ns;
}

static int by_key(const void *a, const void *b)
{
	double left = sort_key(a), right = sort_key(b);

	return left < right   ? 1
	       : left > right ? -1
			      : strcmp(a, b); /* the name is the first field */
}

static void add_percent(struct buf *line, double ns, double whole_ns)
{
	double percent = whole_ns > 0 ? 100 * ns / whole_ns : 0;

	buf_print(line, percent < 1000 ? "%6.1f " : "%6.0f ", percent);
}

static void draw_places(struct buf *out, struct buf *line, struct top_data *data,
			const struct top_view *view, int lines, const struct text_style *style)
{
	static const char *const words[TOP_SORTS] = { "self", "total", "running" };

	if (lines < 2)
		return;
	sorted_by = view->sort;
	sorted_within_ns = data->window_ns;
	if (data->place_count)
		qsort(data->places, data->place_count, sizeof(data->places[0]), by_key);
	buf_print(line, " self%% total%%   run%%  functions of own code, last %s, by %s",
		  format_duration(data->window_ns, style->utf8).text, words[view->sort]);
	top_screen_add_line(out, line, TEXT_BOLD, style);
	if (!data->place_count) {
		buf_text(line, "                      no stack sample in this time");
		top_screen_add_line(out, line, TEXT_PLAIN, style);
	}
	for (size_t i = view->threads ? 0 : (size_t)view->scroll;
	     i < data->place_count && --lines > 0; i++) {
		const struct top_place *place = &data->places[i];

		add_percent(line, place->self_ns, data->window_ns);
		add_percent(line, place->total_ns, data->window_ns);
		add_percent(line, place->running_ns, data->window_ns);
		buf_char(line, ' ');
		text_fit(line, place->name, (size_t)style->columns - line->used, 0, style);
		top_screen_add_line(out, line, TEXT_PLAIN, style);
	}
}

/* "fetch (load.py:7): 10.0.0.1:443": both get their part of the rest of the line. */
static void draw_wait(struct buf *line, const struct top_thread *thread,
		      const struct text_style *style)
{
	size_t used = text_width(buf_get(line), line->used);
	size_t room = (size_t)style->columns > used + 8 ? (size_t)style->columns - used : 8;
	size_t what = text_width(thread->what, strlen(thread->what));

	if (what > room / 2)
		what = room / 2;
	text_fit(line, thread->place, room - (what ? what + 2 : 0), 0, style);
	if (!what)
		return;
	buf_text(line, thread->place[0] ? ": " : "");
	text_fit(line, thread->what, what, 0, style);
}

static void draw_thread(struct buf *line, const struct top_thread *thread,
			const struct text_style *style)
{
	if (thread->cpu_pct >= 0)
		buf_print(line, "%6.1f ", thread->cpu_pct);
	else
		buf_text(line, "     - ");
	text_fit(line, thread->name[0] ? thread->name : "?", 16, -1, style);
	buf_print(line, " %7d  ", thread->tid);
	text_fit(line, thread->doing[0] ? thread->doing : "-", 10, -1, style);
	buf_char(line, ' ');
	draw_wait(line, thread, style);
}

static void draw_threads(struct buf *out, struct buf *line, const struct top_data *data,
			 const struct top_view *view, int lines, const struct text_style *style)
{
	if (lines < 2)
		return;
	buf_print(line, "  CPU%% %-16s %7s  %-10s %s", "thread", "tid", "state",
		  "where, and what it waits for");
	top_screen_add_line(out, line, TEXT_BOLD, style);
	for (size_t i = view->threads ? (size_t)view->scroll : 0;
	     i < data->thread_count && --lines > 0; i++) {
		draw_thread(line, &data->threads[i], style);
		top_screen_add_line(out, line, TEXT_PLAIN, style);
	}
}

/* ---- the whole ------------------------------------------------------------------------------ */

static const char *const help_lines[] = {
	"q        quit; the program goes on",
	"p space  pause and continue",
	"s        sort functions: self, total, running",
	"t        threads alone, or functions and threads",
	"j k      scroll; arrows, Page Up and Page Down too",
	"h ?      this help",
	"",
	"self%    time in the function and in libraries that it calls, of the time shown;",
	"         more than 100 if several threads are in it",
	"total%   with functions of own code that it calls",
	"run%     part of self% on a CPU; the rest is waiting",
	"",
	"The program is not stopped: kymo reads what it and its collector have written.",
};

static void draw_help(struct buf *out, struct buf *line, int lines, const struct text_style *style)
{
	size_t count = sizeof(help_lines) / sizeof(help_lines[0]);

	for (size_t i = 0; i < count && (int)i < lines; i++) {
		buf_print(line, "  %s", help_lines[i]);
		top_screen_add_line(out, line, TEXT_PLAIN, style);
	}
}

static int count_newlines(const struct buf *out)
{
	int lines = 0;

	for (size_t i = 0; i < out->used; i++)
		lines += out->data[i] == '\n';
	return lines;
}

/* A terminal of a few lines shows the first ones. */
static void cut_lines(struct buf *out, int lines)
{
	for (size_t i = 0; i < out->used; i++) {
		lines -= out->data[i] == '\n';
		if (lines <= 0) {
			out->used = i + 1;
			out->data[out->used] = '\0';
			return;
		}
	}
}

static void limit_scroll(struct top_view *view, const struct top_data *data)
{
	size_t rows = view->threads ? data->thread_count : data->place_count;

	if (view->scroll > (int)rows - 1)
		view->scroll = (int)rows - 1;
	if (view->scroll < 0)
		view->scroll = 0;
}

static void draw_tables(struct buf *out, struct buf *line, struct top_data *data,
			const struct top_view *view, int lines, const struct text_style *style)
{
	int threads = view->threads ? lines : (int)(THREADS_BESIDE * lines);
	int rows = (int)data->thread_count + 1;

	if (threads > rows && !view->threads)
		threads = rows;
	if (!data->thread_count || threads < TABLE_LEAST)
		threads = 0;
	if (!view->threads)
		draw_places(out, line, data, view, lines - threads, style);
	draw_threads(out, line, data, view, threads, style);
}

void top_screen_draw(struct buf *out, struct top_data *data, struct top_view *view,
		     const struct text_style *style)
{
	struct buf line = { 0 };
	int last = view->keys || view->note[0];

	limit_scroll(view, data);
	draw_title(out, &line, data, view, style);
	if (view->help) {
		draw_help(out, &line, view->lines - 1 - last, style);
	} else {
		draw_steps(out, &line, data, style);
		draw_phases(out, &line, data, style);
		draw_memory(out, &line, data, style);
		draw_devices(out, &line, data, style);
		draw_ranks(out, &line, data, style);
		draw_losses(out, &line, data, style);
		draw_tables(out, &line, data, view, view->lines - count_newlines(out) - last,
			    style);
	}
	cut_lines(out, view->lines - last);
	if (last) {
		text_visible(&line, view->note, strlen(view->note));
		if (!view->note[0])
			buf_text(&line, "q quit  p pause  s sort  t threads  j k scroll  h help");
		top_screen_add_line(out, &line, TEXT_DIM, style);
	}
	buf_fini(&line);
}
