#include "views/timeline/zone_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "tables/sql_fill.h"
#include "views/query/rows.h"
#include "views_sql.h"

#define WINDOW_ZONES 1000000 /* that DuckDB sorts at once */
#define WINDOW_THREADS 64
#define WALK_DEPTH_MOST 100000 /* of one thread; far beyond real programs */

/* ---- threads -------------------------------------------------------------------------------- */

static int zone_walk_thread_row(const struct rows *rows, void *context)
{
	struct zone_walk *walk = context;
	struct zone_walk_thread *thread;

	if (!grow_short((void **)&walk->threads, walk->thread_count, sizeof(*thread)))
		return error_set(walk->err, ENOMEM, "out of memory for the list of threads");
	thread = &walk->threads[walk->thread_count++];
	thread->pid = (int32_t)rows_number(rows, 0, 0);
	thread->tid = (int32_t)rows_number(rows, 1, 0);
	thread->rank = (int32_t)rows_number(rows, 2, -1);
	thread->zones = rows_count(rows, 3);
	rows_copy_text(rows, 4, thread->name, sizeof(thread->name));
	thread->lane = (int32_t)rows_number(rows, 5, 1);
	walk->zones_all += thread->zones;
	return 0;
}

static int out_of_memory(const struct zone_walk *walk)
{
	return error_set(walk->err, ENOMEM, "out of memory for a thread's stack of zones");
}

/* The value of {samples}. */
static const char *with_samples(const struct zone_walk *walk)
{
	return walk->samples ? "true" : "false";
}

static int zone_walk_list_threads(struct zone_walk *walk)
{
	struct buf sql = { 0 };
	int rc;

	sql_fill(&sql, sql_zone_walk_threads,
		 (struct sql_value[]){ { "samples", .text = with_samples(walk) }, { NULL } });
	rc = sql.failed ? out_of_memory(walk)
			: rank_set_each(walk->ranks, walk->tables, buf_get(&sql),
					zone_walk_thread_row, walk, walk->err);
	buf_fini(&sql);
	return rc;
}

/* ---- begins and ends ------------------------------------------------------------------------ */

static struct zone_walk_zone *zone_walk_top_of(struct zone_walk *walk, size_t below)
{
	return walk->depth > below ? &walk->stack[walk->depth - 1 - below] : NULL;
}

static int end_top(struct zone_walk *walk)
{
	struct zone_walk_zone *zone = zone_walk_top_of(walk, 0),
			      *parent = zone_walk_top_of(walk, 1);
	int rc = walk->visitor->end ? walk->visitor->end(walk, zone, parent) : 0;

	if (parent)
		parent->inside_ns += zone->end_ns - zone->start_ns;
	walk->depth--;
	return rc;
}

static int end_thread(struct zone_walk *walk)
{
	int rc = 0;

	while (!rc && walk->depth)
		rc = end_top(walk);
	return rc;
}

/* Of zones without a duration, the deeper one is inside. */
static bool encloses(const struct zone_walk_zone *outer, const struct zone_walk_zone *zone)
{
	return zone->start_ns < outer->end_ns ||
	       (zone->start_ns == outer->end_ns && zone->end_ns == outer->end_ns &&
		zone->depth > outer->depth);
}

static int zone_walk_push(struct zone_walk *walk, const struct zone_walk_zone *zone)
{
	if (walk->depth >= WALK_DEPTH_MOST ||
	    !grow((void **)&walk->stack, &walk->room, walk->depth, sizeof(*walk->stack)))
		return out_of_memory(walk);
	walk->stack[walk->depth++] = *zone;
	return walk->visitor->begin ? walk->visitor->begin(walk, zone_walk_top_of(walk, 0),
							   zone_walk_top_of(walk, 1))
				    : 0;
}

static int zone_walk_visit(struct zone_walk *walk, struct zone_walk_zone *zone)
{
	const struct zone_walk_zone *outer;
	int rc = 0;

	while (!rc && walk->depth && !encloses(zone_walk_top_of(walk, 0), zone))
		rc = end_top(walk);
	outer = zone_walk_top_of(walk, 0);
	if (outer && zone->end_ns > outer->end_ns) {
		zone->cut_ns = zone->end_ns - outer->end_ns;
		zone->end_ns = outer->end_ns;
	}
	return rc ? rc : zone_walk_push(walk, zone);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static const char *cell_text(const struct rows *rows, size_t column, uint32_t *bytes)
{
	struct tables_cell cell;

	tables_cell(rows->result, column, rows->row, &cell);
	*bytes = cell.kind == TABLES_TEXT ? (uint32_t)cell.text_bytes : 0;
	return cell.kind == TABLES_TEXT ? cell.text : "";
}

static int64_t cell_integer(const struct rows *rows, size_t column)
{
	struct tables_cell cell;

	tables_cell(rows->result, column, rows->row, &cell);
	return cell.kind == TABLES_INTEGER || cell.kind == TABLES_BOOL ? cell.integer : 0;
}

static int64_t zone_walk_end_of(int64_t start_ns, int64_t duration_ns)
{
	if (duration_ns < 0)
		return start_ns;
	return start_ns > INT64_MAX - duration_ns ? INT64_MAX : start_ns + duration_ns;
}

/* Rows come in the order of the list of threads; threads without rows are skipped. */
static int enter_thread(struct zone_walk *walk, int32_t pid, int32_t tid, int32_t lane)
{
	int rc;

	if (walk->at && walk->at->pid == pid && walk->at->tid == tid && walk->at->lane == lane)
		return 0;
	rc = end_thread(walk);
	while (!rc && walk->thread_next < walk->thread_count) {
		walk->at = &walk->threads[walk->thread_next++];
		if (walk->at->pid != pid || walk->at->tid != tid || walk->at->lane != lane)
			continue;
		return walk->visitor->thread ? walk->visitor->thread(walk, walk->at) : 0;
	}
	return rc ? rc : error_set(walk->err, EIO, "the recording changed while it was read");
}

static int zone_row(const struct rows *rows, void *context)
{
	struct zone_walk *walk = context;
	struct name_entry frame;
	struct zone_walk_zone zone = { .start_ns = cell_integer(rows, 4),
				       .depth = (int32_t)cell_integer(rows, 6),
				       .step = cell_integer(rows, 9),
				       .open = cell_integer(rows, 10) };
	int rc = enter_thread(walk, (int32_t)cell_integer(rows, 7), (int32_t)cell_integer(rows, 8),
			      (int32_t)cell_integer(rows, 11));

	if (rc)
		return rc;
	frame.source = cell_text(rows, 0, &frame.source_bytes);
	frame.name = cell_text(rows, 1, &frame.name_bytes);
	frame.file = cell_text(rows, 2, &frame.file_bytes);
	frame.line = (int32_t)cell_integer(rows, 3);
	zone.frame = name_table_add(walk->frames, &frame);
	if (zone.frame == NAME_TABLE_NONE)
		return error_set(walk->err, ENOMEM, "out of memory for the names of zones");
	zone.end_ns = zone_walk_end_of(zone.start_ns, cell_integer(rows, 5));
	if (walk->progress && walk->zones % 4096 == 0)
		progress_at(walk->progress, walk->zones, walk->zones_all);
	walk->zones++;
	return zone_walk_visit(walk, &zone);
}

/* ---- windows -------------------------------------------------------------------------------- */

static int read_window(struct zone_walk *walk, const char *where)
{
	struct buf sql = { 0 };
	int rc;

	sql_fill(&sql, sql_zone_walk_zones,
		 (struct sql_value[]){ { "where", .text = where },
				       { "samples", .text = with_samples(walk) },
				       { NULL } });
	rc = sql.failed ? out_of_memory(walk)
			: rank_set_each(walk->ranks, walk->tables, buf_get(&sql), zone_row, walk,
					walk->err);
	buf_fini(&sql);
	return rc;
}

/* Threads with few zones are read together. */
static int read_together(struct zone_walk *walk, size_t first, size_t last)
{
	struct buf where = { 0 };
	int rc;

	for (size_t i = first; i < last; i++)
		buf_print(&where, "%s(pid = %d AND tid = %d AND lane = %d)",
			  i > first ? " OR " : "", walk->threads[i].pid, walk->threads[i].tid,
			  walk->threads[i].lane);
	rc = where.failed ? out_of_memory(walk) : read_window(walk, buf_get(&where));
	buf_fini(&where);
	return rc;
}

struct cuts {
	int64_t *at_ns;
	size_t count;
};

static int cut_row(const struct rows *rows, void *context)
{
	struct cuts *cuts = context;

	cuts->at_ns[cuts->count++] = cell_integer(rows, 0);
	return 0;
}

/* Where to split a thread of many zones into parts of about equal size. */
static int find_cuts(struct zone_walk *walk, const struct zone_walk_thread *thread, size_t parts,
		     struct cuts *cuts)
{
	struct buf sql = { 0 }, shares = { 0 };
	int rc;

	cuts->at_ns = malloc(parts * sizeof(cuts->at_ns[0]));
	for (size_t i = 1; i < parts; i++)
		buf_print(&shares, "%s%.9f", i > 1 ? ", " : "", (double)i / (double)parts);
	sql_fill(&sql, sql_zone_walk_cuts,
		 (struct sql_value[]){ { "shares", .text = buf_get(&shares) },
				       { "pid", .number = thread->pid },
				       { "tid", .number = thread->tid },
				       { "lane", .number = thread->lane },
				       { "samples", .text = with_samples(walk) },
				       { NULL } });
	rc = !cuts->at_ns || sql.failed || shares.failed
		     ? out_of_memory(walk)
		     : rank_set_each(walk->ranks, walk->tables, buf_get(&sql), cut_row, cuts,
				     walk->err);
	buf_fini(&sql);
	buf_fini(&shares);
	return rc;
}

static int read_parts(struct zone_walk *walk, size_t which)
{
	const struct zone_walk_thread *thread = &walk->threads[which];
	struct zone_walk_thread one = *thread;
	size_t parts = (size_t)(one.zones / WINDOW_ZONES) + 1;
	struct cuts cuts = { NULL, 0 };
	char where[256], from[64] = "", to[64];
	int rc = find_cuts(walk, thread, parts, &cuts);

	for (size_t i = 0; !rc && i <= cuts.count; i++) {
		to[0] = '\0';
		if (i < cuts.count)
			snprintf(to, sizeof(to), " AND start_ns < %" PRId64, cuts.at_ns[i]);
		snprintf(where, sizeof(where), "pid = %d AND tid = %d AND lane = %d%s%s", one.pid,
			 one.tid, one.lane, from, to);
		rc = read_window(walk, where);
		if (i < cuts.count)
			snprintf(from, sizeof(from), " AND start_ns >= %" PRId64, cuts.at_ns[i]);
	}
	free(cuts.at_ns);
	return rc;
}

int zone_walk_run(struct zone_walk *walk)
{
	int rc = zone_walk_list_threads(walk);
	size_t first = 0, last;
	uint64_t zones;

	while (!rc && first < walk->thread_count) {
		last = first;
		zones = 0;
		while (last < walk->thread_count && last - first < WINDOW_THREADS &&
		       zones + walk->threads[last].zones <= WINDOW_ZONES)
			zones += walk->threads[last++].zones;
		if (last > first) {
			rc = read_together(walk, first, last);
			first = last;
		} else {
			rc = read_parts(walk, first++);
		}
	}
	if (!rc)
		rc = end_thread(walk);
	free(walk->threads);
	free(walk->stack);
	walk->threads = NULL;
	walk->stack = NULL;
	return rc;
}
