/*
 * What is loaded into a program that runs. Zones are recorded in signal handlers and inside of other people's locks, so
 * nothing may be loaded where they are; kymo_poll() is a call of which the caller knows that it is no such place.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "record/record.h"

#define LIBRARY "libkymo_memory.so.0"

uint32_t kymo__memory_followed;

static void (*follow)(void);
static uint32_t heard; /* KYMO_HEARD_*; this process's, whatever page it has */

static void tell(uint32_t more)
{
	struct kymo_control *control = kymo__process.control;
	uint32_t now = __atomic_or_fetch(&heard, more, __ATOMIC_RELAXED);

	if (control)
		__atomic_store_n(&control->memory_heard, now, __ATOMIC_RELAXED);
}

void kymo__poll_begin(struct kymo_control *control)
{
	control->memory_heard = __atomic_load_n(&heard, __ATOMIC_RELAXED);
	control->memory_followed = __atomic_load_n(&kymo__memory_followed, __ATOMIC_RELAXED);
}

const void *kymo__memory_here(void (*function)(void), bool preloaded)
{
	__atomic_store_n(&follow, function, __ATOMIC_RELEASE);
	if (preloaded)
		tell(KYMO_HEARD_PRELOADED);
	return (const void *)&heard;
}

void kymo__memory_done(uint32_t wanted, bool refused)
{
	struct kymo_control *control = kymo__process.control;

	__atomic_store_n(&kymo__memory_followed, wanted, __ATOMIC_RELAXED);
	if (control)
		__atomic_store_n(&control->memory_followed, wanted, __ATOMIC_RELEASE);
	if (refused)
		tell(KYMO_HEARD_REFUSED);
}

void kymo__poll_promised(void)
{
	if (KYMO__UNLIKELY(!(__atomic_load_n(&heard, __ATOMIC_RELAXED) & KYMO_HEARD_POLLED)))
		tell(KYMO_HEARD_POLLED);
}

/* It lies beside this library. Its malloc is nobody's but its own: local names, and loaded last. */
static void load(void)
{
	static uint32_t tried;
	char path[KYMO_PATH_BYTES];
	const char *slash;
	Dl_info here;

	if (__atomic_exchange_n(&tried, 1, __ATOMIC_RELAXED))
		return;
	if (dladdr((void *)&heard, &here) && here.dli_fname) {
		slash = strrchr(here.dli_fname, '/');
		snprintf(path, sizeof(path), "%.*s" LIBRARY,
			 slash ? (int)(slash - here.dli_fname + 1) : 0, here.dli_fname);
		dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (!__atomic_load_n(&follow, __ATOMIC_ACQUIRE))
		tell(KYMO_HEARD_REFUSED);
}

void kymo_poll(void)
{
	void (*now)(void);

	kymo__poll_promised();
	if (KYMO__LIKELY(kymo__memory_wanted(kymo__is_on(UINT32_MAX)) == kymo__memory_followed))
		return;
	if (!__atomic_load_n(&follow, __ATOMIC_ACQUIRE))
		load();
	now = __atomic_load_n(&follow, __ATOMIC_ACQUIRE);
	if (now)
		now();
}
