/*
 * kymo: a flight recorder for AI workloads. The API for C11 and C++17.
 *
 *	#include <kymo/kymo.h>
 *
 *	void handle(struct request *r)
 *	{
 *		KYMO_SCOPE("handle");		// a zone that ends with the block
 *		kymo_counter("queue", r->waiting);
 *		...
 *	}
 *
 * Build with `pkg-config --cflags --libs kymo`, run it under `kymo run -- ./program` (or with
 * KYMO=on), and ask: `kymo query latest "FROM trace.regions"`.
 *
 * kymo never changes what your program does: no call blocks, exits, throws or allocates with
 * malloc. Rows that cannot be recorded are dropped and counted (`FROM kymo.streams`). While
 * recording is off, a zone costs one load and a branch. All functions are thread-safe and work
 * after fork. All are safe in signal handlers except *_create, *_init, kymo_snapshot() and
 * kymo_poll(). -DKYMO_DISABLE compiles every call to nothing.
 */
#ifndef KYMO_H
#define KYMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C++" { /* also where a program includes this file in extern "C" */
#include <type_traits>
#include <utility>
}
#endif

#include <kymo/atomic.h>
#include <kymo/hot.h>

#define KYMO_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------------------------ */

/* A sentence that a person can act on: what failed, on what, why, what to do. */
struct kymo_error {
	int code; /* an errno value, or 0 */
	char text[1024];
};

/* ---- on and off -------------------------------------------------------------------------- */

/* Starts recording, like KYMO=on. Returns 0, or a negative errno and fills *err (if not NULL);
   nothing is recorded then, and all other calls remain safe. -EPERM: the environment has
   KYMO=off. */
KYMO__EXPORT int kymo_enable(struct kymo_error *err);
/* Stops recording and keeps the recording. kymo_enable() continues the same one. */
KYMO__EXPORT void kymo_disable(void);
static inline bool kymo_enabled(void)
{
	return kymo__is_on(KYMO_ON_ZONES) != 0;
}
/* Applies settings that need a library to be loaded: `kymo config PID memory=on` in a program that
   was not started with --memory. Call it once per step or request. It costs two loads when nothing
   is pending, and a few milliseconds in the one call that loads the library and redirects malloc.
   Do not call it from a signal handler or an allocator. */
KYMO__EXPORT void kymo_poll(void);
/* The directory of this process's recording, or "" if there is none. */
KYMO__EXPORT const char *kymo_directory(void);

/* ---- names and threads ------------------------------------------------------------------- */

/* Returns the id of a name; equal texts have equal ids. 0: the name table is full (counted). The
   text is copied, so the library that holds it may be unloaded. */
KYMO__EXPORT uint32_t kymo_name(const char *name);
/* Like kymo_name(), with file, line, source and instance. name and file need no terminating NUL;
   file may be NULL. */
KYMO__EXPORT uint32_t kymo_name_full(const char *name, size_t name_bytes, const char *file,
				     size_t file_bytes, uint32_t line, enum kymo_source source,
				     uint32_t instance);
/* Names the calling thread in the recording (at most 39 bytes are kept). */
KYMO__EXPORT void kymo_thread_name(const char *name);
/* The same for a thread of this process by its kernel thread ID, also before it has recorded
   anything. */
KYMO__EXPORT void kymo_thread_name_tid(int32_t tid, const char *name);

/* ---- zones ------------------------------------------------------------------------------- */

/* A place in the code. Make it static: its name is then interned once. */
struct kymo_site {
	const char *name;
	const char *file;
	uint32_t line;
	uint32_t id; /* 0 before its first zone */
};

KYMO__EXPORT uint32_t kymo__site_id(struct kymo_site *site);

static inline struct kymo_zone kymo_zone_begin(struct kymo_site *site)
{
	struct kymo_zone none = { NULL, 0, 0, 0 };
	uint32_t id;

	if (KYMO__LIKELY(!kymo__is_on(KYMO_ON_ZONES)))
		return none;
	id = kymo__load_relaxed(&site->id);
	if (KYMO__UNLIKELY(!id))
		id = kymo__site_id(site);
	return kymo__zone_open(id);
}

static inline uint32_t kymo__site_id_of(struct kymo_site *site)
{
	uint32_t id = kymo__load_relaxed(&site->id);

	return id ? id : kymo__site_id(site);
}

/* For names that are not constant expressions in C, such as __func__. */
static inline struct kymo_zone kymo__zone_begin_named(struct kymo_site *site, const char *name)
{
	if (KYMO__UNLIKELY(!site->name))
		site->name = name; /* the same for every thread */
	return kymo_zone_begin(site);
}

/* For names made at run time; name_id comes from kymo_name(). */
static inline struct kymo_zone kymo_zone_begin_id(uint32_t name_id)
{
	struct kymo_zone none = { NULL, 0, 0, 0 };

	if (KYMO__LIKELY(!kymo__is_on(KYMO_ON_ZONES)))
		return none;
	return kymo__zone_open(name_id);
}

static inline void kymo_zone_end(const struct kymo_zone *zone)
{
	if (zone->lane)
		kymo__zone_close(zone);
}

/* Attaches a text of any length, or a value, to the innermost open zone of this thread. */
KYMO__EXPORT void kymo_zone_text(const char *text, size_t bytes);
KYMO__EXPORT void kymo_zone_value(uint64_t value);
/* The same for a given zone; call it on the thread that began the zone. Zones that are not recorded
   are ignored. */
KYMO__EXPORT void kymo_zone_text_of(const struct kymo_zone *zone, const char *text, size_t bytes);
KYMO__EXPORT void kymo_zone_value_of(const struct kymo_zone *zone, uint64_t value);

/* ---- regions: zones whose start and stop may be in different blocks ----------------------- */

/* Several threads may use one region at once. Starts may nest and recurse up to 65,536 deep. A
   region that is still started when a scope around its start ends becomes a range (below): up to 64
   of a thread are kept, and of more the oldest is given up. */
struct kymo_region {
	const char *name; /* must outlive the region: a static text, or a copy that kymo owns */
	const char *file;
	uint32_t line;
	uint32_t id;
	uint32_t flags;
	uint32_t reserved;
};

/* static struct kymo_region load = KYMO_REGION_INIT("load"); */
#define KYMO_REGION_INIT(text) \
	{ \
		(text), __FILE__, __LINE__, 0, 0, 0 \
	}

/* Returns the region of a name made at run time; equal names give the same region. It lives as long
   as the process and is inherited by fork; do not free it. The name is copied. NULL: the limit of
   8,192 names or 1 MiB of text is reached. All other calls accept a NULL region and do nothing. */
KYMO__EXPORT struct kymo_region *kymo_region_create(const char *name);
/* Initialises a region in the caller's storage, which may be freed whenever the region is not
   started. Returns 0; -EINVAL for NULL; -ENOMEM if the name does not fit, and the region is then
   recorded without a name. */
KYMO__EXPORT int kymo_region_init(struct kymo_region *region, const char *name);
/* Initialises an array; stops at the first failure. */
KYMO__EXPORT int kymo_regions_init(struct kymo_region *regions, const char *const *names,
				   size_t count);
/* Returns 0, or -EINVAL for NULL. Does nothing while recording is off. */
KYMO__EXPORT int kymo_region_start(struct kymo_region *region);
/* Ends the latest start of this region on this thread. Returns 0; -EINVAL for NULL; -ENOENT if this
   thread has not started it. */
KYMO__EXPORT int kymo_region_stop(struct kymo_region *region);
/* Starts or stops every region of that name in the array. Returns the first error, or -EINVAL if
   there is no such name. */
KYMO__EXPORT int kymo_regions_start_by_name(struct kymo_region *regions, size_t count,
					    const char *name);
KYMO__EXPORT int kymo_regions_stop_by_name(struct kymo_region *regions, size_t count,
					   const char *name);

/* ---- ranges: zones that any thread may end ------------------------------------------------ */

/* Begins a zone that may end on another thread, in any order. Returns its number, or 0 if it is not
   recorded; the other calls accept 0 and do nothing. Its row has the tid of this thread and is on a
   lane of its own, "THREAD (ranges)": it is not nested in other zones. trace.open_zones lists the
   first 128 open ranges of a thread, also after the thread or the process has ended. A thread may
   have 4,096 open ranges; more are dropped and counted. name_id comes from kymo_name(). */
KYMO__EXPORT uint64_t kymo_range_begin(const char *name);
KYMO__EXPORT uint64_t kymo_range_begin_id(uint32_t name_id);
/* Returns 0; -ENOENT if the range has ended, or was begun before a fork. */
KYMO__EXPORT int kymo_range_end(uint64_t range);
/* Attaches a text of any length to an open range, on any thread. */
KYMO__EXPORT void kymo_range_text(uint64_t range, const char *text, size_t bytes);

/* ---- totals of a region ------------------------------------------------------------------- */

/* Totals of a region over all threads of this process, including threads that have ended. Exact for
   every zone that ended before the call. A forked child starts at 0. Regions with equal name, file
   and line share their totals. */
struct kymo_totals {
	size_t bytes; /* sizeof(struct kymo_totals), set by the caller */
	uint64_t count, total_ns, min_ns, max_ns;
	uint64_t p50_ns, p99_ns; /* 0: no histogram (beyond the first 256 regions of a thread) */
	double mean_ns, stddev_ns;
	uint64_t open; /* zones that are open now */
	uint64_t dropped; /* dropped zones of the process, of any name */
	uint64_t own_cost_ns; /* cost of recording one zone, measured at start-up */
	uint64_t incomplete; /* 1: a thread that was updating its totals is left out */
};

/* Returns 0, also if nothing was recorded, or -EINVAL. Opens files: not for signal handlers. */
KYMO__EXPORT int kymo_region_totals(const struct kymo_region *region, struct kymo_totals *out);
/* Formats the totals as one line. Like snprintf(), returns the length needed and writes at most
   `bytes`. 0: the region has no zones. */
KYMO__EXPORT int kymo_region_print_to(char *buf, size_t bytes, const struct kymo_region *region);
/* Writes that line to stdout with one write(); nothing for a region without zones. 0 or -EINVAL. */
KYMO__EXPORT int kymo_region_print(const struct kymo_region *region);
KYMO__EXPORT int kymo_regions_print_all(const struct kymo_region *regions, size_t count);

/* ---- marks, counters, steps --------------------------------------------------------------- */

/* Marks a moment. text may have any length, or be NULL. */
KYMO__EXPORT void kymo_mark(const char *name, const char *text);
KYMO__EXPORT void kymo_counter(const char *name, double value);
KYMO__EXPORT void kymo_counter_id(uint32_t name_id, double value);
/* Ends the running step of that name (NULL: "step") on this thread and begins the next. Later rows
   carry the new step number. */
KYMO__EXPORT void kymo_step(const char *name);
/* Ends the running step without beginning another. */
KYMO__EXPORT void kymo_step_end(const char *name);
/* Phases of a step: the columns data_ns, forward_ns, … of trace.steps. */
enum kymo_phase {
	KYMO_PHASE_DATA,
	KYMO_PHASE_FORWARD,
	KYMO_PHASE_BACKWARD,
	KYMO_PHASE_OPTIMIZER,
	KYMO_PHASE_COUNT
};
/* Adds time to a phase of the running step. */
KYMO__EXPORT void kymo_step_phase(enum kymo_phase phase, uint64_t ticks);
KYMO__EXPORT uint32_t kymo_current_step(void);

/* ---- your own tables ---------------------------------------------------------------------- */

enum kymo_type {
	KYMO_I32 = 1,
	KYMO_I64 = 2,
	KYMO_U32 = 3,
	KYMO_U64 = 4,
	KYMO_F32 = 5,
	KYMO_F64 = 6,
	KYMO_BOOL = 7, /* one byte */
	KYMO_U16 = 8,
	KYMO_TEXT = 9, /* char[n], NUL-terminated unless full */
	KYMO_NAME = 10, /* uint32_t from kymo_name() */
	KYMO_TIME = 11, /* uint64_t from kymo_ticks(): ns since the recording began */
	KYMO_DURATION = 12, /* uint64_t, a difference of ticks: ns */
	KYMO_THREAD = 13, /* uint32_t: 0 is replaced by the calling thread */
};

struct kymo_column {
	const char *name; /* [A-Za-z_][A-Za-z0-9_]*, at most 31 */
	enum kymo_type type;
	size_t offset; /* offsetof() */
	size_t bytes; /* for KYMO_TEXT: its capacity; 0 otherwise */
	const char *unit; /* "ns", "bytes"; NULL: none */
};

/*
 *	struct request { uint64_t at; double ms; char path[32]; };
 *	static const struct kymo_column columns[] = {
 *		{ "at_ns", KYMO_TIME, offsetof(struct request, at), 0, NULL },
 *		{ "ms", KYMO_F64, offsetof(struct request, ms), 0, "ms" },
 *		{ "path", KYMO_TEXT, offsetof(struct request, path), 32, NULL },
 *	};
 *	struct kymo_table *requests =
 *		kymo_table_create("app.requests", columns, 3, sizeof(struct request), NULL);
 *	kymo_table_append(requests, &(struct request){ kymo_ticks(), 1.5, "/" });
 */
struct kymo_table;
/* name is "schema.table"; schemas of kymo are refused. An equal declaration returns the same table.
   NULL and *err for a bad declaration. Limits: 40 tables, 32 columns, 1,024 bytes per row. Tables
   are never freed. */
KYMO__EXPORT struct kymo_table *kymo_table_create(const char *name,
						  const struct kymo_column *columns,
						  size_t column_count, size_t row_bytes,
						  struct kymo_error *err);
/* Returns 0, also while recording is off; -EINVAL for NULL; -EAGAIN: dropped and counted. */
KYMO__EXPORT int kymo_table_append(struct kymo_table *table, const void *row);
static inline uint64_t kymo_ticks(void)
{
	return kymo__ticks();
}
/* Converts a difference of ticks to ns at the best known rate; 0 if nothing was ever recorded. */
KYMO__EXPORT uint64_t kymo_ticks_ns(uint64_t ticks);

/* ---- keeping ------------------------------------------------------------------------------ */

/* Writes the recording of this process to one file. It is written under another name and renamed,
   so an existing file is replaced completely or not at all. Returns 0, or a negative errno and
   *err. */
KYMO__EXPORT int kymo_snapshot(const char *path, struct kymo_error *err);

#ifdef __cplusplus
}
#endif

/* ---- nothing: -DKYMO_DISABLE ---------------------------------------------------------------- */

/* All calls exist and do nothing; libkymo need not be linked. */
#ifdef KYMO_DISABLE
#ifdef __cplusplus
#define KYMO__NO_ZONE kymo_zone()
#define KYMO__NO_TOTALS kymo_totals()
#else
#define KYMO__NO_TOTALS ((struct kymo_totals){ 0 })
#define KYMO__NO_ZONE ((struct kymo_zone){ NULL, 0, 0, 0 })
#endif
#define kymo_enable(err) ((void)(err), 0)
#define kymo_disable() ((void)0)
#define kymo_enabled() (false)
#define kymo_poll() ((void)0)
#define kymo_directory() ("")
#define kymo_name(name) ((void)(name), 0u)
#define kymo_name_full(name, bytes, file, file_bytes, line, source, instance) \
	((void)(name), (void)(file), 0u)
#define kymo_thread_name(name) ((void)(name))
#define kymo_thread_name_tid(tid, name) ((void)(tid), (void)(name))
#define kymo_zone_begin(site) ((void)(site), KYMO__NO_ZONE)
#define kymo_zone_begin_id(id) ((void)(id), KYMO__NO_ZONE)
#define kymo_zone_end(zone) ((void)(zone))
#define kymo__zone_begin_named(site, name) ((void)(site), (void)(name), KYMO__NO_ZONE)
#define kymo__site_id_of(site) ((void)(site), 0u)
#define kymo_zone_text(text, bytes) ((void)(text), (void)(bytes))
#define kymo_zone_value(value) ((void)(value))
#define kymo_zone_text_of(zone, text, bytes) ((void)(zone), (void)(text), (void)(bytes))
#define kymo_zone_value_of(zone, value) ((void)(zone), (void)(value))
#define kymo_region_create(name) ((void)(name), (struct kymo_region *)NULL)
#define kymo_region_init(region, name) ((void)(region), (void)(name), 0)
#define kymo_regions_init(regions, names, count) ((void)(regions), (void)(names), (void)(count), 0)
#define kymo_regions_start_by_name(regions, count, name) \
	((void)(regions), (void)(count), (void)(name), 0)
#define kymo_regions_stop_by_name(regions, count, name) \
	((void)(regions), (void)(count), (void)(name), 0)
#define kymo_region_totals(region, out) \
	((void)(region), (*(out) = KYMO__NO_TOTALS), (out)->bytes = sizeof(*(out)), 0)
#define kymo_region_print_to(buf, bytes, region) \
	((void)((bytes) ? (*(buf) = '\0') : 0), (void)(region), 0)
#define kymo_region_print(region) ((void)(region), 0)
#define kymo_regions_print_all(regions, count) ((void)(regions), (void)(count), 0)
#define kymo_region_start(region) ((void)(region), 0)
#define kymo_region_stop(region) ((void)(region), 0)
#define kymo_range_begin(name) ((void)(name), (uint64_t)0)
#define kymo_range_begin_id(id) ((void)(id), (uint64_t)0)
#define kymo_range_end(range) ((void)(range), 0)
#define kymo_range_text(range, text, bytes) ((void)(range), (void)(text), (void)(bytes))
#define kymo_mark(name, text) ((void)(name), (void)(text))
#define kymo_counter(name, value) ((void)(name), (void)(value))
#define kymo_counter_id(id, value) ((void)(id), (void)(value))
#define kymo_step(name) ((void)(name))
#define kymo_step_end(name) ((void)(name))
#define kymo_step_phase(phase, ticks) ((void)(ticks))
#define kymo_current_step() (0u)
#define kymo_table_create(name, columns, count, bytes, err) \
	((void)(name), (void)(columns), (void)(err), (struct kymo_table *)NULL)
#define kymo_table_append(table, row) ((void)(table), (void)(row), 0)
#define kymo_ticks() ((uint64_t)0)
#define kymo_ticks_ns(ticks) ((void)(ticks), (uint64_t)0)
#define kymo_snapshot(path, err) ((void)(path), (void)(err), 0)
#endif

/* ---- scopes ------------------------------------------------------------------------------- */

#define KYMO__JOIN2(a, b) a##b
#define KYMO__JOIN(a, b) KYMO__JOIN2(a, b)

/*
 *	KYMO_SCOPE("name");		a zone that ends with the block
 *	KYMO_FUNCTION();		the same, with the function's name
 *	KYMO_REGION_SCOPE(&region);	starts the region; stops it when the block ends
 *
 * C++ alone:
 *	KYMO_LAMBDA();			in a lambda, where KYMO_FUNCTION() is "operator()": a zone
 *					named "FUNCTION::<lambda>" (C++17)
 *	KYMO_WRAP("name", callable)	a callable with the same arguments and result, whose calls
 *					are zones: std::thread(KYMO_WRAP("worker", [&] { ... }))
 *	KYMO_COROUTINE("name");		in a coroutine, where a scope would end on a thread that did
 *					not begin it: a range from here to the coroutine's end
 *
 * C uses the cleanup attribute, C++ a destructor, so exceptions end zones too. In C, longjmp skips
 * the end; the enclosing zone then closes it. At most one of each per line.
 */
#ifdef __cplusplus
extern "C++" {
namespace kymo
{
/* A zone that ends with its scope, also by an exception. */
class scope
{
      public:
	explicit scope(kymo_site *site) : zone_(kymo_zone_begin(site))
	{
	}
	scope(kymo_site *site, const char *name) : zone_(kymo__zone_begin_named(site, name))
	{
	}
	~scope()
	{
		kymo_zone_end(&zone_);
	}
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
	/* Attaches a text or a value to this zone. */
	void text(const char *text, size_t bytes) const
	{
		kymo_zone_text_of(&zone_, text, bytes);
	}
	void value(uint64_t value) const
	{
		kymo_zone_value_of(&zone_, value);
	}

      private:
	kymo_zone zone_;
};
class region_scope
{
      public:
	explicit region_scope(kymo_region *region) : region_(region)
	{
		kymo_region_start(region_);
	}
	~region_scope()
	{
		kymo_region_stop(region_);
	}
	region_scope(const region_scope &) = delete;
	region_scope &operator=(const region_scope &) = delete;

      private:
	kymo_region *region_;
};
/* A zone that may end on another thread. It ends when its owner is destroyed; a move passes it
   on. */
class range
{
      public:
	explicit range(const char *name) : number_(kymo_range_begin(name))
	{
	}
	explicit range(kymo_site *site) : number_(begin(site))
	{
	}
	range(range &&other) noexcept : number_(other.number_)
	{
		other.number_ = 0;
	}
	range &operator=(range &&other) noexcept
	{
		if (this != &other) {
			end();
			number_ = other.number_;
			other.number_ = 0;
		}
		return *this;
	}
	~range()
	{
		end();
	}
	range(const range &) = delete;
	range &operator=(const range &) = delete;
	void end()
	{
		kymo_range_end(number_);
		number_ = 0;
	}
	void text(const char *text, size_t bytes) const
	{
		kymo_range_text(number_, text, bytes);
	}

      private:
	static uint64_t begin(kymo_site *site)
	{
		return kymo_enabled() ? kymo_range_begin_id(kymo__site_id_of(site)) : 0;
	}
	uint64_t number_;
};
/* A callable whose calls are zones. Copies share the site, which must be static. */
template <typename F> class wrapped
{
      public:
	wrapped(kymo_site *site, F &&call) : call_(static_cast<F &&>(call)), site_(site)
	{
	}
	wrapped(kymo_site *site, const F &call) : call_(call), site_(site)
	{
	}
	template <typename... A>
	auto operator()(A &&...arguments)
		-> decltype(std::declval<F &>()(std::forward<A>(arguments)...))
	{
		scope zone(site_);

		return call_(std::forward<A>(arguments)...);
	}
	template <typename... A>
	auto operator()(A &&...arguments) const
		-> decltype(std::declval<const F &>()(std::forward<A>(arguments)...))
	{
		scope zone(site_);

		return call_(std::forward<A>(arguments)...);
	}

      private:
	F call_;
	kymo_site *site_;
};
template <typename F> wrapped<typename std::decay<F>::type> wrap(kymo_site *site, F &&call)
{
	return { site, std::forward<F>(call) };
}
#if __cplusplus >= 201703L
/* "FUNCTION::<lambda>", made by the compiler of __PRETTY_FUNCTION__ in a lambda, for example
   "int train(float)::<lambda(int)>" (GCC), "auto train(float)::(lambda at a.cpp:3:7)::...(int)
   const" (Clang). */
struct lambda_name {
	char text[96] = {};

	constexpr explicit lambda_name(const char *pretty)
	{
		constexpr char suffix[] = "::<lambda>";
		size_t end = before_parameters(pretty), begin = end, at = 0;

		while (begin && pretty[begin - 1] != ' ' && pretty[begin - 1] != '*' &&
		       pretty[begin - 1] != '&')
			begin--;
		begin += length_of(pretty + begin, "namespace)::"); /* of "(anonymous namespace)" */
		begin += length_of(pretty + begin, "{anonymous}::");
		for (; begin < end && at + sizeof(suffix) < sizeof(text); begin++)
			text[at++] = pretty[begin];
		for (size_t i = 0; suffix[i]; i++)
			text[at++] = suffix[i];
	}

      private:
	/* Of the start, if the text has it. */
	static constexpr size_t length_of(const char *text, const char *start)
	{
		size_t length = 0;

		for (; start[length]; length++)
			if (text[length] != start[length])
				return 0;
		return length;
	}
	/* "(" opens the parameters of a function, or a name: "(anonymous namespace)". */
	static constexpr size_t before_parameters(const char *pretty)
	{
		size_t end = 0;

		for (; pretty[end] && pretty[end] != '['; end++)
			if (pretty[end] == '(' && end && pretty[end - 1] != ':' &&
			    pretty[end - 1] != ' ')
				break;
		return end;
	}
};
#endif
} // namespace kymo
}
#endif

#ifdef KYMO_DISABLE
#define KYMO_SCOPE(text) ((void)0)
#define KYMO_FUNCTION() ((void)0)
#define KYMO_REGION_SCOPE(region) ((void)(region))
#define KYMO_LAMBDA() ((void)0)
#define KYMO_WRAP(text, ...) (__VA_ARGS__)
#define KYMO_COROUTINE(text) ((void)0)
#elif defined(__cplusplus)
#define KYMO__SITE(text) \
	static kymo_site KYMO__JOIN(kymo__site_, __LINE__) = { (text), __FILE__, __LINE__, 0 }
#define KYMO_SCOPE(text) \
	KYMO__SITE(text); \
	kymo::scope KYMO__JOIN(kymo__scope_, __LINE__)(&KYMO__JOIN(kymo__site_, __LINE__))
#define KYMO_FUNCTION() \
	KYMO__SITE(nullptr); \
	kymo::scope KYMO__JOIN(kymo__scope_, __LINE__)(&KYMO__JOIN(kymo__site_, __LINE__), __func__)
#define KYMO_REGION_SCOPE(region) kymo::region_scope KYMO__JOIN(kymo__scope_, __LINE__)(region)
#define KYMO_LAMBDA() \
	static constexpr kymo::lambda_name KYMO__JOIN(kymo__name_, __LINE__)(__PRETTY_FUNCTION__); \
	KYMO_SCOPE(KYMO__JOIN(kymo__name_, __LINE__).text)
#define KYMO_WRAP(text, ...) \
	kymo::wrap( \
		[]() -> kymo_site * { \
			static kymo_site site = { (text), __FILE__, __LINE__, 0 }; \
			return &site; \
		}(), \
		__VA_ARGS__)
#define KYMO_COROUTINE(text) \
	KYMO__SITE(text); \
	kymo::range KYMO__JOIN(kymo__scope_, __LINE__)(&KYMO__JOIN(kymo__site_, __LINE__))
#else
static inline struct kymo_region *kymo__region_scope_begin(struct kymo_region *region)
{
	kymo_region_start(region);
	return region;
}
static inline void kymo__region_scope_end(struct kymo_region *const *region)
{
	kymo_region_stop(*region);
}
#define KYMO__SITE(text) \
	static struct kymo_site KYMO__JOIN(kymo__site_, __LINE__) = { (text), __FILE__, __LINE__, \
								      0 }
#define KYMO__ZONE_UNTIL_END \
	struct kymo_zone KYMO__JOIN(kymo__scope_, __LINE__) \
		__attribute__((cleanup(kymo_zone_end), unused))
#define KYMO_SCOPE(text) \
	KYMO__SITE(text); \
	KYMO__ZONE_UNTIL_END = kymo_zone_begin(&KYMO__JOIN(kymo__site_, __LINE__))
#define KYMO_FUNCTION() \
	KYMO__SITE(NULL); \
	KYMO__ZONE_UNTIL_END = kymo__zone_begin_named(&KYMO__JOIN(kymo__site_, __LINE__), __func__)
#define KYMO_REGION_SCOPE(region) \
	struct kymo_region *KYMO__JOIN(kymo__scope_, __LINE__) __attribute__(( \
		cleanup(kymo__region_scope_end), unused)) = kymo__region_scope_begin(region)
#endif

#define KYMO_MARK(name, text) kymo_mark((name), (text))
#define KYMO_COUNTER(name, value) kymo_counter((name), (value))
#define KYMO_STEP(name) kymo_step(name)

#endif
