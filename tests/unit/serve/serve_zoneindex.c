/* The index of zones: what it answers is what the rule says, done slowly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "serve/zoneindex.h"

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
static void begin(struct zoneindex *index, uint64_t mult)
{
	struct store_clock clock = { .base_ticks = 1000, .base_ns = 5, .mult = mult };
	struct zoneindex_lane lane = { .name = "lane", .rank = -1 };

	*index = (struct zoneindex){ 0 };
	assert_int_equal(zoneindex_clock(index, &clock), 0);
	assert_int_equal(zoneindex_lane(index, &lane), 0);
}

static void fill(struct zoneindex *index, struct zone *zones, size_t count)
{
	uint64_t at = 1000;

	for (size_t i = 0; i < count; i++) {
		at += random_below(50);
		zones[i] = (struct zone){ at,
					  random_below(8) ? random_below(40) : random_below(9000),
					  (uint32_t)random_below(5) };
		at += zones[i].duration;
		assert_int_equal(zoneindex_add(index, 0, 0, zones[i].start, zones[i].duration,
					       zones[i].name),
				 0);
	}
}

static struct zoneindex_piece told(const struct zoneindex *index, const struct zone *zone)
{
	int64_t start = store_clock_ns(&index->clocks[0], zone->start);
	int64_t duration = store_clock_span_ns(&index->clocks[0], zone->duration);

	return (struct zoneindex_piece){ start, start + duration, duration, zone->name, 1 };
}

static size_t slowly(const struct zoneindex *index, const struct zone *zones, size_t count,
		     int64_t from, int64_t to, unsigned level, struct zoneindex_piece *out)
{
	size_t made = 0;
	uint64_t longest = 0, busy = 0;
	bool open = false;

	for (size_t i = 0; i < count; i++) {
		struct zoneindex_piece one = told(index, &zones[i]),
				       *last = made ? &out[made - 1] : NULL;
		bool small = one.busy_ns < INT64_C(1) << level;

		if (one.end_ns <= from || one.start_ns >= to)
			continue;
		if (small && level && open && last->start_ns >> level == one.start_ns >> level) {
			last->end_ns = one.end_ns;
			busy += zones[i].duration;
			last->busy_ns = store_clock_span_ns(&index->clocks[0], busy);
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

static void check(const struct zoneindex *index, const struct zone *zones, size_t count,
		  int64_t from, int64_t to, unsigned level)
{
	struct zoneindex_piece *wanted = malloc((count + 1) * sizeof(*wanted));
	struct zoneindex_pieces pieces = { 0 };
	size_t made = slowly(index, zones, count, from, to, level, wanted);

	zoneindex_pieces(index, &index->tracks[0], from, to, level, &pieces);
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
	struct zoneindex index;

	(void)unused;
	for (size_t m = 0; m < 3; m++) {
		begin(&index, mults[m]);
		fill(&index, zones, ZONES);
		assert_int_equal(index.count, ZONES);
		assert_int_equal(index.track_count, 1);
		for (unsigned level = 0; level < 30; level += 3)
			check(&index, zones, ZONES, 0, INT64_MAX, level);
		/* Stretches that begin and end with a bucket, where a tick is a nanosecond: nothing
		   is rounded. */
		for (int i = 0; i < 50 && !m; i++) {
			unsigned level = (unsigned)random_below(14);
			int64_t from = (int64_t)random_below(900000) >> level << level;
			int64_t span = (int64_t)(1 + random_below(9)) << level;

			check(&index, zones, ZONES, from, from + span, level);
		}
		zoneindex_fini(&index);
	}
}

static void late_zones_are_put_in_their_place(void **unused)
{
	static struct zone zones[ZONES];
	struct zoneindex index, mixed;

	(void)unused;
	begin(&index, UINT64_C(1) << 32);
	begin(&mixed, UINT64_C(1) << 32);
	fill(&index, zones, ZONES);
	/* In groups of eight, backwards. */
	for (size_t i = 0; i < ZONES; i++) {
		const struct zone *zone = &zones[i / 8 * 8 + 7 - i % 8];

		assert_int_equal(
			zoneindex_add(&mixed, 0, 0, zone->start, zone->duration, zone->name), 0);
	}
	for (unsigned level = 0; level < 24; level += 4)
		check(&mixed, zones, ZONES, 0, INT64_MAX, level);
	zoneindex_fini(&index);
	zoneindex_fini(&mixed);
}

static void what_overlaps_goes_a_row_down_and_is_counted_when_there_is_none(void **unused)
{
	struct zoneindex index;

	(void)unused;
	begin(&index, UINT64_C(1) << 32);
	for (int i = 0; i < ZONEINDEX_ROWS + 3; i++)
		assert_int_equal(zoneindex_add(&index, 0, 0, 5000, 100, 0), 0);
	assert_int_equal(index.lanes[0].rows, ZONEINDEX_ROWS);
	assert_int_equal(index.hidden, 3);
	assert_int_equal(zoneindex_add(&index, 0, 0, UINT64_MAX - 5, 100, 0), 0);
	assert_int_equal(zoneindex_add(&index, 0, 0, 5, UINT64_MAX, 0), 0);
	assert_int_equal(index.hidden, 5);
	assert_int_equal(zoneindex_end_ns(&index), 4105);
	zoneindex_fini(&index);
}

static void forgetting_leaves_the_newer_half_as_it_was(void **unused)
{
	static struct zone zones[ZONES];
	struct zoneindex index;

	(void)unused;
	begin(&index, UINT64_C(1) << 32);
	fill(&index, zones, ZONES);
	zoneindex_forget(&index);
	assert_int_equal(index.count, ZONES / 2);
	assert_int_equal(index.forgotten, ZONES / 2);
	for (unsigned level = 0; level < 24; level += 4)
		check(&index, zones + ZONES / 2, ZONES / 2, 0, INT64_MAX, level);
	zoneindex_fini(&index);
}

static void names_are_known_again_and_have_an_end(void **unused)
{
	struct zoneindex index = { 0 };
	char text[16];

	(void)unused;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 3000; i++) {
			snprintf(text, sizeof(text), "n%d", i);
			assert_int_equal(
				zoneindex_name(&index,
					       &(struct zonenames_key){ .name = text,
									.name_bytes = strlen(text),
									.file = "f",
									.file_bytes = 1,
									.source = "c" }),
				i);
		}
	assert_int_equal(zoneindex_name(&index, &(struct zonenames_key){ .name = "n1",
									 .name_bytes = 2,
									 .file = "f",
									 .file_bytes = 1,
									 .source = "python" }),
			 3000);
	zoneindex_fini(&index);
}

static void further_names_share_one_and_known_ones_stay_known(void **unused)
{
	static const char *const texts[] = { "a", "b", "c", "d", "b", "a" };
	static const int64_t expected[] = { 0, 1, 2, 2, 1, 0 };
	struct zonenames names = { 0 };

	(void)unused;
	for (size_t i = 0; i < 6; i++) {
		struct zonenames_key key = {
			.name = texts[i], .name_bytes = 1, .file = "", .source = "c"
		};

		assert_int_equal(zonenames_find(&names, &key, 3), expected[i]);
	}
	assert_int_equal(names.count, 3);
	assert_memory_equal(buf_get(&names.text) + names.list[2].name_at, "(further names)", 15);
	zonenames_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_what_the_rule_says),
		cmocka_unit_test(late_zones_are_put_in_their_place),
		cmocka_unit_test(what_overlaps_goes_a_row_down_and_is_counted_when_there_is_none),
		cmocka_unit_test(forgetting_leaves_the_newer_half_as_it_was),
		cmocka_unit_test(names_are_known_again_and_have_an_end),
		cmocka_unit_test(further_names_share_one_and_known_ones_stay_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
