/* What allocations come to: the peak, who held it, and what grows from step to step. */
#ifndef KYMO_VIEWS_REPORT_ALLOCATIONS_H
#define KYMO_VIEWS_REPORT_ALLOCATIONS_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/verdicts/facts.h"
#include "views/term/text.h"

/* One row, or none: peak_bytes, at_ns, error_bytes, estimated_bytes, last_bytes, source; of the
   process with the highest. */
#define ALLOCATIONS_PEAK_SQL \
	"SELECT * FROM (SELECT pid, max(live_bytes)::DOUBLE AS peak_bytes, arg_max(ts_ns, " \
	"live_bytes)::DOUBLE AS at_ns, " \
	"arg_max(live_bytes, ts_ns)::DOUBLE AS last_bytes, any_value(source) AS source FROM " \
	"alloc.timeline GROUP BY pid " \
	"ORDER BY 2 DESC LIMIT 1) JOIN (SELECT pid, sqrt(sum(at_peak_error_bytes::DOUBLE ** 2)) " \
	"AS error_bytes, " \
	"sum(at_peak_estimated_bytes)::DOUBLE AS estimated_bytes FROM alloc.sites GROUP BY pid) " \
	"USING (pid)"

/* One row, or none: step_bytes, since_step, site. What is live at the end of each step, and the
   line through the second half of them; where it fits, the step from which on it holds, and the
   site that grew most since. */
#define ALLOCATIONS_GROWTH_SQL \
	"WITH line AS MATERIALIZED (SELECT pid, ts_ns, live_bytes FROM alloc.timeline), ends AS " \
	"MATERIALIZED (SELECT s.step, " \
	"s.pid, s.start_ns + s.duration_ns AS ts_ns FROM " FACTS_STEPS_SQL \
	" s), l AS MATERIALIZED (SELECT e.step, e.pid, e.ts_ns, t.live_bytes::DOUBLE AS live " \
	"FROM ends e ASOF JOIN line t ON " \
	"t.pid = e.pid AND t.ts_ns <= e.ts_ns), fit AS (SELECT regr_slope(live, step) AS slope, " \
	"regr_r2(live, step) AS r2, " \
	"count(*) AS n FROM l WHERE step >= (SELECT median(step) FROM l)), rest AS (SELECT step, " \
	"ts_ns, live - slope * step AS " \
	"low, slope FROM l, fit WHERE n >= 5 AND r2 > 0.9 AND slope * n > 1048576 AND slope * n " \
	"> 0.05 * (SELECT max(live) " \
	"FROM l)), since AS (SELECT min(step) AS step, min(ts_ns) AS ts_ns, any_value(slope) AS " \
	"slope FROM rest WHERE low <= " \
	"(SELECT min(low) + greatest(0.05 * (max(low) - min(low)), 0.5 * any_value(slope)) FROM " \
	"rest)), grown AS (SELECT site, " \
	"sum(CASE WHEN kind = 'alloc' THEN size * weight ELSE -size * weight END) AS bytes FROM " \
	"alloc.allocations a, since s " \
	"WHERE a.ts_ns > s.ts_ns AND a.ts_ns <= (SELECT max(ts_ns) FROM l) AND a.pid = (SELECT " \
	"any_value(pid) FROM l) GROUP BY site) " \
	"SELECT slope AS step_bytes, step + 1 AS since_step, (SELECT arg_max(site, bytes) FROM " \
	"grown) AS site FROM since WHERE " \
	"slope IS NOT NULL"

/* Lines of a report; nothing where no allocations were recorded. 0, or a negative errno and
   *err. */
int allocations_print(struct tables *tables, const struct text_style *style, FILE *out,
		      struct kymo_error *err);

#endif
