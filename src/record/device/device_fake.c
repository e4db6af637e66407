/* A simulated device. An example of an adapter: a clock, queues, reported operations. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <kymo/atomic.h>

#include "base/clock.h"
#include "record/device/device.h"

#define FAKES_MAX 16
#define CORES_MAX 64

struct kymo_fake {
	struct kymo_device_adapter adapter;
	struct kymo_fake_options options;
	uint64_t began_ns; /* of CLOCK_MONOTONIC */
	uint32_t device;
	uint32_t queues[CORES_MAX];
	uint64_t free_ns[CORES_MAX]; /* when the core is free, by its clock; atomic */
	uint64_t executions; /* atomic */
};

static struct kymo_fake fakes[FAKES_MAX];
static uint32_t fakes_made; /* atomic */

uint64_t kymo_fake_now(const struct kymo_fake *fake)
{
	uint64_t passed;

	if (!fake)
		return 0;
	passed = clock_monotonic_ns() - fake->began_ns;
	return fake->began_ns + (uint64_t)fake->options.offset_ns + passed +
	       (uint64_t)(int64_t)((double)passed * fake->options.drift_ppm / 1e6);
}

static int device_fake_read_clock(void *context, uint32_t local, uint64_t *out_ns)
{
	(void)local;
	*out_ns = kymo_fake_now(context);
	return 0;
}

struct kymo_fake *kymo_fake_open(const struct kymo_fake_options *options)
{
	uint32_t index = kymo__fetch_add_relaxed(&fakes_made, 1);
	struct kymo_fake *fake = &fakes[index < FAKES_MAX ? index : 0];

	if (index >= FAKES_MAX)
		return NULL;
	if (options && options->bytes >= sizeof(*options))
		fake->options = *options;
	if (!fake->options.cores)
		fake->options.cores = 1;
	if (fake->options.cores > CORES_MAX)
		fake->options.cores = CORES_MAX;
	fake->began_ns = clock_monotonic_ns();
	fake->adapter = (struct kymo_device_adapter){ .bytes = sizeof(fake->adapter),
						      .name = "fake",
						      .context = fake,
						      .now = device_fake_read_clock };
	fake->device = kymo_device_add(&fake->adapter, index,
				       fake->options.name ? fake->options.name : "fake");
	for (uint32_t i = 0; i < fake->options.cores; i++)
		fake->queues[i] = kymo_device_queue_add(fake->device, NULL, KYMO_DEVICE_NEXT_CORE);
	return fake;
}

uint32_t kymo_fake_device(const struct kymo_fake *fake)
{
	return fake ? fake->device : 0;
}

uint32_t kymo_fake_queue(const struct kymo_fake *fake, uint32_t core)
{
	return fake && core < fake->options.cores ? fake->queues[core] : 0;
}

/* Reserves the core for that long, from when it is free or from now on. Returns the start. */
static uint64_t take_core(struct kymo_fake *fake, uint32_t core, uint64_t from_ns, uint64_t long_ns)
{
	uint64_t free_ns = kymo__load_relaxed(&fake->free_ns[core]), start_ns;

	do
		start_ns = free_ns > from_ns ? free_ns : from_ns;
	while (!kymo__cas_weak_relaxed(&fake->free_ns[core], &free_ns, start_ns + long_ns));
	return start_ns;
}

static struct kymo_device_op new_op(struct kymo_fake *fake, uint32_t core, uint32_t model)
{
	struct kymo_device_op op = { .bytes = sizeof(op),
				     .queue = fake->queues[core],
				     .model = model };

	op.queued = kymo_fake_now(fake);
	op.submit = op.queued;
	kymo_device_launch(&op.launch);
	return op;
}

uint64_t kymo_fake_enqueue(struct kymo_fake *fake, uint32_t core, enum kymo_device_kind kind,
			   const char *name, uint32_t model, uint64_t moved_bytes,
			   uint64_t duration_ns)
{
	struct kymo_device_op op;

	if (!fake || core >= fake->options.cores)
		return 0;
	op = new_op(fake, core, model);
	op.kind = kind;
	op.name = name ? kymo_name(name) : 0;
	op.moved_bytes = moved_bytes;
	op.start = take_core(fake, core, op.submit + fake->options.launch_ns, duration_ns);
	op.end = op.start + duration_ns;
	kymo_device_op(&op);
	return op.end;
}

uint64_t kymo_fake_execute(struct kymo_fake *fake, uint32_t core, uint32_t model, uint32_t kernels,
			   uint64_t kernel_ns)
{
	struct kymo_device_op op;
	uint64_t begin;

	if (!fake || core >= fake->options.cores)
		return 0;
	op = new_op(fake, core, model);
	op.kind = KYMO_DEVICE_KERNEL;
	op.execution = kymo__add_fetch_relaxed(&fake->executions, 1);
	begin = take_core(fake, core, op.submit + fake->options.launch_ns, kernels * kernel_ns);
	for (uint32_t i = 0; i < kernels; i++) {
		op.start = begin + i * kernel_ns;
		op.end = op.start + kernel_ns;
		kymo_device_op(&op);
	}
	op.kind = KYMO_DEVICE_EXECUTION;
	op.start = begin;
	op.end = begin + kernels * kernel_ns;
	kymo_device_op(&op);
	return op.end;
}

void kymo_fake_wait(struct kymo_fake *fake, uint32_t core)
{
	struct kymo_device_op op;
	int64_t left;

	if (!fake || core >= fake->options.cores)
		return;
	op = new_op(fake, core, 0);
	op.kind = KYMO_DEVICE_WAIT;
	op.flags = KYMO_DEVICE_HOST_TICKS;
	op.queued = op.submit = KYMO_DEVICE_NO_TIME;
	op.start = kymo_ticks();
	left = (int64_t)(kymo__load_relaxed(&fake->free_ns[core]) - kymo_fake_now(fake));
	if (left > 0)
		nanosleep(&(struct timespec){ left / 1000000000, left % 1000000000 }, NULL);
	op.end = kymo_ticks();
	kymo_device_op(&op);
}
