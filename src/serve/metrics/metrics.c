/*
 * GET /metrics: one document for all scrapers, made ahead of requests by two threads, which rest
 * while there are none. One reads the streams of each running program, at most every second; the
 * other asks a child for the figures that need SQL, at most every ten seconds and for at most a
 * twenty-fifth of a core. A request copies the document.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "serve/children/children.h"
#include "serve/metrics/metrics_rows.h"
#include "serve/openmetrics.h"
#include "serve/serve_inside.h"

#define METRICS_TARGETS 64
#define ROWS_EVERY_NS UINT64_C(1000000000)
#define ROWS_SHARE 20
#define SQL_EVERY_NS UINT64_C(10000000000)
#define SQL_SHARE 25
#define REST_AFTER_NS UINT64_C(300000000000) /* without a request */
#define ENDED_NS UINT64_C(900000000000) /* for how long a run that has ended is shown */
#define OLD_NS UINT64_C(5000000000) /* an older document is not returned while a new one is made */
#define WAIT_SECONDS 5 /* for the first document */
#define SQL_BYTES (UINT64_C(4) << 20)

/* A run. Members are of the thread of rows but for `sql`, which is under metrics_lock. */
struct metrics_run {
	struct target *target;
	enum store_state state;
	uint64_t seen_ns; /* when it was last found to run */
	bool live, read;
	uint64_t read_ns;
	struct metrics_rows rows;
	struct buf labels;
	struct buf from_rows[OPENMETRICS_COUNT];
	struct buf sql; /* the lines of the child */
	uint64_t sql_ns, sql_cost_ns;
};

static pthread_mutex_t metrics_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t metrics_made = PTHREAD_COND_INITIALIZER;
static pthread_cond_t metrics_wanted = PTHREAD_COND_INITIALIZER;
/* Under metrics_lock: */
static struct buf metrics_document;
static uint64_t metrics_made_ns, metrics_asked_ns;
static bool metrics_started;
static struct metrics_run *metrics_runs[METRICS_TARGETS];
static size_t metrics_run_count;

/* ---- the rows ------------------------------------------------------------------------------- */

static void metrics_name_run(struct metrics_run *run, const struct store_entry *entry)
{
	const char *slash = strrchr(entry->path, '/');
	char pid[16];

	buf_reset(&run->labels);
	openmetrics_label(&run->labels, "run",
			  entry->name[0] ? entry->name
			  : slash	 ? slash + 1
					 : entry->path);
	openmetrics_label(&run->labels, "program", entry->program);
	snprintf(pid, sizeof(pid), "%d", entry->pid);
	openmetrics_label(&run->labels, "pid", pid);
}

static void write_state(struct metrics_run *run, const struct store_entry *entry)
{
	static const char *const states[] = { [STORE_LIVE] = "running",
					      [STORE_ENDED] = "ended",
					      [STORE_KILLED] = "killed",
					      [STORE_LOST] = "lost",
					      [STORE_UNKNOWN] = "unknown" };
	struct buf labels = { 0 };

	buf_reset(&run->from_rows[OPENMETRICS_STATE]);
	buf_reset(&run->from_rows[OPENMETRICS_STARTED]);
	buf_text(&labels, buf_get(&run->labels));
	openmetrics_label(&labels, "state", states[entry->state]);
	openmetrics_sample(&run->from_rows[OPENMETRICS_STATE], OPENMETRICS_STATE, buf_get(&labels),
			   1);
	openmetrics_sample(&run->from_rows[OPENMETRICS_STARTED], OPENMETRICS_STARTED,
			   buf_get(&run->labels), (double)entry->started_unix_ns / 1e9);
	buf_fini(&labels);
}

/* What could be read before stays if the recording is being moved. */
static void metrics_look_rows(struct metrics_run *run, const char *path)
{
	struct recording *recording = NULL;

	if (store_open(path, &recording, NULL))
		return;
	for (size_t i = 0; i < OPENMETRICS_COUNT; i++)
		if (i != OPENMETRICS_STATE && i != OPENMETRICS_STARTED)
			buf_reset(&run->from_rows[i]);
	if (!metrics_rows_read(&run->rows, recording))
		metrics_rows_write(&run->rows, recording, buf_get(&run->labels), run->from_rows);
	store_close(recording);
	run->read_ns = target_clock_ns();
	/* Once more after its end, for its last rows. */
	run->read = !run->live;
}

static struct metrics_run *metrics_find_run(const struct target *target)
{
	for (size_t i = 0; i < metrics_run_count; i++)
		if (metrics_runs[i]->target == target)
			return metrics_runs[i];
	return NULL;
}

/* Under targets->lock. */
static void metrics_add_run(struct target *target)
{
	struct metrics_run *run = calloc(1, sizeof(*run));

	if (!run)
		return;
	run->target = target;
	pthread_mutex_lock(&metrics_lock);
	metrics_runs[metrics_run_count++] = run;
	pthread_mutex_unlock(&metrics_lock);
}

static void free_run(struct metrics_run *run)
{
	metrics_rows_fini(&run->rows);
	buf_fini(&run->labels);
	buf_fini(&run->sql);
	for (size_t i = 0; i < OPENMETRICS_COUNT; i++)
		buf_fini(&run->from_rows[i]);
	free(run);
}

/* Runs that have ended long ago make room. */
static void forget_runs(uint64_t now_ns)
{
	pthread_mutex_lock(&metrics_lock);
	for (size_t i = 0; i < metrics_run_count; i++) {
		struct metrics_run *run = metrics_runs[i];

		if (run->live || now_ns - run->seen_ns < ENDED_NS)
			continue;
		metrics_runs[i--] = metrics_runs[--metrics_run_count];
		free_run(run);
	}
	pthread_mutex_unlock(&metrics_lock);
}

static void find_runs(struct targets *targets)
{
	targets_list(targets, ROWS_EVERY_NS);
	pthread_mutex_lock(&targets->lock);
	for (size_t i = 0; i < targets->count && metrics_run_count < METRICS_TARGETS; i++) {
		struct target *target = targets->list[i];

		if (!target->gone && target->entry.state == STORE_LIVE &&
		    !target->entry.unreadable[0] && !store_kind_is_sql(target->entry.kind) &&
		    !metrics_find_run(target))
			metrics_add_run(target);
	}
	pthread_mutex_unlock(&targets->lock);
}

static void look_at(struct metrics_run *run, struct targets *targets)
{
	struct store_entry *entry = malloc(sizeof(*entry));
	bool gone;

	if (!entry)
		return;
	pthread_mutex_lock(&targets->lock);
	*entry = run->target->entry;
	gone = run->target->gone;
	pthread_mutex_unlock(&targets->lock);
	if (entry->state != run->state)
		run->read = false;
	run->state = entry->state;
	run->live = !gone && entry->state == STORE_LIVE;
	if (run->live)
		run->seen_ns = target_clock_ns();
	metrics_name_run(run, entry);
	write_state(run, entry);
	if (!run->read && !gone)
		metrics_look_rows(run, entry->path);
	free(entry);
}

/* ---- the document --------------------------------------------------------------------------- */

/* FAMILY, LABELS and VALUE of a child, which are not trusted: a line that is none is left out. */
static void metrics_take_line(char *line, const char *run, struct buf out[OPENMETRICS_COUNT])
{
	char *labels = strchr(line, '\t'), *value, *end;
	enum openmetrics_family family;
	struct buf all = { 0 };
	double number;

	if (!labels)
		return;
	*labels++ = '\0';
	value = strchr(labels, '\t');
	family = openmetrics_find(line);
	if (!value || family < OPENMETRICS_SQL || family >= OPENMETRICS_COUNT)
		return;
	*value++ = '\0';
	number = strtod(value, &end);
	if (end == value || *end || !openmetrics_are_labels(labels))
		return;
	buf_print(&all, "%s,%s", run, labels);
	openmetrics_sample(&out[family], family, buf_get(&all), number);
	buf_fini(&all);
}

static void metrics_take_lines(const struct metrics_run *run, struct buf out[OPENMETRICS_COUNT])
{
	char *text = run->sql.used ? strdup(buf_get(&run->sql)) : NULL, *rest = text, *line;

	while (rest && (line = strsep(&rest, "\n")))
		metrics_take_line(line, buf_get(&run->labels), out);
	free(text);
}

static void write_ages(const struct metrics_run *run, uint64_t now_ns, struct buf *out)
{
	const struct {
		const char *name;
		uint64_t at_ns;
	} parts[] = { { "rows", run->read_ns }, { "sql", run->sql_ns } };

	for (size_t i = 0; i < 2; i++) {
		struct buf labels = { 0 };

		buf_text(&labels, buf_get(&run->labels));
		openmetrics_label(&labels, "of", parts[i].name);
		if (parts[i].at_ns)
			openmetrics_sample(out, OPENMETRICS_FRESH, buf_get(&labels),
					   (double)(now_ns - parts[i].at_ns) / 1e9);
		buf_fini(&labels);
	}
}

/* Under metrics_lock. */
static void make_document(uint64_t now_ns)
{
	struct buf parts[OPENMETRICS_COUNT] = { { 0 } }, out = { 0 };
	double live = 0;

	for (size_t i = 0; i < metrics_run_count; i++) {
		const struct metrics_run *run = metrics_runs[i];

		live += run->live;
		for (size_t f = 0; f < OPENMETRICS_COUNT; f++)
			buf_add(&parts[f], buf_get(&run->from_rows[f]), run->from_rows[f].used);
		metrics_take_lines(run, parts);
		write_ages(run, now_ns, &parts[OPENMETRICS_FRESH]);
	}
	buf_print(&parts[OPENMETRICS_RUNS], "kymo_runs %.0f\n", live);
	for (int f = 0; f < OPENMETRICS_COUNT; f++) {
		if (!parts[f].used)
			continue;
		openmetrics_head(&out, (enum openmetrics_family)f);
		buf_add(&out, parts[f].data, parts[f].used);
		buf_fini(&parts[f]);
	}
	buf_text(&out, "# EOF\n");
	buf_fini(&metrics_document);
	metrics_document = out;
	metrics_made_ns = now_ns;
	pthread_cond_broadcast(&metrics_made);
}

/* Returns after a recent request. */
static void rest_unless_asked(void)
{
	pthread_mutex_lock(&metrics_lock);
	while (target_clock_ns() - metrics_asked_ns > REST_AFTER_NS)
		pthread_cond_wait(&metrics_wanted, &metrics_lock);
	pthread_mutex_unlock(&metrics_lock);
}

static void *metrics_watch_rows(void *context)
{
	struct serve *serve = context;

	workers_yield();
	for (;;) {
		uint64_t began_ns = target_clock_ns(), took_ns;

		find_runs(&serve->targets);
		for (size_t i = 0; i < metrics_run_count; i++)
			look_at(metrics_runs[i], &serve->targets);
		forget_runs(began_ns);
		pthread_mutex_lock(&metrics_lock);
		make_document(target_clock_ns());
		pthread_mutex_unlock(&metrics_lock);
		took_ns = (target_clock_ns() - began_ns) * ROWS_SHARE;
		usleep((useconds_t)((took_ns > ROWS_EVERY_NS ? took_ns : ROWS_EVERY_NS) / 1000));
		rest_unless_asked();
	}
	return NULL;
}

/* ---- SQL ------------------------------------------------------------------------------------ */

/* The run whose figures are oldest, if they are due. */
static struct target *next_due(uint64_t *out_due_ns)
{
	struct metrics_run *found = NULL;

	pthread_mutex_lock(&metrics_lock);
	for (size_t i = 0; i < metrics_run_count; i++) {
		struct metrics_run *run = metrics_runs[i];

		if (run->live && (!found || run->sql_ns < found->sql_ns))
			found = run;
	}
	*out_due_ns = !found || !found->sql_ns
			      ? 0
			      : found->sql_ns + (found->sql_cost_ns * SQL_SHARE > SQL_EVERY_NS
							 ? found->sql_cost_ns * SQL_SHARE
							 : SQL_EVERY_NS);
	pthread_mutex_unlock(&metrics_lock);
	return found ? found->target : NULL;
}

static void ask_for(struct target *target)
{
	struct children_ask ask = { .question = { .kind = QUESTION_METRICS,
						  .timeout_ms = 60000,
						  .answer_bytes = SQL_BYTES,
						  .background = true } };
	uint64_t began_ns = target_clock_ns();
	struct buf answer = { 0 };
	struct kymo_error err;
	struct metrics_run *run;
	int rc = target_ask(target, &ask, &err);

	if (!rc)
		rc = children_read_answer(&ask, &answer, &err);
	pthread_mutex_lock(&metrics_lock);
	run = metrics_find_run(target);
	if (run) {
		run->sql_ns = target_clock_ns();
		run->sql_cost_ns = run->sql_ns - began_ns;
		buf_fini(&run->sql);
		run->sql = answer;
		answer = (struct buf){ 0 };
	}
	pthread_mutex_unlock(&metrics_lock);
	if (rc || !run)
		buf_fini(&answer);
}

static void *metrics_watch_sql(void *context)
{
	(void)context;
	workers_yield();
	for (;;) {
		uint64_t due_ns;
		struct target *target = next_due(&due_ns);

		if (target && target_clock_ns() >= due_ns)
			ask_for(target);
		else
			usleep((useconds_t)(ROWS_EVERY_NS / 4000));
		rest_unless_asked();
	}
	return NULL;
}

/* ---- the request ---------------------------------------------------------------------------- */

static bool metrics_thread(void *(*run)(void *), void *context)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attributes, run, context);
	pthread_attr_destroy(&attributes);
	return !rc;
}

/* Under metrics_lock. With the first request, so that a server that is not scraped does nothing. */
static bool metrics_threads_begin(struct serve *serve)
{
	metrics_asked_ns = target_clock_ns();
	if (metrics_started) {
		pthread_cond_broadcast(&metrics_wanted);
		return true;
	}
	metrics_started = metrics_thread(metrics_watch_rows, serve) &&
			  metrics_thread(metrics_watch_sql, serve);
	return metrics_started;
}

static bool is_old(uint64_t now_ns)
{
	return !metrics_made_ns || (now_ns > metrics_made_ns && now_ns - metrics_made_ns > OLD_NS);
}

void answer_metrics(struct request *request)
{
	uint64_t asked_ns = target_clock_ns();
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_SECONDS;
	pthread_mutex_lock(&metrics_lock);
	/* Of many large programs the document is always older: the wait is for the first. */
	if (!metrics_threads_begin(request->serve)) {
		rc = -1;
	} else if (is_old(asked_ns)) {
		while (!rc && metrics_made_ns < asked_ns)
			rc = pthread_cond_timedwait(&metrics_made, &metrics_lock, &until);
		rc = metrics_made_ns ? 0 : rc;
	}
	if (!rc) {
		request->type = OPENMETRICS_TYPE;
		buf_add(&request->answer, buf_get(&metrics_document), metrics_document.used);
	}
	pthread_mutex_unlock(&metrics_lock);
	if (rc)
		answer_error(request, 503, "try again later", "the figures are not read yet");
}
