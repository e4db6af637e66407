/* A file that DuckDB writes, by name: first beside its place, then renamed there, so that a
   failure leaves the old file as it was. */
#ifndef KYMO_TABLES_STAGED_H
#define KYMO_TABLES_STAGED_H

#include <stddef.h>

#include "base/error.h"
#include "base/format.h"

#define STAGED_PATH_BYTES (KYMO_PATH_BYTES + 64)

/* The name to write to; nothing is there. 0, or a negative errno where its directory is missing
   or cannot be written. */
int staged_name(const char *path, char *out, size_t out_bytes, struct kymo_error *err);
/* With rc 0 renames it to path; else removes it. Returns rc, or the rename's error. */
int staged_end(const char *staged, const char *path, int rc, struct kymo_error *err);

#endif
