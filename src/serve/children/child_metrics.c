/* Figures of GET /metrics by SQL: of memory, devices, overhead, triggers and counters, and the
   findings of a report. A line each: FAMILY, LABELS and VALUE, separated by tabs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/children/child.h"
#include "serve/openmetrics.h"
#include "serve_sql.h"
#include "views/query/rows.h"
#include "views/verdicts/facts.h"
#include "views/verdicts/verdict.h"

#define KEYS 3

static int metrics_row(const struct rows *rows, void *context)
{
	struct buf *out = context, labels = { 0 };
	char family[64], key[32], value[512];
	double number = rows_number(rows, 1 + 2 * KEYS, NAN);

	rows_copy_text(rows, 0, family, sizeof(family));
	for (size_t i = 0; i < KEYS; i++) {
		rows_copy_text(rows, 1 + 2 * i, key, sizeof(key));
		rows_copy_text(rows, 2 + 2 * i, value, sizeof(value));
		if (key[0] && value[0])
			openmetrics_label(&labels, key, value);
	}
	if (labels.used && !isnan(number))
		buf_print(out, "%s\t%s\t%.15g\n", family, buf_get(&labels), number);
	buf_fini(&labels);
	return 0;
}

static void metrics_finding(const struct verdict *verdict, struct buf *out)
{
	struct buf labels = { 0 }, place = { 0 };

	if (!verdict->name[0])
		return;
	openmetrics_label(&labels, "finding", verdict->name);
	if (verdict->where_function[0]) {
		buf_print(&place, "%s (%s:%d)", verdict->where_function, verdict->where_file,
			  verdict->where_line);
		openmetrics_label(&labels, "place", buf_get(&place));
	}
	buf_print(out, "kymo_finding_gain_ratio\t%s\t%.4g\n", buf_get(&labels),
		  isfinite(verdict->gain) ? verdict->gain : 0.0);
	buf_fini(&labels);
	buf_fini(&place);
}

static int metrics_findings(struct tables *tables, struct buf *out, struct kymo_error *err)
{
	struct verdict *verdicts = calloc(VERDICT_MOST, sizeof(*verdicts));
	struct facts *facts = calloc(1, sizeof(*facts));
	int rc = verdicts && facts ? facts_gather(tables, facts, err)
				   : error_set(err, ENOMEM, "out of memory for the findings");

	if (!rc) {
		size_t count = verdict_all(tables, facts, true, verdicts, VERDICT_MOST);

		for (size_t i = 0; i < count; i++)
			metrics_finding(&verdicts[i], out);
		facts_fini(facts);
	}
	free(verdicts);
	free(facts);
	return rc;
}

int child_metrics(struct tables *tables, const struct question *question, const char *sql,
		  FILE *out, struct kymo_error *err)
{
	struct buf text = { 0 };
	int rc = rows_each(tables, sql_child_metrics, metrics_row, &text, err);

	(void)question;
	(void)sql;
	if (!rc)
		rc = metrics_findings(tables, &text, err);
	if (!rc)
		rc = child_write(&text, out, err);
	buf_fini(&text);
	return rc;
}
