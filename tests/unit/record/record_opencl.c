/*
 * The layer for OpenCL over a runtime that is not there: its events are on the heap, and a thread
 * of it finishes operations when it likes. So what the layer holds on to, lets go of and tells is
 * counted, and the sanitizers see all of it.
 */
#include "recorded.h"

#if __has_include(<CL/cl_layer.h>)
#include <pthread.h>

#include <kymo/atomic.h>

#include "record/device/device.h"
#include "record/opencl/layer.h"

#define THREADS 4
#define TURNS 1000
#define QUEUES 2
/* Queues that each thread holds at once: together more than are made before released ones are
   looked for. */
#define HELD 128

cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *out_entries,
			       const cl_icd_dispatch **out_table);

/* ---- the runtime ---- */

struct _cl_event {
	struct _cl_event *after;
	cl_command_queue queue;
	uint64_t ns[4]; /* queued, submit, start, end */
	int refs; /* all of it under the lock */
	cl_int status;
	void(CL_CALLBACK *told)(cl_event, cl_int, void *);
	void *data;
};

struct _cl_command_queue {
	cl_command_queue_properties properties;
	int refs;
	int waiting;
	struct _cl_event *first, *last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct _cl_command_queue *working[THREADS * HELD];
static int made_queues;
static bool ends;
static uint64_t live_events, made_events;
static const cl_icd_dispatch *layer;
static bool waits_meanwhile; /* another thread, just before a callback is set */
static uint64_t callbacks; /* set meanwhile */
static uint64_t late_callbacks; /* of these, on an event that nobody held any more */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Under the lock, as what follows. */
static void unref(cl_event event)
{
	if (--event->refs)
		return;
	live_events--;
	free(event);
}

static cl_event event_of(cl_command_queue queue)
{
	cl_event event = calloc(1, sizeof(*event));

	event->queue = queue;
	event->refs = 1;
	event->status = CL_QUEUED;
	event->ns[0] = event->ns[1] = now_ns();
	*(queue->first ? &queue->last->after : &queue->first) = event;
	queue->last = event;
	queue->waiting++;
	made_events++;
	live_events++;
	return event;
}

/* The callback is called without the lock, as a runtime does. */
static void finish_one(cl_command_queue queue)
{
	cl_event event = queue->first;

	queue->first = event->after;
	event->ns[2] = now_ns();
	event->ns[3] = now_ns();
	event->status = CL_COMPLETE;
	if (event->told) {
		pthread_mutex_unlock(&lock);
		event->told(event, CL_COMPLETE, event->data);
		pthread_mutex_lock(&lock);
	}
	queue->waiting--;
	unref(event);
	pthread_cond_broadcast(&changed);
}

static void *work(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	while (!ends) {
		bool any = false;

		for (int i = 0; i < made_queues; i++)
			if (working[i] && working[i]->first) {
				finish_one(working[i]);
				any = true;
			}
		if (!any)
			pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
						 cl_command_queue_properties properties, cl_int *rc)
{
	cl_command_queue queue = calloc(1, sizeof(*queue));

	(void)context;
	(void)device;
	queue->properties = properties;
	queue->refs = 1;
	pthread_mutex_lock(&lock);
	working[made_queues++] = queue;
	pthread_mutex_unlock(&lock);
	*rc = CL_SUCCESS;
	return queue;
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue)
{
	(void)queue; /* they stay until the end: the worker looks at them */
	return CL_SUCCESS;
}

static cl_int CL_API_CALL ndrange(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
				  const size_t *offset, const size_t *global, const size_t *local,
				  cl_uint count, const cl_event *list, cl_event *event)
{
	cl_event made;

	(void)kernel, (void)dimensions, (void)offset, (void)local, (void)count, (void)list;
	if (!global)
		return CL_INVALID_GLOBAL_WORK_SIZE;
	pthread_mutex_lock(&lock);
	made = event_of(queue);
	if (event) {
		made->refs++;
		*event = made;
	}
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL finish(cl_command_queue queue)
{
	pthread_mutex_lock(&lock);
	while (queue->waiting)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL retain_event(cl_event event)
{
	pthread_mutex_lock(&lock);
	event->refs++;
	pthread_mutex_unlock(&lock);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL release_event(cl_event event)
{
	pthread_mutex_lock(&lock);
	unref(event);
	pthread_mutex_unlock(&lock);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t bytes, void *out,
				     size_t *out_bytes)
{
	(void)bytes, (void)out_bytes;
	if (what != CL_EVENT_COMMAND_EXECUTION_STATUS)
		return CL_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*(cl_int *)out = event->status;
	pthread_mutex_unlock(&lock);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL event_times(cl_event event, cl_profiling_info what, size_t bytes,
				      void *out, size_t *out_bytes)
{
	(void)bytes, (void)out_bytes;
	pthread_mutex_lock(&lock);
	*(cl_ulong *)out = event->ns[what - CL_PROFILING_COMMAND_QUEUED];
	pthread_mutex_unlock(&lock);
	return CL_SUCCESS;
}

/* Of a program with one thread and one operation, so that an event that is live is this one. */
static bool event_outlives_a_wait(cl_command_queue queue)
{
	bool lives;

	layer->clFinish(queue);
	pthread_mutex_lock(&lock);
	lives = live_events;
	pthread_mutex_unlock(&lock);
	callbacks++;
	late_callbacks += !lives;
	return lives;
}

static cl_int CL_API_CALL set_callback(cl_event event, cl_int when,
				       void(CL_CALLBACK *told)(cl_event, cl_int, void *),
				       void *data)
{
	bool late;

	(void)when;
	if (waits_meanwhile && !event_outlives_a_wait(event->queue))
		return CL_INVALID_EVENT;
	pthread_mutex_lock(&lock);
	late = event->status == CL_COMPLETE;
	event->told = told;
	event->data = data;
	pthread_mutex_unlock(&lock);
	if (late)
		told(event, CL_COMPLETE, data);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t bytes,
				      void *out, size_t *out_bytes)
{
	(void)device, (void)what, (void)out_bytes;
	snprintf(out, bytes, "not there");
	return CL_SUCCESS;
}

static cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info what, size_t bytes,
				      void *out, size_t *out_bytes)
{
	(void)kernel, (void)out_bytes;
	if (what != CL_KERNEL_FUNCTION_NAME)
		return CL_INVALID_VALUE;
	snprintf(out, bytes, "twice");
	return CL_SUCCESS;
}

static cl_int CL_API_CALL program_info(cl_program of, cl_program_info what, size_t bytes, void *out,
				       size_t *out_bytes)
{
	(void)of, (void)what, (void)bytes, (void)out, (void)out_bytes;
	return CL_INVALID_PROGRAM;
}

/* ---- programs ---- */

static cl_command_queue shared[QUEUES];
static uint64_t enqueued, waits; /* atomic */
static pthread_t worker;

static void begin(void)
{
	static const cl_icd_dispatch runtime = {
		.clCreateCommandQueue = create_queue,
		.clReleaseCommandQueue = release_queue,
		.clEnqueueNDRangeKernel = ndrange,
		.clFinish = finish,
		.clRetainEvent = retain_event,
		.clReleaseEvent = release_event,
		.clGetEventInfo = event_info,
		.clGetEventProfilingInfo = event_times,
		.clSetEventCallback = set_callback,
		.clGetDeviceInfo = device_info,
		.clGetKernelInfo = kernel_info,
		.clGetProgramInfo = program_info,
	};
	cl_uint entries;

	kymo_device_enable(NULL);
	clInitLayer(sizeof(runtime) / sizeof(void *), &runtime, &entries, &layer);
	pthread_create(&worker, NULL, work, NULL);
}

static cl_command_queue queue_with(cl_command_queue_properties properties)
{
	cl_int rc;

	return layer->clCreateCommandQueue(NULL, (cl_device_id)&layer, properties, &rc);
}

/* Some with an event of the program's, which lets go of it at once; some that fail. */
static void enqueue(cl_command_queue queue, int turn)
{
	const size_t items = 16;
	cl_event event;

	layer->clEnqueueNDRangeKernel(queue, (cl_kernel)&layer, 1, NULL, &items, NULL, 0, NULL,
				      turn % 3 ? NULL : &event);
	if (turn % 3 == 0)
		layer->clReleaseEvent(event);
	if (turn % 7 == 0)
		layer->clEnqueueNDRangeKernel(queue, (cl_kernel)&layer, 1, NULL, NULL, NULL, 0,
					      NULL, NULL);
	kymo__fetch_add_relaxed(&enqueued, 1);
}

static void finish_queue(cl_command_queue queue)
{
	layer->clFinish(queue);
	kymo__fetch_add_relaxed(&waits, 1);
}

static void *use(void *number)
{
	cl_command_queue own = queue_with(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);

	for (int turn = 0; turn < TURNS; turn++) {
		enqueue(turn % 4 ? shared[turn % QUEUES] : own, turn);
		if (turn % 200 == 199)
			finish_queue(turn % 400 == 199 ? own : shared[(size_t)number % QUEUES]);
	}
	finish_queue(own);
	layer->clReleaseCommandQueue(own);
	return NULL;
}

static void end(void)
{
	pthread_mutex_lock(&lock);
	ends = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(worker, NULL);
	kymo_device_flush();
	for (int i = 0; i < made_queues; i++)
		free(working[i]);
}

static void in_all_threads(void *(*function)(void *number))
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, function, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void use_from_all_threads(void)
{
	begin();
	for (int i = 0; i < QUEUES; i++)
		shared[i] = queue_with(i ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
	in_all_threads(use);
	for (int i = 0; i < QUEUES; i++)
		finish_queue(shared[i]);
	end();
	shared_counts()[0] = enqueued;
	shared_counts()[1] = waits;
	shared_counts()[2] = made_events;
	shared_counts()[3] = live_events;
}

static void every_operation_is_told_and_no_event_is_kept(void **state)
{
	(void)state;
	struct recording *recording = recorded(use_from_all_threads, "KYMO_KEEP=all");
	uint64_t rows = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, "device.ops"))
			rows += recording->streams[i].emitted;
	assert_int_equal(shared_counts()[0], THREADS * TURNS);
	assert_int_equal(shared_counts()[2], THREADS * TURNS);
	assert_int_equal(shared_counts()[3], 0);
	assert_int_equal(rows, THREADS * TURNS + shared_counts()[1]);
	recorded_close(recording);
}

static void wait_while_callbacks_are_set(void)
{
	begin();
	waits_meanwhile = true;
	for (int i = 0; i < 10; i++) {
		cl_command_queue queue = queue_with(0); /* nobody has looked at it yet */

		enqueue(queue, 1);
		layer->clReleaseCommandQueue(queue);
	}
	end();
	shared_counts()[0] = callbacks;
	shared_counts()[1] = late_callbacks;
	shared_counts()[2] = live_events;
}

static void an_event_is_held_until_its_callback_is_set(void **state)
{
	(void)state;
	struct recording *recording = recorded(wait_while_callbacks_are_set, "KYMO_KEEP=all");

	assert_int_equal(shared_counts()[0], 10);
	assert_int_equal(shared_counts()[1], 0);
	assert_int_equal(shared_counts()[2], 0);
	recorded_close(recording);
}

static pthread_barrier_t all_are_here;

static void *hold_queues(void *number)
{
	static uint32_t holders[KYMO_DEVICE_QUEUES_MAX]; /* atomic */
	cl_command_queue held[HELD];

	(void)number;
	pthread_barrier_wait(&all_are_here);
	for (int i = 0; i < HELD; i++) {
		struct layer_queue *queue;

		held[i] = queue_with(0);
		queue = queue_of(held[i]);
		kymo__fetch_add_relaxed(&shared_counts()[0], queue != NULL);
		if (queue && kymo__fetch_add_relaxed(&holders[queue - queue_at(0)], 1))
			kymo__fetch_add_relaxed(&shared_counts()[1], 1);
	}
	pthread_barrier_wait(&all_are_here);
	for (int i = 0; i < HELD; i++)
		layer->clReleaseCommandQueue(held[i]);
	return NULL;
}

static void hold_queues_in_all_threads(void)
{
	begin();
	pthread_barrier_init(&all_are_here, NULL, THREADS);
	in_all_threads(hold_queues);
	end();
}

static void queues_that_are_held_at_once_are_never_the_same(void **state)
{
	(void)state;
	struct recording *recording = recorded(hold_queues_in_all_threads, "KYMO_KEEP=all");

	assert_int_equal(shared_counts()[0], THREADS * HELD);
	assert_int_equal(shared_counts()[1], 0);
	recorded_close(recording);
}

/* ---- maps ---- */

static void *put_and_take(void *first)
{
	uint64_t wrong = 0;

	for (int turn = 0; turn < 200; turn++) {
		for (uintptr_t i = 1; i <= 32; i++)
			map_put(&svm_map, (char *)first + i * 64, (uint64_t)i);
		for (uintptr_t i = 1; i <= 32; i++)
			wrong += map_get(&svm_map, (char *)first + i * 64) != i;
		for (uintptr_t i = 1; i <= 32; i++)
			wrong += map_take(&svm_map, (char *)first + i * 64) != i;
		wrong += map_get(&svm_map, (char *)first + 64) != 0;
	}
	return (void *)(uintptr_t)wrong;
}

static void keys_of_several_threads_do_not_disturb_each_other(void **state)
{
	(void)state;
	static char places[THREADS][65 * 64];
	pthread_t threads[THREADS];
	void *wrong;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, put_and_take, places[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_several_threads_do_not_disturb_each_other),
		cmocka_unit_test(every_operation_is_told_and_no_event_is_kept),
		cmocka_unit_test(an_event_is_held_until_its_callback_is_set),
		cmocka_unit_test(queues_that_are_held_at_once_are_never_the_same),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}

#else

static void the_layer_was_not_built(void **state)
{
	(void)state;
	puts("no CL/cl_layer.h (opencl-headers): without the layer for OpenCL");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_layer_was_not_built) };

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}

#endif
