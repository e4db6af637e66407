/* Zones as a page gets them: what is unpacked is what was packed, within the budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "views/timeline/zone_pack.h"

#ifdef TEST_WEB

#include <zlib.h>

#define COUNT 20000

struct zone {
	int64_t start_ns, duration_ns;
	uint32_t name;
};

static struct zone zones[COUNT];

static struct zone_model make_model(void)
{
	const struct zone_model_lane lane = { .rank = -1 };
	struct zone_model model = { 0 };
	uint64_t seed = 7, at = 1000;

	assert_int_equal(zone_model_clock_ns(&model), 0);
	assert_int_equal(zone_model_lane(&model, &lane), 0);
	for (size_t i = 0; i < COUNT; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		zones[i] = (struct zone){ .start_ns = (int64_t)at,
					  .duration_ns = (int64_t)(seed >> 33) % 100000,
					  .name = (uint32_t)(seed >> 40) % 300 };
		assert_int_equal(zone_model_add(&model, 0, 0, at, (uint64_t)zones[i].duration_ns,
						zones[i].name),
				 0);
		at += (uint64_t)zones[i].duration_ns + (seed >> 20) % 5000;
	}
	return model;
}

/* One column of the first track: `bytes` planes from *at. */
static uint64_t *take(const unsigned char *raw, size_t *at, size_t count, unsigned bytes)
{
	uint64_t *out = calloc(count + 1, sizeof(*out));

	for (unsigned plane = 0; plane < bytes; plane++)
		for (size_t i = 0; i < count; i++)
			out[i] |= (uint64_t)raw[(*at)++] << (8 * plane);
	return out;
}

struct column {
	uint64_t *gap, *duration, *name, *n, *busy;
	size_t count;
};

static struct column unpack(const struct zone_pack *pack)
{
	static unsigned char raw[COUNT * 40];
	z_stream stream = { .next_in = pack->data,
			    .avail_in = (uInt)pack->bytes,
			    .next_out = raw,
			    .avail_out = sizeof(raw) };
	const struct zone_planes *about = &pack->tracks[0];
	struct column out = { .count = about->count };
	size_t at = 0;

	assert_int_equal(inflateInit2(&stream, -15), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	out.gap = take(raw, &at, out.count, about->gap_bytes);
	out.duration = take(raw, &at, out.count, about->duration_bytes);
	out.name = take(raw, &at, out.count, about->name_bytes);
	if (pack->merged_ns) {
		out.n = take(raw, &at, out.count, 4);
		out.busy = take(raw, &at, out.count, about->duration_bytes);
	}
	assert_int_equal(at, stream.total_out);
	inflateEnd(&stream);
	return out;
}

static void drop(struct column *column)
{
	free(column->gap);
	free(column->duration);
	free(column->name);
	free(column->n);
	free(column->busy);
}

static void what_fits_is_exact(void **state)
{
	struct zone_model model = make_model();
	struct zone_pack pack;
	struct column column;
	uint64_t at = 0;

	(void)state;
	assert_int_equal(zone_pack_make(&model, NULL, 0, 10000000, &pack, NULL), 0);
	assert_int_equal(pack.quantum_ns, 1);
	assert_int_equal(pack.merged_ns, 0);
	column = unpack(&pack);
	assert_int_equal(column.count, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		at += column.gap[i];
		assert_int_equal(at, zones[i].start_ns);
		assert_int_equal(column.duration[i], zones[i].duration_ns);
		assert_int_equal(column.name[i], zones[i].name);
		at += column.duration[i];
	}
	drop(&column);
	zone_pack_fini(&pack);
	zone_model_fini(&model);
}

static void a_smaller_budget_rounds_times_and_errors_do_not_add_up(void **state)
{
	struct zone_model model = make_model();
	struct zone_pack exact, pack;
	struct column column;
	uint64_t at = 0;

	(void)state;
	assert_int_equal(zone_pack_make(&model, NULL, 0, 10000000, &exact, NULL), 0);
	assert_int_equal(zone_pack_make(&model, NULL, 0, exact.bytes * 9 / 10, &pack, NULL), 0);
	assert_true(pack.quantum_ns > 1 && pack.merged_ns == 0);
	assert_true(pack.bytes <= exact.bytes * 9 / 10);
	column = unpack(&pack);
	for (size_t i = 0; i < COUNT; i++) {
		at += column.gap[i];
		assert_int_equal(at, (uint64_t)zones[i].start_ns / pack.quantum_ns);
		at += column.duration[i];
	}
	drop(&column);
	zone_pack_fini(&pack);
	zone_pack_fini(&exact);
	zone_model_fini(&model);
}

static void a_tiny_budget_merges_but_not_in_chosen_spans_and_loses_no_time(void **state)
{
	struct zone_model model = make_model();
	struct zone_pack_span keep = { zones[5000].start_ns, zones[5099].start_ns + 1 };
	struct zone_pack pack;
	struct column column;
	uint64_t n = 0, busy = 0, want = 0, at = 0, exact = 0;

	(void)state;
	assert_int_equal(zone_pack_make(&model, &keep, 1, 6000, &pack, NULL), 0);
	assert_true(pack.merged_ns > 0 && pack.bytes <= 6000);
	column = unpack(&pack);
	for (size_t i = 0; i < column.count; i++) {
		uint64_t start = (at + column.gap[i]) * pack.quantum_ns;

		n += column.n[i];
		busy += column.busy[i] * pack.quantum_ns;
		exact += column.n[i] == 1 && start + 16 >= (uint64_t)keep.from_ns &&
			 start <= (uint64_t)keep.to_ns;
		at += column.gap[i] + column.duration[i];
	}
	for (size_t i = 0; i < COUNT; i++)
		want += (uint64_t)zones[i].duration_ns;
	assert_int_equal(n, COUNT);
	assert_true(busy <= want && want - busy <= column.count * pack.quantum_ns);
	assert_true(exact >= 100);
	drop(&column);
	zone_pack_fini(&pack);
	zone_model_fini(&model);
}

static void nothing_is_packed_too(void **state)
{
	struct zone_model model = { 0 };
	struct zone_pack pack;

	(void)state;
	assert_int_equal(zone_pack_make(&model, NULL, 0, 1000, &pack, NULL), 0);
	assert_int_equal(pack.track_count, 0);
	zone_pack_fini(&pack);
	zone_model_fini(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_exact),
		cmocka_unit_test(a_smaller_budget_rounds_times_and_errors_do_not_add_up),
		cmocka_unit_test(a_tiny_budget_merges_but_not_in_chosen_spans_and_loses_no_time),
		cmocka_unit_test(nothing_is_packed_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void built_without_html_reports(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(built_without_html_reports) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
