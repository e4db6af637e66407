/* Device time of modules that could not be measured, by cause: rows of kymo.gaps. GIL. */
#include <string.h>

#include "torch.h"

static const char *const causes[LOSS_COUNT] = {
	[LOSS_FULL] = "device time of modules: more under way than can be followed",
	[LOSS_FAILED] = "device time of modules: an event of torch's failed",
	[LOSS_CAPTURED] = "device time of modules: a graph was being captured",
	[LOSS_MOVED] = "device time of modules: begun on one device and ended on another",
	[LOSS_AT_END] = "device time of modules: not known when the program ended",
};
static uint64_t lost[LOSS_COUNT], said[LOSS_COUNT];

static void torch_losses_say(enum loss loss)
{
	struct schema_gap_row row = { .start_ticks = kymo__ticks(),
				      .events = lost[loss] - said[loss] };

	if (!row.events)
		return;
	row.cause = kymo_name_full(causes[loss], strlen(causes[loss]), NULL, 0, 0,
				   KYMO_SOURCE_TORCH, 0);
	kymo__append(SCHEMA_GAPS, &row);
	said[loss] = lost[loss];
}

/* A row each time the number has doubled; the rest at the end. */
void losses_count(enum loss loss, uint64_t events)
{
	lost[loss] += events;
	if (lost[loss] >= 2 * said[loss])
		torch_losses_say(loss);
}

void losses_say(void)
{
	for (int i = 0; i < LOSS_COUNT; i++)
		torch_losses_say((enum loss)i);
}
