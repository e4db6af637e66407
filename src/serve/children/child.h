/* The process that runs SQL for kymo serve: one recording, one DuckDB session, one question after
   another. */
#ifndef KYMO_SERVE_CHILDREN_CHILD_H
#define KYMO_SERVE_CHILDREN_CHILD_H

#include <stdio.h>

#include "base/buf.h"
#include "serve/children/question.h"
#include "tables/tables.h"

/* `kymo answer`, which is not for people: reads questions from QUESTION_SOCKET until the server
   closes it. Returns the exit status. */
int child_main(void);

/* `kymo answer COMMAND`: limits the memory and the CPU time of a command whose output kymo serve
   returns, and ends it with the server. */
void child_limit_command(void);

/* The answers. Each writes to `out`, and returns 0 or a negative errno. */
int child_query(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err);
int child_run(struct tables *tables, const struct question *question, const char *sql, FILE *out,
	      struct kymo_error *err);
int child_range(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err);
int child_schema(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		 struct kymo_error *err);
int child_flame(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err);
int child_source(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		 struct kymo_error *err);
int child_zones(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err);
int child_devices(struct tables *tables, const struct question *question, const char *sql,
		  FILE *out, struct kymo_error *err);
int child_queues(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		 struct kymo_error *err);
int child_path(struct tables *tables, const struct question *question, const char *sql, FILE *out,
	       struct kymo_error *err);
int child_joins(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err);
int child_metrics(struct tables *tables, const struct question *question, const char *sql,
		  FILE *out, struct kymo_error *err);

/* Writes a text that was built in memory. */
int child_write(const struct buf *text, FILE *out, struct kymo_error *err);

#endif
