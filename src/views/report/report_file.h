/* `kymo report` as a file: HTML, JSON, CSV. Formats are rows of one table. */
#ifndef KYMO_VIEWS_REPORT_REPORT_FILE_H
#define KYMO_VIEWS_REPORT_REPORT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "tables/tables.h"
#include "base/files/atomic_file.h"

/* The first bytes of our reports: such a file is replaced without --force. */
#define REPORT_HTML_MARK "<!doctype html><!-- kymo report 1 -->\n"
#define REPORT_JSON_MARK "{\"schema_version\":1,\"made_by\":\"kymo report\","
#define REPORT_CSV_MARK "section,name,unit,count,mean,std,min,max,p50,p90,p99\r\n"

/* Options of the formats; each uses those that concern it. */
struct report_options {
	bool no_source; /* html: without the text of source files */
	size_t texts; /* set by html: source files whose text the report holds */
};

struct report_format {
	const char *name; /* also the file extension; NULL ends the table */
	const char *mark;
	int (*write)(struct tables *tables, struct report_options *options, FILE *out,
		     struct kymo_error *err);
};

extern const struct report_format report_formats[];
/* By name, or by the extension of a path; NULL: none. */
const struct report_format *report_format_find(const char *name);
const struct report_format *report_format_of(const char *path);
/* Opens a temporary file beside path. An existing file is replaced if it begins with our mark, or
   if force is set. */
int report_file_open(struct atomic_file *aside, const char *path, const char *mark, bool force,
		     struct kymo_error *err);
/* Writes a temporary file and renames it; replaces as report_file_open() does. */
int report_file_write(struct tables *tables, const struct report_format *format, const char *path,
		      bool force, struct report_options *options, struct kymo_error *err);

int report_html(struct tables *tables, struct report_options *options, FILE *out,
		struct kymo_error *err);
int report_json(struct tables *tables, struct report_options *options, FILE *out,
		struct kymo_error *err);
int report_csv(struct tables *tables, struct report_options *options, FILE *out,
	       struct kymo_error *err);

#endif
