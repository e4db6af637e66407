/* Arrow output, where nanoarrow was missing at build time. */
#include "tables/tables.h"

#include <errno.h>

int tables_write_arrow(struct tables_result *result, int fd, struct kymo_error *err)
{
	(void)result;
	(void)fd;
	return error_set(err, ENOTSUP,
			 "this kymo was built without nanoarrow, so it cannot write Arrow; run "
			 "`make` where PyPI can be reached, or use -f parquet");
}
