/* The small recording of tables_fixture.h, made and opened before the tests of a file: for those that only ask. */
#ifndef KYMO_TESTS_TABLES_SMALL_H
#define KYMO_TESTS_TABLES_SMALL_H

#include "tables_ask.h"
#include "tables_fixture.h"

static struct tables *tables;

static int setup(void **state)
{
	(void)state;
	ask_setup();
	fixture_small(ask_path("small"));
	tables = ask_open(ask_path("small"));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tables_close(tables);
	ask_teardown();
	return 0;
}

#endif
