/* The small recording of tables_fixture.h, made and opened before the tests of a file: for those
   that only ask. */
#ifndef KYMO_TESTS_TABLES_SMALL_H
#define KYMO_TESTS_TABLES_SMALL_H

#include "tables_opened.h"
#include "tables_fixture.h"

static int setup(void **state)
{
	(void)state;
	ask_setup();
	fixture_small(ask_path("small"));
	tables = ask_open(ask_path("small"));
	return 0;
}

#endif
