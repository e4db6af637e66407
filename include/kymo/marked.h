/*
 * For the headers in compat/include, which translate the marks of other tools. Programs include
 * <kymo/kymo.h> instead. Everything named kymo__ may change with the library's soname.
 */
#ifndef KYMO_MARKED_H
#define KYMO_MARKED_H

#include <kymo/kymo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Turns recording on at the first call in the process, unless KYMO is set in the environment. */
KYMO__EXPORT void kymo__enable_once(void);

/* kymo_mark() for a text without a terminating NUL. */
KYMO__EXPORT void kymo__mark_bytes(const char *name, const char *text, size_t bytes);

/*
 * Memory pools of the program: the live bytes of a pool are the counter "memory: POOL" (pool NULL:
 * "memory"). Sizes are kept in a table of 65,536 live pointers. Pointers that do not fit are left
 * out and counted in the counter "memory: not tracked".
 */
KYMO__EXPORT void kymo__pool_alloc(const char *pool, const void *ptr, size_t bytes);
KYMO__EXPORT void kymo__pool_free(const char *pool, const void *ptr);
KYMO__EXPORT void kymo__pool_discard(const char *pool); /* frees the whole pool */

/* The entry of a zone on the mapped stack of open zones; NULL if the zone is too deep to have
   one. */
static inline struct kymo_open_entry *kymo__open_entry(const struct kymo_zone *zone)
{
	struct kymo_open_entry *entry;

	if (!zone->lane || zone->lane != kymo__lane || zone->depth >= KYMO_OPEN_MAX)
		return NULL;
	entry = &zone->lane->open->entries[zone->depth];
	return entry->start_ticks == zone->start_ticks ? entry : NULL;
}

/* Renames an open zone. The new name is also stored in the open-zone entry, because there may be
   copies of *zone; a copy of a zone too deep for an entry keeps the old name. */
static inline void kymo__zone_rename(struct kymo_zone *zone, uint32_t name_id)
{
	struct kymo_open_entry *entry = kymo__open_entry(zone);

	zone->name = name_id;
	if (entry)
		entry->name = name_id;
}

/* Ends a zone under its current name. */
static inline void kymo__zone_end_renamed(const struct kymo_zone *zone)
{
	const struct kymo_open_entry *entry;
	struct kymo_zone named;

	if (!zone->lane)
		return;
	named = *zone;
	entry = kymo__open_entry(zone);
	if (entry)
		named.name = entry->name;
	kymo__zone_close(&named);
}

#ifdef __cplusplus
}
#endif

#endif
