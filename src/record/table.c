/* Tables: kymo's own from base/schema, the program's by declaration. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <kymo/atomic.h>

#include "record/record.h"

struct kymo_table kymo__tables[KYMO_TABLES_MAX];

static const char *const own_schemas[] = {
	"trace",  "python", "device", "alloc",	    "host", "kymo",  "information_schema",
	"system", "main",   "temp",   "pg_catalog", "rec",  "memory"
};

static void table_describe(struct kymo_column_desc *out, const struct kymo_column *column)
{
	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "%s", column->name);
	out->type = column->type;
	out->offset = (uint32_t)column->offset;
	out->bytes = (uint32_t)(column->type == KYMO_TEXT ? column->bytes
							  : schema_type_bytes(column->type));
	snprintf(out->unit, sizeof(out->unit), "%s", column->unit ? column->unit : "");
}

static void table_fill(struct kymo_table *table, uint32_t index, const char *name,
		       const struct kymo_column *columns, size_t column_count, size_t row_bytes)
{
	memset(table->columns, 0, sizeof(table->columns));
	snprintf(table->name, sizeof(table->name), "%s", name);
	table->index = index;
	table->user_bytes = (uint32_t)row_bytes;
	table->row_bytes = ((uint32_t)row_bytes + 7u) & ~7u;
	table->thread_offset = UINT32_MAX;
	table->column_count = (uint32_t)column_count;
	for (size_t i = 0; i < column_count; i++) {
		table_describe(&table->columns[i], &columns[i]);
		if (columns[i].type == KYMO_THREAD && table->thread_offset == UINT32_MAX)
			table->thread_offset = (uint32_t)columns[i].offset;
	}
}

void kymo__tables_init(void)
{
	for (uint32_t i = 0; i < SCHEMA_COUNT; i++) {
		const struct schema_table *own = schema_get((enum schema_id)i);

		if (!own || kymo__tables[i].state)
			continue;
		table_fill(&kymo__tables[i], i, own->name, own->columns, own->column_count,
			   own->row_bytes);
		kymo__tables[i].state = 2;
	}
}

static void name_losses(const struct kymo_table *table)
{
	if (kymo__process.control)
		snprintf(kymo__process.control->lost[table->index].table,
			 sizeof(kymo__process.control->lost[0].table), "%s", table->name);
}

void kymo__tables_name_losses(void)
{
	for (uint32_t i = 1; i < KYMO_TABLES_MAX; i++)
		if (kymo__load_acquire(&kymo__tables[i].state) == 2)
			name_losses(&kymo__tables[i]);
}

/* ---- the program's tables ---- */

static int table_check_name(const char *name, struct kymo_error *err)
{
	const char *dot = name ? strchr(name, '.') : NULL;

	if (!dot || strlen(name) > 55 || !schema_is_word(name, (size_t)(dot - name)) ||
	    !schema_is_word(dot + 1, strlen(dot + 1)))
		return error_set(err, EINVAL,
				 "cannot declare the table '%s': the name must be schema.table, of "
				 "letters, digits and _, at most 55 bytes",
				 name ? name : "(null)");
	for (size_t i = 0; i < sizeof(own_schemas) / sizeof(own_schemas[0]); i++)
		if (strlen(own_schemas[i]) == (size_t)(dot - name) &&
		    !strncasecmp(own_schemas[i], name, (size_t)(dot - name)))
			return error_set(err, EINVAL,
					 "cannot declare the table '%s': the schema %s is reserved "
					 "for kymo; use another, for example app",
					 name, own_schemas[i]);
	return 0;
}

static int check_column(const char *table, const struct kymo_column *column, size_t row_bytes,
			struct kymo_error *err)
{
	size_t bytes = column->type == KYMO_TEXT ? column->bytes : schema_type_bytes(column->type);

	if (!column->name || strlen(column->name) > 31 ||
	    !schema_is_word(column->name, strlen(column->name)))
		return error_set(err, EINVAL,
				 "cannot declare %s: '%s' is not a valid column name (letters, "
				 "digits and _, at most 31)",
				 table, column->name ? column->name : "(null)");
	if (!bytes)
		return error_set(err, EINVAL,
				 "cannot declare %s: column %s has an unknown type or no width",
				 table, column->name);
	if (column->offset > row_bytes || bytes > row_bytes - column->offset)
		return error_set(err, EINVAL,
				 "cannot declare %s: column %s is outside of the row of %zu bytes",
				 table, column->name, row_bytes);
	if (column->type != KYMO_TEXT && column->offset % bytes)
		return error_set(err, EINVAL,
				 "cannot declare %s: column %s is not aligned to its width (%zu)",
				 table, column->name, bytes);
	return 0;
}

static int table_check(const char *name, const struct kymo_column *columns, size_t count,
		       size_t row_bytes, struct kymo_error *err)
{
	int rc = table_check_name(name, err);

	if (!rc && (!columns || !count || count > KYMO_COLUMNS_MAX))
		rc = error_set(err, EINVAL,
			       "cannot declare %s: it has %zu columns; 1 to %d are allowed", name,
			       count, KYMO_COLUMNS_MAX);
	if (!rc && (!row_bytes || row_bytes > KYMO_ROW_BYTES_MAX))
		rc = error_set(err, EINVAL,
			       "cannot declare %s: a row has %zu bytes; 1 to %d are allowed", name,
			       row_bytes, KYMO_ROW_BYTES_MAX);
	for (size_t i = 0; !rc && i < count; i++) {
		rc = check_column(name, &columns[i], row_bytes, err);
		for (size_t j = 0; !rc && j < i; j++)
			if (!strcasecmp(columns[i].name, columns[j].name))
				rc = error_set(err, EINVAL,
					       "cannot declare %s: column %s is declared twice",
					       name, columns[i].name);
	}
	return rc;
}

static bool table_is_same(const struct kymo_table *table, const struct kymo_column *columns,
			  size_t count, size_t row_bytes)
{
	struct kymo_column_desc desc;

	if (table->column_count != count || table->user_bytes != row_bytes)
		return false;
	for (size_t i = 0; i < count; i++) {
		table_describe(&desc, &columns[i]);
		if (memcmp(&desc, &table->columns[i], sizeof(desc)))
			return false;
	}
	return true;
}

struct kymo_table *kymo_table_create(const char *name, const struct kymo_column *columns,
				     size_t column_count, size_t row_bytes, struct kymo_error *err)
{
	if (table_check(name, columns, column_count, row_bytes, err))
		return NULL;
	for (uint32_t i = SCHEMA_COUNT; i < KYMO_TABLES_MAX; i++) {
		struct kymo_table *table = &kymo__tables[i];
		uint32_t free_state = 0;

		if (kymo__cas_acq_rel_acquire(&table->state, &free_state, 1)) {
			table_fill(table, i, name, columns, column_count, row_bytes);
			name_losses(table);
			kymo__store_release(&table->state, 2);
			return table;
		}
		/* Another thread is filling it, which is quick; or was, when this child was
		   forked. */
		for (int turns = 0; turns < 10000 && kymo__load_acquire(&table->state) == 1;
		     turns++)
			sched_yield();
		if (strcasecmp(table->name, name))
			continue;
		if (table_is_same(table, columns, column_count, row_bytes))
			return table;
		error_set(err, EEXIST,
			  "cannot declare %s: it is already declared with other columns", name);
		return NULL;
	}
	error_set(err, ENOSPC, "cannot declare %s: this process already has %d tables, the maximum",
		  name, KYMO_TABLES_MAX - SCHEMA_COUNT);
	return NULL;
}

int kymo_table_append(struct kymo_table *table, const void *row)
{
	if (!table || !row)
		return -EINVAL;
	if (!kymo_enabled())
		return 0;
	return kymo__push(table, row);
}
