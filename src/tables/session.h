/* Internals of struct tables, shared by the files of tables/. Not for other layers. */
#ifndef KYMO_TABLES_SESSION_H
#define KYMO_TABLES_SESSION_H

#include <pthread.h>
#include <semaphore.h>

#include <kymo/atomic.h>

#include "tables/duck.h"
#include "tables/table_shape.h"
#include "tables/tables.h"

/* Vectors that hold each name, file, … once; rows refer to their entries. Built on first use,
   then constant. */
enum session_dictionary {
	SESSION_NAME_TEXT,
	SESSION_NAME_FILE,
	SESSION_NAME_SOURCE,
	SESSION_NAME_LINE,
	SESSION_NAME_INSTANCE,
	SESSION_THREAD_NAME,
	SESSION_THREAD_TID,
	SESSION_DICTIONARY_COUNT
};

enum stack_nodes_kind {
	STACK_NODES_SAMPLES, /* of Python */
	STACK_NODES_ALLOCATIONS,
	STACK_NODES_NATIVE,
	STACK_NODES_KINDS
};

struct tables {
	struct tables_options options;
	struct recording *recording; /* NULL for a packed file */
	char path[KYMO_PATH_BYTES]; /* that was opened */
	struct table_shape_set shapes;
	duckdb_database database;
	pthread_mutex_t dictionary_lock;
	duckdb_vector dictionaries[SESSION_DICTIONARY_COUNT];
	struct stack_nodes *callers[STACK_NODES_KINDS]; /* stack_nodes.h; built on first use */
	struct critical *critical; /* critical/critical.h; built on first use */
	/* session_views.c: which views of the catalog exist; NULL for a packed file. */
	pthread_mutex_t views_lock;
	bool *views_made;
	/* Called by the threads of scans, for example to show the progress of kymo pack. May be
	   NULL. */
	void (*progress)(uint64_t done, uint64_t all);
	pthread_mutex_t progress_lock;
	uint64_t progress_all;
	uint64_t progress_done; /* atomic */
	/* query_watchdog.c: the running queries and requests to stop them. */
	pthread_mutex_t watch_lock;
	pthread_t watch_thread;
	bool watching;
	sem_t watch_wake;
	bool watch_end; /* atomic */
	uint32_t interrupts; /* atomic; number of calls of tables_interrupt() */
	/* Calls that have stopped a query; the others are for the next one. */
	uint32_t interrupts_taken;
	struct tables_result *running; /* a list; under watch_lock */
};

struct tables_result {
	struct tables *tables;
	struct tables_result *next; /* of tables->running */
	duckdb_connection connection; /* one for each result, so that they are independent */
	duckdb_prepared_statement statement;
	duckdb_result result;
	duckdb_data_chunk chunk; /* NULL before the first chunk and after the last */
	size_t column_count;
	struct cell_column *columns; /* cell.h */
	struct cell_text *texts; /* made by tables_cell() for the current chunk */
	/* Under watch_lock. */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	/* Since when the caller handles a chunk, a person in a pager for example; 0: it does not.
	   That time does not count for the deadline. */
	uint64_t left_ns;
	uint32_t interrupts_before;
	bool executing; /* a call into DuckDB is running */
	bool timed_out, cancelled, closing;
	bool unsettled; /* started, and not fetched to its end; used by the querying thread */
};

#endif
