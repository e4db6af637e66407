#include "views/stacks/sampled_stacks.h"

#include <errno.h>
#include <string.h>

#include "views/query/rows.h"
#include "views_sql.h"

#define DEPTH_MOST 4096

struct gather {
	struct name_table *frames;
	int (*each)(const struct sampled_stack *stack, void *context);
	void *context;
	struct kymo_error *err;
	uint32_t stack[DEPTH_MOST];
	size_t depth;
	uint64_t id, count, time_ns;
	const char *source;
};

static int sampled_stacks_give(struct gather *gather)
{
	struct sampled_stack stack = { gather->stack, gather->depth, gather->count,
				       gather->time_ns };

	return gather->depth ? gather->each(&stack, gather->context) : 0;
}

static int frame_row(const struct rows *rows, void *context)
{
	struct gather *gather = context;
	struct name_entry frame = { .name = "",
				    .source = gather->source,
				    .source_bytes = (uint32_t)strlen(gather->source),
				    .file = "" };
	struct tables_cell cell;
	uint64_t id = rows_count(rows, 0);
	int rc = 0;

	if (id != gather->id) {
		rc = sampled_stacks_give(gather);
		gather->depth = 0;
		gather->id = id;
		gather->count = rows_count(rows, 1);
		gather->time_ns = rows_count(rows, 3);
	}
	tables_cell(rows->result, 2, rows->row, &cell);
	if (cell.kind == TABLES_TEXT) {
		frame.name = cell.text;
		frame.name_bytes = (uint32_t)cell.text_bytes;
	}
	if (gather->depth < DEPTH_MOST) {
		gather->stack[gather->depth] = name_table_add(gather->frames, &frame);
		if (gather->stack[gather->depth++] == NAME_TABLE_NONE)
			rc = error_set(gather->err, ENOMEM,
				       "out of memory for the frames of samples");
	}
	return rc;
}

int sampled_stacks_each(struct tables *tables, bool native, struct name_table *frames,
			int (*each)(const struct sampled_stack *stack, void *context),
			void *context, struct kymo_error *err)
{
	struct gather gather = { .frames = frames,
				 .each = each,
				 .context = context,
				 .err = err,
				 .source = native ? "native" : "python" };
	int rc = rows_each(tables, native ? sql_native_stacks : sql_sampled_stacks, frame_row,
			   &gather, err);

	return rc ? rc : sampled_stacks_give(&gather);
}
