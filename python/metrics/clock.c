#include "metrics.h"

#include <kymo/marked.h>
#include <pthread.h>
#include <time.h>

uint32_t metrics_generation;

static bool begun, recorded;

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void metrics_begin(void)
{
	kymo__enable_once();
	if (begun)
		return;
	begun = true;
	/* Final: samples of one clock cannot be added to those of another. */
	recorded = kymo_directory()[0] != '\0';
}

bool metrics_ticks_are_the_recordings(void)
{
	return recorded;
}

uint64_t metrics_now(void)
{
	return KYMO__LIKELY(recorded) ? kymo__ticks() : monotonic_ns();
}

/* Read late: the longer the recording, the more exact the rate. 2^32 ticks give all its bits. */
uint64_t metrics_rate(void)
{
	return recorded ? kymo_ticks_ns(UINT64_C(1) << 32) : UINT64_C(1) << 32;
}

double metrics_ms_per_tick(void)
{
	return clock_tick_ns(metrics_rate()) * 1e-6;
}
