/* Where there is no device: operations that take their time, and compute nothing. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "nrt_inside.h"

static int nothing; /* what load gives: there is nothing to hold */

static NRT_STATUS nrt_standin_open_device(const char **why)
{
	(void)why;
	return NRT_SUCCESS;
}

static const char *nrt_standin_device_name(void)
{
	return "host stand-in";
}

static NRT_STATUS nrt_standin_load(const char *text, size_t bytes, const struct nrt_text *about,
				   uint32_t core, void **out)
{
	(void)text;
	(void)bytes;
	(void)about;
	(void)core;
	*out = &nothing;
	return NRT_SUCCESS;
}

static void take_time(uint64_t microseconds)
{
	struct timespec left = { (time_t)(microseconds / 1000000u),
				 (long)(microseconds % 1000000u) * 1000 };

	while (microseconds && nanosleep(&left, &left) && errno == EINTR)
		;
}

static NRT_STATUS nrt_standin_run(void *loaded, const struct nrt_text *about, uint32_t core,
				  struct nrt_times *times)
{
	(void)loaded;
	(void)core;
	for (size_t i = 0; i < about->count; i++) {
		times[i].queued = times[i].submit = times[i].start = kymo_ticks();
		take_time(about->operations[i].microseconds);
		times[i].end = kymo_ticks();
	}
	return NRT_SUCCESS;
}

static void nrt_standin_unload(void *loaded)
{
	(void)loaded;
}

const struct nrt_backend nrt_standin = {
	nrt_standin_open_device, nrt_standin_device_name, NULL,
	nrt_standin_load,	 nrt_standin_run,	  nrt_standin_unload
};
