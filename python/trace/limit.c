/*
 * A limit on the cost of tracing: `kymo run --max-overhead`. A thread removes the hooks and sets
 * them again, so that calls are traced in windows. What a window costs is the number of its calls,
 * times the cost of one (cost.c), and the CPU time of this thread. kymo__windows_next() decides.
 *
 * The hooks are changed by the main thread, at its next bytecode; if it is in a long call of C, by
 * this thread, which then waits for the GIL.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <kymo/atomic.h>

#include "trace.h"

#include "record/adapter.h"

#define PERIOD_NS 1000000000ull
/* sys.monitoring changes each function again at its next call. */
#define PERIOD_MONITORING_NS 4000000000ull
#define FIRST_WINDOW_NS 5000000ull
#define MAIN_WAIT_NS 20000000ull /* for the main thread */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* guarded by the lock: ends, done */
static bool ends, done;
static bool runs; /* guarded by the GIL */
static pthread_t thread;
static uint32_t wanted; /* 1: open; atomic */
static uint64_t switch_ns; /* CPU time of the main thread, not counted yet; atomic */

static uint64_t now_by(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t limit_cpu_ns(void)
{
	return now_by(CLOCK_THREAD_CPUTIME_ID);
}

/* With the lock. False: the time is over. */
static bool limit_wait(const bool *flag, uint64_t at_ns)
{
	struct timespec at = { (time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u) };

	while (!*flag && !ends)
		if (pthread_cond_timedwait(&changed, &lock, &at) == ETIMEDOUT)
			return false;
	return true;
}

/* With the GIL. */
static int limit_follow(void *unused)
{
	uint64_t before_ns = limit_cpu_ns();

	(void)unused;
	if (kymo__load_acquire(&wanted))
		trace_resume();
	else
		trace_pause();
	kymo__fetch_add_relaxed(&switch_ns, limit_cpu_ns() - before_ns);
	pthread_mutex_lock(&lock);
	done = true;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void limit_switch(bool open)
{
	PyGILState_STATE held;
	bool by_main = false;

	kymo__store_release(&wanted, open);
	pthread_mutex_lock(&lock);
	done = false;
	pthread_mutex_unlock(&lock);
	if (!Py_AddPendingCall(limit_follow, NULL)) { /* else its queue is full */
		pthread_mutex_lock(&lock);
		by_main = limit_wait(&done, now_by(CLOCK_MONOTONIC) + MAIN_WAIT_NS);
		pthread_mutex_unlock(&lock);
	}
	if (by_main)
		return;
	held = PyGILState_Ensure();
	limit_follow(NULL);
	PyGILState_Release(held);
}

/* What tracing has cost since the last call. */
static uint64_t limit_cost(uint64_t *cpu_ns, uint64_t *zones, bool open)
{
	uint64_t now_cpu_ns = limit_cpu_ns(), now_zones = kymo__zones_written();
	uint64_t cost_ns = now_cpu_ns - *cpu_ns + kymo__exchange_acq_rel(&switch_ns, 0);
	uint64_t calls = open && now_zones > *zones ? now_zones - *zones : 0;

	*cpu_ns = now_cpu_ns;
	*zones = now_zones;
	return kymo__python_spent(calls, cost_ns);
}

/* Also where a step or signpost began tracing in a pause, and where another tool was in the way. */
static bool limit_differs(bool open)
{
	return kymo__load_relaxed(&trace.mechanism) && kymo__load_relaxed(&trace.active) != open;
}

static void *limit_run(void *unused)
{
	struct kymo__windows windows = { .window_ns = FIRST_WINDOW_NS,
					 .period_ns = PY_VERSION_HEX >= 0x030C0000
							      ? PERIOD_MONITORING_NS
							      : PERIOD_NS,
					 .open = true };
	uint64_t cpu_ns = 0, zones = kymo__zones_written(), then_ns = now_by(CLOCK_MONOTONIC);
	uint64_t wait_ns = FIRST_WINDOW_NS, now_ns;

	(void)unused;
	pthread_setname_np(pthread_self(), "kymo-limit");
	pthread_mutex_lock(&lock);
	while (!limit_wait(&ends, now_by(CLOCK_MONOTONIC) + wait_ns)) {
		bool was_open = windows.open;

		pthread_mutex_unlock(&lock);
		now_ns = now_by(CLOCK_MONOTONIC);
		wait_ns = kymo__windows_next(&windows, now_ns - then_ns,
					     limit_cost(&cpu_ns, &zones, was_open),
					     kymo__python_limit());
		then_ns = now_ns;
		if (limit_differs(windows.open))
			limit_switch(windows.open);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* No signal of the program is handled by this thread. */
static void limit_start(void)
{
	pthread_condattr_t attr;
	sigset_t all, before;

	pthread_mutex_init(&lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_condattr_destroy(&attr);
	ends = done = false;
	kymo__store_relaxed(&wanted, 1);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	runs = !pthread_create(&thread, NULL, limit_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

PyObject *limit_begin(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	if (runs || !kymo__python_limit() || trace.interpreter != PyInterpreterState_Main())
		Py_RETURN_FALSE;
	limit_start();
	return PyBool_FromLong(runs);
}

/* At Python's end: nothing may ask for the GIL after it. */
PyObject *limit_end(PyObject *module, PyObject *unused)
{
	bool ran = runs;

	(void)module, (void)unused;
	runs = false;
	if (ran) {
		Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&lock);
		ends = true;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&lock);
		pthread_join(thread, NULL);
		Py_END_ALLOW_THREADS
	}
	if (ran && trace.paused_ticks) {
		gaps_add(GAP_BUDGET, trace.paused_ticks);
		trace.paused_ticks = kymo_ticks();
	}
	Py_RETURN_NONE;
}

/* The thread is the parent's. */
PyObject *limit_in_child(PyObject *module, PyObject *unused)
{
	bool ran = runs;

	(void)module, (void)unused;
	runs = false;
	if (ran) {
		trace_resume();
		limit_start();
	}
	Py_RETURN_NONE;
}
