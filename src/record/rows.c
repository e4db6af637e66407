/* Rows of all tables but trace.zones: marks, counters, steps, texts, the program's tables. */
#include <errno.h>
#include <string.h>

#include <kymo/atomic.h>

#include "kymo/marked.h"
#include "record/record.h"

#define RETRY_MS 10 /* between attempts to make a stream; rows in between are lost and counted */

/* This lane's stream of that table; NULL: none available, counted. */
static struct kymo__stream *stream_of(struct kymo__full_lane *lane, struct kymo_table *table)
{
	struct kymo__stream *stream = lane->streams[table->index];
	int kept_errno = errno; /* the program's */
	uint64_t now;

	if (KYMO__LIKELY(stream != NULL))
		return stream;
	now = kymo__ticks();
	if (now >= kymo__load_relaxed(&table->retry_ticks)) {
		stream = kymo__stream_take(table, lane->hot.thread);
		if (!stream)
			kymo__store_relaxed(&table->retry_ticks,
					    now + RETRY_MS * kymo__process.ticks_per_ms);
	}
	errno = kept_errno;
	lane->streams[table->index] = stream;
	if (!stream)
		kymo__lost(table->index, KYMO_DROP_FAILED);
	return stream;
}

/* Relaxed stores of 8 bytes, as concurrent readers expect; the last one padded. */
static void store_row(char *at, const void *row, size_t bytes, size_t stored_bytes)
{
	for (size_t i = 0; i < stored_bytes; i += 8) {
		uint64_t word = 0;

		if (i < bytes)
			memcpy(&word, (const char *)row + i, bytes - i < 8 ? bytes - i : 8);
		kymo__store_relaxed((uint64_t *)(void *)(at + i), word);
	}
}

static void store_thread(char *at, const struct kymo_table *table, uint32_t thread)
{
	uint32_t *column = (uint32_t *)(void *)(at + table->thread_offset);

	if (table->thread_offset != UINT32_MAX && !*column)
		kymo__store_relaxed(column, thread);
}

static int push_on(struct kymo__full_lane *lane, struct kymo_table *table, const void *row)
{
	struct kymo__stream *stream = stream_of(lane, table);
	char *at;

	if (!stream)
		return -EAGAIN;
	at = stream->next;
	if (at == stream->limit)
		at = kymo__stream_turn(stream);
	if (!at)
		return -EAGAIN;
	store_row(at, row, table->user_bytes, table->row_bytes);
	store_thread(at, table, lane->hot.thread);
	stream->next = at + table->row_bytes;
	/* Publishes the row; pairs with the acquire of readers. */
	kymo__store_release(&stream->live->head, stream->live->head + 1);
	return 0;
}

int kymo__push(struct kymo_table *table, const void *row)
{
	struct kymo__full_lane *lane = kymo__lane_for(table->index);
	int rc;

	if (!lane)
		return -EAGAIN;
	if (lane->hot.busy) {
		kymo__lost(table->index, KYMO_DROP_REENTRANT);
		return -EAGAIN;
	}
	lane->hot.busy = 1;
	KYMO__BARRIER();
	rc = push_on(lane, table, row);
	KYMO__BARRIER();
	lane->hot.busy = 0;
	return rc;
}

int kymo__append(enum schema_id id, const void *row)
{
	/* Allocations have a switch of their own, which may be the only one that is on. */
	bool own = id == SCHEMA_ALLOC || id == SCHEMA_ALLOC_FRAMES;

	if (!kymo_enabled() && !(own && kymo__memory_followed))
		return 0;
	return kymo__push(&kymo__tables[id], row);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static uint32_t push_text(struct schema_text_row *row, const char *text, size_t bytes)
{
	struct kymo__full_lane *lane = kymo__lane_for(SCHEMA_TEXT);
	size_t part;

	if (!lane)
		return 0;
	row->number = ++lane->text_number;
	row->thread = lane->hot.thread;
	do {
		part = kymo__utf8_cut(text, bytes, sizeof(row->text));
		memset(row->text, 0, sizeof(row->text));
		memcpy(row->text, text, part);
		kymo__push(&kymo__tables[SCHEMA_TEXT], row);
		row->part++;
		text += part;
		bytes -= part;
	} while (bytes);
	return row->number;
}

/* The innermost open zone of this thread, which gets the text or value. */
static void of_open_zone(struct schema_text_row *row)
{
	const struct kymo_open_stack *open = kymo__lane ? kymo__lane->open : NULL;

	row->at_ticks = kymo__ticks();
	if (!open || !open->depth || open->depth > KYMO_OPEN_MAX)
		return;
	row->at_ticks = open->entries[open->depth - 1].start_ticks;
	row->name = open->entries[open->depth - 1].name;
}

/* The given zone, or the innermost open one. */
static void of_zone(struct schema_text_row *row, const struct kymo_zone *zone)
{
	const struct kymo_open_entry *entry;

	if (!zone) {
		of_open_zone(row);
		return;
	}
	entry = kymo__open_entry(zone);
	row->at_ticks = zone->start_ticks;
	row->name = entry ? entry->name : zone->name; /* it may have been renamed */
}

static void zone_text(const struct kymo_zone *zone, const char *text, size_t bytes)
{
	struct schema_text_row row = { .kind = SCHEMA_TEXT_ZONE };

	if (!text || !kymo_enabled())
		return;
	of_zone(&row, zone);
	push_text(&row, text, bytes);
}

static void zone_value(const struct kymo_zone *zone, uint64_t value)
{
	struct schema_text_row row = { .kind = SCHEMA_TEXT_VALUE, .value = value };

	if (!kymo_enabled())
		return;
	of_zone(&row, zone);
	push_text(&row, "", 0);
}

void kymo_zone_text(const char *text, size_t bytes)
{
	zone_text(NULL, text, bytes);
}

void kymo_zone_value(uint64_t value)
{
	zone_value(NULL, value);
}

void kymo_zone_text_of(const struct kymo_zone *zone, const char *text, size_t bytes)
{
	if (zone && zone->lane)
		zone_text(zone, text, bytes);
}

void kymo_zone_value_of(const struct kymo_zone *zone, uint64_t value)
{
	if (zone && zone->lane)
		zone_value(zone, value);
}

void kymo_range_text(uint64_t range, const char *text, size_t bytes)
{
	struct schema_text_row row = { .kind = SCHEMA_TEXT_ZONE };

	if (text && kymo_enabled() && kymo__range_start(range, &row.at_ticks, &row.name))
		push_text(&row, text, bytes);
}

/* ---- marks and counters ---- */

static void (*moment_hook)(enum kymo__moment what, const char *name);

void kymo__on_moment(void (*hook)(enum kymo__moment what, const char *name))
{
	kymo__store_release(&moment_hook, hook);
}

void kymo__moment(enum kymo__moment what, const char *name)
{
	void (*hook)(enum kymo__moment, const char *) = kymo__load_acquire(&moment_hook);

	if (hook)
		hook(what, name);
}

void kymo__mark_bytes(const char *name, const char *text, size_t bytes)
{
	struct schema_mark_row row = { 0 };

	if (!name || !kymo_enabled())
		return;
	row.ts_ticks = kymo__ticks();
	row.name = kymo_name(name);
	row.step = kymo_current_step();
	if (text && bytes) {
		struct schema_text_row part = { .kind = SCHEMA_TEXT_MARK,
						.at_ticks = row.ts_ticks,
						.name = row.name };

		row.text = push_text(&part, text, bytes);
	}
	kymo__push(&kymo__tables[SCHEMA_MARKS], &row);
	kymo__moment(KYMO__MARKED, name);
}

void kymo_mark(const char *name, const char *text)
{
	kymo__mark_bytes(name, text, text ? strlen(text) : 0);
}

void kymo__mark_last(const char *name, const char *text)
{
	kymo__store_relaxed(&kymo__process.ending, true);
	kymo_mark(name, text);
}

void kymo_counter_id(uint32_t name_id, double value)
{
	struct schema_counter_row row = { 0 };

	if (!kymo_enabled())
		return;
	row.ts_ticks = kymo__ticks();
	row.value = value;
	row.name = name_id;
	row.step = kymo_current_step();
	kymo__push(&kymo__tables[SCHEMA_COUNTERS], &row);
}

void kymo_counter(const char *name, double value)
{
	if (name && kymo_enabled())
		kymo_counter_id(kymo_name(name), value);
}

/* ---- steps ---- */

uint32_t kymo_current_step(void)
{
	return kymo__process_ready() ? kymo__load_relaxed(&kymo__process.control->step) : 0;
}

/* The lane's slot of that name, a free one, or the last one, which is shared if there are more
   names than slots. */
static struct kymo__step *step_slot(struct kymo__full_lane *lane, uint32_t name)
{
	for (uint32_t i = 0; i < KYMO__STEPS; i++)
		if (lane->steps[i].name == name || !lane->steps[i].name)
			return &lane->steps[i];
	return &lane->steps[KYMO__STEPS - 1];
}

static struct kymo__step *step_of(const char *name)
{
	struct kymo__full_lane *lane;
	struct kymo__step *step;
	uint32_t id;

	if (!kymo_enabled())
		return NULL;
	id = kymo_name(name ? name : "step");
	lane = kymo__lane_for(SCHEMA_STEPS);
	if (!lane)
		return NULL;
	step = step_slot(lane, id);
	step->name = id;
	return step;
}

static void step_finish(struct kymo__step *step, uint64_t now)
{
	struct schema_step_row row = { 0 };

	if (!step->running)
		return;
	row.start_ticks = step->start_ticks;
	row.duration_ticks = now - step->start_ticks;
	memcpy(row.phase_ticks, step->phase_ticks, sizeof(row.phase_ticks));
	row.step = step->number++;
	row.name = step->name;
	step->running = 0;
	memset(step->phase_ticks, 0, sizeof(step->phase_ticks));
	kymo__push(&kymo__tables[SCHEMA_STEPS], &row);
}

static uint32_t marked_by_user; /* KYMO__MARKED_*; grows only */

uint32_t kymo__marked_by_user(void)
{
	return kymo__load_relaxed(&marked_by_user);
}

static void mark_by_user(uint32_t what)
{
	if (KYMO__UNLIKELY(!(kymo__marked_by_user() & what)))
		kymo__fetch_or_relaxed(&marked_by_user, what);
}

void kymo_step(const char *name)
{
	uint64_t now = kymo__ticks();
	struct kymo__step *step = step_of(name);

	if (!step)
		return;
	if (KYMO__UNLIKELY(kymo__process.rank_inherited))
		kymo__process_learn_rank();
	mark_by_user(KYMO__MARKED_STEPS);
	step_finish(step, now);
	step->start_ticks = now;
	step->running = 1;
	kymo__store_relaxed(&kymo__process.control->step, step->number);
	kymo__moment(KYMO__STEP_BEGAN, name);
}

void kymo_step_end(const char *name)
{
	struct kymo__step *step = step_of(name);

	if (!step)
		return;
	step_finish(step, kymo__ticks());
	kymo__moment(KYMO__STEP_ENDED, name);
}

void kymo__add_phase(enum kymo_phase phase, uint64_t ticks)
{
	struct kymo__full_lane *lane = kymo__lane ? kymo__full(kymo__lane) : NULL;

	if (!lane || (unsigned)phase >= KYMO_PHASE_COUNT)
		return;
	for (uint32_t i = 0; i < KYMO__STEPS; i++)
		if (lane->steps[i].running)
			lane->steps[i].phase_ticks[phase] += ticks;
}

void kymo_step_phase(enum kymo_phase phase, uint64_t ticks)
{
	mark_by_user(KYMO__MARKED_PHASES);
	kymo__add_phase(phase, ticks);
}
