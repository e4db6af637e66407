/* The names of a timeline's zones, each once: for reports (zoneset.h) and for the viewer
   (serve/zoneindex.h). */
#ifndef KYMO_VIEWS_TIMELINE_ZONENAMES_H
#define KYMO_VIEWS_TIMELINE_ZONENAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct zonenames_name {
	size_t name_at, file_at; /* in text */
	uint32_t name_bytes, file_bytes;
	char source[8];
	int32_t line;
	uint64_t hash;
};

struct zonenames {
	struct zonenames_name *list;
	size_t count, room;
	uint32_t *slots; /* open hash: index + 1 */
	size_t slot_count;
	struct buf text;
};

struct zonenames_key {
	const char *name, *file, *source; /* not NULL; source ends with NUL */
	size_t name_bytes, file_bytes;
	int32_t line;
};

/* The name's index, or -ENOMEM. The last of `most` stands for all further ones. */
int64_t zonenames_find(struct zonenames *names, const struct zonenames_key *key, size_t most);
/* As columns of JSON: names [from, from + count), or those that `which` lists. */
void zonenames_json(const struct zonenames *names, const uint32_t *which, size_t from, size_t count,
		    struct buf *out);
void zonenames_fini(struct zonenames *names);

#endif
