#include "views/report/allocations.h"

#include "views/term/format.h"
#include "views/query/rows.h"
#include "views_sql.h"

struct lines {
	FILE *out;
	const struct text_style *style;
	double peak_bytes;
};

static int peak_row(const struct rows *rows, void *context)
{
	struct lines *lines = context;
	double error = rows_number(rows, 5, 0), estimated = rows_number(rows, 6, 0);
	char source[128];

	lines->peak_bytes = rows_number(rows, 1, 0);
	rows_copy_text(rows, 4, source, sizeof(source));
	fprintf(lines->out, "  allocated: peak %s", format_bytes(lines->peak_bytes).text);
	if (error > 0)
		fprintf(lines->out, " %s %s", lines->style->utf8 ? "±" : "+-",
			format_bytes(error).text);
	text_line(lines->out, " at %s, %s at the end (%s)",
		  format_clock(rows_number(rows, 2, 0), lines->style->utf8).text,
		  format_bytes(rows_number(rows, 3, 0)).text, source);
	if (estimated > 0 && lines->peak_bytes > 0)
		fprintf(lines->out, "  %.0f %% of the peak is estimated from samples\n",
			100 * estimated / lines->peak_bytes);
	return 0;
}

static int site_row(const struct rows *rows, void *context)
{
	const struct lines *lines = context;
	double bytes = rows_number(rows, 1, 0);
	char site[256];

	rows_copy_text(rows, 0, site, sizeof(site));
	text_line(lines->out, "  %10s %5.1f %%  %s", format_bytes(bytes).text,
		  lines->peak_bytes > 0 ? 100 * bytes / lines->peak_bytes : 0, site);
	return 0;
}

static int growth_row(const struct rows *rows, void *context)
{
	const struct lines *lines = context;
	char site[256];

	rows_copy_text(rows, 2, site, sizeof(site));
	text_line(lines->out, "  grows %s per step since step %.0f%s%s",
		  format_bytes(rows_number(rows, 0, 0)).text, rows_number(rows, 1, 0),
		  site[0] ? ", at " : "", site);
	return 0;
}

int allocations_print(struct tables *tables, const struct text_style *style, FILE *out,
		      struct kymo_error *err)
{
	struct lines lines = { out, style, 0 };
	int rc = rows_each(tables, sql_allocations_peak, peak_row, &lines, err);

	if (rc >= 0 && lines.peak_bytes > 0) {
		fputs("  live at the peak, by call site:\n", out);
		rc = rows_each(tables, sql_allocations_sites, site_row, &lines, err);
	}
	if (rc >= 0)
		rc = rows_each(tables, sql_allocations_growth, growth_row, &lines, err);
	return rc < 0 ? rc : 0;
}
