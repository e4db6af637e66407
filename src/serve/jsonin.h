/* JSON that comes in: one object of texts, numbers, true, false, null, and at most one object of the same inside of it. */
#ifndef KYMO_SERVE_JSONIN_H
#define KYMO_SERVE_JSONIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define JSONIN_FIELDS 48

struct jsonin_field {
	const char *key, *value; /* numbers and words as they stand; texts decoded, NUL-ended */
	bool text, inside; /* a text; of the inner object */
};

struct jsonin {
	struct jsonin_field fields[JSONIN_FIELDS];
	size_t count;
	char *store; /* what they point into */
};

/* 0, or -EINVAL: it is no such object, or a text holds NUL. */
int jsonin_read(const char *bytes, size_t count, struct jsonin *out);
void jsonin_fini(struct jsonin *json);
/* NULL: not there, or null. */
const char *jsonin_get(const struct jsonin *json, const char *key);

#endif
