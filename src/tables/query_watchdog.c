#include "tables/query_watchdog.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/scratch/child_notes.h"

#define REPEAT_NS 5000000ull
/* A longer pause between two calls into DuckDB does not count for the deadline. */
#define PAUSED_NS 100000000ull
#define NEVER UINT64_MAX

static uint64_t query_watchdog_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Called under watch_lock. Returns the time of the next check. */
static uint64_t query_watchdog_look_at(struct tables_result *result, uint64_t now)
{
	bool over = result->deadline_ns && now >= result->deadline_ns;

	if (over && !result->left_ns)
		result->timed_out = true;
	if (kymo__load_seq_cst(&result->tables->interrupts) != result->interrupts_before)
		result->cancelled = true;
	if (result->timed_out || result->cancelled || result->closing) {
		if (!result->executing)
			return NEVER;
		duck.interrupt(result->connection);
		return now + REPEAT_NS;
	}
	if (over)
		return now + PAUSED_NS;
	return result->deadline_ns ? result->deadline_ns : NEVER;
}

/* Called under watch_lock, when DuckDB is called again. A caller that only formats rows pauses
   shortly after each chunk, and that time counts: an endless result ends on time. */
static void query_watchdog_resume(struct tables_result *result, uint64_t now)
{
	if (result->left_ns && result->deadline_ns && now - result->left_ns > PAUSED_NS)
		result->deadline_ns += now - result->left_ns;
	result->left_ns = 0;
}

static uint64_t query_watchdog_look(struct tables *tables)
{
	uint64_t now = query_watchdog_now_ns(), next = NEVER, one;

	pthread_mutex_lock(&tables->watch_lock);
	for (struct tables_result *result = tables->running; result; result = result->next) {
		one = query_watchdog_look_at(result, now);
		next = one < next ? one : next;
	}
	pthread_mutex_unlock(&tables->watch_lock);
	return next;
}

static void *watch_main(void *data)
{
	struct tables *tables = data;
	struct timespec until;
	uint64_t next;

	while (!kymo__load_acquire(&tables->watch_end)) {
		next = query_watchdog_look(tables);
		until.tv_sec = (time_t)(next / 1000000000u);
		until.tv_nsec = (long)(next % 1000000000u);
		if (next == NEVER)
			sem_wait(&tables->watch_wake);
		else
			sem_clockwait(&tables->watch_wake, CLOCK_MONOTONIC, &until);
	}
	return NULL;
}

int query_watchdog_init(struct tables *tables, struct kymo_error *err)
{
	pthread_mutex_init(&tables->watch_lock, NULL);
	if (sem_init(&tables->watch_wake, 0, 0))
		return error_set(err, errno, "cannot create a semaphore: %s", strerror(errno));
	return 0;
}

/* Signals are blocked: the handler of Ctrl-C must not run in this thread. */
static int query_watchdog_start(struct tables *tables, struct kymo_error *err)
{
	sigset_t all, before;
	int rc;

	if (tables->watching)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&tables->watch_thread, NULL, watch_main, tables);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	tables->watching = !rc;
	if (rc)
		return error_set(err, rc, "cannot create a thread to watch the query: %s",
				 strerror(rc));
	return 0;
}

void query_watchdog_fini(struct tables *tables)
{
	if (tables->watching) {
		kymo__store_release(&tables->watch_end, true);
		sem_post(&tables->watch_wake);
		pthread_join(tables->watch_thread, NULL);
	}
	sem_destroy(&tables->watch_wake);
	pthread_mutex_destroy(&tables->watch_lock);
}

int query_watchdog_add(struct tables_result *result, struct kymo_error *err)
{
	struct tables *tables = result->tables;
	int rc;

	if (tables->options.timeout_ms)
		result->deadline_ns = query_watchdog_now_ns() +
				      tables->options.timeout_ms * 1000000ull;
	pthread_mutex_lock(&tables->watch_lock);
	result->interrupts_before = tables->interrupts_taken;
	rc = query_watchdog_start(tables, err);
	if (!rc) {
		result->next = tables->running;
		tables->running = result;
	}
	pthread_mutex_unlock(&tables->watch_lock);
	/* Wakes the watchdog, which then sees the new deadline. */
	sem_post(&tables->watch_wake);
	return rc;
}

void query_watchdog_remove(struct tables_result *result)
{
	struct tables *tables = result->tables;
	struct tables_result **at;

	pthread_mutex_lock(&tables->watch_lock);
	for (at = &tables->running; *at && *at != result; at = &(*at)->next)
		;
	if (*at)
		*at = result->next;
	if (result->cancelled)
		tables->interrupts_taken = kymo__load_seq_cst(&tables->interrupts);
	pthread_mutex_unlock(&tables->watch_lock);
}

static void set_closing(struct tables_result *result, bool closing)
{
	pthread_mutex_lock(&result->tables->watch_lock);
	query_watchdog_resume(result, query_watchdog_now_ns());
	result->closing = result->executing = closing;
	pthread_mutex_unlock(&result->tables->watch_lock);
}

void query_watchdog_settle(struct tables_result *result)
{
	set_closing(result, true);
	sem_post(&result->tables->watch_wake);
	child_notes_deadline(result->deadline_ns, result->tables->options.timeout_ms);
	/* It waits for the threads of the previous statement; its own result does not matter. */
	duck_run(result->connection, "ROLLBACK", "", NULL);
	child_notes_deadline(0, 0);
	set_closing(result, false);
}

static int stopped(const struct tables_result *result, struct kymo_error *err)
{
	if (result->cancelled)
		return error_set(err, ECANCELED, "the query was cancelled");
	if (result->timed_out)
		return error_set(err, ETIMEDOUT,
				 "the query was stopped after %g s, its time limit; reduce it "
				 "(WHERE, LIMIT) or raise the limit",
				 result->tables->options.timeout_ms / 1000.0);
	return 0;
}

static int look_and_set(struct tables_result *result, bool executing, struct kymo_error *err)
{
	uint64_t now = query_watchdog_now_ns();
	int rc;

	pthread_mutex_lock(&result->tables->watch_lock);
	result->executing = false;
	query_watchdog_resume(result, now);
	query_watchdog_look_at(result, now);
	rc = stopped(result, err);
	result->executing = executing && !rc;
	result->left_ns = executing ? 0 : now;
	pthread_mutex_unlock(&result->tables->watch_lock);
	/* Some functions of DuckDB ignore interrupts. A parent process then ends this one. */
	child_notes_deadline(executing ? result->deadline_ns : 0,
			     result->tables->options.timeout_ms);
	return rc;
}

int query_watchdog_enter(struct tables_result *result, struct kymo_error *err)
{
	return look_and_set(result, true, err);
}

int query_watchdog_leave(struct tables_result *result, struct kymo_error *err)
{
	return look_and_set(result, false, err);
}
