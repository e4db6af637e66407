#include "views/report/modules.h"

#include "base/buf.h"
#include "tables/sql_fill.h"
#include "views/term/format.h"
#include "views/query/rows.h"
#include "views_sql.h"

/* Columns beside a module's name. */
#define MODULE_COLUMNS 50
#define DEVICE_COLUMNS 10 /* more, if there is time on a device */
#define MODULE_NAME_LEAST 12

struct printing {
	FILE *out;
	const struct text_style *style;
	size_t name_columns;
	bool device;
	int printed;
};

/*   4.31 s   21.7  layers.0.attn               1,200   1.91 ms   1.68 ms  */
static void print_header(const struct printing *printing)
{
	fprintf(printing->out, "%s  %-8s%6s  %-*s  %9s %9s %9s%s%s\n",
		text_paint(printing->style, TEXT_BOLD), "self", "% mod.",
		(int)printing->name_columns, "torch module, per call", "calls", "forward",
		"backward", printing->device ? "    device" : "", text_plain(printing->style));
}

/* The first row tells whether any module has time on a device. */
static void modules_begin(struct printing *printing, const struct rows *rows)
{
	printing->device = rows_number(rows, 8, 0) > 0;
	if (printing->device && printing->name_columns >= MODULE_NAME_LEAST + DEVICE_COLUMNS)
		printing->name_columns -= DEVICE_COLUMNS;
	print_header(printing);
}

static void modules_add_duration(struct buf *line, const struct rows *rows, size_t column,
				 bool utf8)
{
	double seconds = rows_number(rows, column, -1);

	text_pad(line, seconds < 0 ? "-" : format_duration(seconds * 1e9, utf8).text, 10, 1);
}

static int modules_module_row(const struct rows *rows, void *context)
{
	struct printing *printing = context;
	const struct text_style *style = printing->style;
	struct buf line = { 0 }, name = { 0 };
	char module[256], model[128], percent[16];

	if (!printing->printed++)
		modules_begin(printing, rows);
	rows_copy_text(rows, 0, module, sizeof(module));
	rows_copy_text(rows, 1, model, sizeof(model));
	snprintf(percent, sizeof(percent), "%.1f", 100 * rows_number(rows, 3, 0));
	buf_text(&line, "  ");
	text_pad(&line, format_duration(rows_number(rows, 2, 0) * 1e9, style->utf8).text, 8, -1);
	text_pad(&line, percent, 6, 1);
	buf_text(&line, "  ");
	if (model[0])
		buf_print(&name, "%s: ", model);
	buf_text(&name, module);
	text_fit(&line, buf_get(&name), printing->name_columns, -1, style);
	buf_text(&line, "  ");
	text_pad(&line, format_count_short(rows_count(rows, 4)).text, 9, 1);
	modules_add_duration(&line, rows, 5, style->utf8);
	modules_add_duration(&line, rows, 6, style->utf8);
	if (printing->device)
		modules_add_duration(&line, rows, 7, style->utf8);
	fprintf(printing->out, "%s\n", buf_get(&line));
	buf_fini(&name);
	buf_fini(&line);
	return 0;
}

int modules_print(struct tables *tables, size_t most, FILE *out, const struct text_style *style,
		  struct kymo_error *err)
{
	struct printing printing = { .out = out,
				     .style = style,
				     .name_columns = MODULE_NAME_LEAST };
	struct buf sql = { 0 };
	int rc;

	if (style->columns > MODULE_COLUMNS + MODULE_NAME_LEAST)
		printing.name_columns = (size_t)style->columns - MODULE_COLUMNS;
	sql_fill(&sql, sql_modules_top,
		 (struct sql_value[]){ { "limit", .number = (int64_t)most }, { NULL } });
	rc = rows_each(tables, buf_get(&sql), modules_module_row, &printing, err);
	buf_fini(&sql);
	return rc < 0 ? rc : printing.printed;
}

/* ---- FLOPs ---- */

/* 1.31 G, 45.2 T */
static struct format_text modules_si(double value)
{
	static const char units[] = " kMGTPE";
	struct format_text text;
	size_t unit = 0;

	while (value >= 999.5 && unit + 2 < sizeof(units)) {
		value /= 1000;
		unit++;
	}
	snprintf(text.text, sizeof(text.text), "%.*f %c",
		 value >= 99.5	 ? 0
		 : value >= 9.95 ? 1
				 : 2,
		 value, units[unit]);
	if (!unit)
		snprintf(text.text, sizeof(text.text), "%.0f ", value);
	return text;
}

static void print_whole(const struct printing *printing, const struct rows *rows)
{
	char origin[16], peak[128] = "";

	rows_copy_text(rows, 6, origin, sizeof(origin));
	if (rows_number(rows, 3, -1) >= 0)
		snprintf(peak, sizeof(peak), ", %s of the peak (%s, %sFLOP/s)",
			 format_percent(rows_number(rows, 3, 0)).text, origin,
			 modules_si(rows_number(rows, 5, 0)).text);
	text_line(printing->out, "  %s operators and %sFLOP a step, %sFLOP/s%s; %.0f recorded",
		  format_count_short((uint64_t)rows_number(rows, 4, 0)).text,
		  modules_si(rows_number(rows, 1, 0)).text,
		  modules_si(rows_number(rows, 2, 0)).text, peak, rows_number(rows, 7, 0));
	fprintf(printing->out, "%s  %12s %12s %8s  %s%s\n", text_paint(printing->style, TEXT_BOLD),
		"FLOP a step", "FLOP/s", "% peak", "torch module, forward and backward",
		text_plain(printing->style));
}

static int modules_flops_row(const struct rows *rows, void *context)
{
	struct printing *printing = context;
	struct buf line = { 0 };
	char module[256], percent[16] = "-";

	if (!printing->printed++) {
		print_whole(printing, rows);
		return 0;
	}
	rows_copy_text(rows, 0, module, sizeof(module));
	if (rows_number(rows, 3, -1) >= 0)
		snprintf(percent, sizeof(percent), "%.1f", 100 * rows_number(rows, 3, 0));
	buf_text(&line, "  ");
	text_pad(&line, modules_si(rows_number(rows, 1, 0)).text, 12, 1);
	text_pad(&line, modules_si(rows_number(rows, 2, 0)).text, 13, 1);
	text_pad(&line, percent, 9, 1);
	buf_text(&line, "  ");
	text_fit(&line, module, printing->name_columns, -1, printing->style);
	fprintf(printing->out, "%s\n", buf_get(&line));
	buf_fini(&line);
	return 0;
}

int modules_print_flops(struct tables *tables, size_t most, FILE *out,
			const struct text_style *style, struct kymo_error *err)
{
	struct printing printing = { .out = out,
				     .style = style,
				     .name_columns = MODULE_NAME_LEAST };
	struct buf sql = { 0 };
	int rc;

	if (style->columns > MODULE_COLUMNS + MODULE_NAME_LEAST)
		printing.name_columns = (size_t)style->columns - MODULE_COLUMNS;
	sql_fill(&sql, sql_flops_top,
		 (struct sql_value[]){ { "limit", .number = (int64_t)most + 1 }, { NULL } });
	rc = rows_each(tables, buf_get(&sql), modules_flops_row, &printing, err);
	buf_fini(&sql);
	return rc < 0 ? rc : printing.printed;
}
