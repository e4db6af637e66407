/* Regions that outlast a scope, and ranges that another thread ends: what is recorded, what is
   listed as open, and after SIGKILL. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorded.h"

static struct kymo_region region = KYMO_REGION_INIT("region"), other = KYMO_REGION_INIT("other");

static const struct kymo_zone_row *row_of(const struct recording *recording,
					  const struct store_stream *zones,
					  const struct kymo_zone_row *rows, uint64_t count,
					  const char *name)
{
	for (uint64_t i = 0; i < count; i++)
		if (!strcmp(name_of(recording, zones, rows[i].name), name))
			return &rows[i];
	fail_msg("no zone %s", name);
	return NULL;
}

static const struct store_open_zone *open_of(const struct recording *recording, const char *name)
{
	for (size_t i = 0; i < recording->stream_count; i++)
		for (size_t k = 0; k < recording->streams[i].open_count; k++) {
			const struct store_open_zone *zone = &recording->streams[i].open_zones[k];

			if (!strcmp(recording->names[zone->name].text, name))
				return zone;
		}
	return NULL;
}

static const char *thread_name(const struct recording *recording, const struct store_stream *zones,
			       uint32_t thread)
{
	const struct store_process *process = &recording->processes[zones->process];

	assert_in_range(thread, 1, process->thread_count - 1);
	return recording->threads[process->thread_of[thread]].name;
}

/* ---- regions ---- */

static void start_inside(struct kymo_region *what)
{
	KYMO_SCOPE("wrapper");
	if (kymo_region_start(what))
		abort();
}

static void stop_inside(struct kymo_region *what)
{
	KYMO_SCOPE("stopper");
	if (kymo_region_stop(what))
		abort();
}

static void outlast_a_scope(void)
{
	kymo_thread_name("main");
	{
		KYMO_SCOPE("outer");
		start_inside(&region);
		{
			KYMO_SCOPE("body");
		}
		stop_inside(&region);
	}
	{
		KYMO_SCOPE("later");
	}
}

static void a_region_that_outlasts_a_scope_is_a_range(void **state)
{
	(void)state;
	struct recording *recording = recorded(outlast_a_scope, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	struct kymo_zone_row rows[8];
	uint64_t count = read_zones(zones, rows, 8);
	const struct kymo_zone_row *range, *body, *outer, *wrapper;

	assert_int_equal(count, 6);
	range = row_of(recording, zones, rows, count, "region");
	body = row_of(recording, zones, rows, count, "body");
	outer = row_of(recording, zones, rows, count, "outer");
	wrapper = row_of(recording, zones, rows, count, "wrapper");
	assert_int_equal(range->flags, KYMO_ZONE_RANGE);
	assert_int_equal(range->depth, 0);
	assert_int_not_equal(range->thread, body->thread);
	assert_string_equal(thread_name(recording, zones, range->thread), "main (ranges)");
	assert_string_equal(thread_name(recording, zones, body->thread), "main");
	assert_true(range->start_ticks >= wrapper->start_ticks);
	assert_true(range->start_ticks + range->duration_ticks >=
		    body->start_ticks + body->duration_ticks);
	/* The nesting of the others is as without it, and so is their self time. */
	assert_int_equal(outer->depth, 0);
	assert_int_equal(body->depth, 1);
	assert_int_equal(row_of(recording, zones, rows, count, "later")->depth, 0);
	assert_int_equal(total_of(recording, zones, "outer")->child_ticks,
			 total_of(recording, zones, "wrapper")->sum_ticks +
				 total_of(recording, zones, "stopper")->sum_ticks +
				 total_of(recording, zones, "body")->sum_ticks);
	assert_int_equal(total_of(recording, zones, "region")->child_ticks, 0);
	assert_int_equal(total_of(recording, zones, "region")->count, 1);
	assert_int_equal(total_of(recording, zones, "later")->child_ticks, 0);
	assert_null(open_of(recording, "region"));
	recorded_close(recording);
}

static void cross_each_other(void)
{
	for (int i = 0; i < 500; i++) {
		start_inside(&region);
		start_inside(&other);
		stop_inside(&region); /* they cross */
		start_inside(&region);
		stop_inside(&other);
		stop_inside(&region);
	}
}

static int ranges_by_start(const void *a, const void *b)
{
	const struct kymo_zone_row *x = a, *y = b;

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->start_ticks < y->start_ticks ? -1 : 1;
}

static void ranges_of_one_depth_never_overlap(void **state)
{
	(void)state;
	struct recording *recording = recorded(cross_each_other, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	static struct kymo_zone_row rows[8192], ranges[2048];
	uint64_t count = read_zones(zones, rows, 8192);
	size_t found = 0;

	for (uint64_t i = 0; i < count; i++)
		if (rows[i].flags & KYMO_ZONE_RANGE)
			ranges[found++] = rows[i];
	assert_int_equal(found, 1500);
	qsort(ranges, found, sizeof(ranges[0]), ranges_by_start);
	for (size_t i = 1; i < found; i++) {
		assert_in_range(ranges[i].depth, 0, 3);
		assert_true(ranges[i].depth != ranges[i - 1].depth ||
			    ranges[i - 1].start_ticks + ranges[i - 1].duration_ticks <=
				    ranges[i].start_ticks);
	}
	recorded_close(recording);
}

static void start_twice(void)
{
	kymo_region_start(&region); /* on the stack, and later the older one */
	start_inside(&region);
	kymo_region_stop(&region);
	shared_counts()[0] = kymo__lane->open->depth;
	kymo_region_stop(&region);
	shared_counts()[1] = kymo__lane->open->depth;
	shared_counts()[2] = (uint64_t)-kymo_region_stop(&region);
}

static void a_stop_ends_the_latest_start(void **state)
{
	(void)state;
	struct recording *recording = recorded(start_twice, NULL);

	assert_int_equal(shared_counts()[0], 1);
	assert_int_equal(shared_counts()[1], 0);
	assert_int_equal(shared_counts()[2], ENOENT);
	assert_int_equal(total_of(recording, stream_of(recording, "trace.zones"), "region")->count,
			 2);
	recorded_close(recording);
}

static void never_stop(void)
{
	for (int i = 0; i < 1000; i++)
		start_inside(&region);
	for (int i = 0; i < 64; i++)
		shared_counts()[0] += kymo_region_stop(&region) == 0;
	shared_counts()[1] = (uint64_t)-kymo_region_stop(&region);
	shared_counts()[2] = kymo__lane->open->depth;
}

static void regions_that_are_never_stopped_do_not_pile_up(void **state)
{
	(void)state;
	struct recording *recording = recorded(never_stop, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");

	assert_int_equal(shared_counts()[0], 64);
	assert_int_equal(shared_counts()[1], ENOENT);
	assert_int_equal(shared_counts()[2], 0);
	assert_int_equal(total_of(recording, zones, "wrapper")->count, 1000);
	recorded_close(recording);
}

static void deep(int left)
{
	KYMO_SCOPE("deep");
	if (left)
		deep(left - 1);
	else
		start_inside(&region);
}

static void start_deep(void)
{
	deep(99); /* 100 scopes end below it */
	shared_counts()[0] = kymo__lane->open->depth;
	kymo_region_stop(&region);
	deep(99);
	kymo_region_stop(&region);
}

static void a_region_outlasts_scopes_that_are_not_listed(void **state)
{
	(void)state;
	struct recording *recording = recorded(start_deep, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");

	assert_int_equal(shared_counts()[0], 0);
	assert_int_equal(total_of(recording, zones, "region")->count, 2);
	assert_int_equal(total_of(recording, zones, "deep")->count, 200);
	recorded_close(recording);
}

/* ---- ranges ---- */

static void *end_range(void *range)
{
	shared_counts()[0] = (uint64_t)-kymo_range_end(*(uint64_t *)range);
	shared_counts()[1] = (uint64_t)-kymo_range_end(*(uint64_t *)range);
	return NULL;
}

static void *begin_range(void *out)
{
	kymo_thread_name("beginner");
	*(uint64_t *)out = kymo_range_begin("range");
	kymo_range_text(*(uint64_t *)out, "text", 4);
	return NULL;
}

static void end_elsewhere(void)
{
	uint64_t range = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, begin_range, &range) || pthread_join(thread, NULL) ||
	    !range || pthread_create(&thread, NULL, end_range, &range) ||
	    pthread_join(thread, NULL))
		abort();
}

static void a_range_ends_on_any_thread_and_once(void **state)
{
	(void)state;
	struct recording *recording = recorded(end_elsewhere, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	struct kymo_zone_row row;

	assert_int_equal(shared_counts()[0], 0);
	assert_int_equal(shared_counts()[1], ENOENT);
	assert_int_equal(read_zones(zones, &row, 1), 1);
	assert_string_equal(name_of(recording, zones, row.name), "range");
	assert_string_equal(thread_name(recording, zones, row.thread), "beginner (ranges)");
	assert_int_equal(stream_of(recording, "trace.zone_text")->kept, 1);
	recorded_close(recording);
}

static void begin_many(void)
{
	static uint64_t ranges[5000];

	for (int i = 0; i < 5000; i++)
		ranges[i] = kymo_range_begin("range");
	shared_counts()[0] = ranges[4095] != 0;
	shared_counts()[1] = ranges[4096];
	for (int i = 0; i < 5000; i++)
		shared_counts()[2] += (uint64_t)-kymo_range_end(ranges[i]);
}

static void too_many_ranges_are_dropped_and_counted(void **state)
{
	(void)state;
	struct recording *recording = recorded(begin_many, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");

	assert_int_equal(shared_counts()[0], 1);
	assert_int_equal(shared_counts()[1], 0);
	assert_int_equal(shared_counts()[2], 0);
	assert_int_equal(zones->kept, 4096);
	assert_int_equal(zones->dropped[KYMO_DROP_FULL], 904);
	recorded_close(recording);
}

static void end_in_a_child(void)
{
	uint64_t range = kymo_range_begin("parent");
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		uint64_t own = kymo_range_begin("child");

		_exit(kymo_range_end(range) == -ENOENT && !kymo_range_end(own) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	shared_counts()[0] = (uint64_t)status;
	shared_counts()[1] = (uint64_t)-kymo_range_end(range);
}

static void a_forked_child_does_not_end_its_parents_ranges(void **state)
{
	(void)state;
	struct recording *recording = recorded(end_in_a_child, NULL);

	assert_int_equal(shared_counts()[0], 0);
	assert_int_equal(shared_counts()[1], 0);
	assert_null(open_of(recording, "parent"));
	recorded_close(recording);
}

/* ---- SIGKILL ---- */

static void die_with_open_ranges(void)
{
	uint64_t range = 0;
	pthread_t thread;

	kymo_thread_name("main");
	start_inside(&region);
	start_inside(&other);
	stop_inside(&other);
	if (pthread_create(&thread, NULL, begin_range, &range) || pthread_join(thread, NULL))
		abort();
	kymo_range_end(kymo_range_begin("ended"));
	{
		KYMO_SCOPE("scope");
		raise(SIGKILL);
	}
}

static void open_ranges_are_listed_after_sigkill(void **state)
{
	(void)state;
	pid_t pid = recorded_start(die_with_open_ranges, NULL);
	struct recording *recording;
	const struct store_open_zone *range;

	waitpid(pid, NULL, 0);
	recording = recorded_open();
	range = open_of(recording, "range");
	assert_non_null(range);
	assert_string_equal(recording->threads[range->thread].name, "beginner (ranges)");
	assert_non_null(open_of(recording, "region"));
	assert_non_null(open_of(recording, "scope"));
	assert_null(open_of(recording, "other"));
	assert_null(open_of(recording, "ended"));
	assert_null(open_of(recording, "wrapper"));
	assert_int_equal(total_of(recording, stream_of(recording, "trace.zones"), "other")->count,
			 1);
	recorded_close(recording);
}

static void *start_and_end(void *unused)
{
	(void)unused;
	start_inside(&region);
	return NULL;
}

static void end_a_thread_inside(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, start_and_end, NULL) || pthread_join(thread, NULL))
		abort();
}

static void a_region_ends_with_its_thread(void **state)
{
	(void)state;
	struct recording *recording = recorded(end_a_thread_inside, NULL);

	assert_null(open_of(recording, "region"));
	recorded_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_that_outlasts_a_scope_is_a_range),
		cmocka_unit_test(ranges_of_one_depth_never_overlap),
		cmocka_unit_test(a_stop_ends_the_latest_start),
		cmocka_unit_test(regions_that_are_never_stopped_do_not_pile_up),
		cmocka_unit_test(a_region_outlasts_scopes_that_are_not_listed),
		cmocka_unit_test(a_range_ends_on_any_thread_and_once),
		cmocka_unit_test(too_many_ranges_are_dropped_and_counted),
		cmocka_unit_test(a_forked_child_does_not_end_its_parents_ranges),
		cmocka_unit_test(open_ranges_are_listed_after_sigkill),
		cmocka_unit_test(a_region_ends_with_its_thread),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
