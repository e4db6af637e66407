/* The model of zones: what it answers is what the rule says, done slowly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "views/timeline/zone_pieces.h"

#define ZONES 20000

struct zone {
	uint64_t start, duration;
	uint32_t name;
};

static uint64_t state = 1;

static uint64_t random_below(uint64_t most)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % most;
}

/* One lane, with ticks of `mult` ns / 2^32. */
static void begin(struct zone_model *model, uint64_t mult)
{
	struct store_clock clock = { .base_ticks = 1000, .base_ns = 5, .mult = mult };
	struct zone_model_lane lane = { .name = "lane", .rank = -1 };

	*model = (struct zone_model){ 0 };
	assert_int_equal(zone_model_clock(model, &clock), 0);
	assert_int_equal(zone_model_lane(model, &lane), 0);
}

static void fill(struct zone_model *model, struct zone *zones, size_t count)
{
	uint64_t at = 1000;

	for (size_t i = 0; i < count; i++) {
		at += random_below(50);
		zones[i] = (struct zone){ at,
					  random_below(8) ? random_below(40) : random_below(9000),
					  (uint32_t)random_below(5) };
		at += zones[i].duration;
		assert_int_equal(zone_model_add(model, 0, 0, zones[i].start, zones[i].duration,
						zones[i].name),
				 0);
	}
}

static struct zone_piece told(const struct zone_model *model, const struct zone *zone)
{
	int64_t start = store_clock_ns(&model->clocks[0], zone->start);
	int64_t duration = store_clock_span_ns(&model->clocks[0], zone->duration);

	return (struct zone_piece){ start, start + duration, duration, zone->name, 1 };
}

static size_t slowly(const struct zone_model *model, const struct zone *zones, size_t count,
		     int64_t from, int64_t to, unsigned level, struct zone_piece *out)
{
	size_t made = 0;
	uint64_t longest = 0, busy = 0;
	bool open = false;

	for (size_t i = 0; i < count; i++) {
		struct zone_piece one = told(model, &zones[i]),
				  *last = made ? &out[made - 1] : NULL;
		bool small = one.busy_ns < INT64_C(1) << level;

		if (one.end_ns <= from || one.start_ns >= to)
			continue;
		if (small && level && open && last->start_ns >> level == one.start_ns >> level) {
			last->end_ns = one.end_ns;
			busy += zones[i].duration;
			last->busy_ns = store_clock_span_ns(&model->clocks[0], busy);
			last->n++;
			if (zones[i].duration > longest) {
				longest = zones[i].duration;
				last->name = one.name;
			}
			continue;
		}
		out[made++] = one;
		longest = busy = zones[i].duration;
		open = small;
	}
	return made;
}

static void check(const struct zone_model *model, const struct zone *zones, size_t count,
		  int64_t from, int64_t to, unsigned level)
{
	struct zone_piece *wanted = malloc((count + 1) * sizeof(*wanted));
	struct zone_pieces pieces = { 0 };
	size_t made = slowly(model, zones, count, from, to, level, wanted);

	zone_pieces_add_time(model, &model->tracks[0], from, to, level, &pieces);
	assert_int_equal(pieces.count, made);
	for (size_t i = 0; i < made; i++)
		assert_memory_equal(&pieces.list[i], &wanted[i], sizeof(wanted[i]));
	free(pieces.list);
	free(wanted);
}

static void pieces_are_what_the_rule_says(void **unused)
{
	static const uint64_t mults[] = { UINT64_C(1) << 32, UINT64_C(1) << 31,
					  UINT64_C(1431655765) };
	static struct zone zones[ZONES];
	struct zone_model model;

	(void)unused;
	for (size_t m = 0; m < 3; m++) {
		begin(&model, mults[m]);
		fill(&model, zones, ZONES);
		assert_int_equal(model.count, ZONES);
		assert_int_equal(model.track_count, 1);
		for (unsigned level = 0; level < 30; level += 3)
			check(&model, zones, ZONES, 0, INT64_MAX, level);
		/* Stretches that begin and end with a bucket, where a tick is a nanosecond: nothing
		   is rounded. */
		for (int i = 0; i < 50 && !m; i++) {
			unsigned level = (unsigned)random_below(14);
			int64_t from = (int64_t)random_below(900000) >> level << level;
			int64_t span = (int64_t)(1 + random_below(9)) << level;

			check(&model, zones, ZONES, from, from + span, level);
		}
		zone_model_fini(&model);
	}
}

static void late_zones_are_put_in_their_place(void **unused)
{
	static struct zone zones[ZONES];
	struct zone_model model, mixed;

	(void)unused;
	begin(&model, UINT64_C(1) << 32);
	begin(&mixed, UINT64_C(1) << 32);
	fill(&model, zones, ZONES);
	/* In groups of eight, backwards. */
	for (size_t i = 0; i < ZONES; i++) {
		const struct zone *zone = &zones[i / 8 * 8 + 7 - i % 8];

		assert_int_equal(
			zone_model_add(&mixed, 0, 0, zone->start, zone->duration, zone->name), 0);
	}
	for (unsigned level = 0; level < 24; level += 4)
		check(&mixed, zones, ZONES, 0, INT64_MAX, level);
	zone_model_fini(&model);
	zone_model_fini(&mixed);
}

static void what_overlaps_goes_a_row_down_and_is_counted_when_there_is_none(void **unused)
{
	struct zone_model model;

	(void)unused;
	begin(&model, UINT64_C(1) << 32);
	for (int i = 0; i < ZONE_MODEL_ROWS + 3; i++)
		assert_int_equal(zone_model_add(&model, 0, 0, 5000, 100, 0), 0);
	assert_int_equal(model.lanes[0].rows, ZONE_MODEL_ROWS);
	assert_int_equal(model.hidden, 3);
	assert_int_equal(zone_model_add(&model, 0, 0, UINT64_MAX - 5, 100, 0), 0);
	assert_int_equal(zone_model_add(&model, 0, 0, 5, UINT64_MAX, 0), 0);
	assert_int_equal(model.hidden, 5);
	assert_int_equal(zone_model_end_ns(&model), 4105);
	zone_model_fini(&model);
}

static void forgetting_leaves_the_newer_half_as_it_was(void **unused)
{
	static struct zone zones[ZONES];
	struct zone_model model;

	(void)unused;
	begin(&model, UINT64_C(1) << 32);
	fill(&model, zones, ZONES);
	zone_model_forget(&model);
	assert_int_equal(model.count, ZONES / 2);
	assert_int_equal(model.forgotten, ZONES / 2);
	for (unsigned level = 0; level < 24; level += 4)
		check(&model, zones + ZONES / 2, ZONES / 2, 0, INT64_MAX, level);
	zone_model_fini(&model);
}

static void zones_that_overlap_by_rounding_stay_in_their_row(void **unused)
{
	struct zone_model model;
	const struct zone_model_track *track;

	(void)unused;
	begin(&model, UINT64_C(1) << 32);
	model.rounding_ticks = 64;
	assert_int_equal(zone_model_add(&model, 0, 0, 1000, 100, 0), 0);
	assert_int_equal(zone_model_add(&model, 0, 0, 1040, 100, 0), 0);
	assert_int_equal(zone_model_add(&model, 0, 0, 1100, 10, 0), 0);
	assert_int_equal(zone_model_add(&model, 0, 0, 1000, 500, 0), 0);
	track = zone_model_track(&model, 0, 0);
	assert_int_equal(track->count, 3);
	assert_int_equal(track->start[1], 1100);
	assert_int_equal(track->duration[1], 40);
	assert_int_equal(track->start[2], 1140);
	assert_int_equal(track->duration[2], 0);
	assert_int_equal(zone_model_track(&model, 0, 1)->count, 1);
	assert_null(zone_model_track(&model, 0, 2));
	zone_model_fini(&model);
}

static void queues_come_last_and_the_main_thread_first(void **unused)
{
	static const struct zone_model_lane lanes[] = {
		{ .pid = 0, .tid = -1, .rank = -1, .kind = ZONE_MODEL_QUEUE, .count = 99 },
		{ .pid = 7, .tid = 8, .rank = -1, .count = 50 },
		{ .pid = 7, .tid = 9, .rank = -1, .count = 60 },
		{ .pid = 7, .tid = 7, .rank = -1, .count = 1 },
		{ .pid = 7, .tid = 7, .rank = -1, .kind = ZONE_MODEL_TASK, .count = 70 },
	};
	static const uint32_t expected[] = { 3, 4, 2, 1, 0 };
	struct zone_model model = { 0 };
	size_t count = 0;
	uint32_t *order;

	(void)unused;
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(zone_model_lane(&model, &lanes[i]), i);
	order = zone_model_order(&model, NULL, &count, NULL);
	assert_int_equal(count, 5);
	assert_memory_equal(order, expected, sizeof(expected));
	free(order);
	zone_model_fini(&model);
}

static void lanes_are_in_the_order_of_ranks_and_can_be_chosen(void **unused)
{
	static const struct zone_model_lane lanes[] = {
		{ .pid = 7, .tid = -1, .rank = 1, .kind = ZONE_MODEL_QUEUE, .count = 99 },
		{ .pid = 7, .tid = 7, .rank = 1, .count = 1 },
		{ .pid = 9, .tid = 9, .rank = -1, .count = 70 },
		{ .pid = 7, .tid = -2, .rank = 1, .kind = ZONE_MODEL_COLLECTIVES, .count = 9 },
		{ .pid = 7, .tid = -3, .rank = 1, .kind = ZONE_MODEL_CRITICAL, .count = 9 },
		{ .pid = 6, .tid = 6, .rank = 0, .count = 5 },
	};
	static const uint32_t expected[] = { 5, 4, 1, 3, 0, 2 }, chosen[] = { 4, 1, 3, 0 };
	struct zone_model model = { 0 };
	struct rank_set ranks;
	size_t count = 0, hidden = 9;
	uint32_t *order;

	(void)unused;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(zone_model_lane(&model, &lanes[i]), i);
	order = zone_model_order(&model, NULL, &count, &hidden);
	assert_int_equal(count, 6);
	assert_int_equal(hidden, 0);
	assert_memory_equal(order, expected, sizeof(expected));
	free(order);
	assert_true(rank_set_read(&ranks, "1"));
	order = zone_model_order(&model, &ranks, &count, &hidden);
	assert_int_equal(count, 4);
	assert_memory_equal(order, chosen, sizeof(chosen));
	free(order);
	zone_model_fini(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_what_the_rule_says),
		cmocka_unit_test(late_zones_are_put_in_their_place),
		cmocka_unit_test(what_overlaps_goes_a_row_down_and_is_counted_when_there_is_none),
		cmocka_unit_test(forgetting_leaves_the_newer_half_as_it_was),
		cmocka_unit_test(zones_that_overlap_by_rounding_stay_in_their_row),
		cmocka_unit_test(queues_come_last_and_the_main_thread_first),
		cmocka_unit_test(lanes_are_in_the_order_of_ranks_and_can_be_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
