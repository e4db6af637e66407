#include "collect/move/thin.h"

#include <stdlib.h>
#include <string.h>

#include "base/schema.h"

#define KEYS_MOST 4096 /* of things at a time; beyond it all begin a new period */
#define SLOTS (2 * KEYS_MOST)

struct thin_word {
	enum thin_kind kind;
	const char *column;
};

/* Every other column is that of the row that stays. */
static const struct {
	const char *table;
	struct thin_word words[10];
} tables[] = {
	{ "python.samples",
	  { { THIN_KEY, "target_pid" },
	    { THIN_KEY, "target_tid" },
	    { THIN_KEY, "cause" },
	    { THIN_WEIGHT, "weight_ns" } } },
	/* Time on a CPU and time of waiting stay apart, by the flags. */
	{ "native.samples",
	  { { THIN_KEY, "target_pid" },
	    { THIN_KEY, "target_tid" },
	    { THIN_KEY, "flags" },
	    { THIN_WEIGHT, "weight_ns" } } },
	{ "host.process",
	  { { THIN_KEY, "target_pid" },
	    { THIN_MEAN, "rss_bytes" },
	    { THIN_MEAN, "vms_bytes" },
	    { THIN_RATE, "cpu_pct" },
	    { THIN_CPU, "cpu_ns" } } },
	{ "host.memory", { { THIN_KEY, "target_pid" }, { THIN_MAX, "rss_bytes" } } },
	{ "host.io", { { THIN_KEY, "target_pid" } } },
	{ "host.cpu",
	  { { THIN_KEY, "cpu" },
	    { THIN_MEAN, "busy_pct" },
	    { THIN_MEAN, "iowait_pct" },
	    { THIN_MEAN, "pressure_pct" } } },
	{ "host.network", { { THIN_KEY, "target_pid" }, { THIN_KEY, "interface" } } },
	{ "host.threads",
	  { { THIN_KEY, "target_pid" },
	    { THIN_KEY, "target_tid" },
	    { THIN_RATE, "cpu_pct" },
	    { THIN_CPU, "cpu_ns" } } },
	{ "host.gpu",
	  { { THIN_KEY, "device" },
	    { THIN_MEAN, "util_pct" },
	    { THIN_MEAN, "power_w" },
	    { THIN_MEAN, "used_bytes" } } },
	{ "host.cgroup",
	  { { THIN_KEY, "target_pid" },
	    { THIN_MEAN, "memory_bytes" },
	    { THIN_MEAN, "cpu_some_pct" },
	    { THIN_MEAN, "cpu_full_pct" },
	    { THIN_MEAN, "memory_some_pct" },
	    { THIN_MEAN, "memory_full_pct" },
	    { THIN_MEAN, "io_some_pct" },
	    { THIN_MEAN, "io_full_pct" } } },
	{ "trace.counters", { { THIN_KEY, "name" }, { THIN_KEY, "thread" } } },
	{ "python.variables", { { THIN_KEY, "func" }, { THIN_KEY, "name" } } },
	{ "device.memory",
	  { { THIN_KEY, "device" }, { THIN_KEY, "kind" }, { THIN_SUM, "bytes" } } },
};

/* ---- the plan -------------------------------------------------------------------------------- */

static const struct thin_word *words_of(const char *table)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(tables[i].table, table))
			return tables[i].words;
	return NULL;
}

bool thin_knows(const char *table)
{
	return words_of(table) != NULL;
}

/* The header belongs to the program, so its columns are checked. */
static const struct kymo_column_desc *thin_column_of(const struct kymo_stream_head *head,
						     const char *name, uint32_t *out_bytes)
{
	for (uint32_t i = 0; i < head->column_count && i < KYMO_COLUMNS_MAX; i++) {
		const struct kymo_column_desc *column = &head->columns[i];
		uint32_t bytes = column->type == KYMO_TEXT
					 ? column->bytes
					 : (uint32_t)schema_type_bytes(column->type);

		if (strncmp(column->name, name, sizeof(column->name)) != 0)
			continue;
		*out_bytes = bytes;
		return bytes && column->offset <= head->row_bytes &&
				       bytes <= head->row_bytes - column->offset
			       ? column
			       : NULL;
	}
	return NULL;
}

static bool thin_fits(enum thin_kind kind, uint32_t type, uint32_t bytes, size_t *key_bytes)
{
	if (kind == THIN_KEY) {
		*key_bytes += bytes;
		return *key_bytes <= THIN_KEY_BYTES;
	}
	return bytes == 8 && (type == KYMO_U64 || type == KYMO_I64 || type == KYMO_F64);
}

bool thin_plan_make(struct thin_plan *plan, const struct kymo_stream_head *head)
{
	char table[sizeof(head->table) + 1] = "";
	const struct kymo_column_desc *column;
	const struct thin_word *words;
	size_t key_bytes = 0;
	uint32_t bytes;

	memcpy(table, head->table, sizeof(head->table));
	words = words_of(table);
	column = words ? thin_column_of(head, "ts_ns", &bytes) : NULL;
	if (!column || column->type != KYMO_TIME || head->row_bytes > KYMO_ROW_BYTES_MAX)
		return false;
	*plan = (struct thin_plan){ .row_bytes = head->row_bytes, .time_offset = column->offset };
	for (; words->column; words++) {
		column = thin_column_of(head, words->column, &bytes);
		if (!column || !thin_fits(words->kind, column->type, bytes, &key_bytes))
			return false;
		plan->columns[plan->count++] = (struct thin_column){ words->kind, column->type,
								     column->offset, bytes };
	}
	return true;
}

/* ---- a thing in its period ------------------------------------------------------------------- */

struct thing {
	unsigned char key[THIN_KEY_BYTES];
	uint64_t period;
	unsigned char *row; /* in the output */
	double sums[THIN_COLUMNS_MOST];
	uint64_t counts[THIN_COLUMNS_MOST];
	uint64_t weight;
	/* of the row before */
	uint64_t before_ns, before_ticks;
};

struct thinning {
	const struct thin_plan *plan;
	double ns_per_tick;
	uint64_t random;
	struct thing *things;
	size_t thing_count;
	uint32_t slots[SLOTS]; /* a thing, from 1 */
	unsigned char *out;
	size_t written;
};

static uint64_t thin_word_at(const unsigned char *row, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, row + offset, sizeof(word));
	return word;
}

static void thin_put_word(unsigned char *row, uint32_t offset, uint64_t word)
{
	memcpy(row + offset, &word, sizeof(word));
}

/* A figure; below 0, as a double: not known. */
static double figure_at(const unsigned char *row, const struct thin_column *column)
{
	uint64_t word = thin_word_at(row, column->offset);
	double value;

	if (column->type != KYMO_F64)
		return (double)word;
	memcpy(&value, &word, sizeof(value));
	return value;
}

static void put_figure(unsigned char *row, const struct thin_column *column, double value)
{
	uint64_t word = (uint64_t)(value + 0.5);

	if (column->type == KYMO_F64)
		memcpy(&word, &value, sizeof(word));
	thin_put_word(row, column->offset, word);
}

static double random_share(struct thinning *thinning)
{
	thinning->random ^= thinning->random << 13;
	thinning->random ^= thinning->random >> 7;
	thinning->random ^= thinning->random << 17;
	return (double)(thinning->random >> 11) / 9007199254740992.0;
}

static const struct thin_column *column_of_kind(const struct thin_plan *plan, enum thin_kind kind)
{
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->columns[i].kind == kind)
			return &plan->columns[i];
	return NULL;
}

/* CPU time since the row before it; without one the mean stays. */
static void settle_rate(const struct thinning *thinning, struct thing *thing,
			const struct thin_column *rate)
{
	const struct thin_column *cpu = column_of_kind(thinning->plan, THIN_CPU);
	uint64_t ticks = thin_word_at(thing->row, thinning->plan->time_offset);
	uint64_t cpu_ns = cpu ? thin_word_at(thing->row, cpu->offset) : 0;

	if (!cpu)
		return;
	if (thing->before_ticks && ticks > thing->before_ticks && cpu_ns >= thing->before_ns)
		put_figure(thing->row, rate,
			   100 * (double)(cpu_ns - thing->before_ns) /
				   ((double)(ticks - thing->before_ticks) * thinning->ns_per_tick));
	thing->before_ns = cpu_ns;
	thing->before_ticks = ticks;
}

static void thin_settle(const struct thinning *thinning, struct thing *thing)
{
	const struct thin_plan *plan = thinning->plan;

	for (unsigned i = 0; i < plan->count; i++) {
		const struct thin_column *column = &plan->columns[i];
		bool mean = column->kind == THIN_MEAN || column->kind == THIN_RATE;

		if (mean && thing->counts[i])
			put_figure(thing->row, column, thing->sums[i] / (double)thing->counts[i]);
		if (column->kind == THIN_RATE)
			settle_rate(thinning, thing, column);
	}
}

static void thin_add_figures(const struct thinning *thinning, struct thing *thing,
			     const unsigned char *row)
{
	for (unsigned i = 0; i < thinning->plan->count; i++) {
		enum thin_kind kind = thinning->plan->columns[i].kind;
		double value;

		if (kind != THIN_MEAN && kind != THIN_RATE)
			continue;
		value = figure_at(row, &thinning->plan->columns[i]);
		if (!(value >= 0))
			continue;
		thing->sums[i] += value;
		thing->counts[i]++;
	}
}

/* The row that stays is the last one, with what earlier rows add to it. */
static void replace_row(const struct thinning *thinning, struct thing *thing,
			const unsigned char *row)
{
	const struct thin_plan *plan = thinning->plan;

	for (unsigned i = 0; i < plan->count; i++) {
		const struct thin_column *column = &plan->columns[i];
		uint64_t old, fresh;

		if (column->kind != THIN_MAX && column->kind != THIN_SUM)
			continue;
		old = thin_word_at(thing->row, column->offset);
		fresh = thin_word_at(row, column->offset);
		thing->weight = column->kind == THIN_SUM ? old + fresh : old > fresh ? old : fresh;
	}
	memcpy(thing->row, row, plan->row_bytes);
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->columns[i].kind == THIN_MAX || plan->columns[i].kind == THIN_SUM)
			thin_put_word(thing->row, plan->columns[i].offset, thing->weight);
}

static void thin_choose_row(struct thinning *thinning, struct thing *thing,
			    const unsigned char *row, const struct thin_column *column)
{
	uint64_t weight = thin_word_at(row, column->offset);

	if (weight > UINT64_MAX - thing->weight)
		weight = UINT64_MAX - thing->weight;
	thing->weight += weight;
	if (weight && random_share(thinning) * (double)thing->weight < (double)weight)
		memcpy(thing->row, row, thinning->plan->row_bytes);
	thin_put_word(thing->row, column->offset, thing->weight);
}

/* ---- all rows -------------------------------------------------------------------------------- */

static void read_key(const struct thin_plan *plan, const unsigned char *row,
		     unsigned char key[THIN_KEY_BYTES])
{
	size_t at = 0;

	memset(key, 0, THIN_KEY_BYTES);
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->columns[i].kind == THIN_KEY) {
			memcpy(key + at, row + plan->columns[i].offset, plan->columns[i].bytes);
			at += plan->columns[i].bytes;
		}
}

static struct thing *find_thing(struct thinning *thinning, const unsigned char key[THIN_KEY_BYTES])
{
	uint64_t hash = 1469598103934665603u;
	struct thing *thing;
	size_t slot;

	for (size_t i = 0; i < THIN_KEY_BYTES; i++)
		hash = (hash ^ key[i]) * 1099511628211u;
	for (slot = hash % SLOTS; thinning->slots[slot]; slot = (slot + 1) % SLOTS) {
		thing = &thinning->things[thinning->slots[slot] - 1];
		if (!memcmp(thing->key, key, THIN_KEY_BYTES))
			return thing;
	}
	thing = &thinning->things[thinning->thing_count++];
	memset(thing, 0, sizeof(*thing));
	memcpy(thing->key, key, THIN_KEY_BYTES);
	thinning->slots[slot] = (uint32_t)thinning->thing_count;
	return thing;
}

static void settle_all(struct thinning *thinning)
{
	for (size_t i = 0; i < thinning->thing_count; i++)
		if (thinning->things[i].row)
			thin_settle(thinning, &thinning->things[i]);
	thinning->thing_count = 0;
	memset(thinning->slots, 0, sizeof(thinning->slots));
}

static void begin_period(struct thinning *thinning, struct thing *thing, uint64_t period,
			 const unsigned char *row)
{
	const struct thin_column *weight = column_of_kind(thinning->plan, THIN_WEIGHT);

	if (thing->row)
		thin_settle(thinning, thing);
	memset(thing->sums, 0, sizeof(thing->sums));
	memset(thing->counts, 0, sizeof(thing->counts));
	thing->period = period;
	thing->row = thinning->out + thinning->written++ * thinning->plan->row_bytes;
	thing->weight = weight ? thin_word_at(row, weight->offset) : 0;
	memcpy(thing->row, row, thinning->plan->row_bytes);
}

static void thin_add_row(struct thinning *thinning, const unsigned char *row, uint64_t period)
{
	const struct thin_column *weight = column_of_kind(thinning->plan, THIN_WEIGHT);
	unsigned char key[THIN_KEY_BYTES];
	struct thing *thing;

	if (thinning->thing_count == KEYS_MOST)
		settle_all(thinning);
	read_key(thinning->plan, row, key);
	thing = find_thing(thinning, key);
	if (!thing->row || thing->period != period)
		begin_period(thinning, thing, period, row);
	else if (weight)
		thin_choose_row(thinning, thing, row, weight);
	else
		replace_row(thinning, thing, row);
	thin_add_figures(thinning, thing, row);
}

static uint32_t sort_offset; /* qsort() passes none; one thread thins */

static int thin_compare_times(const void *a, const void *b)
{
	uint64_t one = thin_word_at(a, sort_offset), other = thin_word_at(b, sort_offset);

	return one < other ? -1 : one > other;
}

size_t thin_rows(const struct thin_plan *plan, const unsigned char *rows, size_t count,
		 uint64_t period_ticks, double ns_per_tick, unsigned char *out)
{
	struct thinning *thinning = calloc(1, sizeof(*thinning));
	size_t written = SIZE_MAX;

	if (thinning)
		thinning->things = calloc(KEYS_MOST, sizeof(*thinning->things));
	if (thinning && thinning->things) {
		thinning->plan = plan;
		thinning->ns_per_tick = ns_per_tick;
		thinning->out = out;
		for (size_t i = 0; i < count; i++) {
			const unsigned char *row = rows + i * plan->row_bytes;
			uint64_t ticks = thin_word_at(row, plan->time_offset);

			/* Another series of choices for each batch. */
			if (!thinning->random)
				thinning->random = (ticks * 0x9e3779b97f4a7c15u) | 1;
			if (ticks)
				thin_add_row(thinning, row,
					     ticks / (period_ticks ? period_ticks : 1));
		}
		settle_all(thinning);
		written = thinning->written;
		sort_offset = plan->time_offset;
		if (written)
			qsort(out, written, plan->row_bytes, thin_compare_times);
	}
	if (thinning)
		free(thinning->things);
	free(thinning);
	return written;
}
