/* One recording for all tests of a file: a setup makes and opens it, this closes it. */
#ifndef KYMO_TESTS_TABLES_OPENED_H
#define KYMO_TESTS_TABLES_OPENED_H

#include "tables_ask.h"

static struct tables *tables;

static int teardown(void **state)
{
	(void)state;
	tables_close(tables);
	ask_teardown();
	return 0;
}

#endif
