/* Look-ups while a trace is read: the work grows with the events, not with threads times events. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "import/import.h"
#include "import/input/input.h"
#include "import/trace.h"

#define THREADS 100000
#define PIDS 1000

/* All threads begin a zone, launch on a queue of their own, wait, then end in the same order: the
   first begin is always the farthest one. */
static void add_events(struct buf *out)
{
	buf_text(out, "[");
	for (int i = 0; i < THREADS; i++)
		buf_print(out, "{\"ph\":\"B\",\"name\":\"n%d\",\"pid\":%d,\"tid\":%d,\"ts\":%d},",
			  i, i % PIDS, i, i);
	for (int i = 0; i < THREADS; i++)
		buf_print(out,
			  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":%d,\"dur\":1,"
			  "\"args\":{\"device\":0,\"context\":%d,\"stream\":%d}},"
			  "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Sync\",\"ts\":%d,"
			  "\"dur\":1,\"args\":{\"stream\":1,\"correlation\":%d}},",
			  i, i % 7, i % 60000, i, i + 1);
	for (int i = 0; i < THREADS; i++)
		buf_print(out, "{\"ph\":\"E\",\"pid\":%d,\"tid\":%d,\"ts\":%d}%s", i % PIDS, i,
			  THREADS + i, i + 1 < THREADS ? "," : "]");
	assert_false(out->failed);
}

static void a_hundred_thousand_threads_cost_a_constant_per_event(void **state)
{
	const struct import_options options = { 0 };
	struct kymo_error damage = { 0 };
	struct buf text = { 0 };
	struct input input;
	struct trace trace;

	(void)state;
	add_events(&text);
	assert_int_equal(input_open_memory(&input, text.data, text.used, NULL), 0);
	trace_begin(&trace, &options, "test");
	assert_int_equal(import_events(&trace, &input, &damage, NULL), 0);
	assert_int_equal(damage.code, 0);
	assert_int_equal(trace.events, 4 * THREADS);
	assert_int_equal(trace.zones.count, THREADS);
	assert_int_equal(trace.tracks.count, THREADS);
	assert_int_equal(trace.processes.count, PIDS);
	assert_int_equal(trace.syncs.count, THREADS);
	assert_true(trace.compared < 8 * trace.events);
	for (uint32_t i = 0; i < sizeof(trace.indexes) / sizeof(trace.indexes[0]); i++)
		assert_true(trace.indexes[i].count <= trace.events);
	for (size_t i = 0; i < trace.zones.count; i++)
		assert_int_equal(trace.zones.list[i].dur_ns, THREADS * 1000);
	trace_end(&trace);
	input_close(&input);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hundred_thousand_threads_cost_a_constant_per_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
