/*
 * Loads libraries into a running program. Zones are recorded in signal handlers and under arbitrary
 * locks, where nothing may be loaded; callers of kymo_poll() guarantee that loading is safe.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <kymo/atomic.h>

#include "record/record.h"

#define LIBRARY "libkymo_memory.so.0"

uint32_t kymo__memory_followed;

static void (*follow)(void);
static uint32_t heard; /* KYMO_HEARD_*; per process, whatever page it has */

static void late_load_tell(uint32_t more)
{
	struct kymo_control *control = kymo__process.control;
	uint32_t now = kymo__or_fetch_relaxed(&heard, more);

	if (control)
		kymo__store_relaxed(&control->memory_heard, now);
}

void kymo__poll_begin(struct kymo_control *control)
{
	control->memory_heard = kymo__load_relaxed(&heard);
	control->memory_followed = kymo__load_relaxed(&kymo__memory_followed);
}

const void *kymo__memory_here(void (*function)(void), bool preloaded)
{
	kymo__store_release(&follow, function);
	if (preloaded)
		late_load_tell(KYMO_HEARD_PRELOADED);
	return (const void *)&heard;
}

void kymo__memory_done(uint32_t wanted, bool refused)
{
	struct kymo_control *control = kymo__process.control;

	kymo__store_relaxed(&kymo__memory_followed, wanted);
	if (control)
		kymo__store_release(&control->memory_followed, wanted);
	if (refused)
		late_load_tell(KYMO_HEARD_REFUSED);
}

void kymo__poll_promised(void)
{
	if (KYMO__UNLIKELY(!(kymo__load_relaxed(&heard) & KYMO_HEARD_POLLED)))
		late_load_tell(KYMO_HEARD_POLLED);
}

/* It is next to this library. Only it uses its malloc: RTLD_LOCAL, and loaded last. */
static void late_load_load(void)
{
	static uint32_t tried;
	char path[KYMO_PATH_BYTES];
	const char *slash;
	Dl_info here;

	if (kymo__exchange_relaxed(&tried, 1))
		return;
	if (dladdr((void *)&heard, &here) && here.dli_fname) {
		slash = strrchr(here.dli_fname, '/');
		snprintf(path, sizeof(path), "%.*s" LIBRARY,
			 slash ? (int)(slash - here.dli_fname + 1) : 0, here.dli_fname);
		dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (!kymo__load_acquire(&follow))
		late_load_tell(KYMO_HEARD_REFUSED);
}

void kymo_poll(void)
{
	void (*now)(void);

	kymo__poll_promised();
	if (KYMO__LIKELY(kymo__memory_wanted(kymo__is_on(UINT32_MAX)) == kymo__memory_followed))
		return;
	if (!kymo__load_acquire(&follow))
		late_load_load();
	now = kymo__load_acquire(&follow);
	if (now)
		now();
}
