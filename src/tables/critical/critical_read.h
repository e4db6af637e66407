/* Reads the streams of one table row by row; what their columns refer to becomes numbers of the
   input's lists. */
#ifndef KYMO_TABLES_CRITICAL_CRITICAL_READ_H
#define KYMO_TABLES_CRITICAL_CRITICAL_READ_H

#include "tables/critical/critical.h"

#define CRITICAL_COLUMNS_MOST 16

/* A row while it is read: its columns, 0 where the stream has none. */
struct critical_row {
	struct critical_input *input;
	const struct store_process *process;
	uint32_t process_index;
	uint64_t value[CRITICAL_COLUMNS_MOST];
	bool too_large;
};

struct critical_reader {
	const char *table;
	const char *columns[CRITICAL_COLUMNS_MOST];
	bool (*take)(struct critical_row *row); /* false: no memory, or too large */
};

/* False: no memory, or too large. */
bool critical_read_table(struct critical_input *input, const struct critical_reader *reader,
			 bool *too_large);

int64_t critical_time_of(const struct critical_row *row, int column);
/* INT64_MAX if it would overflow. */
int64_t critical_end_after(const struct critical_row *row, int64_t start_ns, int column);
/* Two times of which the first is not after the second, and whose sums and differences do not
   overflow; a damaged row has others. */
bool critical_is_span(int64_t from_ns, int64_t to_ns);
uint32_t critical_name_of(const struct critical_row *row, int column);
/* CRITICAL_NONE: unknown, or no memory. */
uint32_t critical_thread_of(const struct critical_row *row, int column, bool drives);
uint32_t critical_queue_of(const struct critical_row *row, uint32_t device, uint32_t name);

#endif
