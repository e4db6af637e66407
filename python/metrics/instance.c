#include "metrics.h"

#define NUMBERS 1000u

/* Numbers given back, oldest first. */
static uint32_t given[NUMBERS + 1];
static uint32_t first, count, fresh;

uint32_t instance_take(void)
{
	uint32_t instance;

	if (fresh < NUMBERS)
		return ++fresh;
	if (!count)
		return 0;
	instance = given[first];
	first = (first + 1) % NUMBERS;
	count--;
	return instance;
}

void instance_give(uint32_t instance)
{
	if (!instance || count == NUMBERS)
		return;
	given[(first + count) % NUMBERS] = instance;
	count++;
}
