/* What the files of tables/ share: the inside of struct tables. Not for other layers. */
#ifndef KYMO_TABLES_SESSION_H
#define KYMO_TABLES_SESSION_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "tables/duck.h"
#include "tables/table_shape.h"
#include "tables/tables.h"

/* Vectors that hold each name, file, … once; rows point into them. Built at their first use,
   then never changed. */
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

enum callers_kind { STACK_NODES_SAMPLES, STACK_NODES_ALLOCATIONS, STACK_NODES_KINDS };

struct tables {
	struct tables_options options;
	struct recording *recording; /* NULL: a packed file */
	struct table_shape_set shapes;
	duckdb_database database;
	pthread_mutex_t dictionary_lock;
	duckdb_vector dictionaries[SESSION_DICTIONARY_COUNT];
	struct stack_nodes
		*callers[STACK_NODES_KINDS]; /* stacks (callers.h); made at their first use */
	/* Told by scans, whichever thread: kymo pack shows it. NULL: nobody asks. */
	void (*progress)(uint64_t done, uint64_t all);
	pthread_mutex_t progress_lock;
	uint64_t progress_all;
	_Atomic uint64_t progress_done;
	/* The watchdog (stopper.c): the queries that run now, and who may stop them. */
	pthread_mutex_t watch_lock;
	pthread_t watch_thread;
	bool watching;
	sem_t watch_wake;
	_Atomic bool watch_end;
	_Atomic uint32_t interrupts; /* counts tables_interrupt(); the watchdog passes them on */
	uint32_t interrupts_taken; /* by queries that ended so; the others are for the next one */
	struct tables_result *running; /* a list; under watch_lock */
};

struct tables_result {
	struct tables *tables;
	struct tables_result *next; /* of tables->running */
	duckdb_connection
		connection; /* its own: results of one session do not disturb each other */
	duckdb_prepared_statement statement;
	duckdb_result result;
	duckdb_data_chunk chunk; /* NULL before the first and after the last */
	size_t column_count;
	struct cell_column *columns; /* cell.h */
	struct cell_text *
		/* what tables_cell() made of the values of this chunk that are no plain text */
		texts;
	/* Under watch_lock. */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	uint32_t interrupts_before;
	bool executing; /* a call into DuckDB is under way */
	bool timed_out, cancelled, closing;
	bool unsettled; /* begun, and not fetched to its end; of the thread that asks */
};

#endif
