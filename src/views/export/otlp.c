#include "views/export/otlp.h"

#include <stdlib.h>
#include <string.h>

#include <kymo/kymo.h>

#include "views/export/protobuf.h"
#include "views/query/rows.h"
#include "views_sql.h"

#define FLUSH_BYTES ((size_t)256 << 10)

enum { /* ResourceSpans, ScopeSpans and the like of metrics */
       OTLP_REQUEST_RESOURCE = 1,
       OTLP_RESOURCE = 1,
       OTLP_SCOPE_ITEMS = 2,
       OTLP_SCOPE = 1,
       RESOURCE_ATTRIBUTE = 1,
       SCOPE_NAME = 1,
       SCOPE_VERSION = 2,
       KEY_VALUE_KEY = 1,
       KEY_VALUE_VALUE = 2,
       VALUE_TEXT = 1,
       VALUE_INT = 3,
       VALUE_DOUBLE = 4,
};

/* ---- attributes ----------------------------------------------------------------------------- */

static void add_attribute(struct otlp *otlp, struct buf *out, uint32_t field, const char *key)
{
	struct buf pair = { 0 };

	protobuf_bytes(&pair, KEY_VALUE_KEY, key, strlen(key));
	protobuf_message(&pair, KEY_VALUE_VALUE, &otlp->value);
	protobuf_message(out, field, &pair);
	buf_fini(&pair);
}

void otlp_text(struct otlp *otlp, struct buf *out, uint32_t field, const char *key,
	       const char *text, size_t bytes)
{
	protobuf_text(&otlp->value, VALUE_TEXT, text, bytes);
	add_attribute(otlp, out, field, key);
}

void otlp_number(struct otlp *otlp, struct buf *out, uint32_t field, const char *key,
		 int64_t number)
{
	protobuf_number(&otlp->value, VALUE_INT, (uint64_t)number);
	add_attribute(otlp, out, field, key);
}

void otlp_real(struct otlp *otlp, struct buf *out, uint32_t field, const char *key, double number)
{
	protobuf_double(&otlp->value, VALUE_DOUBLE, number);
	add_attribute(otlp, out, field, key);
}

/* ---- the run -------------------------------------------------------------------------------- */

static uint64_t otlp_hash(uint64_t hash, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
	hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static int64_t otlp_integer(const struct rows *rows, size_t column)
{
	struct tables_cell cell;

	tables_cell(rows->result, column, rows->row, &cell);
	return cell.kind == TABLES_INTEGER ? cell.integer : 0;
}

/* A run that was not started in a trace has one of its own, always the same. */
static void choose_trace(struct otlp *otlp, const char *host, int64_t pid, const char *text)
{
	uint64_t ids[2] = { otlp_hash(0xcbf29ce484222325u, host, strlen(host)), 0 };

	ids[0] = otlp_hash(ids[0], &otlp->epoch_ns, sizeof(otlp->epoch_ns));
	ids[0] = otlp_hash(ids[0], &pid, sizeof(pid));
	ids[1] = otlp_hash(ids[0], "kymo", 4);
	otlp->root = otlp_hash(ids[1], "root", 4) | 1;
	if (!traceparent_read(text, &otlp->parent)) {
		otlp->parent = (struct traceparent){ .span = { 0 } };
		memcpy(otlp->parent.trace, ids, sizeof(ids));
		otlp->parent.trace[0] |= 1;
	}
}

static int otlp_run_row(const struct rows *rows, void *context)
{
	struct otlp *otlp = context;
	char host[256], text[80], state[32];
	char *command = rows_take_text(rows, 3);
	int64_t pid = otlp_integer(rows, 5);

	otlp->epoch_ns = otlp_integer(rows, 0);
	otlp->duration_ns = otlp_integer(rows, 1);
	rows_copy_text(rows, 2, otlp->program, sizeof(otlp->program));
	rows_copy_text(rows, 4, host, sizeof(host));
	rows_copy_text(rows, 6, state, sizeof(state));
	rows_copy_text(rows, 7, text, sizeof(text));
	otlp->failed = !strcmp(state, "killed") || !strcmp(state, "lost");
	choose_trace(otlp, host, pid, text);
	otlp_text(otlp, &otlp->resource, RESOURCE_ATTRIBUTE, "service.name", otlp->program,
		  strlen(otlp->program));
	otlp_text(otlp, &otlp->resource, RESOURCE_ATTRIBUTE, "host.name", host, strlen(host));
	otlp_number(otlp, &otlp->resource, RESOURCE_ATTRIBUTE, "process.pid", pid);
	if (command)
		otlp_text(otlp, &otlp->resource, RESOURCE_ATTRIBUTE, "process.command_line",
			  command, strlen(command));
	free(command);
	return 0;
}

int otlp_begin(struct export *export, struct otlp *otlp)
{
	return rows_each(export->tables, sql_export_otlp_run, otlp_run_row, otlp, export->err);
}

/* ---- writing -------------------------------------------------------------------------------- */

int otlp_flush(struct export *export, struct otlp *otlp, bool all)
{
	struct buf scope = { 0 }, items = { 0 }, message = { 0 };

	if (!otlp->items.used || (!all && otlp->items.used < FLUSH_BYTES))
		return export_flush(export, all);
	protobuf_bytes(&scope, SCOPE_NAME, "kymo", 4);
	protobuf_bytes(&scope, SCOPE_VERSION, KYMO_VERSION, strlen(KYMO_VERSION));
	protobuf_message(&items, OTLP_SCOPE, &scope);
	buf_add(&items, otlp->items.data, otlp->items.used);
	items.failed |= otlp->items.failed;
	buf_reset(&otlp->items);
	protobuf_bytes(&message, OTLP_RESOURCE, buf_get(&otlp->resource), otlp->resource.used);
	protobuf_message(&message, OTLP_SCOPE_ITEMS, &items);
	protobuf_message(&export->buf, OTLP_REQUEST_RESOURCE, &message);
	buf_fini(&scope);
	buf_fini(&items);
	buf_fini(&message);
	return export_flush(export, all);
}

void otlp_end(struct otlp *otlp)
{
	buf_fini(&otlp->resource);
	buf_fini(&otlp->items);
	buf_fini(&otlp->item);
	buf_fini(&otlp->part);
	buf_fini(&otlp->value);
}
