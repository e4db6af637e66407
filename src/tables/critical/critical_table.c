/* Rows with labels: what many rows have in common is kept once. */
#include "tables/critical/critical.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static bool critical_table_same(const void *owner, uint32_t number, const void *key)
{
	const struct critical_label *a =
		&((const struct critical_table *)owner)->labels.list[number];
	const struct critical_label *b = key;

	return a->name == b->name && a->function == b->function && a->module == b->module &&
	       a->zone == b->zone && a->queue == b->queue && a->thread == b->thread &&
	       a->process == b->process && a->path == b->path && a->kind == b->kind &&
	       a->word == b->word;
}

static uint64_t label_hash(const struct critical_label *label)
{
	uint64_t hash = intern_hash_number(label->name,
					   (uint64_t)label->function << 32 | label->zone);

	hash = intern_hash_number(hash, (uint64_t)label->module << 32 | label->thread);
	hash = intern_hash_number(hash, (uint64_t)label->queue << 32 | label->process);
	return intern_hash_number(hash,
				  (uint64_t)label->path << 32 | label->kind << 8 | label->word);
}

uint32_t critical_label(struct critical_table *table, const struct critical_label *label)
{
	const uint64_t hash = label_hash(label);
	const uint32_t found = intern_find(&table->index, hash, critical_table_same, table, label);

	if (found != INTERN_NONE)
		return found;
	if (!grow((void **)&table->labels.list, &table->labels.room, table->labels.count,
		  sizeof(*label)) ||
	    intern_add(&table->index, hash) == INTERN_NONE)
		return CRITICAL_NONE;
	table->labels.list[table->labels.count] = *label;
	return (uint32_t)table->labels.count++;
}

bool critical_sum(struct critical_table *table)
{
	const size_t count = table->labels.count;

	table->sums.list = calloc(count + 1, sizeof(*table->sums.list));
	if (!table->sums.list)
		return false;
	table->sums.count = table->sums.room = count;
	for (size_t i = 0; i < count; i++)
		table->sums.list[i] = (struct critical_span){ .start_ns = INT64_MAX,
							      .label = (uint32_t)i };
	for (size_t i = 0; i < table->rows.count; i++) {
		const struct critical_span *row = &table->rows.list[i];
		struct critical_span *sum = &table->sums.list[row->label];

		sum->duration_ns += row->duration_ns;
		sum->start_ns = row->start_ns < sum->start_ns ? row->start_ns : sum->start_ns;
		sum->step++;
	}
	return true;
}

void critical_table_free(struct critical_table *table)
{
	free(table->rows.list);
	free(table->sums.list);
	free(table->labels.list);
	intern_fini(&table->index);
	*table = (struct critical_table){ .rows = { 0 } };
}
