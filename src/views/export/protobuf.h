/* Writing of protocol buffers: fields appended to a buffer. */
#ifndef KYMO_VIEWS_EXPORT_PROTOBUF_H
#define KYMO_VIEWS_EXPORT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

void protobuf_varint(struct buf *out, uint64_t value);
/* int64, uint64, enum and bool fields. */
void protobuf_number(struct buf *out, uint32_t field, uint64_t value);
void protobuf_fixed64(struct buf *out, uint32_t field, uint64_t value);
void protobuf_double(struct buf *out, uint32_t field, double value);
void protobuf_bytes(struct buf *out, uint32_t field, const void *bytes, size_t count);
/* A string field must be UTF-8: invalid bytes become U+FFFD, and a NUL, which ends a string in C,
   U+2400. */
void protobuf_text(struct buf *out, uint32_t field, const char *text, size_t bytes);
/* A message from a buffer of its own, which is emptied. */
void protobuf_message(struct buf *out, uint32_t field, struct buf *message);

#endif
