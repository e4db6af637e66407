/* Writes the small recording of tests/unit/tables/tables_fixture.h: sql_fixture DIRECTORY. Its
   numbers are the same every time. */
#include "../unit/tables/tables_fixture.h"

#include "base/schema.c"

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: sql_fixture DIRECTORY\n");
		return 2;
	}
	fixture_small(argv[1]);
	return 0;
}
