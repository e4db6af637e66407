/*
 * vAccel's profiling regions, recorded by kymo. Code written for vAccel compiles and runs
 * unchanged:
 *
 *	struct vaccel_prof_region region = VACCEL_PROF_REGION_INIT("torch_run");
 *
 *	vaccel_prof_region_start(&region);
 *	...
 *	vaccel_prof_region_stop(&region);
 *	vaccel_prof_region_print(&region);
 *
 * Link with -lkymo_compat -lkymo. VACCEL_PROF_ENABLED=enabled (or VACCEL_PROFILING_ENABLED; 1,
 * true, yes and on also work) turns it on; otherwise every call does nothing and returns 0. SQL can
 * query the recording: `kymo query latest "FROM trace.regions"`.
 *
 * Several threads may use one region at once; starts may nest and recurse. Calls return 0 or a
 * positive errno, unless stated otherwise.
 */
#ifndef VACCEL_PROF_H
#define VACCEL_PROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VACCEL_PROF__EXPORT __attribute__((visibility("default")))

struct vaccel_prof_sample;

/* 40 bytes with vAccel's layout, so that a preloaded libkymo_compat serves programs built against
   vAccel. */
struct vaccel_prof_region {
	const char *name;
	bool name_owned; /* by the region: _init() copied it */
	/* ended entries. While several threads use the region it may be 4 µs behind; it is exact
	   once they have ended, and after a print */
	size_t nr_entries;
	struct vaccel_prof_sample *samples; /* private */
	size_t size; /* private */
};

#define VACCEL_PROF_REGION_INIT(text) \
	{ \
		(text), false, 0, NULL, 0 \
	}

#if defined(__cplusplus) && __cplusplus >= 201103L
#define VACCEL_PROF__ASSERT(what, text) static_assert(what, text)
#elif defined(__cplusplus)
#define VACCEL_PROF__ASSERT(what, text) typedef char vaccel_prof__assert[(what) ? 1 : -1]
#else
#define VACCEL_PROF__ASSERT(what, text) \
	extern char vaccel_prof__assert[sizeof(char[(what) ? 1 : -1])]
#endif
#if defined(__LP64__)
VACCEL_PROF__ASSERT(sizeof(struct vaccel_prof_region) == 40 &&
			    offsetof(struct vaccel_prof_region, name_owned) == 8 &&
			    offsetof(struct vaccel_prof_region, nr_entries) == 16 &&
			    offsetof(struct vaccel_prof_region, samples) == 24 &&
			    offsetof(struct vaccel_prof_region, size) == 32,
		    "struct vaccel_prof_region is laid out as vAccel has it");
#endif
#undef VACCEL_PROF__ASSERT

/* Whether profiling is on. Reads the environment once. */
VACCEL_PROF__EXPORT bool vaccel_prof_enabled(void);

/* Copies the name; NULL gives a buffer of 256 bytes, region->name, for the caller to fill. May be
   called on a static region and on an initialised one, and while profiling is off. */
VACCEL_PROF__EXPORT int vaccel_prof_region_init(struct vaccel_prof_region *region,
						const char *name);
/* May be called on a static region, and twice. Recorded data stays. */
VACCEL_PROF__EXPORT int vaccel_prof_region_destroy(struct vaccel_prof_region *region);
VACCEL_PROF__EXPORT int vaccel_prof_region_release(struct vaccel_prof_region *region);

/* EINVAL for NULL; ENOMEM when there are too many regions. */
VACCEL_PROF__EXPORT int vaccel_prof_region_start(struct vaccel_prof_region *region);
/* EINVAL for NULL; ENOENT if this thread has not started it: the child of a fork inherits the
   counts, but no start. */
VACCEL_PROF__EXPORT int vaccel_prof_region_stop(struct vaccel_prof_region *region);

/* Prints one line to stdout or to the file VACCEL_LOG_FILE; none for a region without entries.
   Totals accumulate from print to print. */
VACCEL_PROF__EXPORT int vaccel_prof_region_print(const struct vaccel_prof_region *region);

/* Arrays. _init() as with a NULL name. */
VACCEL_PROF__EXPORT int vaccel_prof_regions_init(struct vaccel_prof_region *regions, int count);
/* Every region of that name; EINVAL if there is none. */
VACCEL_PROF__EXPORT int vaccel_prof_regions_start_by_name(struct vaccel_prof_region *regions,
							  int count, const char *name);
VACCEL_PROF__EXPORT int vaccel_prof_regions_stop_by_name(struct vaccel_prof_region *regions,
							 int count, const char *name);
/* Resets counts and times to 0; names stay. An entry that is open now is not counted when it
   ends. */
VACCEL_PROF__EXPORT int vaccel_prof_regions_clear(struct vaccel_prof_region *regions, int count);
VACCEL_PROF__EXPORT int vaccel_prof_regions_release(struct vaccel_prof_region *regions, int count);
VACCEL_PROF__EXPORT int vaccel_prof_regions_print_all(const struct vaccel_prof_region *regions,
						      int count);
/* buf NULL: returns the bytes that all lines need. Otherwise allocates *buf (the caller frees it),
   writes the lines, each NUL-terminated, at most len bytes, and returns the number of lines. A line
   that does not fit is truncated and is the last one. A negative errno on error; 0 while profiling
   is off. */
VACCEL_PROF__EXPORT int vaccel_prof_regions_print_all_to_buf(
	char **buf, size_t len, const struct vaccel_prof_region *regions, int count);

#undef VACCEL_PROF__EXPORT

#ifdef __cplusplus
}
#endif

#endif
