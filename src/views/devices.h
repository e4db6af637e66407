/* What devices did, for a terminal: models with their latency, queues with what held them up. */
#ifndef KYMO_VIEWS_DEVICES_H
#define KYMO_VIEWS_DEVICES_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/text.h"

/* Operations as zones of lanes, one for each queue: pid, tid, depth, start_ns, duration_ns, source, name, file, line, thread,
   rank. Zones of one depth must not overlap: what is a part of an execution is one below it, and so is what ran beside
   another of its queue. Modules know how deep they are. */
#define DEVICES_LANES_SQL \
	"SELECT 0, -1, coalesce(depth, (execution IS NOT NULL AND kind <> 'execution')::INT + (start_ns < coalesce(max(end_ns) OVER (PARTITION " \
	"BY pid, device, queue, kind = 'execution' ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 " \
	"PRECEDING), start_ns))::INT), start_ns, end_ns - start_ns, 'device', name, model, 0, concat_ws(', ', queue, device), " \
	"NULL FROM device.ops WHERE start_ns IS NOT NULL AND end_ns >= start_ns"

/* At most so many rows each. How many were printed, or a negative errno; nothing at all where there are none. */
int devices_print_models(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err);
int devices_print_queues(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err);
/* Of queues only how busy they were, and their longest operation. */
int devices_print_busy(struct tables *tables, size_t most, FILE *out,
		       const struct text_style *style, struct kymo_error *err);

#endif
