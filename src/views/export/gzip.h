/*
 * A gzip member whose blocks are stored, not deflated: what a reader of .gz wants, without a
 * library. For small files that have to be gzipped by their format; what is to be small should be
 * packed.
 */
#ifndef KYMO_VIEWS_EXPORT_GZIP_H
#define KYMO_VIEWS_EXPORT_GZIP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"

struct gzip {
	FILE *out;
	uint32_t crc, bytes; /* of what was written, by 2^32 */
};

void gzip_begin(struct gzip *gzip, FILE *out);
/* Writes and empties the buffer. */
int gzip_write(struct gzip *gzip, struct buf *buf, struct kymo_error *err);
int gzip_end(struct gzip *gzip, struct kymo_error *err);

#endif
