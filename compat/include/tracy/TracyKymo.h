/* Shared by Tracy.hpp and TracyC.h when they are active: turning recording on, and a zone with its
   place. */
#ifndef KYMO_TRACY_SHARED_H
#define KYMO_TRACY_SHARED_H

#include <string.h>

#include <kymo/marked.h>

#ifndef TracyConcat
#define TracyConcat(x, y) TracyConcatIndirect(x, y)
#endif
#ifndef TracyConcatIndirect
#define TracyConcatIndirect(x, y) x##y
#endif
#ifndef TracyFunction
#define TracyFunction __FUNCTION__
#endif
#ifndef TracyFile
#define TracyFile __FILE__
#endif
#ifndef TracyLine
#define TracyLine __LINE__
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A build with TRACY_ENABLE records by itself, from before the first static object on. KYMO=off
   overrides it. */
#ifndef TRACY_MANUAL_LIFETIME
__attribute__((constructor(101), used)) static void kymo__tracy_on_load(void)
{
	kymo__enable_once();
}
#endif

static inline struct kymo_zone kymo__tracy_begin(struct kymo_site *site, int active)
{
	struct kymo_zone none = { NULL, 0, 0, 0 };

	return active ? kymo_zone_begin(site) : none;
}

/* A zone whose place or name is created at run time. */
static inline struct kymo_zone kymo__tracy_begin_named(const char *name, size_t name_bytes,
						       const char *file, size_t file_bytes,
						       uint32_t line, int active)
{
	struct kymo_zone none = { NULL, 0, 0, 0 };

	if (!active || !kymo_enabled())
		return none;
	return kymo_zone_begin_id(
		kymo_name_full(name, name_bytes, file, file_bytes, line, KYMO_SOURCE_C, 0));
}

/* The new name keeps the place of the old one. When the table of names is full, the new name
   becomes a text of the zone. */
static inline void kymo__tracy_rename(struct kymo_zone *zone, const char *file, uint32_t line,
				      const char *text, size_t bytes)
{
	uint32_t id;

	if (!zone->lane || !text)
		return;
	id = kymo_name_full(text, bytes, file, file ? strlen(file) : 0, line, KYMO_SOURCE_C, 0);
	if (id)
		kymo__zone_rename(zone, id);
	else
		kymo_zone_text_of(zone, text, bytes);
}

static inline size_t kymo__tracy_length(const char *text)
{
	return text ? strlen(text) : 0;
}

/* Tracy's own name for the frames of FrameMark. */
static inline const char *kymo__tracy_frame(const char *name)
{
	return name ? name : "frame";
}

static inline void kymo__tracy_message(const char *text, size_t bytes)
{
	kymo__mark_bytes("message", text, bytes);
}

#ifdef __cplusplus
}
#endif

#endif
