/* Regions: zones with separate calls for start and stop. A stop finds its start on the thread's
   stack of open zones, so nesting, recursion and several threads in one region need nothing
   else. A region that outlasts a scope in which it began is among the thread's ranges
   (ranges.c). */
#include <errno.h>
#include <string.h>

#include <kymo/atomic.h>

#include "record/record.h"

static uint32_t region_id(struct kymo_region *region)
{
	uint32_t id = kymo__load_relaxed(&region->id);
	const char *file = region->file ? region->file : "";

	if (KYMO__LIKELY(id))
		return id;
	id = kymo__intern(region->name ? region->name : "", region->name ? strlen(region->name) : 0,
			  file, strlen(file), region->line, KYMO_SOURCE_C, 0);
	kymo__store_relaxed(&region->id, id);
	return id;
}

/* Entries 0..63 are in the mapped stream, later ones in private memory; NULL beyond. */
static struct kymo_open_entry *region_entry_at(struct kymo__full_lane *lane, uint32_t depth)
{
	if (depth < KYMO_OPEN_MAX)
		return &lane->hot.open->entries[depth];
	return depth - KYMO_OPEN_MAX < KYMO__DEEP ? &lane->deep[depth - KYMO_OPEN_MAX] : NULL;
}

int kymo__region_push(uint32_t name, uint32_t flags)
{
	struct kymo__full_lane *lane = kymo__lane_for(SCHEMA_ZONES);
	struct kymo_open_entry *entry;
	uint32_t depth;

	if (!lane)
		return -ENOMEM;
	depth = lane->hot.open->depth;
	entry = region_entry_at(lane, depth);
	if (!entry) {
		kymo__fetch_add_relaxed(&lane->streams[SCHEMA_ZONES]->live->dropped[KYMO_DROP_FULL],
					1);
		return -ENOMEM;
	}
	lane->hot.open->depth = depth + 1;
	KYMO__BARRIER();
	entry->name = name;
	entry->flags = flags;
	entry->start_ticks = kymo__ticks();
	return 0;
}

int kymo_region_start(struct kymo_region *region)
{
	if (KYMO__UNLIKELY(!region))
		return -EINVAL;
	if (!kymo_enabled())
		return 0;
	kymo__region_open(region_id(region), KYMO_OPEN_REGION);
	return 0;
}

/* An end that is not the innermost leaves a hole, so that entries above keep their depth; holes on
   top are removed. A removed hole is cleared: a scope deeper than the mapped entries writes none,
   and an old hole below it would be taken for its own. */
static void region_pop(struct kymo__full_lane *lane, uint32_t depth)
{
	struct kymo_open_stack *open = lane->hot.open;
	uint32_t top = open->depth;

	region_entry_at(lane, depth)->name = 0;
	region_entry_at(lane, depth)->flags = KYMO_OPEN_REGION;
	if (depth + 1 != top)
		return;
	while (top > 0) {
		struct kymo_open_entry *entry = region_entry_at(lane, top - 1);

		if (!entry || entry->name || entry->flags != KYMO_OPEN_REGION)
			break;
		entry->flags = 0;
		top--;
	}
	open->depth = top;
}

/* The latest start on the stack; NULL: none. name 0: any. */
static struct kymo_open_entry *region_find(struct kymo__full_lane *lane, uint32_t name,
					   uint32_t flags, uint32_t *out_depth)
{
	for (uint32_t depth = lane->hot.open->depth; depth-- > 0;) {
		struct kymo_open_entry *entry = region_entry_at(lane, depth);

		if (entry && entry->name && (!name || entry->name == name) &&
		    (entry->flags & ~KYMO_OPEN_SHADOWED) == flags) {
			*out_depth = depth;
			return entry;
		}
	}
	return NULL;
}

int kymo__region_pop(uint32_t name, uint32_t flags, uint64_t end_ticks, uint64_t *out_start_ticks)
{
	struct kymo__full_lane *lane = kymo__lane ? kymo__full(kymo__lane) : NULL;
	struct kymo_zone zone = { kymo__lane, 0, name, 0 };
	const struct kymo_open_entry *entry = lane ? region_find(lane, name, flags, &zone.depth)
						   : NULL;

	if (lane && kymo__ranges_stop(lane, name, flags, entry ? entry->start_ticks : 0, end_ticks,
				      out_start_ticks))
		return 0;
	if (!entry)
		return -ENOENT;
	zone.start_ticks = entry->start_ticks;
	zone.name = entry->name;
	region_pop(lane, zone.depth);
	*out_start_ticks = zone.start_ticks;
	kymo__zone_write(&lane->hot, &zone, end_ticks, zone.depth, 0);
	return 0;
}

/* A stop ends the latest start, which is now a range: earlier ones on the stack wait for it. */
static void region_shadow(struct kymo__full_lane *lane, const struct kymo_open_entry *kept,
			  uint32_t below)
{
	while (below-- > 0) {
		struct kymo_open_entry *entry = region_entry_at(lane, below);

		if (entry && entry->name == kept->name && entry->flags == kept->flags)
			entry->flags |= KYMO_OPEN_SHADOWED;
	}
}

void kymo__zone_unwind(struct kymo__lane *hot, uint32_t depth)
{
	struct kymo__full_lane *lane = kymo__full(hot);
	uint32_t top = hot->open->depth;

	for (uint32_t i = depth + 1; i < top; i++) {
		struct kymo_open_entry *entry = region_entry_at(lane, i);

		if (!entry)
			break;
		if (entry->name && entry->flags & KYMO_OPEN_REGION) {
			region_shadow(lane, entry, depth);
			kymo__ranges_keep(lane, entry);
		}
		/* A scope deeper than the mapped entries writes none: see region_pop(). */
		if (i >= KYMO_OPEN_MAX)
			entry->name = entry->flags = 0;
	}
	if (depth < top)
		hot->open->depth = depth;
}

void kymo__region_thread_ends(struct kymo__full_lane *lane)
{
	for (uint32_t i = KYMO_OPEN_MAX; i < lane->hot.open->depth; i++) {
		struct kymo_open_entry *entry = region_entry_at(lane, i);

		if (!entry)
			break;
		entry->name = entry->flags = 0;
	}
	kymo__ranges_thread_ends(lane);
}

int kymo_region_stop(struct kymo_region *region)
{
	uint64_t end_ticks = kymo__ticks(), start_ticks;
	uint32_t id;

	if (KYMO__UNLIKELY(!region))
		return -EINVAL;
	/* Looked up here, too: it may have been started through another region of that name. */
	id = kymo__load_relaxed(&region->id);
	if (KYMO__UNLIKELY(!id && kymo__lane))
		id = region_id(region);
	if (KYMO__LIKELY(id && !kymo__region_close(id, KYMO_OPEN_REGION, end_ticks, &start_ticks)))
		return 0;
	return kymo_enabled() ? -ENOENT : 0;
}
