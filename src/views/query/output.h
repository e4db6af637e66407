/* Output formats of `kymo query`, as rows of one table. */
#ifndef KYMO_VIEWS_QUERY_OUTPUT_H
#define KYMO_VIEWS_QUERY_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "tables/tables.h"
#include "views/term/text.h"

struct output_options {
	struct text_style style; /* of the output */
	uint64_t limit; /* rows; UINT64_MAX: all. For binary formats the query limits the rows */
};

/* Figures for the footer. */
struct output_count {
	uint64_t rows;
	char hidden[200]; /* names of columns that did not fit the terminal; "" : none */
	size_t hidden_count;
};

struct output_format {
	const char *name; /* NULL ends the table */
	bool binary; /* refused on a terminal */
	bool footer; /* prints rows and time on stderr */
	/* Writes the whole result. 0 or a negative errno; -EPIPE: the reader has exited. */
	int (*write)(struct tables_result *result, const struct output_options *options, FILE *out,
		     struct output_count *count, struct kymo_error *err);
	/* For -o FILE, if the format writes the file itself, under a temporary name; NULL: write()
	   is used. */
	int (*write_file)(struct tables_result *result, const char *path, struct kymo_error *err);
};

extern const struct output_format output_formats[];
const struct output_format *output_find(const char *name);

/* For the formats: whether a type's name ("BIGINT", "DECIMAL(18,3)") is a number, whatever the kind
   of its cells. */
bool output_is_number(const char *type);
/* A cell as plain text; nothing for NULL. */
void output_cell(struct buf *out, const struct tables_cell *cell);
/* A cell of JSON; number: its column's type is one. */
void output_json_cell(struct buf *out, const struct tables_cell *cell, bool number);
/* Writes and empties the buffer; below 64 kB only if all is set. */
int output_flush(struct buf *buf, FILE *out, bool all, struct kymo_error *err);

/* A text cell of CSV: quoted if necessary, and with a ' before what a spreadsheet would read as a
   formula. */
void output_csv_text(struct buf *out, const char *text, size_t bytes);

int output_table_write(struct tables_result *result, const struct output_options *options,
		       FILE *out, struct output_count *count, struct kymo_error *err);
int output_json_write(struct tables_result *result, const struct output_options *options, FILE *out,
		      struct output_count *count, struct kymo_error *err);
int output_csv_write(struct tables_result *result, const struct output_options *options, FILE *out,
		     struct output_count *count, struct kymo_error *err);

#endif
