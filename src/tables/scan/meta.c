#include "tables/scan/meta.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "tables/scan/table_function.h"
#include "tables/scan/scan.h"
#include "tables/words.h"

/* ---- rows -------------------------------------------------------------------------------- */

#define WIDTH_MAX 32u

struct meta_cell *meta_add(struct meta_rows *rows)
{
	static struct meta_cell scratch[WIDTH_MAX];
	struct meta_cell *cells;

	if (!rows->failed)
		rows->failed = !grow((void **)&rows->cells, &rows->room, rows->count,
				     rows->width * sizeof(*cells));
	if (rows->failed)
		return scratch;
	cells = &rows->cells[rows->count++ * rows->width];
	memset(cells, 0, rows->width * sizeof(cells[0]));
	return cells;
}

void meta_number(struct meta_cell *cell, int64_t value)
{
	cell->known = true;
	cell->number = value;
}

void meta_real(struct meta_cell *cell, double value)
{
	cell->known = true;
	cell->real = value;
}

void meta_tenths(struct meta_cell *cell, double value)
{
	meta_real(cell, round(value * 10) / 10);
}

void meta_text_bytes(struct meta_cell *cell, const char *text, size_t bytes)
{
	cell->known = bytes > 0;
	cell->text = text;
	cell->text_bytes = bytes;
}

void meta_text(struct meta_cell *cell, const char *text)
{
	if (text)
		meta_text_bytes(cell, text, strlen(text));
}

void meta_host(struct meta_cell *cell, const char *host)
{
	meta_text(cell, host);
	cell->known = true;
}

/* ---- the table function ------------------------------------------------------------------ */

static const duckdb_type types[] = {
	[META_INTEGER] = DUCKDB_TYPE_INTEGER, [META_BIGINT] = DUCKDB_TYPE_BIGINT,
	[META_DOUBLE] = DUCKDB_TYPE_DOUBLE,   [META_TEXT] = DUCKDB_TYPE_VARCHAR,
	[META_BOOLEAN] = DUCKDB_TYPE_BOOLEAN,
};

static void bind_meta(duckdb_bind_info info, const struct meta_table *meta)
{
	duckdb_logical_type type;

	for (size_t i = 0; i < meta->column_count; i++) {
		type = duck.create_logical_type(types[meta->columns[i].type]);
		duck.bind_add_result_column(info, meta->columns[i].name, type);
		duck.destroy_logical_type(&type);
	}
	duck.bind_set_bind_data(info, (void *)meta, NULL);
}

static void meta_bind(duckdb_bind_info info)
{
	char *name = table_function_text(info, 0);
	const struct meta_table *meta = name ? meta_find(name) : NULL;

	if (meta)
		bind_meta(info, meta);
	else
		duck.bind_set_error(info, "kymo_meta has no such table; use the tables of the "
					  "schemas kymo and trace");
	if (name)
		duck.free(name);
}

struct meta_run {
	const struct meta_table *meta;
	struct meta_rows rows;
	size_t next;
	size_t column_count;
	idx_t columns[WIDTH_MAX];
};

static void meta_run_destroy(void *data)
{
	struct meta_run *run = data;

	if (run && run->rows.release)
		run->rows.release(run->rows.kept);
	if (run)
		free(run->rows.cells);
	free(run);
}

static void meta_init(duckdb_init_info info)
{
	struct meta_run *run = calloc(1, sizeof(*run));

	if (run) {
		run->meta = duck.init_get_bind_data(info);
		run->rows.width = run->meta->column_count;
		run->meta->fill(&run->rows, duck.init_get_extra_info(info));
		run->column_count = duck.init_get_column_count(info);
	}
	if (!run || run->rows.failed || run->column_count > WIDTH_MAX) {
		meta_run_destroy(run);
		duck.init_set_error(info, "kymo_meta: no memory");
		return;
	}
	for (size_t i = 0; i < run->column_count; i++)
		run->columns[i] = duck.init_get_column_index(info, i);
	duck.init_set_init_data(info, run, meta_run_destroy);
}

static void emit_text(duckdb_vector vector, idx_t row, const struct meta_cell *cell)
{
	char *whole;
	size_t bytes;

	if (words_valid(cell->text, cell->text_bytes)) {
		duck.vector_assign_string_element_len(vector, row, cell->text, cell->text_bytes);
		return;
	}
	whole = malloc(WORDS_REPAIRED_BYTES(cell->text_bytes));
	bytes = whole ? utf8_repair(cell->text, cell->text_bytes, whole,
				    WORDS_REPAIRED_BYTES(cell->text_bytes))
		      : 0;
	duck.vector_assign_string_element_len(vector, row, whole ? whole : "", bytes);
	free(whole);
}

static void emit_cell(duckdb_vector vector, enum meta_type type, idx_t row,
		      const struct meta_cell *cell)
{
	void *data = duck.vector_get_data(vector);

	if (!cell->known) {
		duck.vector_ensure_validity_writable(vector);
		duck.vector_get_validity(vector)[row / 64] &= ~(1ull << (row % 64));
		return;
	}
	switch (type) {
	case META_INTEGER: ((int32_t *)data)[row] = (int32_t)cell->number; break;
	case META_BIGINT: ((int64_t *)data)[row] = cell->number; break;
	case META_DOUBLE: ((double *)data)[row] = cell->real; break;
	case META_BOOLEAN: ((bool *)data)[row] = cell->number != 0; break;
	case META_TEXT: emit_text(vector, row, cell); break;
	}
}

static void emit_column(const struct meta_run *run, size_t at, size_t count, duckdb_vector vector)
{
	idx_t column = run->columns[at];

	if (column >= run->meta->column_count)
		return;
	for (size_t i = 0; i < count; i++)
		emit_cell(vector, run->meta->columns[column].type, i,
			  &run->rows.cells[(run->next + i) * run->rows.width + column]);
}

static void meta_function(duckdb_function_info info, duckdb_data_chunk output)
{
	struct meta_run *run = duck.function_get_init_data(info);
	size_t count = run->rows.count - run->next;

	if (count > duck.vector_size())
		count = duck.vector_size();
	for (size_t i = 0; i < run->column_count; i++)
		emit_column(run, i, count, duck.data_chunk_get_vector(output, i));
	run->next += count;
	duck.data_chunk_set_size(output, count);
}

int meta_register(struct tables *tables, duckdb_connection connection, struct kymo_error *err)
{
	const struct table_function function = { .name = "kymo_meta",
						 .extra = tables,
						 .bind = meta_bind,
						 .init = meta_init,
						 .emit = meta_function,
						 .some_columns = true };
	duckdb_table_function made = duck.create_table_function();
	duckdb_logical_type text = duck.create_logical_type(DUCKDB_TYPE_VARCHAR);

	duck.table_function_add_parameter(made, text);
	duck.destroy_logical_type(&text);
	return table_function_register(connection, made, &function, err);
}
