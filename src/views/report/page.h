/*
 * One file that opens offline: the bundled script and style, and data blocks. Its policy allows
 * that one script and that one style and no connection; names are data, and `<` never stands in a
 * data block.
 */
#ifndef KYMO_VIEWS_REPORT_PAGE_H
#define KYMO_VIEWS_REPORT_PAGE_H

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"

/* zones: packed columns, or none. A write that fails is found where the file is closed. */
void page_write(FILE *out, const char *title, const struct buf *json, const unsigned char *zones,
		size_t zone_bytes);

#endif
