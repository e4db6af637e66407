#include "views/report/devices.h"

#include "base/buf.h"
#include "tables/sql_fill.h"
#include "views/term/format.h"
#include "views/query/rows.h"
#include "views_sql.h"

/* Columns beside the name. */
#define MODEL_COLUMNS 60
#define QUEUE_COLUMNS 60
#define PATH_COLUMNS 44
#define SHORT_NAME_COLUMNS 16 /* of one in a sentence */
#define NAME_LEAST 12

struct printing {
	FILE *out;
	const struct text_style *style;
	size_t name_columns;
	size_t most;
	const char *table; /* to query for the rest */
	int printed;
};

static void devices_add_time(struct buf *line, double ns, int columns,
			     const struct printing *printing)
{
	text_pad(line, ns < 0 ? "-" : format_duration(ns, printing->style->utf8).text, columns, 1);
}

/* The % is in the header. */
static void add_share(struct buf *line, double share)
{
	char percent[16];

	snprintf(percent, sizeof(percent), "%.1f", 100 * share);
	text_pad(line, percent, 7, 1);
}

/* The name of the row, and of the device if there are several. */
static void devices_add_name(struct buf *line, const struct rows *rows, struct printing *printing)
{
	struct buf whole = { 0 };
	char name[128], device[128];

	rows_copy_text(rows, 0, name, sizeof(name));
	rows_copy_text(rows, 1, device, sizeof(device));
	buf_text(&whole, name[0] ? name : "?");
	if (device[0])
		buf_print(&whole, ", %s", device);
	buf_text(line, "  ");
	text_fit(line, buf_get(&whole), printing->name_columns, -1, printing->style);
	buf_fini(&whole);
}

static void end_row(struct buf *line, const struct rows *rows, size_t all_column,
		    const struct printing *printing)
{
	fprintf(printing->out, "%s\n", buf_get(line));
	buf_fini(line);
	if (rows->number + 1 == printing->most && rows_count(rows, all_column) > printing->most)
		fprintf(printing->out, "  %s more: kymo query 'FROM %s'\n",
			format_count(rows_count(rows, all_column) - printing->most).text,
			printing->table);
}

static int devices_print(struct tables *tables, const char *select, struct printing *printing,
			 int around, int (*row)(const struct rows *rows, void *context),
			 struct kymo_error *err)
{
	struct buf sql = { 0 };
	int rc;

	printing->name_columns = printing->style->columns > around + NAME_LEAST
					 ? (size_t)(printing->style->columns - around)
					 : NAME_LEAST;
	sql_fill(&sql, select,
		 (struct sql_value[]){ { "limit", .number = (int64_t)printing->most }, { NULL } });
	rc = rows_each(tables, buf_get(&sql), row, printing, err);
	buf_fini(&sql);
	return rc < 0 ? rc : printing->printed;
}

/* ---- models ---------------------------------------------------------------------------------- */

/*   resnet50             0     1,200   212 ms   1.91 ms   2.68 ms    2.29 s  */
static int model_row(const struct rows *rows, void *context)
{
	struct printing *printing = context;
	struct buf line = { 0 };
	char core[24];

	if (!printing->printed++)
		fprintf(printing->out, "%s  %-*s %5s %10s %9s %9s %9s %9s%s\n",
			text_paint(printing->style, TEXT_BOLD), (int)printing->name_columns,
			"model, latency", "core", "runs", "first", "p50", "warm p99", "total",
			text_plain(printing->style));
	devices_add_name(&line, rows, printing);
	snprintf(core, sizeof(core), "%.0f", rows_number(rows, 2, 0));
	text_pad(&line, core, 6, 1);
	text_pad(&line, format_count_short(rows_count(rows, 3)).text, 11, 1);
	for (size_t i = 4; i < 8; i++)
		devices_add_time(&line, rows_number(rows, i, -1), 10, printing);
	end_row(&line, rows, 8, printing);
	return 0;
}

int devices_print_models(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err)
{
	struct printing printing = {
		.out = out, .style = style, .most = most, .table = "device.models"
	};

	return devices_print(tables, sql_devices_models, &printing, MODEL_COLUMNS, model_row, err);
}

/* ---- the critical path ----------------------------------------------------------------------- */

/* "603 ms: "; of several "1.24 s of rank 1, the longest of 2 paths that no collective joins:" and a
   line of its own. */
static void begin_path_section(const struct rows *rows, const struct printing *printing)
{
	const double paths = rows_number(rows, 3, 1), rank = rows_number(rows, 4, -1);

	fprintf(printing->out, "\n%sCritical path%s\n  %s", text_paint(printing->style, TEXT_BOLD),
		text_plain(printing->style),
		format_duration(rows_number(rows, 2, 0), printing->style->utf8).text);
	if (paths > 1 && rank >= 0)
		fprintf(printing->out, " of rank %.0f", rank);
	if (paths > 1)
		fprintf(printing->out, ", the longest of %.0f paths that no collective joins:\n  ",
			paths);
	else
		fputs(": ", printing->out);
}

/* "603 ms: host 82 %, launch 5 %" */
static int path_kind(const struct rows *rows, void *context)
{
	struct printing *printing = context;
	char kind[32];

	rows_copy_text(rows, 0, kind, sizeof(kind));
	if (!rows->number)
		begin_path_section(rows, printing);
	/* not foreign: the kind is a word of trace.critical_path */
	fprintf(printing->out, "%s%s %s", rows->number ? ", " : "", kind,
		format_percent(rows_number(rows, 1, 0)).text);
	printing->printed++;
	return 0;
}

/*   157 ms    26.1     157 ms  host        LinearWithGradAccumulation…, rank 0  */
static int path_row(const struct rows *rows, void *context)
{
	struct printing *printing = context;
	struct buf line = { 0 }, whole = { 0 };
	char name[256], kind[32];

	if (!printing->printed++)
		fprintf(printing->out, "\n%s  %-8s %6s %10s  %-10s  %s%s\n",
			text_paint(printing->style, TEXT_BOLD), "time", "% path", "would win",
			"kind", "name", text_plain(printing->style));
	rows_copy_text(rows, 0, kind, sizeof(kind));
	rows_copy_text(rows, 1, name, sizeof(name));
	buf_text(&line, "  ");
	text_pad(&line, format_duration(rows_number(rows, 3, 0), printing->style->utf8).text, 8,
		 -1);
	add_share(&line, rows_number(rows, 4, 0));
	devices_add_time(&line, rows_number(rows, 5, -1), 11, printing);
	buf_text(&line, "  ");
	text_pad(&line, kind, 12, -1);
	buf_text(&whole, name[0] ? name : "?");
	if (rows_number(rows, 2, -1) >= 0)
		buf_print(&whole, ", rank %.0f", rows_number(rows, 2, 0));
	text_fit(&line, buf_get(&whole), printing->name_columns, 0, printing->style);
	buf_fini(&whole);
	end_row(&line, rows, 6, printing);
	return 0;
}

int devices_print_path(struct tables *tables, size_t most, FILE *out,
		       const struct text_style *style, struct kymo_error *err)
{
	struct printing printing = {
		.out = out, .style = style, .most = most, .table = "trace.critical_path"
	};
	int rc = rows_each(tables, sql_devices_path_kinds, path_kind, &printing, err);

	if (rc < 0 || !printing.printed)
		return rc;
	printing.printed = 0;
	return devices_print(tables, sql_devices_path, &printing, PATH_COLUMNS, path_row, err);
}

/* ---- queues ---------------------------------------------------------------------------------- */

/*   queue 0                12.1 s   64.0    1,200   3.10 s   2.08 s        0   212 ms  */
static int queue_row(const struct rows *rows, void *context)
{
	struct printing *printing = context;
	struct buf line = { 0 };

	if (!printing->printed++)
		fprintf(printing->out, "%s  %-*s %8s %6s %8s | %7s %8s %8s %8s%s\n",
			text_paint(printing->style, TEXT_BOLD), (int)printing->name_columns,
			"queue", "busy", "% used", "ops", "late", "sync", "depends", "launch",
			text_plain(printing->style));
	devices_add_name(&line, rows, printing);
	devices_add_time(&line, rows_number(rows, 2, 0), 9, printing);
	add_share(&line, rows_number(rows, 3, 0));
	text_pad(&line, format_count_short(rows_count(rows, 4)).text, 9, 1);
	buf_text(&line, " |");
	devices_add_time(&line, rows_number(rows, 5, 0), 8, printing);
	for (size_t i = 6; i < 9; i++)
		devices_add_time(&line, rows_number(rows, i, 0), 9, printing);
	end_row(&line, rows, 9, printing);
	return 0;
}

int devices_print_queues(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err)
{
	struct printing printing = {
		.out = out, .style = style, .most = most, .table = "device.queues"
	};

	return devices_print(tables, sql_devices_queues, &printing, QUEUE_COLUMNS + 8, queue_row,
			     err);
}

/* ---- in a summary ---------------------------------------------------------------------------- */

static void add_short(struct buf *line, const struct rows *rows, size_t column,
		      const struct text_style *style)
{
	char name[128];

	rows_copy_text(rows, column, name, sizeof(name));
	text_fit(line, name[0] ? name : "?", SHORT_NAME_COLUMNS, 0, style);
}

/* Cut to the line: names may be long. */
static void end_line(struct buf *line, const struct rows *rows, size_t all_column,
		     const struct printing *printing)
{
	uint64_t others = rows_count(rows, all_column) - 1;
	struct buf cut = { 0 };

	if (others)
		buf_print(line, "; %s more", format_count(others).text);
	text_fit(&cut, buf_get(line), (size_t)printing->style->columns, 0, printing->style);
	fprintf(printing->out, "%s\n", buf_get(&cut));
	buf_fini(&cut);
	buf_fini(line);
}

/*   device: queue 0 busy 103 ms (2.3 %), 2,100 ops, longest 687 µs (sobel)  */
static int queue_line(const struct rows *rows, void *context)
{
	const struct printing *printing = context;
	bool utf8 = printing->style->utf8;
	struct buf line = { 0 };

	buf_text(&line, "  device: ");
	add_short(&line, rows, 0, printing->style);
	buf_print(&line, " busy %s (%s), %s op%s",
		  format_duration(rows_number(rows, 1, 0), utf8).text,
		  format_percent(rows_number(rows, 2, 0)).text,
		  format_count_short(rows_count(rows, 3)).text,
		  rows_count(rows, 3) == 1 ? "" : "s");
	if (rows_number(rows, 4, -1) >= 0) {
		buf_print(&line, ", longest %s (",
			  format_duration(rows_number(rows, 4, 0), utf8).text);
		add_short(&line, rows, 5, printing->style);
		buf_text(&line, ")");
	}
	end_line(&line, rows, 6, printing);
	return 0;
}

/*   model: net 1,200 runs, first 212 ms, p50 1.91 ms, warm p99 2.68 ms  */
static int model_line(const struct rows *rows, void *context)
{
	const struct printing *printing = context;
	bool utf8 = printing->style->utf8;
	struct buf line = { 0 };

	buf_text(&line, "  model: ");
	add_short(&line, rows, 0, printing->style);
	buf_print(&line, " %s run%s, first %s, p50 %s",
		  format_count_short(rows_count(rows, 1)).text, rows_count(rows, 1) == 1 ? "" : "s",
		  format_duration(rows_number(rows, 2, 0), utf8).text,
		  format_duration(rows_number(rows, 3, 0), utf8).text);
	if (rows_number(rows, 4, -1) >= 0)
		buf_print(&line, ", warm p99 %s",
			  format_duration(rows_number(rows, 4, 0), utf8).text);
	end_line(&line, rows, 5, printing);
	return 0;
}

void devices_print_lines(struct tables *tables, bool models, FILE *out,
			 const struct text_style *style)
{
	struct printing printing = { .out = out, .style = style };

	rows_each(tables, sql_devices_top_queue, queue_line, &printing, NULL);
	if (models)
		rows_each(tables, sql_devices_top_model, model_line, &printing, NULL);
}
