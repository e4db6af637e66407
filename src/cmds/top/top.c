/* kymo top: a running program on the terminal, every second. The child in which DuckDB runs draws,
   with one thread that reads and one that waits for keys; the parent restores the terminal. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmds/cmds.h"
#include "cmds/guard/guard.h"
#include "cmds/top/top_terminal.h"
#include "store/store.h"
#include "views/top/top_data.h"
#include "views/top/top_screen.h"

#define WINDOW_NS 5e9
#define INTERVAL_S 1.0
#define KEY_WAIT_MS 100

struct top {
	const char *target; /* NULL: latest */
	double interval_s;
	double frames; /* 0: until q; not on a terminal: 1 */
	bool terminal;
	char path[KYMO_PATH_BYTES];
	int32_t pid; /* of the program; 0: not known yet */
};

/* ---- reading -------------------------------------------------------------------------------- */

/* A recording that has moved, as at the end of a run, is found again by its process. */
static int take(struct top *top, struct top_data *out, struct kymo_error *err)
{
	char pid[16];
	int rc = top_data_take(top->path, WINDOW_NS, out, err);

	if (rc && top->pid) {
		snprintf(pid, sizeof(pid), "%d", top->pid);
		rc = store_resolve(pid, top->path, sizeof(top->path), err);
		if (!rc)
			rc = top_data_take(top->path, WINDOW_NS, out, err);
	}
	if (!rc)
		top->pid = out->pid;
	return rc;
}

/* What the two threads share, under the lock. */
struct reader {
	struct top *top;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct top_data *latest; /* taken by the drawing thread, which leaves NULL */
	bool paused, ended;
	char note[160];
};

static void wait_for_next(struct reader *reader, const struct timespec *until)
{
	int rc = 0;

	while (!rc)
		rc = pthread_cond_timedwait(&reader->wake, &reader->lock, until);
	while (reader->paused)
		pthread_cond_wait(&reader->wake, &reader->lock);
}

static struct timespec later(double seconds)
{
	struct timespec at;
	double sum;

	clock_gettime(CLOCK_MONOTONIC, &at);
	sum = (double)at.tv_nsec / 1e9 + seconds;
	at.tv_sec += (time_t)sum;
	at.tv_nsec = (long)((sum - (double)(time_t)sum) * 1e9);
	return at;
}

static void publish(struct reader *reader, struct top_data *data, const struct kymo_error *err)
{
	pthread_mutex_lock(&reader->lock);
	if (err->text[0]) {
		free(data);
		snprintf(reader->note, sizeof(reader->note), "%.150s", err->text);
	} else {
		free(reader->latest);
		reader->latest = data;
		reader->note[0] = '\0';
		reader->ended = !data->live;
	}
	pthread_mutex_unlock(&reader->lock);
}

static void *read_on(void *context)
{
	struct reader *reader = context;

	for (;;) {
		struct timespec next = later(reader->top->interval_s);
		struct kymo_error err = { 0 };
		struct top_data *data = malloc(sizeof(*data));

		if (!data)
			return NULL;
		take(reader->top, data, &err);
		publish(reader, data, &err);
		pthread_mutex_lock(&reader->lock);
		if (reader->ended) {
			pthread_mutex_unlock(&reader->lock);
			return NULL; /* nothing changes any more */
		}
		wait_for_next(reader, &next);
		pthread_mutex_unlock(&reader->lock);
	}
}

static bool start_reader(struct reader *reader)
{
	pthread_condattr_t clock;
	pthread_t thread;

	pthread_mutex_init(&reader->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&reader->wake, &clock);
	return !pthread_create(&thread, NULL, read_on, reader);
}

/* ---- drawing -------------------------------------------------------------------------------- */

static void top_draw(struct top_data *data, struct top_view *view)
{
	struct text_style style = text_style_of(stdout);
	struct buf screen = { 0 };

	view->lines = top_terminal_lines();
	style.columns = top_terminal_columns();
	top_screen_draw(&screen, data, view, &style);
	top_terminal_show(buf_get(&screen), screen.used);
	buf_fini(&screen);
}

/* False: quit. */
static bool obey(enum top_key key, struct top_view *view, struct reader *reader)
{
	int page = view->lines / 2;

	switch (key) {
	case TOP_KEY_QUIT: return false;
	case TOP_KEY_PAUSE:
		view->paused = !view->paused;
		pthread_mutex_lock(&reader->lock);
		reader->paused = view->paused;
		pthread_cond_signal(&reader->wake);
		pthread_mutex_unlock(&reader->lock);
		break;
	case TOP_KEY_SORT: view->sort = (view->sort + 1) % TOP_SORTS; break;
	case TOP_KEY_THREADS:
		view->threads = !view->threads;
		view->scroll = 0;
		break;
	case TOP_KEY_HELP: view->help = !view->help; break;
	case TOP_KEY_UP: view->scroll--; break;
	case TOP_KEY_DOWN: view->scroll++; break;
	case TOP_KEY_PAGE_UP: view->scroll -= page; break;
	case TOP_KEY_PAGE_DOWN: view->scroll += page; break;
	case TOP_KEY_HOME: view->scroll = 0; break;
	default: break;
	}
	return true;
}

/* The new data, if there is some; the caller keeps the old otherwise. */
static void take_latest(struct reader *reader, struct top_data **data, struct top_view *view)
{
	pthread_mutex_lock(&reader->lock);
	if (reader->latest && !view->paused) {
		free(*data);
		*data = reader->latest;
		reader->latest = NULL;
	}
	memcpy(view->note, reader->note, sizeof(view->note));
	pthread_mutex_unlock(&reader->lock);
}

static int watch(struct top *top, struct top_data *first)
{
	struct reader reader = { .top = top };
	struct top_view view = { .keys = true };
	struct top_data *data = first;

	if (!start_reader(&reader)) {
		free(first);
		return cmds_wrong("top", "cannot start a thread");
	}
	top_terminal_enter();
	do {
		take_latest(&reader, &data, &view);
		top_draw(data, &view);
	} while (obey(top_terminal_key(KEY_WAIT_MS), &view, &reader));
	return CMDS_OK; /* the child ends, and its other thread with it */
}

/* ---- without a terminal --------------------------------------------------------------------- */

static void print_screen(struct top_data *data, bool first)
{
	struct text_style style = text_style_of(stdout);
	struct top_view view = { .lines = top_terminal_lines() };
	struct buf screen = { 0 };

	top_screen_draw(&screen, data, &view, &style);
	if (!first)
		fputc('\n', stdout);
	fwrite(buf_get(&screen), 1, screen.used, stdout); /* not foreign: a screen, escaped */
	fflush(stdout);
	buf_fini(&screen);
}

static int print_screens(struct top *top, struct top_data *data)
{
	struct kymo_error err = { 0 };
	uint64_t frames = top->frames > 0 ? (uint64_t)top->frames : 1;

	for (uint64_t i = 0; i < frames; i++) {
		if (i > 0) {
			struct timespec at = later(top->interval_s);

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
			if (take(top, data, &err))
				break;
		}
		print_screen(data, i == 0);
	}
	free(data);
	return err.text[0] ? cmds_fail("top", &err) : cmds_finish("top");
}

/* ---- the command ---------------------------------------------------------------------------- */

/* In a child; see guard.h. The first frame is read before the screen is taken, so that an error is
   one line. */
static int top_in_child(void *context)
{
	struct top *top = context;
	struct top_data *data = malloc(sizeof(*data));
	struct kymo_error err = { 0 };
	int rc = data ? store_resolve(top->target, top->path, sizeof(top->path), &err)
		      : error_set(&err, 12, "out of memory");

	if (!rc)
		rc = take(top, data, &err);
	if (rc) {
		free(data);
		return cmds_fail("top", &err);
	}
	if (!top->terminal)
		cmds_say_latest(top->target, top->path);
	return top->terminal ? watch(top, data) : print_screens(top, data);
}

static int top_take_option(void *context, struct cmds_args *args, const struct cmds_option *option)
{
	struct top *top = context;
	int status = -1;

	if (!strcmp(option->name, "limit"))
		cmds_number(args, option, 1e9, &top->frames, &status);
	else if (!strcmp(option->name, "interval") &&
		 cmds_number(args, option, 3600, &top->interval_s, &status) &&
		 top->interval_s < 0.1)
		status = cmds_wrong("top", "--interval: at least 0.1 s");
	return status;
}

int cmd_top(int argc, char **argv)
{
	struct top top = { .interval_s = INTERVAL_S };
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "top", argc, argv);
	status = cmds_take_all(&args, top_take_option, &top);
	if (status >= 0)
		return status;
	if (args.word_count > 1)
		return cmds_wrong("top", "expected one TARGET, got %zu", args.word_count);
	top.target = args.word_count ? args.words[0] : NULL;
	top.terminal = top_terminal_prepare() && top.frames <= 0;
	guard_at_end(top_terminal_restore);
	return cmds_guarded("top", top_in_child, &top);
}
