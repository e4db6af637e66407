/*
 * One file that opens offline: the bundled script and style, and data blocks. Its content security
 * policy allows only that script and that style, and no connection. Names are data, and a data
 * block never contains `<`.
 */
#ifndef KYMO_VIEWS_REPORT_PAGE_H
#define KYMO_VIEWS_REPORT_PAGE_H

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"

/* zones: packed columns, or none. A failed write is detected when the file is closed. */
void page_write(FILE *out, const char *title, const struct buf *json, const unsigned char *zones,
		size_t zone_bytes);

#endif
