#include "tables/scan/cell.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/catalog/catalog.h"
#include "tables/scan/cell_text.h"

/* A text that is valid until the next chunk. */
struct cell_text {
	struct cell_text *next;
	char text[];
};

/* A type of DuckDB 1.5; the header may be older. */
#define TYPE_GEOMETRY 40

static const char *const type_names[] = {
	[DUCKDB_TYPE_BOOLEAN] = "BOOLEAN",
	[DUCKDB_TYPE_TINYINT] = "TINYINT",
	[DUCKDB_TYPE_SMALLINT] = "SMALLINT",
	[DUCKDB_TYPE_INTEGER] = "INTEGER",
	[DUCKDB_TYPE_BIGINT] = "BIGINT",
	[DUCKDB_TYPE_UTINYINT] = "UTINYINT",
	[DUCKDB_TYPE_USMALLINT] = "USMALLINT",
	[DUCKDB_TYPE_UINTEGER] = "UINTEGER",
	[DUCKDB_TYPE_UBIGINT] = "UBIGINT",
	[DUCKDB_TYPE_FLOAT] = "FLOAT",
	[DUCKDB_TYPE_DOUBLE] = "DOUBLE",
	[DUCKDB_TYPE_TIMESTAMP] = "TIMESTAMP",
	[DUCKDB_TYPE_DATE] = "DATE",
	[DUCKDB_TYPE_TIME] = "TIME",
	[DUCKDB_TYPE_INTERVAL] = "INTERVAL",
	[DUCKDB_TYPE_HUGEINT] = "HUGEINT",
	[DUCKDB_TYPE_VARCHAR] = "VARCHAR",
	[DUCKDB_TYPE_BLOB] = "BLOB",
	[DUCKDB_TYPE_TIMESTAMP_S] = "TIMESTAMP_S",
	[DUCKDB_TYPE_TIMESTAMP_MS] = "TIMESTAMP_MS",
	[DUCKDB_TYPE_TIMESTAMP_NS] = "TIMESTAMP_NS",
	[DUCKDB_TYPE_UUID] = "UUID",
	[DUCKDB_TYPE_BIT] = "BIT",
	[DUCKDB_TYPE_TIME_TZ] = "TIME WITH TIME ZONE",
	[DUCKDB_TYPE_TIMESTAMP_TZ] = "TIMESTAMP WITH TIME ZONE",
	[DUCKDB_TYPE_UHUGEINT] = "UHUGEINT",
	[DUCKDB_TYPE_BIGNUM] = "BIGNUM",
	[DUCKDB_TYPE_SQLNULL] = "NULL",
	[DUCKDB_TYPE_TIME_NS] = "TIME_NS",
	[TYPE_GEOMETRY] = "GEOMETRY",
};

/* ---- types ------------------------------------------------------------------------------- */

static void add_child_type(struct buf *out, duckdb_logical_type child)
{
	cell_type(out, child);
	duck.destroy_logical_type(&child);
}

static void add_members(struct buf *out, duckdb_logical_type type, bool is_union)
{
	idx_t count = is_union ? duck.union_type_member_count(type)
			       : duck.struct_type_child_count(type);
	char *name;

	buf_text(out, is_union ? "UNION(" : "STRUCT(");
	for (idx_t i = 0; i < count; i++) {
		name = is_union ? duck.union_type_member_name(type, i)
				: duck.struct_type_child_name(type, i);
		buf_text(out, i ? ", " : "");
		catalog_quote(out, name ? name : "");
		buf_char(out, ' ');
		duck.free(name);
		add_child_type(out, is_union ? duck.union_type_member_type(type, i)
					     : duck.struct_type_child_type(type, i));
	}
	buf_char(out, ')');
}

static void add_enum(struct buf *out, duckdb_logical_type type)
{
	char *word;

	buf_text(out, "ENUM(");
	for (idx_t i = 0; i < duck.enum_dictionary_size(type); i++) {
		word = duck.enum_dictionary_value(type, i);
		buf_text(out, i ? ", " : "");
		catalog_quote_text(out, word ? word : "");
		duck.free(word);
	}
	buf_char(out, ')');
}

void cell_type(struct buf *out, duckdb_logical_type type)
{
	duckdb_type id = duck.get_type_id(type);
	char *alias = duck.logical_type_get_alias(type);

	if (alias && *alias) {
		buf_text(out, alias);
	} else if (id == DUCKDB_TYPE_DECIMAL) {
		buf_print(out, "DECIMAL(%d,%d)", duck.decimal_width(type),
			  duck.decimal_scale(type));
	} else if (id == DUCKDB_TYPE_ENUM) {
		add_enum(out, type);
	} else if (id == DUCKDB_TYPE_LIST) {
		add_child_type(out, duck.list_type_child_type(type));
		buf_text(out, "[]");
	} else if (id == DUCKDB_TYPE_ARRAY) {
		add_child_type(out, duck.array_type_child_type(type));
		buf_print(out, "[%" PRIu64 "]", (uint64_t)duck.array_type_array_size(type));
	} else if (id == DUCKDB_TYPE_MAP) {
		buf_text(out, "MAP(");
		add_child_type(out, duck.map_type_key_type(type));
		buf_text(out, ", ");
		add_child_type(out, duck.map_type_value_type(type));
		buf_char(out, ')');
	} else if (id == DUCKDB_TYPE_STRUCT || id == DUCKDB_TYPE_UNION) {
		add_members(out, type, id == DUCKDB_TYPE_UNION);
	} else {
		buf_text(out,
			 (size_t)id < sizeof(type_names) / sizeof(type_names[0]) && type_names[id]
				 ? type_names[id]
				 : "UNKNOWN");
	}
	if (alias)
		duck.free(alias);
}

/* ---- values as text ---------------------------------------------------------------------- */

static const char *string_bytes(const duckdb_string_t *string, size_t *bytes)
{
	*bytes = string->value.inlined.length;
	return *bytes <= sizeof(string->value.inlined.inlined) ? string->value.inlined.inlined
							       : string->value.pointer.ptr;
}

static duckdb_hugeint decimal_bits(duckdb_logical_type type, const void *data, idx_t row)
{
	int64_t value = 0;

	switch (duck.decimal_internal_type(type)) {
	case DUCKDB_TYPE_SMALLINT: value = ((const int16_t *)data)[row]; break;
	case DUCKDB_TYPE_INTEGER: value = ((const int32_t *)data)[row]; break;
	case DUCKDB_TYPE_BIGINT: value = ((const int64_t *)data)[row]; break;
	default: return ((const duckdb_hugeint *)data)[row];
	}
	return (duckdb_hugeint){ (uint64_t)value, value < 0 ? -1 : 0 };
}

static void add_enum_word(struct buf *out, duckdb_logical_type type, const void *data, idx_t row)
{
	duckdb_type stored = duck.enum_internal_type(type);
	idx_t index = stored == DUCKDB_TYPE_UTINYINT	? ((const uint8_t *)data)[row]
		      : stored == DUCKDB_TYPE_USMALLINT ? ((const uint16_t *)data)[row]
							: ((const uint32_t *)data)[row];
	char *word = index < duck.enum_dictionary_size(type)
			     ? duck.enum_dictionary_value(type, index)
			     : NULL;

	buf_text(out, word ? word : "");
	if (word)
		duck.free(word);
}

static void add_bytes(struct buf *out, duckdb_type id, const duckdb_string_t *string)
{
	size_t bytes;
	const unsigned char *data = (const unsigned char *)string_bytes(string, &bytes);

	if (id == DUCKDB_TYPE_BLOB || (int)id == TYPE_GEOMETRY)
		cell_text_blob(out, data, bytes);
	else if (id == DUCKDB_TYPE_BIT)
		cell_text_bit(out, data, bytes);
	else if (id == DUCKDB_TYPE_BIGNUM)
		cell_text_bignum(out, data, bytes);
	else
		buf_add(out, data, bytes);
}

/* For values that are neither nested nor NULL. */
static void add_scalar(struct buf *out, duckdb_logical_type type, const void *data, idx_t row)
{
	duckdb_type id = duck.get_type_id(type);
	const int64_t *longs = data;

	switch ((int)id) {
	case DUCKDB_TYPE_BOOLEAN:
		buf_text(out, ((const bool *)data)[row] ? "true" : "false");
		break;
	case DUCKDB_TYPE_TINYINT: buf_print(out, "%d", ((const int8_t *)data)[row]); break;
	case DUCKDB_TYPE_SMALLINT: buf_print(out, "%d", ((const int16_t *)data)[row]); break;
	case DUCKDB_TYPE_INTEGER: buf_print(out, "%d", ((const int32_t *)data)[row]); break;
	case DUCKDB_TYPE_BIGINT: buf_print(out, "%" PRId64, longs[row]); break;
	case DUCKDB_TYPE_UTINYINT: buf_print(out, "%u", ((const uint8_t *)data)[row]); break;
	case DUCKDB_TYPE_USMALLINT: buf_print(out, "%u", ((const uint16_t *)data)[row]); break;
	case DUCKDB_TYPE_UINTEGER: buf_print(out, "%u", ((const uint32_t *)data)[row]); break;
	case DUCKDB_TYPE_UBIGINT: buf_print(out, "%" PRIu64, ((const uint64_t *)data)[row]); break;
	case DUCKDB_TYPE_FLOAT: cell_text_double(out, ((const float *)data)[row], true); break;
	case DUCKDB_TYPE_DOUBLE: cell_text_double(out, ((const double *)data)[row], false); break;
	case DUCKDB_TYPE_HUGEINT:
		cell_text_hugeint(out, ((const duckdb_hugeint *)data)[row]);
		break;
	case DUCKDB_TYPE_UHUGEINT: {
		duckdb_uhugeint value = ((const duckdb_uhugeint *)data)[row];

		cell_text_u128(out, (cell_u128)value.upper << 64 | value.lower, false);
		break;
	}
	case DUCKDB_TYPE_DECIMAL:
		cell_text_decimal(out, decimal_bits(type, data, row), duck.decimal_scale(type));
		break;
	case DUCKDB_TYPE_UUID: cell_text_uuid(out, ((const duckdb_hugeint *)data)[row]); break;
	case DUCKDB_TYPE_DATE: cell_text_date(out, ((const int32_t *)data)[row]); break;
	case DUCKDB_TYPE_TIME: cell_text_time(out, longs[row], 1000000); break;
	case DUCKDB_TYPE_TIME_NS: cell_text_time(out, longs[row], 1000000000); break;
	case DUCKDB_TYPE_TIME_TZ: cell_text_time_tz(out, ((const uint64_t *)data)[row]); break;
	case DUCKDB_TYPE_TIMESTAMP: cell_text_timestamp(out, longs[row], 1000000, false); break;
	case DUCKDB_TYPE_TIMESTAMP_TZ: cell_text_timestamp(out, longs[row], 1000000, true); break;
	case DUCKDB_TYPE_TIMESTAMP_S: cell_text_timestamp(out, longs[row], 1, false); break;
	case DUCKDB_TYPE_TIMESTAMP_MS: cell_text_timestamp(out, longs[row], 1000, false); break;
	case DUCKDB_TYPE_TIMESTAMP_NS:
		cell_text_timestamp(out, longs[row], 1000000000, false);
		break;
	case DUCKDB_TYPE_INTERVAL:
		cell_text_interval(out, ((const duckdb_interval *)data)[row]);
		break;
	case DUCKDB_TYPE_ENUM: add_enum_word(out, type, data, row); break;
	case DUCKDB_TYPE_VARCHAR:
	case DUCKDB_TYPE_BLOB:
	case DUCKDB_TYPE_BIT:
	case DUCKDB_TYPE_BIGNUM:
	case TYPE_GEOMETRY: add_bytes(out, id, &((const duckdb_string_t *)data)[row]); break;
	default: buf_text(out, "(not shown: cast it to VARCHAR)"); break;
	}
}

/* ---- nested values as JSON --------------------------------------------------------------- */

static void add_json(struct buf *out, duckdb_logical_type type, duckdb_vector vector, idx_t row);

static bool is_valid(const uint64_t *validity, idx_t row)
{
	return !validity || validity[row / 64] >> (row % 64) & 1;
}

static void add_json_text(struct buf *out, const char *text, size_t bytes)
{
	static const char short_forms[] = "b\0t\0n\0\0\0f\0r"; /* for 8 to 13, every other byte */

	buf_char(out, '"');
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];
		char letter = c >= 8 && c <= 13 ? short_forms[(c - 8) * 2] : 0;

		if (c == '"' || c == '\\')
			buf_print(out, "\\%c", c);
		else if (letter)
			buf_print(out, "\\%c", letter);
		else if (c < ' ' || c == 127)
			buf_print(out, "\\u%04x", c);
		else
			buf_char(out, (char)c);
	}
	buf_char(out, '"');
}

/* Other values are JSON strings. */
static bool cell_is_json_number(duckdb_type id)
{
	return (id >= DUCKDB_TYPE_BOOLEAN && id <= DUCKDB_TYPE_UBIGINT) ||
	       id == DUCKDB_TYPE_HUGEINT || id == DUCKDB_TYPE_UHUGEINT ||
	       id == DUCKDB_TYPE_DECIMAL || id == DUCKDB_TYPE_BIGNUM;
}

static void add_json_scalar(struct buf *out, duckdb_logical_type type, const void *data, idx_t row)
{
	duckdb_type id = duck.get_type_id(type);
	struct buf text = { 0 };
	bool plain = cell_is_json_number(id);

	add_scalar(&text, type, data, row);
	if (id == DUCKDB_TYPE_FLOAT)
		plain = isfinite(((const float *)data)[row]);
	if (id == DUCKDB_TYPE_DOUBLE)
		plain = isfinite(((const double *)data)[row]);
	if (plain)
		buf_text(out, buf_get(&text));
	else
		add_json_text(out, buf_get(&text), text.used);
	buf_fini(&text);
}

static void add_json_children(struct buf *out, duckdb_logical_type child_type, duckdb_vector child,
			      idx_t first, idx_t count)
{
	buf_char(out, '[');
	for (idx_t i = 0; i < count; i++) {
		buf_text(out, i ? ", " : "");
		add_json(out, child_type, child, first + i);
	}
	buf_char(out, ']');
	duck.destroy_logical_type(&child_type);
}

static void add_json_list(struct buf *out, duckdb_logical_type type, duckdb_vector vector,
			  idx_t row)
{
	const duckdb_list_entry *entry = &(
		(const duckdb_list_entry *)duck.vector_get_data(vector))[row];

	add_json_children(out, duck.list_type_child_type(type), duck.list_vector_get_child(vector),
			  entry->offset, entry->length);
}

static void add_json_array(struct buf *out, duckdb_logical_type type, duckdb_vector vector,
			   idx_t row)
{
	idx_t size = duck.array_type_array_size(type);

	add_json_children(out, duck.array_type_child_type(type),
			  duck.array_vector_get_child(vector), row * size, size);
}

static void add_json_member(struct buf *out, const char *name, duckdb_logical_type type,
			    duckdb_vector vector, idx_t row)
{
	add_json_text(out, name ? name : "", name ? strlen(name) : 0);
	buf_text(out, ": ");
	add_json(out, type, vector, row);
}

static void add_json_struct(struct buf *out, duckdb_logical_type type, duckdb_vector vector,
			    idx_t row)
{
	duckdb_logical_type child;
	char *name;

	buf_char(out, '{');
	for (idx_t i = 0; i < duck.struct_type_child_count(type); i++) {
		name = duck.struct_type_child_name(type, i);
		child = duck.struct_type_child_type(type, i);
		buf_text(out, i ? ", " : "");
		add_json_member(out, name, child, duck.struct_vector_get_child(vector, i), row);
		duck.destroy_logical_type(&child);
		duck.free(name);
	}
	buf_char(out, '}');
}

/* An object; its keys are converted to text. */
static void add_json_map(struct buf *out, duckdb_logical_type type, duckdb_vector vector, idx_t row)
{
	const duckdb_list_entry *entry = &(
		(const duckdb_list_entry *)duck.vector_get_data(vector))[row];
	duckdb_vector pairs = duck.list_vector_get_child(vector);
	duckdb_vector keys = duck.struct_vector_get_child(pairs, 0),
		      values = duck.struct_vector_get_child(pairs, 1);
	duckdb_logical_type key_type = duck.map_type_key_type(type),
			    value_type = duck.map_type_value_type(type);
	struct buf key = { 0 };

	buf_char(out, '{');
	for (idx_t i = entry->offset; i < entry->offset + entry->length; i++) {
		buf_reset(&key);
		add_json(&key, key_type, keys, i);
		buf_text(out, i > entry->offset ? ", " : "");
		if (key.used && key.data[0] == '"')
			buf_add(out, key.data, key.used);
		else
			add_json_text(out, buf_get(&key), key.used);
		buf_text(out, ": ");
		add_json(out, value_type, values, i);
	}
	buf_char(out, '}');
	buf_fini(&key);
	duck.destroy_logical_type(&key_type);
	duck.destroy_logical_type(&value_type);
}

/* A struct whose first child selects one of the others. */
static void add_json_union(struct buf *out, duckdb_logical_type type, duckdb_vector vector,
			   idx_t row)
{
	idx_t tag = ((const uint8_t *)duck.vector_get_data(
		duck.struct_vector_get_child(vector, 0)))[row];
	duckdb_logical_type member;

	if (tag >= duck.union_type_member_count(type)) {
		buf_text(out, "null");
		return;
	}
	member = duck.union_type_member_type(type, tag);
	add_json(out, member, duck.struct_vector_get_child(vector, tag + 1), row);
	duck.destroy_logical_type(&member);
}

static void add_json(struct buf *out, duckdb_logical_type type, duckdb_vector vector, idx_t row)
{
	if (!is_valid(duck.vector_get_validity(vector), row)) {
		buf_text(out, "null");
		return;
	}
	switch (duck.get_type_id(type)) {
	case DUCKDB_TYPE_LIST: add_json_list(out, type, vector, row); break;
	case DUCKDB_TYPE_ARRAY: add_json_array(out, type, vector, row); break;
	case DUCKDB_TYPE_STRUCT: add_json_struct(out, type, vector, row); break;
	case DUCKDB_TYPE_MAP: add_json_map(out, type, vector, row); break;
	case DUCKDB_TYPE_UNION: add_json_union(out, type, vector, row); break;
	default: add_json_scalar(out, type, duck.vector_get_data(vector), row); break;
	}
}

static bool is_nested(duckdb_type id)
{
	return id == DUCKDB_TYPE_LIST || id == DUCKDB_TYPE_ARRAY || id == DUCKDB_TYPE_STRUCT ||
	       id == DUCKDB_TYPE_MAP || id == DUCKDB_TYPE_UNION;
}

/* ---- cells ------------------------------------------------------------------------------- */

int cell_columns_init(struct tables_result *result)
{
	struct buf name = { 0 };
	struct cell_column *column;
	char *alias;

	result->column_count = duck.column_count(&result->result);
	result->columns = calloc(result->column_count + 1, sizeof(result->columns[0]));
	if (!result->columns)
		return -ENOMEM;
	for (size_t i = 0; i < result->column_count; i++) {
		column = &result->columns[i];
		column->name = duck.column_name(&result->result, i);
		column->type = duck.column_logical_type(&result->result, i);
		column->id = duck.get_type_id(column->type);
		alias = duck.logical_type_get_alias(column->type);
		column->is_json = alias && !strcmp(alias, "JSON");
		if (alias)
			duck.free(alias);
		buf_reset(&name);
		cell_type(&name, column->type);
		column->type_name = strdup(buf_get(&name));
		if (!column->type_name)
			break;
	}
	buf_fini(&name);
	return result->column_count && !result->columns[result->column_count - 1].type_name
		       ? -ENOMEM
		       : 0;
}

static void free_texts(struct tables_result *result)
{
	struct cell_text *text;

	while ((text = result->texts)) {
		result->texts = text->next;
		free(text);
	}
}

void cell_columns_fini(struct tables_result *result)
{
	free_texts(result);
	for (size_t i = 0; result->columns && i < result->column_count; i++) {
		if (result->columns[i].type)
			duck.destroy_logical_type(&result->columns[i].type);
		free(result->columns[i].type_name);
	}
	free(result->columns);
	result->columns = NULL;
}

void cell_chunk(struct tables_result *result)
{
	struct cell_column *column;

	free_texts(result);
	for (size_t i = 0; i < result->column_count; i++) {
		column = &result->columns[i];
		column->vector = duck.data_chunk_get_vector(result->chunk, i);
		column->data = duck.vector_get_data(column->vector);
		column->validity = duck.vector_get_validity(column->vector);
	}
}

static void cell_keep_text(struct tables_result *result, const struct buf *from,
			   struct tables_cell *out)
{
	struct cell_text *kept = malloc(sizeof(*kept) + from->used + 1);

	out->text = "";
	out->text_bytes = 0;
	if (!kept)
		return;
	kept->next = result->texts;
	result->texts = kept;
	memcpy(kept->text, buf_get(from), from->used + 1);
	out->text = kept->text;
	out->text_bytes = from->used;
}

static void made_text(struct tables_result *result, const struct cell_column *column, size_t row,
		      struct tables_cell *out)
{
	struct buf text = { 0 };

	out->kind = is_nested(column->id) ? TABLES_JSON : TABLES_TEXT;
	if (out->kind == TABLES_JSON)
		add_json(&text, column->type, column->vector, row);
	else
		add_scalar(&text, column->type, column->data, row);
	cell_keep_text(result, &text, out);
	buf_fini(&text);
}

static void set_integer(struct tables_cell *out, int64_t value)
{
	out->kind = TABLES_INTEGER;
	out->integer = value;
}

static void set_unsigned(struct tables_cell *out, uint64_t value)
{
	out->kind = TABLES_UNSIGNED;
	out->unsigned_integer = value;
}

static void set_real(struct tables_cell *out, double value)
{
	out->kind = TABLES_DOUBLE;
	out->real = value;
}

/* 0.1f is shown as 0.1, not as 0.10000000149. */
static double cell_widen(float value)
{
	struct buf text = { 0 };
	double wide;

	if (!isfinite(value))
		return value;
	cell_text_double(&text, value, true);
	wide = strtod(buf_get(&text), NULL);
	buf_fini(&text);
	return wide;
}

void tables_cell(struct tables_result *result, size_t column_index, size_t row,
		 struct tables_cell *out)
{
	const struct cell_column *column = &result->columns[column_index];
	const void *data = column->data;

	memset(out, 0, sizeof(*out));
	if (!is_valid(column->validity, row))
		return;
	switch (column->id) {
	case DUCKDB_TYPE_BOOLEAN:
		out->kind = TABLES_BOOL;
		out->integer = ((const bool *)data)[row];
		break;
	case DUCKDB_TYPE_TINYINT: set_integer(out, ((const int8_t *)data)[row]); break;
	case DUCKDB_TYPE_SMALLINT: set_integer(out, ((const int16_t *)data)[row]); break;
	case DUCKDB_TYPE_INTEGER: set_integer(out, ((const int32_t *)data)[row]); break;
	case DUCKDB_TYPE_BIGINT: set_integer(out, ((const int64_t *)data)[row]); break;
	case DUCKDB_TYPE_UTINYINT: set_unsigned(out, ((const uint8_t *)data)[row]); break;
	case DUCKDB_TYPE_USMALLINT: set_unsigned(out, ((const uint16_t *)data)[row]); break;
	case DUCKDB_TYPE_UINTEGER: set_unsigned(out, ((const uint32_t *)data)[row]); break;
	case DUCKDB_TYPE_UBIGINT: set_unsigned(out, ((const uint64_t *)data)[row]); break;
	case DUCKDB_TYPE_FLOAT: set_real(out, cell_widen(((const float *)data)[row])); break;
	case DUCKDB_TYPE_DOUBLE: set_real(out, ((const double *)data)[row]); break;
	case DUCKDB_TYPE_VARCHAR:
		out->kind = column->is_json ? TABLES_JSON : TABLES_TEXT;
		out->text = string_bytes(&((const duckdb_string_t *)data)[row], &out->text_bytes);
		break;
	default: made_text(result, column, row, out); break;
	}
}
