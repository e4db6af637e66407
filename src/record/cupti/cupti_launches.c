/* What was open when the host launched an operation, until its record arrives. A ring by
   correlation, which counts all calls of the process: the launch before last of 65,536 calls is
   overwritten. */
#include <string.h>

#include <kymo/atomic.h>

#include "record/cupti/cupti.h"

#define LAUNCHES 65536u

static struct cupti_launch launches[LAUNCHES]; /* untouched pages cost nothing */

static struct cupti_launch *launches_slot(uint32_t correlation)
{
	return &launches[correlation % LAUNCHES];
}

struct cupti_launch *cupti_launch_begin(uint32_t correlation)
{
	struct cupti_launch *launch = launches_slot(correlation);

	kymo__store_relaxed(&launch->correlation, 0);
	kymo__fence_release(); /* readers that copy what follows see the 0 */
	kymo__store_relaxed(&launch->call_ticks, 0);
	return launch;
}

void cupti_launch_publish(struct cupti_launch *launch, uint32_t correlation)
{
	/* Pairs with the acquire in cupti_launch_find(). */
	kymo__store_release(&launch->correlation, correlation);
}

void cupti_launch_returned(uint32_t correlation, uint64_t ticks)
{
	struct cupti_launch *launch = launches_slot(correlation);

	if (kymo__load_relaxed(&launch->correlation) == correlation)
		kymo__store_relaxed(&launch->call_ticks, ticks - launch->launch.ticks);
}

bool cupti_launch_find(uint32_t correlation, struct cupti_launch *out)
{
	const struct cupti_launch *launch = launches_slot(correlation);

	if (!correlation || kymo__load_acquire(&launch->correlation) != correlation)
		return false;
	out->name = kymo__load_relaxed(&launch->name);
	out->call = kymo__load_relaxed(&launch->call);
	out->flags = kymo__load_relaxed(&launch->flags);
	out->call_ticks = kymo__load_relaxed(&launch->call_ticks);
	memcpy(&out->launch, &launch->launch, sizeof(out->launch));
	kymo__fence_acquire(); /* not overwritten during the copy */
	out->correlation = correlation;
	return kymo__load_relaxed(&launch->correlation) == correlation;
}
