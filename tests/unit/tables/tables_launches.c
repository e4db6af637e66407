/* The path of a launch where the clock is so coarse that zones begin in one tick. */
#include "tables_opened.h"

#include "tables_make.h"

#define AT(ns) (MAKE_EPOCH + (ns))

struct names {
	uint32_t outer, blink, layer, compute, forgotten, endless, inner;
};

static struct names add_names(struct make *make)
{
	return (struct names){
		.outer = make_name(make, "outer", NULL, 0, KYMO_SOURCE_C, 0),
		.blink = make_name(make, "blink", NULL, 0, KYMO_SOURCE_C, 0),
		.layer = make_name(make, "layer", NULL, 0, KYMO_SOURCE_TORCH, 0),
		.compute = make_name(make, "compute", "train.py", 7, KYMO_SOURCE_PYTHON, 0),
		.forgotten = make_name(make, "forgotten", NULL, 0, KYMO_SOURCE_C, 0),
		.endless = make_name(make, "endless", NULL, 0, KYMO_SOURCE_C, 0),
		.inner = make_name(make, "inner", NULL, 0, KYMO_SOURCE_C, 0),
	};
}

/* blink has no length and ends in the tick in which layer begins, and compute in it. */
static void add_zones(struct make *make, const struct names *name, uint32_t thread)
{
	const struct kymo_zone_row rows[] = {
		{ AT(1000), 0, name->blink, thread, 1, 0, 0 },
		{ AT(1000), 500, name->compute, thread, 2, 0, 0 },
		{ AT(1000), 800, name->layer, thread, 1, 0, 0 },
		{ AT(1800), 0, name->blink, thread, 1, 0, 0 },
		{ AT(1000), 1000, name->outer, thread, 0, 0, 0 },
	};
	const struct kymo_open_entry open[] = { { AT(3000), name->endless, 0 },
						{ AT(3000), name->inner, 0 } };

	make->open = open;
	make->open_count = 2;
	make->open_thread = thread;
	make_stream(make, schema_find("trace.zones"), rows, 5);
}

static struct schema_device_op_row op(uint64_t queued, uint64_t zone_start, uint32_t zone,
				      uint32_t thread)
{
	return (struct schema_device_op_row){
		.queued_ticks = AT(queued),
		.zone_start_ticks = AT(zone_start),
		.zone = zone,
		.thread = thread,
		.flags = SCHEMA_DEVICE_QUEUED,
	};
}

static void add_ops(struct make *make, const struct names *name, uint32_t thread)
{
	const struct schema_device_op_row rows[] = {
		op(1000, 1000, name->blink, thread),	 op(1200, 1000, name->compute, thread),
		op(1600, 1000, name->layer, thread),	 op(1900, 1000, name->outer, thread),
		op(1950, 1950, name->forgotten, thread), op(3000, 3000, name->endless, thread),
		op(3100, 3000, name->inner, thread),	 op(4000, 0, 0, thread),
	};

	make_stream(make, schema_find("device.ops"), rows, sizeof(rows) / sizeof(rows[0]));
}

static int setup(void **state)
{
	static struct make make;
	struct names names;
	uint32_t thread;

	(void)state;
	ask_setup();
	make_run(&make, ask_path("coarse"));
	make_process(&make, 100, -1);
	make.no_totals = true;
	names = add_names(&make);
	thread = make_thread(&make, 101, "main");
	add_zones(&make, &names, thread);
	add_ops(&make, &names, thread);
	make_process_end(&make);
	tables = ask_open(ask_path("coarse"));
	return 0;
}

static void a_zone_of_no_length_hides_no_level_of_the_path(void **state)
{
	(void)state;
	assert_answer(
		tables,
		"SELECT queued_ns, path::VARCHAR, module, function, line FROM device.launches "
		"WHERE zone IN ('blink', "
		"'compute') ORDER BY 1",
		"1000|[outer, blink]|NULL|NULL|NULL\n1200|[outer, layer, compute]|layer|compute|7");
}

static void a_zone_that_began_with_the_launching_one_is_not_around_it(void **state)
{
	(void)state;
	assert_answer(tables,
		      "SELECT queued_ns, path::VARCHAR, module, function FROM device.launches "
		      "WHERE zone IN ('layer', 'outer') "
		      "ORDER BY 1",
		      "1600|[outer, layer]|layer|NULL\n1900|[outer]|NULL|NULL");
}

static void open_zones_are_levels_of_the_path(void **state)
{
	(void)state;
	assert_answer(tables,
		      "SELECT queued_ns, path::VARCHAR FROM device.launches WHERE queued_ns >= "
		      "3000 ORDER BY 1",
		      "3000|[endless]\n3100|[endless, inner]\n4000|NULL");
}

static void a_zone_whose_row_is_gone_is_the_innermost(void **state)
{
	(void)state;
	assert_answer(tables, "SELECT path::VARCHAR FROM device.launches WHERE zone = 'forgotten'",
		      "[outer, forgotten]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_zone_of_no_length_hides_no_level_of_the_path),
		cmocka_unit_test(a_zone_that_began_with_the_launching_one_is_not_around_it),
		cmocka_unit_test(open_zones_are_levels_of_the_path),
		cmocka_unit_test(a_zone_whose_row_is_gone_is_the_innermost),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
