/* Arrow output, where nanoarrow was missing at build time. */
#include "tables/tables.h"

#include <errno.h>

int tables_write_arrow(struct tables_result *result, int fd, struct kymo_error *err)
{
	(void)result;
	(void)fd;
	return error_set(err, ENOTSUP,
			 "cannot write Arrow: this kymo was built without nanoarrow; use -f "
			 "parquet, or run `make` on a machine with access to PyPI");
}
