/*
 * CUPTI's time. Where CUPTI can ask for the time (11.8 can), it gets kymo's ticks as ns, and
 * its times convert back without loss. They are those of CLOCK_REALTIME when kymo begins, which is
 * CUPTI's own clock: while another user has the buffers, that user gets its exact time.
 * CUPTI converts the GPU's times itself and states no error. The error here is 1 µs, or the largest
 * that was seen: a kernel that began before its launch.
 */
#include <time.h>

#include <kymo/atomic.h>

#include "record/cupti/cupti.h"

#define ERROR_NS 1000u /* at least */

static bool clock_is_ours;
static uint64_t first_ticks, first_ns;
static uint64_t ns_per_tick; /* 32.32 */
static uint64_t error_ns = ERROR_NS; /* atomic */
static uint64_t early; /* operations that began before their launch; atomic */

static uint64_t cupti_realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* For CUPTI. */
static uint64_t clock_tell(void)
{
	if (kymo__load_relaxed(&cupti_state) == CUPTI_YIELDED)
		return cupti_realtime_ns();
	return first_ns +
	       (uint64_t)((unsigned __int128)(kymo_ticks() - first_ticks) * ns_per_tick >> 32);
}

void cupti_clock_begin(void)
{
	if (!first_ticks) {
		ns_per_tick = kymo_ticks_ns(UINT64_C(1) << 32);
		first_ticks = kymo_ticks();
		first_ns = cupti_realtime_ns();
	}
	clock_is_ours = !cupti_several && ns_per_tick &&
			cupti_api.cuptiActivityRegisterTimestampCallback &&
			!cupti_api.cuptiActivityRegisterTimestampCallback(clock_tell);
}

int cupti_clock_now(void *context, uint32_t local, uint64_t *out_ns)
{
	(void)context, (void)local;
	return cupti_api.cuptiGetTimestamp(out_ns);
}

uint64_t cupti_clock_ticks(uint64_t ns)
{
	uint64_t since = ns - first_ns;

	if (!clock_is_ours || !ns)
		return 0;
	if ((int64_t)since < 0) /* before kymo began: rounding of CUPTI */
		return first_ticks -
		       (uint64_t)(((unsigned __int128)(0 - since) << 32) / ns_per_tick);
	return first_ticks + (uint64_t)(((unsigned __int128)since << 32) / ns_per_tick);
}

static uint64_t clock_time(uint64_t ns)
{
	if (!ns)
		return KYMO_DEVICE_NO_TIME;
	return clock_is_ours ? cupti_clock_ticks(ns) : ns;
}

void cupti_clock_set(struct kymo_device_op *op, uint64_t queued, uint64_t submit, uint64_t start,
		     uint64_t end)
{
	op->queued = clock_time(queued);
	op->submit = clock_time(submit);
	op->start = clock_time(start);
	op->end = clock_time(end);
	op->error_ns = kymo__load_relaxed(&error_ns);
	if (clock_is_ours)
		op->flags |= KYMO_DEVICE_HOST_TICKS;
}

/* Counted, and written as a gap each time the number has doubled. */
static void clock_was_early(uint64_t by_ns)
{
	uint64_t most = kymo__load_relaxed(&error_ns);
	uint64_t count = kymo__add_fetch_relaxed(&early, 1);

	while (by_ns > most && !kymo__cas_weak_relaxed(&error_ns, &most, by_ns))
		;
	if (!(count & (count - 1)))
		cupti_gap("operations that begin before their launch, by CUPTI's time",
			  kymo_ticks(), kymo_ticks(), count);
}

void cupti_clock_check(const struct kymo_device_op *op)
{
	if (!clock_is_ours || !op->launch.ticks || op->start == KYMO_DEVICE_NO_TIME ||
	    op->start >= op->launch.ticks)
		return;
	clock_was_early(kymo_ticks_ns(op->launch.ticks - op->start));
}
