/* Numbers for a page: all lowest bytes, then all second ones, …, which compresses well. */
#ifndef KYMO_VIEWS_TIMELINE_BYTE_PLANES_H
#define KYMO_VIEWS_TIMELINE_BYTE_PLANES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Bytes that the value takes; 0 for 0. */
unsigned byte_planes_width(uint64_t value);
/* Adds that many planes of the values. */
void byte_planes_add(struct buf *out, const uint64_t *values, size_t count, unsigned bytes);

#endif
