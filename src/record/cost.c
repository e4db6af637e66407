/*
 * Measures the cost of an entry on this machine, for reports to state and subtract: its start, its
 * end and its share of folding the totals, on a lane and a stream in private memory. Regions (two
 * calls) and zones (inline) are both measured and the dearer one counts, because a recording does
 * not distinguish them. Takes about 50 us.
 */
#include <string.h>

#include <kymo/atomic.h>

#include "record/record.h"

#define ENTRIES KYMO_BATCH_ROWS
#define ROUNDS 4

/* One caller: setup. */
static struct {
	struct kymo_segment_head segment;
	struct kymo_zone_row rows[ENTRIES];
} data;
static struct {
	struct kymo_totals_head head;
	char slots[KYMO_SLOT_WITH_HIST_BYTES];
} totals;
static struct kymo_open_stack open_stack;
static struct kymo_stream_live live;
static uint16_t slot_of_name[2];

static void zones(void)
{
	for (uint32_t i = 0; i < ENTRIES; i++) {
		struct kymo_zone zone = kymo__zone_open(1);

		kymo__zone_close(&zone);
	}
}

/* Like kymo_region_start() and kymo_region_stop(), which would see that recording is still off. */
static __attribute__((noinline)) int cost_start(void)
{
	return kymo__region_open(1, KYMO_OPEN_REGION);
}

static __attribute__((noinline)) int cost_stop(void)
{
	uint64_t start_ticks;

	return kymo__region_close(1, KYMO_OPEN_REGION, kymo__ticks(), &start_ticks);
}

static void regions(void)
{
	for (uint32_t i = 0; i < ENTRIES; i++) {
		cost_start();
		cost_stop();
	}
}

static uint64_t record_cost_measure(struct kymo__lane *lane, struct kymo__stream *stream,
				    void (*body)(void))
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start;

		live.head = live.fold_state = live.histogram_upto = 0;
		lane->next = (char *)data.rows;
		lane->limit = (char *)(data.rows + ENTRIES) + 1; /* never reached */
		start = kymo__ticks();
		body();
		if (stream->sums)
			kymo__totals_fold(stream, live.head);
		start = kymo__ticks() - start;
		if (start < best)
			best = start;
	}
	return best / ENTRIES;
}

uint64_t kymo__measure_own_cost(void)
{
	struct kymo__sums *sums = kymo__process.totals ? kymo__totals_scratch() : NULL;
	struct kymo__stream stream = { .live = &live, .slot_of_name = slot_of_name, .sums = sums };
	uint32_t step = 0;
	struct kymo__lane lane = { .head = &live.head, .open = &open_stack, .step = &step };
	uint64_t zone, region;

	memset(&open_stack, 0, sizeof(open_stack));
	stream.cap_rows = ENTRIES;
	stream.data.base = (char *)&data;
	stream.totals.base = (char *)&totals;
	stream.totals_head_count = &totals.head.count;
	slot_of_name[1] = 1;
	kymo__lane = &lane;
	zone = record_cost_measure(&lane, &stream, zones);
	region = record_cost_measure(&lane, &stream, regions);
	kymo__lane = NULL;
	return zone > region ? zone : region;
}

/* ---- for adapters that measure their cost: a lane that is never read ---- */

#define COST_ROWS 1024
#define COST_TORCH_ROWS 512

static struct kymo_zone_row cost_rows[COST_ROWS];
static struct kymo_open_stack cost_open;
static uint64_t cost_head;
static const uint32_t cost_step;
static struct kymo__full_lane cost_lane; /* no stream: kymo__turn() starts over at its first row */
static struct schema_torch_row cost_torch[COST_TORCH_ROWS];
static struct schema_torch_op_row cost_ops[COST_TORCH_ROWS];
static struct kymo_stream_live cost_live, cost_op_live;
static struct kymo__stream cost_stream, cost_op_stream;

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
	cost_op_stream.next = (char *)cost_ops;
	cost_op_stream.limit = (char *)(cost_ops + COST_TORCH_ROWS);
	cost_op_stream.live = &cost_op_live;
	cost_lane.streams[SCHEMA_TORCH_OPS] = &cost_op_stream;
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

/* ---- a limit on the cost of Python calls ---- */

#define MILLION 1000000u
#define WINDOW_LEAST_NS 1000000u
#define WINDOW_MOST_NS 100000000u
#define PAUSE_LEAST_NS 100000u
#define WAIT_MOST_NS 1000000000u /* the limit may change */
#define PAST_MOST_NS 3600000000000ull /* of a stopped machine */

static uint64_t between(uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least)
		return least;
	return value < most ? value : most;
}

/* One window per period: a longer one only where recording costs little. */
static uint64_t window_length(const struct kymo__windows *windows, uint64_t past_ns,
			      uint64_t cost_ns, uint32_t limit)
{
	uint64_t earned_ns = windows->period_ns / 1000 * limit / 1000;

	if (!cost_ns)
		return WINDOW_MOST_NS;
	return between((uint64_t)((double)earned_ns * (double)past_ns / (double)cost_ns),
		       WINDOW_LEAST_NS, WINDOW_MOST_NS);
}

uint64_t kymo__windows_next(struct kymo__windows *windows, uint64_t past_ns, uint64_t cost_ns,
			    uint32_t limit)
{
	uint64_t earned_ns, pause_ns;

	past_ns = between(past_ns, 1, PAST_MOST_NS);
	cost_ns = between(cost_ns, 0, PAST_MOST_NS);
	if (!limit) {
		windows->debt_ns = 0;
		windows->open = true;
		return WAIT_MOST_NS;
	}
	if (windows->open)
		windows->window_ns = window_length(windows, past_ns, cost_ns, limit);
	earned_ns = (uint64_t)((double)past_ns * (double)limit / MILLION);
	windows->debt_ns += cost_ns;
	windows->debt_ns -= earned_ns < windows->debt_ns ? earned_ns : windows->debt_ns;
	pause_ns = (uint64_t)((double)windows->debt_ns * MILLION / (double)limit);
	/* Short pauses would cost more than they save. */
	windows->open = windows->open ? pause_ns < windows->period_ns / 2 : !windows->debt_ns;
	return windows->open ? windows->window_ns : between(pause_ns, PAUSE_LEAST_NS, WAIT_MOST_NS);
}

uint64_t kymo__zones_written(void)
{
	const struct kymo__stream *stream;
	uint64_t rows = 0;

	for (uint32_t i = 0; kymo__stream_at(i, &stream); i++)
		if (stream && stream->table == &kymo__tables[SCHEMA_ZONES])
			rows += kymo__load_relaxed(&stream->live->head);
	return rows;
}

uint32_t kymo__python_limit(void)
{
	return kymo__process_ready() ? kymo__load_relaxed(&kymo__process.control->python_limit) : 0;
}

uint64_t kymo__python_spent(uint64_t calls, uint64_t cost_ns)
{
	struct kymo_control *control = kymo__process_ready() ? kymo__process.control : NULL;

	if (!control || !kymo__process.ticks_per_ms)
		return cost_ns;
	cost_ns += (uint64_t)((double)calls *
			      (double)control->source_cost_ticks[KYMO_SOURCE_PYTHON] * 1e6 /
			      (double)kymo__process.ticks_per_ms);
	kymo__fetch_add_relaxed(&control->python_calls, calls);
	kymo__fetch_add_relaxed(&control->python_cost_ns, cost_ns);
	return cost_ns;
}
