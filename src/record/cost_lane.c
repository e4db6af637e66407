/* For adapters that measure their cost: a lane that is never read, and the place for the result. */
#include <kymo/atomic.h>

#include "record/record.h"

#define ASIDE_ROWS 1024
#define ASIDE_TORCH_ROWS 512

static struct kymo_zone_row aside_rows[ASIDE_ROWS];
static struct kymo_open_stack aside_open;
static uint64_t aside_head;
static const uint32_t aside_step;
static struct kymo__full_lane aside; /* no stream: kymo__turn() starts over at its first row */
static struct schema_torch_row aside_torch[ASIDE_TORCH_ROWS];
static struct kymo_stream_live aside_live;
static struct kymo__stream aside_stream;

struct kymo__lane *kymo__cost_lane_begin(void)
{
	struct kymo__lane *before = kymo__lane;

	aside_head = 0;
	aside_open.depth = 0;
	aside.hot.busy = 0;
	aside.hot.next = (char *)aside_rows;
	aside.hot.limit = (char *)(aside_rows + ASIDE_ROWS);
	aside.hot.head = &aside_head;
	aside.hot.open = &aside_open;
	aside.hot.step = &aside_step;
	aside_stream.next = (char *)aside_torch;
	aside_stream.limit = (char *)(aside_torch + ASIDE_TORCH_ROWS);
	aside_stream.live = &aside_live;
	aside.streams[SCHEMA_TORCH] = &aside_stream;
	kymo__lane = &aside.hot;
	return before;
}

char *kymo__cost_lane_rewind(struct kymo__lane *lane)
{
	lane->next = (char *)aside_rows;
	return lane->next;
}

void kymo__cost_lane_end(struct kymo__lane *before)
{
	if (kymo__lane == &aside.hot) /* else: in the child of a fork */
		kymo__lane = before;
}

uint64_t kymo__cost_lane_rows(void)
{
	return aside_head;
}

void kymo__source_cost(enum kymo_source source, uint64_t ticks)
{
	size_t count = sizeof(kymo__process.control->source_cost_ticks) / sizeof(uint64_t);

	if (kymo__process_ready() && (size_t)source < count)
		kymo__store_relaxed(&kymo__process.control->source_cost_ticks[source], ticks);
}
