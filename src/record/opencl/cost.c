/* The cost of a row of device.ops for kymo.overhead: the layer's share of the fastest call (any
   excess is due to the machine), and its share of all checks for finished operations, by any
   thread. */
#include <kymo/atomic.h>

#include "record/adapter.h"
#include "record/opencl/layer.h"

#define EVERY 16u /* one of so many calls is measured */

static uint64_t calls, looks_ticks; /* atomic */
static uint64_t fastest = UINT64_MAX; /* atomic */

uint64_t cost_begin(void)
{
	return kymo__fetch_add_relaxed(&calls, 1) % EVERY ? 0 : kymo_ticks();
}

void cost_call(uint64_t ticks)
{
	uint64_t least = kymo__load_relaxed(&fastest);

	while (ticks < least && !kymo__cas_weak_relaxed(&fastest, &least, ticks))
		;
}

void cost_look(uint64_t ticks)
{
	uint64_t all = kymo__add_fetch_relaxed(&looks_ticks, ticks);
	uint64_t count = kymo__load_relaxed(&calls);
	uint64_t least = kymo__load_relaxed(&fastest);

	if (count && least != UINT64_MAX)
		kymo__source_cost(KYMO_SOURCE_DEVICE, least + all / count);
}
