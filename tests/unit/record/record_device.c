/* <kymo/device.h> from an adapter's side: rows, times of another clock. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "record/device/device.h"
#include "recorded.h"

#define ROWS 4096

static struct schema_device_op_row rows[ROWS];

static uint64_t read_ops(const struct recording *recording, const struct store_stream **out)
{
	const struct store_stream *stream = stream_of(recording, "device.ops");
	uint64_t done = 0;

	for (size_t i = 0; i < stream->chunk_count && done < ROWS; i++)
		done += store_read_rows(stream, &stream->chunks[i], 0, stream->chunks[i].rows,
					rows + done);
	*out = stream;
	return done;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* ---- from many threads ---- */

#define THREADS 4
#define TURNS 400

static struct kymo_fake *fakes[2];

/* What adapters do at once: devices, queues and models come while operations are told and clocks
   are read. */
static void *do_all_of_it(void *number)
{
	uint64_t ticks, error_ns;
	char name[32];

	for (int turn = 0; turn < TURNS; turn++) {
		struct kymo_fake *fake = fakes[turn % 2];

		snprintf(name, sizeof(name), "net %d", turn % 50);
		kymo_fake_enqueue(fake, (uint32_t)(size_t)number, KYMO_DEVICE_KERNEL, "k",
				  kymo_device_model_add(name), 1, 1000);
		kymo_device_memory(kymo_fake_device(fake), "buffer", turn % 2 ? -64 : 64);
		if (turn % 20 == 0) {
			kymo_device_sync(kymo_fake_device(fake));
			kymo_device_queue_add(kymo_fake_device(fake), NULL, KYMO_DEVICE_NEXT_CORE);
			kymo_device_flush();
		}
		kymo_device_align(kymo_fake_device(fake), kymo_fake_now(fake), &ticks, &error_ns);
	}
	return NULL;
}

static void from_many_threads(void)
{
	pthread_t threads[THREADS];

	kymo_device_enable(NULL);
	for (int i = 0; i < 2; i++)
		fakes[i] = kymo_fake_open(&(struct kymo_fake_options){
			.bytes = sizeof(struct kymo_fake_options), .cores = THREADS });
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, do_all_of_it, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	shared_counts()[0] = kymo_device_model_add("net 49");
	shared_counts()[1] = kymo_device_model_add("one more");
}

static uint64_t rows_of(const struct recording *recording, const char *table)
{
	uint64_t rows_found = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, table))
			rows_found += recording->streams[i].emitted;
	return rows_found;
}

static void threads_tell_of_operations_while_queues_and_models_come(void **state)
{
	(void)state;
	struct recording *recording = recorded(from_many_threads, "KYMO_KEEP=all");

	assert_int_equal(rows_of(recording, "device.ops"), THREADS * TURNS);
	assert_int_equal(rows_of(recording, "device.memory"), THREADS * TURNS);
	assert_in_range(shared_counts()[0], 1, 50); /* a name is one model, whoever adds it */
	assert_int_equal(shared_counts()[1], 51);
	recorded_close(recording);
}

/* ---- operations that are modules ---- */

static void tell_of_modules(void)
{
	struct kymo_fake *fake;
	struct kymo_device_op op = { .bytes = sizeof(op),
				     .kind = KYMO_DEVICE_MODULE,
				     .queued = KYMO_DEVICE_NO_TIME,
				     .submit = KYMO_DEVICE_NO_TIME,
				     .error_ns = 77,
				     .flags = KYMO_DEVICE_HOST_TICKS | KYMO_DEVICE_DEPTH(3) };

	kymo_device_enable(NULL);
	fake = kymo_fake_open(NULL);
	op.queue = kymo_fake_queue(fake, 0);
	op.start = kymo_ticks();
	op.end = op.start + 1000;
	kymo_device_op(&op);
	op.bytes = offsetof(struct kymo_device_op, error_ns); /* as built before it was there */
	kymo_device_op(&op);
}

static void times_of_the_host_state_their_error_and_older_adapters_need_not(void **state)
{
	(void)state;
	struct recording *recording = recorded(tell_of_modules, NULL);
	const struct store_stream *stream;

	assert_int_equal(read_ops(recording, &stream), 2);
	assert_int_equal(rows[0].error_ns, 77);
	assert_int_equal(rows[1].error_ns, 0);
	assert_int_equal(rows[0].flags >> 16, 3);
	assert_int_equal(rows[0].end_ticks - rows[0].start_ticks, 1000);
	recorded_close(recording);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void two_kernels_and_a_copy(void)
{
	struct kymo_fake *fake;
	uint32_t model;

	kymo_device_enable(NULL);
	fake = kymo_fake_open(&(struct kymo_fake_options){
		.bytes = sizeof(struct kymo_fake_options), .name = "card", .cores = 2 });
	model = kymo_device_model_add("net");
	KYMO_SCOPE("train");
	kymo_fake_execute(fake, 0, model, 2, 1000000);
	kymo_fake_enqueue(fake, 1, KYMO_DEVICE_COPY, "copy weights", 0, 4096, 500000);
}

/* One moment of the device; its clock may have been read again between the two. */
static bool is_one_moment(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) < 100000;
}

static void operations_carry_queue_model_zone_and_times(void **state)
{
	(void)state;
	struct recording *recording = recorded(two_kernels_and_a_copy, NULL);
	const struct store_stream *stream;
	double ms;

	assert_int_equal(read_ops(recording, &stream), 4);
	assert_string_equal(name_of(recording, stream, rows[0].device), "card");
	assert_string_equal(name_of(recording, stream, rows[0].queue), "queue 0");
	assert_string_equal(name_of(recording, stream, rows[0].model), "net");
	assert_string_equal(name_of(recording, stream, rows[0].name), "kernel");
	assert_string_equal(name_of(recording, stream, rows[0].zone), "train");
	assert_int_equal(rows[0].kind, KYMO_DEVICE_KERNEL);
	assert_true(is_one_moment(rows[1].start_ticks, rows[0].end_ticks));
	assert_int_equal(rows[2].kind, KYMO_DEVICE_EXECUTION);
	assert_true(is_one_moment(rows[2].start_ticks, rows[0].start_ticks));
	assert_true(is_one_moment(rows[2].end_ticks, rows[1].end_ticks));
	assert_string_equal(name_of(recording, stream, rows[3].name), "copy weights");
	assert_int_equal(rows[3].bytes, 4096);
	assert_int_equal(rows[3].core, 1);
	ms = (double)(rows[3].end_ticks - rows[3].start_ticks) /
	     (double)(rows[2].end_ticks - rows[2].start_ticks);
	assert_true(ms > 0.249 && ms < 0.251);
	recorded_close(recording);
}

static void record_while_off(void)
{
	struct kymo_fake *fake = kymo_fake_open(NULL);

	kymo_fake_enqueue(fake, 0, KYMO_DEVICE_KERNEL, "unseen", 0, 0, 1000);
	kymo_device_enable(NULL);
	kymo_fake_enqueue(fake, 0, KYMO_DEVICE_KERNEL, "seen", 0, 0, 1000);
	kymo_device_disable();
	kymo_fake_enqueue(fake, 0, KYMO_DEVICE_KERNEL, "unseen", 0, 0, 1000);
}

static void nothing_is_recorded_while_devices_are_off(void **state)
{
	(void)state;
	struct recording *recording = recorded(record_while_off, NULL);
	const struct store_stream *stream;

	assert_int_equal(read_ops(recording, &stream), 1);
	assert_string_equal(name_of(recording, stream, rows[0].name), "seen");
	recorded_close(recording);
}

static void bad_calls(void)
{
	struct kymo_device_op op = { .bytes = sizeof(op), .queue = 4711 };
	uint64_t *counts = shared_counts();
	uint64_t ticks, error_ns;

	kymo_device_enable(NULL);
	counts[0] += kymo_device_op(NULL) == -EINVAL;
	counts[0] += kymo_device_op(&op) == -EINVAL;
	op.bytes = 8;
	counts[0] += kymo_device_op(&op) == -EINVAL;
	counts[0] += kymo_device_add(NULL, 0, "x") == 0;
	counts[0] += kymo_device_queue_add(0, NULL, 0) == 0;
	counts[0] += kymo_device_queue_add(UINT32_MAX, NULL, 0) == 0;
	counts[0] += kymo_device_model_add(NULL) == 0;
	counts[0] += kymo_device_memory(7, "buffer", 1) == -EINVAL;
	counts[0] += kymo_device_align(7, 0, &ticks, &error_ns) == -EINVAL;
	counts[0] += kymo_device_sync(0) == -EINVAL;
	kymo_device_launch(NULL);
	counts[0] += !strcmp(kymo_device_model_name(0), "");
	counts[0] += kymo_device_queue_core(0) == UINT32_MAX;
	counts[0] += !strcmp(kymo_device_queue_name(0), "");
	counts[0] += !strcmp(kymo_device_queue_device(7), "");
	kymo_fake_wait(NULL, 0);
	counts[0] += kymo_fake_execute(NULL, 0, 0, 1, 1) == 0;
}

static void bad_arguments_are_refused(void **state)
{
	(void)state;
	struct recording *recording = recorded(bad_calls, NULL);

	assert_int_equal(shared_counts()[0], 15);
	recorded_close(recording);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

/* A clock 5 s ahead that gains 200 ppm: what it says of now has to be now, within the stated
   error. */
static void follow_a_clock_that_drifts(void)
{
	struct kymo_fake_options options = { .bytes = sizeof(options),
					     .offset_ns = 5000000000,
					     .drift_ppm = 200 };
	struct kymo_fake *fake;
	uint64_t *counts = shared_counts();

	kymo_device_enable(NULL);
	fake = kymo_fake_open(&options);
	for (int i = 0; i < 40; i++) {
		uint64_t before, after, device_ns, ticks = 0, error_ns = 0, slack;

		sleep_ms(10);
		kymo_fake_enqueue(fake, 0, KYMO_DEVICE_KERNEL, NULL, 0, 0, 1);
		before = kymo_ticks();
		device_ns = kymo_fake_now(fake);
		after = kymo_ticks();
		kymo_device_align(kymo_fake_device(fake), device_ns, &ticks, &error_ns);
		slack = (error_ns + 100) * kymo__process.ticks_per_ms / 1000000;
		counts[0] += ticks + slack < before || ticks > after + slack;
		counts[1] = error_ns > counts[1] ? error_ns : counts[1];
	}
}

static void times_of_a_drifting_clock_are_within_the_stated_error(void **state)
{
	(void)state;
	struct recording *recording = recorded(follow_a_clock_that_drifts, NULL);
	const struct store_stream *stream = stream_of(recording, "device.clocks");
	struct schema_device_clock_row clock[64];
	uint64_t count, widest_ns = 0;
	double off_ppm;

	assert_int_equal(shared_counts()[0], 0);
	assert_true(shared_counts()[1] > 0);
	count = store_read_rows(stream, &stream->chunks[0], 0,
				stream->chunks[0].rows < 64 ? stream->chunks[0].rows : 64, clock);
	assert_true(count >= 4);
	/* The rate is by at least 100 ms, and both ends of that have an error. */
	for (uint64_t i = 0; i < count; i++)
		widest_ns = clock[i].error_ns > widest_ns ? clock[i].error_ns : widest_ns;
	off_ppm = clock[count - 1].drift_ppm - 200;
	assert_true(fabs(off_ppm) < 5 + 2.0 * widest_ns / 0.1e9 * 1e6);
	recorded_close(recording);
}

static int64_t set_back_ns;
static int stepping_clock(void *context, uint32_t local, uint64_t *out_ns)
{
	struct timespec now;

	(void)context;
	(void)local;
	clock_gettime(CLOCK_MONOTONIC, &now);
	*out_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 10000000000u -
		  (uint64_t)set_back_ns;
	return 0;
}

static void set_the_clock_back(void)
{
	static const struct kymo_device_adapter adapter = { sizeof(adapter), "set", NULL,
							    stepping_clock, NULL };
	uint64_t *counts = shared_counts(), device_ns, ticks = 0, error_ns = 0, before;
	uint32_t device;

	kymo_device_enable(NULL);
	device = kymo_device_add(&adapter, 0, "set");
	sleep_ms(5);
	kymo_device_sync(device);
	set_back_ns = 2000000000;
	kymo_device_sync(device);
	before = kymo_ticks();
	stepping_clock(NULL, 0, &device_ns);
	counts[0] = kymo_device_align(device, device_ns, &ticks, &error_ns) == 0;
	/* A whole millisecond: the machine may be busy, and a rate of one reading is unsure. */
	counts[1] = ticks + kymo__process.ticks_per_ms > before;
	counts[2] = ticks < kymo_ticks() + kymo__process.ticks_per_ms;
}

static void a_clock_that_is_set_back_begins_anew(void **state)
{
	(void)state;
	struct recording *recording = recorded(set_the_clock_back, NULL);

	assert_int_equal(shared_counts()[0], 1);
	assert_int_equal(shared_counts()[1], 1);
	assert_int_equal(shared_counts()[2], 1);
	recorded_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_carry_queue_model_zone_and_times),
		cmocka_unit_test(nothing_is_recorded_while_devices_are_off),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(times_of_the_host_state_their_error_and_older_adapters_need_not),
		cmocka_unit_test(threads_tell_of_operations_while_queues_and_models_come),
		cmocka_unit_test(times_of_a_drifting_clock_are_within_the_stated_error),
		cmocka_unit_test(a_clock_that_is_set_back_begins_anew),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
