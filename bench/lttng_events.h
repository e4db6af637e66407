/* The two events that bench/lttng_zone.c emits for a zone. Included many times over by LTTng's own
   headers. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kymo_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_events.h"

#if !defined(KYMO_BENCH_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define KYMO_BENCH_LTTNG_EVENTS_H

#include <stdint.h>
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, begin, LTTNG_UST_TP_ARGS(uint32_t, name),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, name, name)))
LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, end, LTTNG_UST_TP_ARGS(uint32_t, name),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, name, name)))

#endif

#include <lttng/tracepoint-event.h>
