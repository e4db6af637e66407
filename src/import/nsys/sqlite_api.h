/* libsqlite3, loaded when the first SQLite file is opened: only its header is needed to build. */
#ifndef KYMO_IMPORT_NSYS_SQLITE_API_H
#define KYMO_IMPORT_NSYS_SQLITE_API_H

#include <sqlite3.h>

#include "base/error.h"

#define SQLITE_FUNCTIONS(X) \
	X(open_v2) \
	X(close) \
	X(db_config) \
	X(limit) \
	X(hard_heap_limit64) \
	X(set_authorizer) \
	X(prepare_v2) \
	X(bind_text) \
	X(step) \
	X(finalize) \
	X(column_type) \
	X(column_int64) \
	X(column_text) \
	X(column_bytes) \
	X(errmsg)

struct sqlite_api {
#define X(name) __typeof__(sqlite3_##name) *name;
	SQLITE_FUNCTIONS(X)
#undef X
};

extern struct sqlite_api sqlite_api;

int sqlite_api_load(struct kymo_error *err);

#endif
