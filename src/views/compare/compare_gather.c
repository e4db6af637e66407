/* Reads one recording: its steps, the time of each region in each step, and its modules. */
#include "base/grow.h"
#include "views/compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/sql_fill.h"
#include "views/verdicts/facts.h"
#include "views/query/rows.h"
#include "views/timeline/zone_walk.h"
#include "views_sql.h"

/* ---- the run -------------------------------------------------------------------------------- */

static int compare_gather_run_row(const struct rows *rows, void *context)
{
	struct compare_run *run = context;

	rows_copy_text(rows, 0, run->program, sizeof(run->program));
	rows_copy_text(rows, 1, run->command, sizeof(run->command));
	rows_copy_text(rows, 2, run->state, sizeof(run->state));
	return 0;
}

static int text_row(const struct rows *rows, void *context)
{
	rows_copy_text(rows, 0, context, 256);
	return 0;
}

static int compare_gather_loss_row(const struct rows *rows, void *context)
{
	struct compare_run *run = context;

	run->zones = rows_number(rows, 0, 0);
	run->zones_lost = rows_number(rows, 1, 0);
	return 0;
}

static int compare_gather_sources(const struct rank_set *ranks, struct tables *tables,
				  const char *least, char *out, struct kymo_error *err)
{
	struct buf sql = { 0 };
	int rc;

	sql_fill(&sql, sql_compare_sources,
		 (struct sql_value[]){ { "least", .text = least }, { NULL } });
	rc = rank_set_each(ranks, tables, buf_get(&sql), text_row, out, err);
	buf_fini(&sql);
	return rc;
}

static bool has_ranks(const struct rank_set *ranks, struct tables *tables)
{
	struct buf sql = { 0 };
	double count;

	buf_text(&sql, "SELECT count(*) FROM kymo.processes WHERE ");
	rank_set_sql(ranks, "rank", &sql);
	count = tables_number(tables, buf_get(&sql), 0);
	buf_fini(&sql);
	return count > 0;
}

static int compare_gather_describe(struct compare_run *run, const struct rank_set *ranks,
				   struct tables *tables, struct kymo_error *err)
{
	int rc = rows_each(tables, "SELECT program, command, state FROM kymo.runs LIMIT 1",
			   compare_gather_run_row, run, err);

	if (!rc)
		rc = rows_each(tables, sql_compare_settings, text_row, run->settings, err);
	if (!rc)
		rc = compare_gather_sources(ranks, tables, "1000", run->sources, err);
	if (!rc)
		rc = compare_gather_sources(ranks, tables, "100", run->some_sources, err);
	if (!rc)
		rc = rank_set_each(ranks, tables, sql_compare_losses, compare_gather_loss_row, run,
				   err);
	run->sample_ns = rank_set_value(ranks, tables, sql_compare_sample_period, 0);
	run->peak_bytes = rank_set_value(ranks, tables, sql_compare_memory, -1);
	run->without_ranks = !has_ranks(ranks, tables);
	run->ranks = (size_t)rank_set_value(
		ranks, tables, "SELECT greatest(count(DISTINCT rank), 1) FROM kymo.processes", 1);
	/* The program of an imported trace is the name of its file. */
	run->imported = tables_number(tables, "SELECT count(*) FROM kymo.imports", 0) > 0;
	if (run->imported) {
		snprintf(run->program, sizeof(run->program), "an imported trace");
		run->command[0] = '\0';
	}
	return rc;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static int add_step(struct compare_run *run, int64_t start_ns, int64_t duration_ns)
{
	if (!grow((void **)&run->steps, &run->step_room, run->step_count, sizeof(*run->steps)))
		return -ENOMEM;
	run->steps[run->step_count++] = (struct compare_step){
		start_ns, start_ns + (duration_ns > 0 ? duration_ns : 0)
	};
	return 0;
}

static int step_row(const struct rows *rows, void *context)
{
	struct compare_run *run = context;

	rows_copy_text(rows, 2, run->loop, sizeof(run->loop));
	return add_step(run, (int64_t)rows_number(rows, 0, 0), (int64_t)rows_number(rows, 1, 0));
}

static int leave_out_warmup(struct compare_run *run)
{
	double *durations = malloc((run->step_count + 1) * sizeof(durations[0]));

	if (!durations)
		return -ENOMEM;
	for (size_t i = 0; i < run->step_count; i++)
		durations[i] = (double)(run->steps[i].end_ns - run->steps[i].start_ns);
	run->warmup = compare_stats_warmup(durations, run->step_count);
	free(durations);
	run->step_count -= run->warmup;
	memmove(run->steps, run->steps + run->warmup, run->step_count * sizeof(run->steps[0]));
	return 0;
}

static void set_bins(struct compare_run *run)
{
	double span_s;

	run->bin_steps = (run->step_count + COMPARE_BINS - 1) / COMPARE_BINS;
	run->bin_steps = run->bin_steps ? run->bin_steps : 1;
	run->bin_count = run->step_count / run->bin_steps;
	if (!run->step_count)
		return;
	span_s = (double)(run->steps[run->step_count - 1].end_ns - run->steps[0].start_ns) / 1e9;
	run->steps_per_s = span_s > 0 ? (double)run->step_count / span_s : 0;
}

static int find_steps(struct compare_run *run, const struct rank_set *ranks, struct tables *tables,
		      struct kymo_error *err)
{
	int rc = rank_set_each(ranks, tables, sql_compare_steps, step_row, run, err);

	if (!rc && !run->step_count) {
		run->whole = true;
		rc = add_step(run, 0,
			      (int64_t)tables_number(tables,
						     "SELECT max(duration_ns) FROM kymo.runs", 0));
	}
	if (!rc)
		rc = leave_out_warmup(run);
	if (!rc)
		set_bins(run);
	return rc == -ENOMEM ? error_set(err, ENOMEM, "no memory for the steps of %s", run->target)
			     : rc;
}

/* ---- items ---------------------------------------------------------------------------------- */

static size_t compare_gather_run_count(const struct compare *compare)
{
	return compare->a_count + compare->b_count;
}

static int new_item(struct compare *compare, enum compare_kind kind, const struct name_entry *name)
{
	struct compare_item *item;

	if (!grow((void **)&compare->items, &compare->item_room, compare->item_count,
		  sizeof(*compare->items)))
		return -ENOMEM;
	item = &compare->items[compare->item_count];
	*item = (struct compare_item){ .kind = kind };
	item->name = strndup(name->name, name->name_bytes);
	snprintf(item->source, sizeof(item->source), "%.*s", (int)name->source_bytes, name->source);
	item->series = calloc(compare_gather_run_count(compare), sizeof(item->series[0]));
	if (!item->name || !item->series) {
		free(item->name);
		free(item->series);
		return -ENOMEM;
	}
	compare->item_count++;
	return 0;
}

/* Items and names have the same numbers. UINT32_MAX: out of memory. */
static uint32_t item_of(struct compare *compare, enum compare_kind kind, const char *name,
			size_t name_bytes, const char *source, size_t source_bytes,
			const char *place)
{
	struct name_entry one = { .name = name,
				  .name_bytes = (uint32_t)name_bytes,
				  .source = source,
				  .source_bytes = (uint32_t)source_bytes,
				  .file = place,
				  .file_bytes = (uint32_t)strlen(place) };
	uint32_t number;

	if (!name_bytes) {
		one.name = "?";
		one.name_bytes = 1;
	}
	number = name_table_add(&compare->names, &one);
	if (number != NAME_TABLE_NONE && number == compare->item_count &&
	    new_item(compare, kind, &one))
		return UINT32_MAX;
	return number;
}

static double *bins_of(struct compare *compare, uint32_t item, size_t run)
{
	struct compare_series *series = &compare->items[item].series[run];

	if (!series->values) {
		series->values = calloc(compare->runs[run].bin_count + 1, sizeof(double));
		series->count = series->values ? compare->runs[run].bin_count : 0;
	}
	return series->values;
}

/* ---- zones ---------------------------------------------------------------------------------- */

struct gather {
	struct compare *compare;
	size_t run;
	uint32_t *items; /* by frame number; 0: not looked up yet */
	size_t item_room;
	uint32_t *on_stack; /* by item: how many of its zones are open; for --total */
	size_t on_stack_room;
	double flame_share; /* of a nanosecond, per step and run */
};

/* The first step that ends after `at`. Zones come mostly in the order of time. */
static size_t step_at(struct compare_run *run, int64_t at)
{
	size_t low = 0, high = run->step_count, middle;

	if (run->hint < high && run->steps[run->hint].end_ns > at &&
	    (!run->hint || run->steps[run->hint - 1].end_ns <= at))
		return run->hint;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (run->steps[middle].end_ns > at)
			high = middle;
		else
			low = middle + 1;
	}
	return run->hint = low;
}

/* Adds the parts of a time range that lie in steps to their bins, as the mean of the ranks. Returns
   their sum. */
static double add_span(struct compare_run *run, double *bins, int64_t from, int64_t to)
{
	double sum = 0;

	for (size_t i = step_at(run, from); i < run->step_count; i++) {
		const struct compare_step *step = &run->steps[i];
		size_t bin = i / run->bin_steps;
		int64_t low = step->start_ns > from ? step->start_ns : from;
		int64_t high = step->end_ns < to ? step->end_ns : to;

		if (step->start_ns >= to)
			break;
		if (high > low && bins && bin < run->bin_count)
			bins[bin] += (double)(high - low) / (double)run->bin_steps /
				     (double)run->ranks;
		sum += high > low ? (double)(high - low) : 0;
	}
	return sum;
}

/* Tells Python functions of the same name apart. The end of the path is the same in two
   checkouts. */
static const char *compare_gather_place_of(const struct name_entry *frame)
{
	return strcmp(frame->source, "python") != 0 ? "" : facts_place(frame->file);
}

/* Steps of torch.profiler have their number in the name: ProfilerStep#12. */
static size_t compared_bytes(const struct name_entry *frame)
{
	static const char step[] = "ProfilerStep#";
	const size_t bytes = sizeof(step) - 1;

	return frame->name_bytes > bytes && !memcmp(frame->name, step, bytes) ? bytes - 1
									      : frame->name_bytes;
}

static uint32_t item_of_frame(struct gather *gather, uint32_t frame)
{
	const struct name_entry *one = &gather->compare->frames.list[frame];

	if (frame >= gather->item_room &&
	    !grow_zeroed((void **)&gather->items, &gather->item_room, 2 * ((size_t)frame + 1),
			 sizeof(*gather->items)))
		return UINT32_MAX;
	if (!gather->items[frame])
		gather->items[frame] = item_of(gather->compare, COMPARE_REGION, one->name,
					       compared_bytes(one), one->source, one->source_bytes,
					       compare_gather_place_of(one));
	return gather->items[frame];
}

static int no_memory(const struct zone_walk *walk)
{
	return error_set(walk->err, ENOMEM, "no memory for the regions to compare");
}

/* A zone's tag: the upper half is its node in the flame graph, the lower half its item. */
static uint32_t compare_gather_node_of(const struct zone_walk_zone *zone)
{
	return (uint32_t)(zone->tag >> 32);
}

/* The self time of a zone since since_ns. */
static int add_self(struct zone_walk *walk, struct zone_walk_zone *zone, int64_t until_ns)
{
	struct gather *gather = walk->context;
	struct compare *compare = gather->compare;
	double *bins = bins_of(compare, (uint32_t)zone->tag, gather->run);
	double ns;

	if (!bins)
		return no_memory(walk);
	ns = add_span(&compare->runs[gather->run], compare->total ? NULL : bins, zone->since_ns,
		      until_ns);
	compare->flame.nodes[compare_gather_node_of(zone)]
		.values[gather->run >= compare->a_count] += ns * gather->flame_share;
	return 0;
}

static int note_open(struct gather *gather, uint32_t item)
{
	if (item >= gather->on_stack_room &&
	    !grow_zeroed((void **)&gather->on_stack, &gather->on_stack_room, 2 * ((size_t)item + 1),
			 sizeof(*gather->on_stack)))
		return -ENOMEM;
	gather->on_stack[item]++;
	return 0;
}

static int compare_gather_begin_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				     struct zone_walk_zone *parent)
{
	struct gather *gather = walk->context;
	uint32_t item = item_of_frame(gather, zone->frame), node;

	if (item == UINT32_MAX || note_open(gather, item))
		return no_memory(walk);
	node = call_tree_child(&gather->compare->flame, parent ? compare_gather_node_of(parent) : 0,
			       item);
	zone->tag = (uint64_t)node << 32 | item;
	zone->since_ns = zone->start_ns;
	return parent ? add_self(walk, parent, zone->start_ns) : 0;
}

static int compare_gather_end_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				   struct zone_walk_zone *parent)
{
	struct gather *gather = walk->context;
	struct compare *compare = gather->compare;
	uint32_t item = (uint32_t)zone->tag;
	int rc = add_self(walk, zone, zone->end_ns);

	if (parent)
		parent->since_ns = zone->end_ns;
	/* The time of a region that calls itself counts once. */
	if (!--gather->on_stack[item] && compare->total && !rc)
		add_span(&compare->runs[gather->run], bins_of(compare, item, gather->run),
			 zone->start_ns, zone->end_ns);
	return rc;
}

static int gather_zones(struct compare *compare, size_t run, struct tables *tables,
			struct kymo_error *err)
{
	static const struct zone_walk_visitor visitor = { .begin = compare_gather_begin_zone,
							  .end = compare_gather_end_zone };
	bool is_b = run >= compare->a_count;
	size_t sides = is_b ? compare->b_count : compare->a_count;
	double steps = (double)compare->runs[run].step_count * (double)compare->runs[run].ranks;
	struct gather gather = { .compare = compare,
				 .run = run,
				 .flame_share = steps > 0 ? 1.0 / steps / (double)sides : 0 };
	struct progress progress;
	struct zone_walk walk = { .tables = tables,
				  .visitor = &visitor,
				  .context = &gather,
				  .frames = &compare->frames,
				  .progress = &progress,
				  .ranks = &compare->ranks,
				  .err = err };
	int rc;

	progress_begin(&progress, is_b ? "reading B:" : "reading A:", "zones");
	rc = zone_walk_run(&walk);
	progress_end(&progress);
	free(gather.items);
	free(gather.on_stack);
	return rc;
}

/* ---- modules -------------------------------------------------------------------------------- */

static int compare_gather_push(struct compare_series *series, double value)
{
	if (!grow((void **)&series->values, &series->room, series->count, sizeof(*series->values)))
		return -ENOMEM;
	series->values[series->count++] = value;
	return 0;
}

/* By call, not by step: a recording may leave out calls. */
static int compare_gather_module_row(const struct rows *rows, void *context)
{
	struct gather *gather = context;
	struct compare *compare = gather->compare;
	char name[300];
	double ns = 1e9 * rows_number(rows, 1, NAN);
	uint32_t item;

	if (!isfinite(ns))
		return 0;
	rows_copy_text(rows, 0, name, sizeof(name));
	item = item_of(compare, COMPARE_MODULE, name, strlen(name), "module", 6, "");
	return item == UINT32_MAX
		       ? -ENOMEM
		       : compare_gather_push(&compare->items[item].series[gather->run], ns);
}

static int gather_modules(struct compare *compare, size_t run, struct tables *tables,
			  struct kymo_error *err)
{
	struct gather gather = { .compare = compare, .run = run };
	const struct compare_run *one = &compare->runs[run];
	struct buf sql = { 0 };
	int rc;

	sql_fill(&sql, sql_compare_modules,
		 (struct sql_value[]){
			 { "from", .number = one->step_count ? one->steps[0].start_ns : 0 },
			 { NULL } });
	rc = rank_set_each(&compare->ranks, tables, buf_get(&sql), compare_gather_module_row,
			   &gather, err);
	buf_fini(&sql);
	return rc == -ENOMEM ? error_set(err, ENOMEM, "no memory for the modules to compare") : rc;
}

/* ---- operations of devices ------------------------------------------------------------------ */

/* By call, as modules: a trace has few steps and many calls. */
static int compare_gather_kernel_row(const struct rows *rows, void *context)
{
	struct gather *gather = context;
	struct compare *compare = gather->compare;
	char name[300];
	uint32_t item;

	rows_copy_text(rows, 0, name, sizeof(name));
	item = item_of(compare, COMPARE_MODULE, name, strlen(name), "kernel", 6, "");
	return item == UINT32_MAX ? -ENOMEM
				  : compare_gather_push(&compare->items[item].series[gather->run],
							rows_number(rows, 1, 0));
}

static int gather_kernels(struct compare *compare, size_t run, struct tables *tables,
			  struct kymo_error *err)
{
	struct gather gather = { .compare = compare, .run = run };
	const struct compare_run *one = &compare->runs[run];
	struct buf sql = { 0 };
	int rc;

	sql_fill(&sql, sql_compare_kernels,
		 (struct sql_value[]){
			 { "from", .number = one->step_count ? one->steps[0].start_ns : 0 },
			 { NULL } });
	rc = rank_set_each(&compare->ranks, tables, buf_get(&sql), compare_gather_kernel_row,
			   &gather, err);
	buf_fini(&sql);
	return rc == -ENOMEM ? error_set(err, ENOMEM, "no memory for the kernels to compare") : rc;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int gather_step_times(struct compare *compare, size_t which)
{
	struct compare_run *run = &compare->runs[which];
	uint32_t item = item_of(compare, COMPARE_STEP, run->whole ? "run" : "step",
				run->whole ? 3 : 4, "", 0, "");
	double *bins = item == UINT32_MAX ? NULL : bins_of(compare, item, which);

	for (size_t i = 0; bins && i < run->bin_count * run->bin_steps; i++)
		bins[i / run->bin_steps] += (double)(run->steps[i].end_ns -
						     run->steps[i].start_ns) /
					    (double)run->bin_steps;
	return bins ? 0 : -ENOMEM;
}

int compare_gather(struct compare *compare, size_t run, struct tables *tables,
		   struct kymo_error *err)
{
	int rc = compare_gather_describe(&compare->runs[run], &compare->ranks, tables, err);

	if (!rc)
		rc = find_steps(&compare->runs[run], &compare->ranks, tables, err);
	if (!rc && gather_step_times(compare, run))
		rc = error_set(err, ENOMEM, "no memory for step times");
	if (!rc)
		rc = gather_zones(compare, run, tables, err);
	if (!rc)
		rc = gather_modules(compare, run, tables, err);
	if (!rc)
		rc = gather_kernels(compare, run, tables, err);
	return rc;
}

/* ---- namesakes ------------------------------------------------------------------------------ */

static int compare_gather_by_name(const void *left, const void *right, void *context)
{
	const struct compare_item *items = context;
	const struct compare_item *a = &items[*(const uint32_t *)left];
	const struct compare_item *b = &items[*(const uint32_t *)right];
	int order = strcmp(a->name, b->name);

	return order ? order : strcmp(a->source, b->source);
}

static int compare_gather_add_place(struct compare_item *item, const char *place)
{
	char *name = NULL;

	if (!place[0])
		return 0;
	if (asprintf(&name, "%s (%s)", item->name, place) < 0)
		return -ENOMEM;
	free(item->name);
	item->name = name;
	return 0;
}

int compare_tell_apart(struct compare *compare)
{
	size_t count = compare->item_count, next;
	uint32_t *order = malloc((count + 1) * sizeof(*order));
	int rc = order ? 0 : -ENOMEM;

	for (size_t i = 0; order && i < count; i++)
		order[i] = (uint32_t)i;
	if (order)
		qsort_r(order, count, sizeof(*order), compare_gather_by_name, compare->items);
	for (size_t i = 0; !rc && i < count; i = next) {
		for (next = i + 1; next < count && !compare_gather_by_name(&order[i], &order[next],
									   compare->items);)
			next++;
		for (size_t k = i; !rc && next - i > 1 && k < next; k++)
			rc = compare_gather_add_place(&compare->items[order[k]],
						      compare->names.list[order[k]].file);
	}
	free(order);
	return rc;
}
