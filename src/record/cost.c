/* What a zone costs on this machine, so that reports can say it and take it off: measured on a lane of private memory. */
#include <string.h>

#include "record/record.h"

#define ZONES 64
#define ROUNDS 5

uint64_t kymo__measure_own_cost(void)
{
	static struct kymo_zone_row rows[ZONES]; /* one caller: setting up */
	static struct kymo_open_stack open;
	uint64_t head = 0, best = UINT64_MAX;
	uint32_t step = 0;
	struct kymo__lane lane = { .head = &head, .open = &open, .step = &step };

	kymo__lane = &lane;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start;

		lane.next = (char *)rows;
		lane.limit = (char *)(rows + ZONES) + 1; /* never reached */
		start = kymo__ticks();
		for (int i = 0; i < ZONES; i++) {
			struct kymo_zone zone = kymo__zone_open(1);

			kymo__zone_close(&zone);
		}
		start = kymo__ticks() - start;
		if (start < best)
			best = start;
	}
	kymo__lane = NULL;
	return best / ZONES;
}
