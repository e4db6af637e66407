/* Reads JSON of requests: one object of texts, numbers, true, false, null, with at most one nested
   object of the same. */
#ifndef KYMO_SERVE_JSON_READ_H
#define KYMO_SERVE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define JSONIN_FIELDS 48

struct json_read_field {
	const char *key, *value; /* numbers and words unchanged; texts decoded, ended by NUL */
	bool text, inside; /* a text; of the nested object */
};

struct json_read {
	struct json_read_field fields[JSONIN_FIELDS];
	size_t count;
	char *store; /* the memory of keys and values */
};

/* 0, or -EINVAL: not such an object, or a text contains NUL. */
int json_read_object(const char *bytes, size_t count, struct json_read *out);
void json_read_fini(struct json_read *json);
/* NULL: missing, or null. */
const char *json_read_get(const struct json_read *json, const char *key);

#endif
