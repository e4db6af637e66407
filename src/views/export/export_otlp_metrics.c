/* OpenTelemetry's metrics: an ExportMetricsServiceRequest with the counters of the program, a gauge
   for each process and name. */
#include <string.h>

#include "views/export/otlp.h"
#include "views/export/protobuf.h"
#include "views/query/rows.h"
#include "views_sql.h"

enum { /* ScopeMetrics, Metric, Gauge, NumberDataPoint */
       SCOPE_METRIC = 2,
       METRIC_NAME = 1,
       METRIC_GAUGE = 5,
       GAUGE_POINT = 1,
       POINT_TIME = 3,
       POINT_DOUBLE = 4,
       POINT_ATTRIBUTE = 7,
};

/* A point of a metric of its own: receivers join those of one name. */
static int otlp_metrics_row(const struct rows *rows, void *context)
{
	struct export *export = context;
	struct otlp *otlp = export->own;
	struct tables_cell ts, name;

	tables_cell(rows->result, 0, rows->row, &ts);
	tables_cell(rows->result, 2, rows->row, &name);
	protobuf_fixed64(&otlp->part, POINT_TIME, (uint64_t)(otlp->epoch_ns + ts.integer));
	protobuf_double(&otlp->part, POINT_DOUBLE, rows_number(rows, 3, 0));
	otlp_number(otlp, &otlp->part, POINT_ATTRIBUTE, "process.pid",
		    (int64_t)rows_number(rows, 1, 0));
	protobuf_text(&otlp->item, METRIC_NAME, name.kind == TABLES_TEXT ? name.text : "",
		      name.kind == TABLES_TEXT ? name.text_bytes : 0);
	{
		struct buf gauge = { 0 };

		protobuf_message(&gauge, GAUGE_POINT, &otlp->part);
		protobuf_message(&otlp->item, METRIC_GAUGE, &gauge);
		buf_fini(&gauge);
	}
	protobuf_message(&otlp->items, SCOPE_METRIC, &otlp->item);
	return otlp_flush(export, otlp, false);
}

static int export_otlp_metrics_write(struct export *export)
{
	struct otlp otlp = { .epoch_ns = 0 };
	int rc = otlp_begin(export, &otlp);

	export->own = &otlp;
	if (!rc)
		rc = rows_each(export->tables, sql_export_counters, otlp_metrics_row, export,
			       export->err);
	if (!rc)
		rc = otlp_flush(export, &otlp, true);
	otlp_end(&otlp);
	return rc;
}

const struct export_format export_otlp_metrics = {
	.name = "otlp_metrics",
	.extension = ".otlp-metrics",
	.about = "counters for OpenTelemetry: an ExportMetricsServiceRequest",
	.binary = true,
	.media_type = "application/x-protobuf",
	.download = "kymo.otlp-metrics",
	.write = export_otlp_metrics_write,
};
