/* Documents that kymo serve makes by SQL of its own. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "serve/children/child.h"
#include "serve_sql.h"
#include "tables/catalog/catalog.h"
#include "tables/sql_fill.h"
#include "views/query/json.h"
#include "views/query/rows.h"
#include "views/report/blocks.h"
#include "views/stacks/call_tree.h"
#include "views/stacks/name_table.h"
#include "views/verdicts/facts.h"

/* ---- a run, and an interval of it ----------------------------------------------------------- */

int child_run(struct tables *tables, const struct question *question, const char *sql, FILE *out,
	      struct kymo_error *err)
{
	struct facts facts;
	int rc = facts_gather(tables, &facts, err);

	(void)sql;
	if (!rc) {
		rc = question->first ? blocks_write_first(tables, &facts, out, err)
				     : blocks_write(tables, &facts, out, err);
		facts_fini(&facts);
	}
	return rc;
}

int child_range(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err)
{
	(void)sql;
	return blocks_write_range(tables, question->from_ns, question->to_ns, &question->ranks, out,
				  err);
}

/* ---- tables and columns, with their descriptions -------------------------------------------- */

struct schema {
	struct buf *out;
	char schema[128], table[128];
	const struct catalog_view *view; /* a built-in one; NULL: the user's */
	bool began;
};

static const struct catalog_view *find_view(const char *schema, const char *table)
{
	for (size_t i = 0; i < catalog_view_count; i++)
		if (!strcmp(catalog_views[i].schema, schema) &&
		    !strcmp(catalog_views[i].name, table))
			return &catalog_views[i];
	return NULL;
}

static const char *about(const struct catalog_view *view, const char *column)
{
	for (size_t i = 0; view && i < view->column_count; i++)
		if (!strcmp(view->columns[i].name, column))
			return view->columns[i].about ? view->columns[i].about : "";
	return "";
}

static void child_schema_key_text(struct buf *out, const char *key, const char *text)
{
	buf_print(out, "\"%s\":", key);
	json_text(out, text, strlen(text));
}

static void child_schema_begin_table(struct schema *to, const char *schema, const char *table)
{
	buf_text(to->out, to->began ? "]},\n{" : "\n{");
	to->began = true;
	strcpy(to->schema, schema);
	strcpy(to->table, table);
	to->view = find_view(schema, table);
	child_schema_key_text(to->out, "schema", schema);
	buf_char(to->out, ',');
	child_schema_key_text(to->out, "name", table);
	buf_char(to->out, ',');
	child_schema_key_text(to->out, "about",
			      to->view ? to->view->about : "A table defined by the program.");
	buf_text(to->out, ",\"columns\":[");
}

static int column_row(const struct rows *rows, void *context)
{
	struct schema *to = context;
	char schema[128], table[128], column[128], type[128];

	rows_copy_text(rows, 0, schema, sizeof(schema));
	rows_copy_text(rows, 1, table, sizeof(table));
	rows_copy_text(rows, 2, column, sizeof(column));
	rows_copy_text(rows, 3, type, sizeof(type));
	if (!to->began || strcmp(schema, to->schema) || strcmp(table, to->table))
		child_schema_begin_table(to, schema, table);
	else
		buf_char(to->out, ',');
	buf_char(to->out, '{');
	child_schema_key_text(to->out, "name", column);
	buf_char(to->out, ',');
	child_schema_key_text(to->out, "type", type);
	buf_char(to->out, ',');
	child_schema_key_text(to->out, "about", about(to->view, column));
	buf_char(to->out, '}');
	return 0;
}

int child_schema(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		 struct kymo_error *err)
{
	struct buf text = { 0 };
	struct schema to = { .out = &text };
	int rc;

	(void)question;
	(void)sql;
	buf_text(&text, "{\"tables\":[");
	rc = rows_each(tables, sql_answer_schema, column_row, &to, err);
	buf_text(&text, to.began ? "]}]}\n" : "]}\n");
	if (!rc)
		rc = child_write(&text, out, err);
	buf_fini(&text);
	return rc;
}

/* ---- the flame graph of samples ------------------------------------------------------------- */

enum { SAMPLED_COUNT, SAMPLED_NS, SAMPLED_VALUES };

struct sampled_tree {
	struct call_tree tree; /* values: samples, their time */
	struct name_table names;
	double total[SAMPLED_VALUES];
};

static uint32_t sampled_child(struct sampled_tree *to, uint32_t parent, const char *text,
			      size_t bytes, const double *values)
{
	const struct name_entry name = { .name = text,
					 .name_bytes = (uint32_t)bytes,
					 .source = "python",
					 .source_bytes = 6,
					 .file = "" };
	uint32_t number = name_table_add(&to->names, &name), node = parent;

	if (number != NAME_TABLE_NONE)
		node = call_tree_child(&to->tree, parent, number);
	for (int i = 0; node != parent && i < SAMPLED_VALUES; i++)
		to->tree.nodes[node].values[i] += values[i];
	return node;
}

/* thread, frames separated by U+0001 (outermost first), count, time */
static int sample_row(const struct rows *rows, void *context)
{
	struct sampled_tree *to = context;
	double values[SAMPLED_VALUES] = { rows_number(rows, 2, 0), rows_number(rows, 3, 0) };
	char *thread = rows_take_text(rows, 0), *stack = rows_take_text(rows, 1);
	uint32_t at;

	if (thread && stack) {
		at = sampled_child(to, 0, thread, strlen(thread), values);
		for (const char *frame = stack; *frame;) {
			size_t bytes = strcspn(frame, "\x01");

			at = sampled_child(to, at, frame, bytes, values);
			frame += bytes + (frame[bytes] != 0);
		}
		for (int i = 0; i < SAMPLED_VALUES; i++)
			to->total[i] += values[i];
	}
	free(thread);
	free(stack);
	return 0;
}

static void sampled_json(const struct sampled_tree *from, struct buf *out)
{
	/* Of time, since samples have different periods; older recordings have only the number. */
	int value = from->total[SAMPLED_NS] > 0 ? SAMPLED_NS : SAMPLED_COUNT;

	buf_print(out,
		  "{\"of\":\"samples\",\"unit\":\"%s\",\"gen\":1,\"samples\":%.0f,"
		  "\"total\":%.0f,\"nodes\":[",
		  value == SAMPLED_NS ? "ns" : "samples", from->total[SAMPLED_COUNT],
		  from->total[value]);
	for (size_t i = 1; i < from->tree.count; i++)
		buf_print(out, "%s[%u,%" PRId64 ",%.0f]", i > 1 ? "," : "",
			  from->tree.nodes[i].frame, (int64_t)from->tree.nodes[i].parent - 1,
			  from->tree.nodes[i].values[value]);
	buf_text(out, "],\"lanes\":[],\"names\":{");
	name_table_json(&from->names, NULL, 0, from->names.count, out);
	buf_text(out, "}}\n");
}

static int child_flame_ask(struct tables *tables, const struct question *question,
			   struct sampled_tree *tree, struct kymo_error *err)
{
	struct buf sql = { 0 };
	char thread[40] = "true";
	int rc;

	if (question->thread >= 0)
		snprintf(thread, sizeof(thread), "tid = %" PRId64, question->thread);
	sql_fill(&sql, question->native ? sql_answer_flame_native : sql_answer_flame,
		 (struct sql_value[]){ { "from", .number = question->from_ns },
				       { "to", .number = question->to_ns },
				       { "thread", .text = thread },
				       { NULL } });
	rc = rank_set_each(&question->ranks, tables, buf_get(&sql), sample_row, tree, err);
	buf_fini(&sql);
	return rc;
}

int child_flame(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err)
{
	struct sampled_tree tree = { 0 };
	struct buf text = { 0 };
	int rc = call_tree_init(&tree.tree)
			 ? error_set(err, ENOMEM, "out of memory for the flame graph")
			 : child_flame_ask(tables, question, &tree, err);

	(void)sql;
	if (!rc) {
		sampled_json(&tree, &text);
		rc = child_write(&text, out, err);
	}
	buf_fini(&text);
	call_tree_fini(&tree.tree);
	name_table_fini(&tree.names);
	return rc;
}
