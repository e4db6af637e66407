/*
 * Determines the clock of a device's times. OpenCL 2.1 reports it. Otherwise (PoCL 3 on a CPU) the
 * times are often those of a host clock, which is found by elimination: an operation is queued
 * within the call that enqueues it, and only one clock agrees. If none does, these calls themselves
 * relate the two clocks.
 */
#include <time.h>

#include <kymo/atomic.h>

#include "record/opencl/layer.h"

#define TOLERANCE_NS 20000.0 /* in addition to the call's own span */
#define MISSES_MOST 8u
#define PAIR_NS 10000000.0 /* CLOCK_BRACKET: interval between pairs */

static const int clocks[HOST_CLOCKS] = { CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC, CLOCK_REALTIME,
					 CLOCK_BOOTTIME };

static uint64_t clock_read_clock(int id)
{
	struct timespec now;

	clock_gettime((clockid_t)id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int clock_now(void *context, uint32_t local, uint64_t *out_ns)
{
	const struct layer_device *device = device_at(local);
	cl_ulong host_ns;

	(void)context;
	switch (kymo__load_acquire(&device->mode)) {
	case CLOCK_TIMER: {
		cl_ulong device_ns = 0;
		int rc = next.clGetDeviceAndHostTimer(device->handle, &device_ns, &host_ns);

		*out_ns = device_ns;
		return rc;
	}
	case CLOCK_HOST:
		*out_ns = clock_read_clock(kymo__load_relaxed(&device->clock_id));
		return 0;
	default: return -1;
	}
}

/* The narrowest of a few readings of each clock. */
void clock_begin(struct layer_device *device)
{
	for (int i = 0; i < HOST_CLOCKS; i++) {
		uint64_t best = UINT64_MAX;

		for (int tries = 0; tries < 3; tries++) {
			uint64_t before = kymo_ticks(), ns = clock_read_clock(clocks[i]);
			uint64_t width = kymo_ticks() - before;

			if (width >= best)
				continue;
			best = width;
			device->begun[i] = (struct clock_reading){ before + width / 2, ns,
								   kymo_ticks_ns(width) / 2 + 1 };
		}
	}
}

/* How far a time lies outside the span of a host clock between two moments; 0: within. */
static double outside(int id, uint64_t queued_ns, uint64_t before_ticks, uint64_t after_ticks)
{
	uint64_t now_ticks = kymo_ticks(), now_ns = clock_read_clock(id);
	double before_ns = (double)kymo_ticks_ns(now_ticks - before_ticks);
	double after_ns = (double)kymo_ticks_ns(now_ticks - after_ticks);
	double age_ns = (double)(int64_t)(now_ns - queued_ns);

	if (age_ns > before_ns)
		return age_ns - before_ns;
	return age_ns < after_ns ? after_ns - age_ns : 0;
}

static void decide(struct layer_device *device, uint64_t queued_ns, uint64_t before_ticks,
		   uint64_t after_ticks)
{
	double best = TOLERANCE_NS;
	int found = -1;

	for (int i = 0; i < HOST_CLOCKS; i++) {
		double off = outside(clocks[i], queued_ns, before_ticks, after_ticks);

		if (off < best) {
			best = off;
			found = i;
		}
	}
	if (found >= 0) {
		/* Operations of two queues may decide at the same time. */
		kymo__store_relaxed(&device->clock_id, clocks[found]);
		/* So that the first operations lie between two readings. */
		kymo_device_sync_pair(device->id, device->begun[found].ns,
				      device->begun[found].ticks, device->begun[found].error_ns);
	}
	kymo__store_release(&device->mode, found >= 0 ? CLOCK_HOST : CLOCK_BRACKET);
}

static void give_pair(struct layer_device *device, uint64_t queued_ns, uint64_t before_ticks,
		      uint64_t after_ticks)
{
	uint64_t last = kymo__load_relaxed(&device->paired_ticks);

	if (last && (double)kymo_ticks_ns(before_ticks - last) < PAIR_NS)
		return;
	kymo__store_relaxed(&device->paired_ticks, before_ticks);
	kymo_device_sync_pair(device->id, queued_ns,
			      before_ticks + (after_ticks - before_ticks) / 2,
			      kymo_ticks_ns(after_ticks - before_ticks) / 2 + 1);
}

/* One of 64 is checked; several consecutive misses mean that the clock was misidentified. */
static void clock_check(struct layer_device *device, uint64_t queued_ns, uint64_t before_ticks,
			uint64_t after_ticks)
{
	static uint32_t turn;
	uint64_t ticks, error_ns;
	double off;

	if (kymo__load_relaxed(&device->misses) == 0 && kymo__fetch_add_relaxed(&turn, 1) % 64)
		return;
	if (kymo_device_align(device->id, queued_ns, &ticks, &error_ns))
		return;
	off = ticks < before_ticks  ? (double)kymo_ticks_ns(before_ticks - ticks)
	      : ticks > after_ticks ? (double)kymo_ticks_ns(ticks - after_ticks)
				    : 0;
	if (off <= (double)error_ns + TOLERANCE_NS)
		kymo__store_relaxed(&device->misses, 0);
	else if (kymo__add_fetch_relaxed(&device->misses, 1) >= MISSES_MOST)
		kymo__store_release(&device->mode, CLOCK_BRACKET);
}

void clock_settle(struct layer_device *device, uint64_t queued_ns, uint64_t before_ticks,
		  uint64_t after_ticks)
{
	switch (kymo__load_acquire(&device->mode)) {
	case CLOCK_UNDECIDED: decide(device, queued_ns, before_ticks, after_ticks); break;
	case CLOCK_HOST: clock_check(device, queued_ns, before_ticks, after_ticks); break;
	default: break;
	}
	if (kymo__load_acquire(&device->mode) == CLOCK_BRACKET)
		give_pair(device, queued_ns, before_ticks, after_ticks);
}
