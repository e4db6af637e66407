/*
 * Regions with names created at run time. Each name is kept once, for the life of the process: it
 * outlives the text, library or stack it came from, a fork inherits it, and creating the same
 * region again takes no more room.
 */
#include <errno.h>
#include <string.h>

#include <kymo/atomic.h>

#include "record/record.h"

#define MADE_MAX 8192u
#define TEXT_BYTES (1u << 20)

enum { FREE, FILLING, READY };

struct made {
	uint32_t state;
	uint32_t name_bytes;
	struct kymo_region region;
};

/* Untouched pages cost nothing. */
static struct made made[MADE_MAX];
static char text[TEXT_BYTES];
static uint32_t text_used;

static char *region_names_text_take(uint32_t bytes)
{
	uint32_t at = kymo__load_relaxed(&text_used);

	do {
		if (bytes > TEXT_BYTES - at)
			return NULL;
	} while (!kymo__cas_relaxed(&text_used, &at, at + bytes));
	return text + at;
}

static bool region_names_fill(struct made *one, const char *name, uint32_t bytes)
{
	char *kept = region_names_text_take(bytes + 1);

	if (!kept) {
		kymo__store_release(&one->state, FREE);
		return false;
	}
	memcpy(kept, name, bytes);
	one->name_bytes = bytes;
	one->region.name = kept;
	/* Pairs with the acquire in find_or_make(). */
	kymo__store_release(&one->state, READY);
	return true;
}

/* NULL: no room. Two threads that create a name at once may create it twice; both have the same id
   and totals. */
static struct made *find_or_make(const char *name)
{
	uint32_t bytes = (uint32_t)kymo__utf8_cut(name, strlen(name), KYMO_NAME_BYTES_MAX);
	uint64_t hash = 14695981039346656037ull;

	for (uint32_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)name[i]) * 1099511628211ull;
	for (uint32_t probe = 0; probe < MADE_MAX; probe++) {
		struct made *one = &made[(hash + probe) % MADE_MAX];
		uint32_t state = kymo__load_acquire(&one->state);

		if (state == FREE && kymo__cas_acquire_acquire(&one->state, &state, FILLING))
			return region_names_fill(one, name, bytes) ? one : NULL;
		if (state == READY && one->name_bytes == bytes &&
		    !memcmp(one->region.name, name, bytes))
			return one;
	}
	return NULL;
}

struct kymo_region *kymo_region_create(const char *name)
{
	struct made *one = name ? find_or_make(name) : NULL;

	return one ? &one->region : NULL;
}

int kymo_region_init(struct kymo_region *region, const char *name)
{
	struct made *one;

	if (!region || !name)
		return -EINVAL;
	one = find_or_make(name);
	memset(region, 0, sizeof(*region));
	region->name = one ? one->region.name : NULL;
	region->id = kymo_name(name); /* 0 while recording is off: looked up at the first start */
	return one || region->id ? 0 : -ENOMEM;
}

int kymo_regions_init(struct kymo_region *regions, const char *const *names, size_t count)
{
	int rc = regions && names ? 0 : -EINVAL;

	for (size_t i = 0; !rc && i < count; i++)
		rc = kymo_region_init(&regions[i], names[i]);
	return rc;
}

static int region_names_each_of_name(struct kymo_region *regions, size_t count, const char *name,
				     int (*call)(struct kymo_region *region))
{
	bool found = false;
	int rc = 0;

	for (size_t i = 0; regions && name && i < count; i++) {
		int failed;

		if (!regions[i].name || strcmp(regions[i].name, name))
			continue;
		found = true;
		failed = call(&regions[i]);
		rc = rc ? rc : failed;
	}
	return found ? rc : -EINVAL;
}

int kymo_regions_start_by_name(struct kymo_region *regions, size_t count, const char *name)
{
	return region_names_each_of_name(regions, count, name, kymo_region_start);
}

int kymo_regions_stop_by_name(struct kymo_region *regions, size_t count, const char *name)
{
	return region_names_each_of_name(regions, count, name, kymo_region_stop);
}
