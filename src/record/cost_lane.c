/* For adapters that measure their cost: a lane that is never read, and the place for the result. */
#include <kymo/atomic.h>

#include "record/record.h"

#define COST_ROWS 1024
#define COST_TORCH_ROWS 512

static struct kymo_zone_row cost_rows[COST_ROWS];
static struct kymo_open_stack cost_open;
static uint64_t cost_head;
static const uint32_t cost_step;
static struct kymo__full_lane cost_lane; /* no stream: kymo__turn() starts over at its first row */
static struct schema_torch_row cost_torch[COST_TORCH_ROWS];
static struct kymo_stream_live cost_live;
static struct kymo__stream cost_stream;

struct kymo__lane *kymo__cost_lane_begin(void)
{
	struct kymo__lane *before = kymo__lane;

	cost_head = 0;
	cost_open.depth = 0;
	cost_lane.hot.busy = 0;
	cost_lane.hot.next = (char *)cost_rows;
	cost_lane.hot.limit = (char *)(cost_rows + COST_ROWS);
	cost_lane.hot.head = &cost_head;
	cost_lane.hot.open = &cost_open;
	cost_lane.hot.step = &cost_step;
	cost_stream.next = (char *)cost_torch;
	cost_stream.limit = (char *)(cost_torch + COST_TORCH_ROWS);
	cost_stream.live = &cost_live;
	cost_lane.streams[SCHEMA_TORCH] = &cost_stream;
	kymo__lane = &cost_lane.hot;
	return before;
}

char *kymo__cost_lane_rewind(struct kymo__lane *lane)
{
	lane->next = (char *)cost_rows;
	return lane->next;
}

void kymo__cost_lane_end(struct kymo__lane *before)
{
	if (kymo__lane == &cost_lane.hot) /* else: in the child of a fork */
		kymo__lane = before;
}

uint64_t kymo__cost_lane_rows(void)
{
	return cost_head;
}

void kymo__source_cost(enum kymo_source source, uint64_t ticks)
{
	size_t count = sizeof(kymo__process.control->source_cost_ticks) / sizeof(uint64_t);

	if (kymo__process_ready() && (size_t)source < count)
		kymo__store_relaxed(&kymo__process.control->source_cost_ticks[source], ticks);
}
