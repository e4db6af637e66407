/* What a row of device.ops costs the program, for kymo.overhead: the part of a call that is ours, as its fastest took (what is
   above that is the machine's), and its share of all looking at what is done, whichever thread looked. */
#include "record/device/adapter.h"
#include "record/opencl/layer.h"

#define EVERY 16u /* calls; one of them is measured */

static uint64_t calls, looks_ticks; /* atomic */
static uint64_t fastest = UINT64_MAX; /* atomic */

uint64_t cost_begin(void)
{
	return __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % EVERY ? 0 : kymo_ticks();
}

void cost_call(uint64_t ticks)
{
	uint64_t least = __atomic_load_n(&fastest, __ATOMIC_RELAXED);

	while (ticks < least && !__atomic_compare_exchange_n(&fastest, &least, ticks, true,
							     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void cost_look(uint64_t ticks)
{
	uint64_t all = __atomic_add_fetch(&looks_ticks, ticks, __ATOMIC_RELAXED);
	uint64_t count = __atomic_load_n(&calls, __ATOMIC_RELAXED);
	uint64_t least = __atomic_load_n(&fastest, __ATOMIC_RELAXED);

	if (count && least != UINT64_MAX)
		kymo__source_cost(KYMO_SOURCE_DEVICE, least + all / count);
}
