/*
 * For headers that take code which is already marked for another tool to kymo (compat/include). Not
 * for programs: they include <kymo/kymo.h>. Everything named kymo__ may change with the library's
 * soname.
 */
#ifndef KYMO_MARKED_H
#define KYMO_MARKED_H

#include <kymo/kymo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Turns recording on, at the first call in the process and unless KYMO in the environment has
   decided. */
KYMO__EXPORT void kymo__enable_once(void);

/* kymo_mark() with a text that needs no NUL. */
KYMO__EXPORT void kymo__mark_bytes(const char *name, const char *text, size_t bytes);

/*
 * Memory that the program hands out itself: live bytes of a pool, as a counter named "memory: POOL"
 * (pool NULL: "memory"). Sizes are kept in a table of 65,536 live pointers; what does not fit is
 * left out of the bytes and counted in the counter "memory: not tracked".
 */
KYMO__EXPORT void kymo__pool_alloc(const char *pool, const void *ptr, size_t bytes);
KYMO__EXPORT void kymo__pool_free(const char *pool, const void *ptr);
KYMO__EXPORT void kymo__pool_discard(const char *pool); /* all of it at once */

/* Where the name of an open zone is kept for those who look from outside; NULL for a zone deeper
   than that. */
static inline struct kymo_open_entry *kymo__open_entry(const struct kymo_zone *zone)
{
	struct kymo_open_entry *entry;

	if (!zone->lane || zone->lane != kymo__lane || zone->depth >= KYMO_OPEN_MAX)
		return NULL;
	entry = &zone->lane->open->entries[zone->depth];
	return entry->start_ticks == zone->start_ticks ? entry : NULL;
}

/* Gives an open zone another name. It is kept with the open zone too, as copies of *zone may be
   about; for them a zone that is open deeper than that keeps its old one. */
static inline void kymo__zone_rename(struct kymo_zone *zone, uint32_t name_id)
{
	struct kymo_open_entry *entry = kymo__open_entry(zone);

	zone->name = name_id;
	if (entry)
		entry->name = name_id;
}

/* Ends a zone under the name that it has now. */
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
