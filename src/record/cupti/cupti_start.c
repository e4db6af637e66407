/* The entry that the driver calls, arming and disarming. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/atomic.h>

#include "record/adapter.h"
#include "record/cupti/cupti.h"

#define FLUSH_PERIOD_MS 100u /* full buffers, by CUPTI's thread */
#define POLL_NS 1000000000ull

struct cupti_api cupti_api;
uint32_t cupti_state;
cupti_handle cupti_subscriber;
bool cupti_several;

static uint64_t polled_ticks; /* atomic */
static uint64_t poll_ticks; /* POLL_NS */

/* Nodes of graphs have records of their own as long as CUPTI_GRAPH_TRACE is off. */
static const uint32_t kinds[] = { CUPTI_CONCURRENT_KERNEL, CUPTI_MEMCPY,
				  CUPTI_MEMCPY_PEER,	   CUPTI_MEMSET,
				  CUPTI_SYNCHRONIZATION,   CUPTI_MEMORY };

/* ---- messages -------------------------------------------------------------------------------- */

void cupti_mark(const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	kymo_mark("kymo.cuda", text);
}

void cupti_gap(const char *cause, uint64_t start_ticks, uint64_t end_ticks, uint64_t events)
{
	struct schema_gap_row row = { .start_ticks = start_ticks,
				      .duration_ticks = end_ticks - start_ticks,
				      .events = events };

	row.cause = kymo_name_full(cause, strlen(cause), NULL, 0, 0, KYMO_SOURCE_DEVICE, 0);
	kymo__append(SCHEMA_GAPS, &row);
}

const char *cupti_result_text(int result)
{
	const char *text = NULL;

	if (cupti_api.cuptiGetResultString)
		cupti_api.cuptiGetResultString(result, &text);
	return text ? text : "?";
}

/* ---- activities ------------------------------------------------------------------------------ */

bool cupti_collects(uint32_t kind)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i] == kind)
			return true;
	return false;
}

static int activities_register(void)
{
	if (cupti_several)
		return cupti_api.cuptiActivityRegisterCallbacks_v2(
			cupti_subscriber, cupti_on_request_2, cupti_on_complete_2);
	return cupti_api.cuptiActivityRegisterCallbacks(cupti_on_request, cupti_on_complete);
}

static int activities_enable(uint32_t kind)
{
	return cupti_several ? cupti_api.cuptiActivityEnable_v2(cupti_subscriber, kind, NULL)
			     : cupti_api.cuptiActivityEnable(kind);
}

void cupti_activities_begin(void)
{
	int rc = activities_register();

	cupti_clock_begin();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !rc; i++) {
		int refused = activities_enable(kinds[i]);

		if (refused)
			cupti_mark("CUPTI does not collect activities of kind %u: %s (%d)",
				   kinds[i], cupti_result_text(refused), refused);
	}
	if (rc)
		cupti_mark("CUPTI takes no buffers: %s (%d)", cupti_result_text(rc), rc);
	if (cupti_api.cuptiActivityFlushPeriod)
		cupti_api.cuptiActivityFlushPeriod(FLUSH_PERIOD_MS);
}

void cupti_activities_end(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (cupti_several)
			cupti_api.cuptiActivityDisable_v2(cupti_subscriber, kinds[i], NULL);
		else
			cupti_api.cuptiActivityDisable(kinds[i]);
	cupti_decode_end();
}

/* ---- arming ---------------------------------------------------------------------------------- */

/* Several subscribers are possible since 13.4, if the first of them asks for it. */
static int start_subscribe(void)
{
	struct cupti_subscriber_params params = { .bytes = sizeof(params),
						  .name = "kymo",
						  .several = 1 };

	if (cupti_api.cuptiSubscribe_v2 && cupti_api.cuptiActivityRegisterCallbacks_v2 &&
	    cupti_api.cuptiActivityEnable_v2 && cupti_api.cuptiActivityDisable_v2 &&
	    cupti_api.cuptiActivityGetNextRecord_v2 &&
	    !cupti_api.cuptiSubscribe_v2(&cupti_subscriber, cupti_on_call, NULL, &params)) {
		cupti_several = true;
		return CUPTI_OK;
	}
	return cupti_api.cuptiSubscribe(&cupti_subscriber, cupti_on_call, NULL);
}

void cupti_stop(void)
{
	kymo__store_release(&cupti_state, CUPTI_OFF);
	cupti_subscriber = NULL;
	cupti_share_forget();
}

/* CUDA does not work in a forked child, and neither does CUPTI. */
static void start_forked(void)
{
	cupti_stop();
}

static void start_at_exit(void)
{
	if (kymo__load_acquire(&cupti_state) == CUPTI_ARMED) {
		cupti_api.cuptiActivityFlushAll(CUPTI_FLUSH_FORCED);
		cupti_decode_end();
	}
	kymo__store_release(&cupti_state, CUPTI_OFF);
}

/* New objects may call CUPTI; buffers that are complete and not full are fetched, so that a viewer
   sees the work of a program that launches little. */
void cupti_poll(uint64_t now_ticks)
{
	uint64_t last = kymo__load_relaxed(&polled_ticks);

	if (KYMO__LIKELY(now_ticks - last < poll_ticks) ||
	    !kymo__cas_relaxed(&polled_ticks, &last, now_ticks))
		return;
	cupti_patch();
	if (kymo__load_acquire(&cupti_state) == CUPTI_ARMED)
		cupti_api.cuptiActivityFlushAll(0);
}

void cupti_poll_begin(void)
{
	uint64_t ns = kymo_ticks_ns(1000000);

	poll_ticks = ns ? POLL_NS * 1000000 / ns : POLL_NS;
	polled_ticks = kymo_ticks();
}

static void start_arm(void)
{
	int rc = start_subscribe();

	if (rc) {
		cupti_subscriber = NULL;
		cupti_mark(rc == CUPTI_MANY_SUBSCRIBERS
				   ? "CUDA work is not recorded: another tool uses CUPTI: %s (%d)"
				   : "CUDA work is not recorded: cuptiSubscribe failed: %s (%d)",
			   cupti_result_text(rc), rc);
		return;
	}
	cupti_poll_begin();
	pthread_atfork(NULL, NULL, start_forked);
	atexit(start_at_exit);
	cupti_patch();
	cupti_calls_enable(cupti_subscriber);
	kymo__store_release(&cupti_state, CUPTI_ARMED);
	cupti_activities_begin();
}

/* The driver calls it once, in cuInit(). 1: success; anything else is ignored, too. */
KYMO__EXPORT int InitializeInjection(void);
int InitializeInjection(void)
{
	static uint32_t begun;

	if (kymo__exchange_relaxed(&begun, 1) || !kymo_device_enabled())
		return 1;
	if (cupti_library_find(&cupti_api))
		start_arm();
	else
		cupti_mark("CUDA work is not recorded: no libcupti.so was found");
	return 1;
}
