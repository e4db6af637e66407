/*
 * A reader of pickles that hold plain data: dicts, lists, tuples, texts, numbers, booleans, None.
 * It knows the opcodes of these and refuses every other one by its name, so nothing is imported,
 * called or built. The value becomes JSON; keys that are numbers become texts.
 */
#ifndef KYMO_IMPORT_FLIGHT_PICKLE_H
#define KYMO_IMPORT_FLIGHT_PICKLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* By the first bytes: PROTO 2 to 5, then an opcode of plain data. */
bool pickle_is(const char *bytes, size_t count);
int pickle_to_json(const char *bytes, size_t count, struct buf *out, struct kymo_error *err);

#endif
