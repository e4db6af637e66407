/* JSON that comes in: one object of texts, numbers, true, false, null, and at most one object of
   the same inside of it. */
#ifndef KYMO_SERVE_JSON_READ_H
#define KYMO_SERVE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define JSONIN_FIELDS 48

struct json_read_field {
	const char *key, *value; /* numbers and words as they stand; texts decoded, NUL-ended */
	bool text, inside; /* a text; of the inner object */
};

struct json_read {
	struct json_read_field fields[JSONIN_FIELDS];
	size_t count;
	char *store; /* what they point into */
};

/* 0, or -EINVAL: it is no such object, or a text holds NUL. */
int json_read_object(const char *bytes, size_t count, struct json_read *out);
void json_read_fini(struct json_read *json);
/* NULL: not there, or null. */
const char *json_read_get(const struct json_read *json, const char *key);

#endif
