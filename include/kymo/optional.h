/*
 * <kymo/kymo.h> where kymo is installed, else the same names without effect. Copy this one file
 * into your project, include it instead of <kymo/kymo.h>, and link libkymo where it is found:
 *
 *	cc app.c $(pkg-config --silence-errors --cflags --libs kymo)
 *
 * KYMO_PRESENT is 1 where kymo is there. With -DKYMO_ABSENT it is not looked for. What does nothing
 * needs no library, takes no room in the program and evaluates its arguments. C99 and C++11 with
 * GCC, Clang or a compiler that has __has_include.
 *
 * SPDX-License-Identifier: MIT (as all of kymo; this notice is enough in a copy)
 */
#ifndef KYMO_OPTIONAL_H
#define KYMO_OPTIONAL_H

#if !defined(KYMO_ABSENT) && defined(__has_include)
#if __has_include(<kymo/kymo.h>)
#define KYMO_PRESENT 1
#include <kymo/kymo.h>
#endif
#endif

#ifndef KYMO_PRESENT
#define KYMO_PRESENT 0

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- types: those of kymo.h, as far as a program names their fields ---- */

struct kymo_error {
	int code;
	char text[1024];
};
struct kymo_site {
	const char *name;
	const char *file;
	uint32_t line;
	uint32_t id;
};
struct kymo_zone {
	uint32_t unused;
};
struct kymo_region {
	const char *name;
	const char *file;
	uint32_t line;
	uint32_t id;
	uint32_t flags;
	uint32_t reserved;
};
#define KYMO_REGION_INIT(text) \
	{ \
		(text), __FILE__, __LINE__, 0, 0, 0 \
	}
struct kymo_totals {
	size_t bytes;
	uint64_t count, total_ns, min_ns, max_ns;
	uint64_t p50_ns, p99_ns;
	double mean_ns, stddev_ns;
	uint64_t open;
	uint64_t dropped;
	uint64_t own_cost_ns;
	uint64_t incomplete;
};
enum kymo_source { KYMO_SOURCE_C };
enum kymo_phase {
	KYMO_PHASE_DATA,
	KYMO_PHASE_FORWARD,
	KYMO_PHASE_BACKWARD,
	KYMO_PHASE_OPTIMIZER,
	KYMO_PHASE_COUNT
};
enum kymo_type {
	KYMO_I32 = 1,
	KYMO_I64 = 2,
	KYMO_U32 = 3,
	KYMO_U64 = 4,
	KYMO_F32 = 5,
	KYMO_F64 = 6,
	KYMO_BOOL = 7,
	KYMO_U16 = 8,
	KYMO_TEXT = 9,
	KYMO_NAME = 10,
	KYMO_TIME = 11,
	KYMO_DURATION = 12,
	KYMO_THREAD = 13
};
struct kymo_column {
	const char *name;
	enum kymo_type type;
	size_t offset;
	size_t bytes;
	const char *unit;
};
struct kymo_table;

/* ---- calls: macros, so that nothing is left of them ---- */

/* Functions, since compilers warn of a constant whose value is not used. */
static inline int kymo__no_int(void)
{
	return 0;
}
static inline uint32_t kymo__no_u32(void)
{
	return 0;
}
static inline uint64_t kymo__no_u64(void)
{
	return 0;
}
static inline struct kymo_region *kymo__no_region(void)
{
	return NULL;
}
static inline struct kymo_table *kymo__no_table(void)
{
	return NULL;
}

#ifdef __cplusplus
#define KYMO__ABSENT_ZONE kymo_zone()
#define KYMO__ABSENT_TOTALS kymo_totals()
#else
#define KYMO__ABSENT_ZONE ((struct kymo_zone){ 0 })
#define KYMO__ABSENT_TOTALS ((struct kymo_totals){ 0 })
#endif
#define kymo_enable(err) ((void)(err), kymo__no_int())
#define kymo_disable() ((void)0)
#define kymo_enabled() (false)
#define kymo_poll() ((void)0)
#define kymo_directory() ("")
#define kymo_name(name) ((void)(name), kymo__no_u32())
#define kymo_name_full(name, bytes, file, file_bytes, line, source, instance) \
	((void)(name), (void)(file), kymo__no_u32())
#define kymo_thread_name(name) ((void)(name))
#define kymo_thread_name_tid(tid, name) ((void)(tid), (void)(name))
#define kymo_zone_begin(site) ((void)(site), KYMO__ABSENT_ZONE)
#define kymo_zone_begin_id(id) ((void)(id), KYMO__ABSENT_ZONE)
#define kymo_zone_end(zone) ((void)(zone))
#define kymo_zone_text(text, bytes) ((void)(text), (void)(bytes))
#define kymo_zone_value(value) ((void)(value))
#define kymo_zone_text_of(zone, text, bytes) ((void)(zone), (void)(text), (void)(bytes))
#define kymo_zone_value_of(zone, value) ((void)(zone), (void)(value))
#define kymo_region_create(name) ((void)(name), kymo__no_region())
#define kymo_region_init(region, name) ((void)(region), (void)(name), kymo__no_int())
#define kymo_regions_init(regions, names, count) \
	((void)(regions), (void)(names), (void)(count), kymo__no_int())
#define kymo_regions_start_by_name(regions, count, name) \
	((void)(regions), (void)(count), (void)(name), kymo__no_int())
#define kymo_regions_stop_by_name(regions, count, name) \
	((void)(regions), (void)(count), (void)(name), kymo__no_int())
#define kymo_region_totals(region, out) \
	((void)(region), (*(out) = KYMO__ABSENT_TOTALS), (out)->bytes = sizeof(*(out)), \
	 kymo__no_int())
#define kymo_region_print_to(buf, bytes, region) \
	((void)((bytes) ? (*(buf) = '\0') : 0), (void)(region), kymo__no_int())
#define kymo_region_print(region) ((void)(region), kymo__no_int())
#define kymo_regions_print_all(regions, count) ((void)(regions), (void)(count), kymo__no_int())
#define kymo_region_start(region) ((void)(region), kymo__no_int())
#define kymo_region_stop(region) ((void)(region), kymo__no_int())
#define kymo_range_begin(name) ((void)(name), kymo__no_u64())
#define kymo_range_begin_id(id) ((void)(id), kymo__no_u64())
#define kymo_range_end(range) ((void)(range), kymo__no_int())
#define kymo_range_text(range, text, bytes) ((void)(range), (void)(text), (void)(bytes))
#define kymo_mark(name, text) ((void)(name), (void)(text))
#define kymo_counter(name, value) ((void)(name), (void)(value))
#define kymo_counter_id(id, value) ((void)(id), (void)(value))
#define kymo_step(name) ((void)(name))
#define kymo_step_end(name) ((void)(name))
#define kymo_step_phase(phase, ticks) ((void)(ticks))
#define kymo_current_step() (kymo__no_u32())
#define kymo_table_create(name, columns, count, bytes, err) \
	((void)(name), (void)(columns), (void)(err), kymo__no_table())
#define kymo_table_append(table, row) ((void)(table), (void)(row), kymo__no_int())
#define kymo_ticks() (kymo__no_u64())
#define kymo_ticks_ns(ticks) ((void)(ticks), kymo__no_u64())
#define kymo_snapshot(path, err) ((void)(path), (void)(err), kymo__no_int())

/* ---- scopes ---- */

#define KYMO_SCOPE(text) ((void)0)
#define KYMO_FUNCTION() ((void)0)
#define KYMO_REGION_SCOPE(region) ((void)(region))
#define KYMO_LAMBDA() ((void)0)
#define KYMO_WRAP(text, ...) (__VA_ARGS__)
#define KYMO_COROUTINE(text) ((void)0)
#define KYMO_MARK(name, text) kymo_mark((name), (text))
#define KYMO_COUNTER(name, value) kymo_counter((name), (value))
#define KYMO_STEP(name) kymo_step(name)

#ifdef __cplusplus
namespace kymo
{
class scope
{
      public:
	explicit scope(kymo_site *)
	{
	}
	scope(kymo_site *, const char *)
	{
	}
	~scope()
	{
	}
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
	void text(const char *, size_t) const
	{
	}
	void value(uint64_t) const
	{
	}
};
class region_scope
{
      public:
	explicit region_scope(kymo_region *)
	{
	}
	~region_scope()
	{
	}
	region_scope(const region_scope &) = delete;
	region_scope &operator=(const region_scope &) = delete;
};
class range
{
      public:
	explicit range(const char *)
	{
	}
	explicit range(kymo_site *)
	{
	}
	range(range &&) noexcept
	{
	}
	range &operator=(range &&) noexcept
	{
		return *this;
	}
	~range()
	{
	}
	void end()
	{
	}
	void text(const char *, size_t) const
	{
	}
};
} // namespace kymo
#endif

#endif
#endif
