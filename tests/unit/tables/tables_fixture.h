/*
 * A small recording of two processes in which every table has rows, written by tables_make.h.
 * Process 100 is rank 0, with the threads main (101) and loader (102); process 200 has no rank,
 * declares app.requests in another way, and has a row of a thread that is not known.
 */
#ifndef KYMO_TESTS_TABLES_FIXTURE_H
#define KYMO_TESTS_TABLES_FIXTURE_H

#include "tables_make.h"

#define AT(ns) (MAKE_EPOCH + (ns))

struct fixture_request {
	uint64_t at;
	double ms;
	uint32_t who, what;
	uint8_t ok;
	char path[15];
};

static const struct kymo_column fixture_columns[] = {
	{ "at_ns", KYMO_TIME, offsetof(struct fixture_request, at), 0, NULL },
	{ "ms", KYMO_F64, offsetof(struct fixture_request, ms), 0, "ms" },
	{ "path", KYMO_TEXT, offsetof(struct fixture_request, path), 15, NULL },
	{ "ok", KYMO_BOOL, offsetof(struct fixture_request, ok), 0, NULL },
	{ "who", KYMO_THREAD, offsetof(struct fixture_request, who), 0, NULL },
	{ "what", KYMO_NAME, offsetof(struct fixture_request, what), 0, NULL },
};
static const struct schema_table fixture_requests = { "app.requests", fixture_columns, 6,
						      sizeof(struct fixture_request), NULL };

struct fixture_other_request {
	uint64_t at;
	float ms;
	int32_t extra;
};

static const struct kymo_column fixture_other_columns[] = {
	{ "at_ns", KYMO_TIME, offsetof(struct fixture_other_request, at), 0, NULL },
	{ "ms", KYMO_F32, offsetof(struct fixture_other_request, ms), 0, NULL },
	{ "extra", KYMO_I32, offsetof(struct fixture_other_request, extra), 0, NULL },
};
static const struct schema_table fixture_other_requests = { "app.requests", fixture_other_columns,
							    3, sizeof(struct fixture_other_request),
							    NULL };

static inline void fixture_text(struct make *make, uint32_t thread, uint32_t epoch, uint32_t load)
{
	const struct schema_text_row rows[] = {
		/* Parts out of order: a ring may have begun in the middle. */
		{ AT(700), thread, 1, epoch, 1, SCHEMA_TEXT_MARK, 0, "world" },
		{ AT(700), thread, 1, epoch, 0, SCHEMA_TEXT_MARK, 0, "hello " },
		{ AT(1000), thread, 2, load, 0, SCHEMA_TEXT_ZONE, 0, "batch 7" },
		{ AT(2000), thread, 3, load, 0, SCHEMA_TEXT_VALUE, 42, "" },
	};

	make_stream(make, schema_find("trace.zone_text"), rows, 4);
}

static inline void fixture_zones(struct make *make, uint32_t thread, uint32_t step, uint32_t load)
{
	const struct kymo_zone_row rows[] = {
		{ AT(1000), 200, load, thread, 1, 0, 1 },
		{ AT(500), 1000, step, thread, 0, 0, 1 },
		{ AT(2000), 400, load, thread, 1, 0, 2 },
		{ AT(1800), 1000, step, thread, 0, 0, 2 },
	};
	const struct kymo_open_entry open[] = { { AT(3000), step, 0 }, { AT(3100), load, 0 } };

	make->open = open;
	make->open_count = 2;
	make->open_thread = thread;
	make->dropped[KYMO_DROP_FULL] = 3;
	make_stream(make, schema_find("trace.zones"), rows, 4);
}

static inline void fixture_host(struct make *make)
{
	const struct schema_host_process_row process = { AT(1000), 4096, UINT64_MAX, 1,	  2,
							 3,	   4,	 99.5,	     100, 2,
							 8192,	   500,	 300,	     200, 16384 };
	const struct schema_host_cpu_row cpus[] = { { AT(1000), 50, 1, 2, -1, 0 },
						    { AT(1000), 25, 0, 0, 1, 0 } };
	const struct schema_config_row config = { AT(1500), "sample_rate", "0.1", "0.01",
						  "kymo config" };

	make_stream(make, schema_find("host.process"), &process, 1);
	make_stream(make, schema_find("host.cpu"), cpus, 2);
	make_stream(make, schema_find("kymo.config"), &config, 1);
}

static inline void fixture_first(struct make *make)
{
	uint32_t step, load, op, epoch, loss, main_thread, loader;

	make_process(make, 100, 0);
	make->control.wstatus = 9; /* SIGKILL: its open zones stay */
	make->control.step = 3;
	step = make_name(make, "step", "train.py", 7, KYMO_SOURCE_PYTHON, 0);
	load = make_name(make, "load", "data.c", 3, KYMO_SOURCE_C, 0);
	op = make_name(make, "op", NULL, 0, KYMO_SOURCE_C, 2);
	epoch = make_name(make, "epoch", NULL, 0, KYMO_SOURCE_C, 0);
	loss = make_name(make, "loss", NULL, 0, KYMO_SOURCE_C, 0);
	main_thread = make_thread(make, 101, "main");
	loader = make_thread(make, 102, "loader");
	fixture_zones(make, main_thread, step, load);
	make_stream(make, schema_find("trace.zones"),
		    &(struct kymo_zone_row){ AT(600), 50, op, loader, 0, 0, 1 }, 1);
	make_stream(make, schema_find("trace.marks"),
		    (const struct schema_mark_row[]){ { AT(700), epoch, main_thread, 1, 1 },
						      { AT(800), epoch, main_thread, 1, 0 } },
		    2);
	fixture_text(make, main_thread, epoch, load);
	make_stream(
		make, schema_find("trace.counters"),
		(const struct schema_counter_row[]){ { AT(900), 0.5, loss, main_thread, 1, 0 },
						     { AT(1900), 0.25, loss, main_thread, 2, 0 } },
		2);
	make_stream(make, schema_find("trace.steps"),
		    &(struct schema_step_row){
			    AT(500), 1000, { 200, 0, 0, 0 }, 1, step, main_thread, 0 },
		    1);
	make_stream(make, &fixture_requests,
		    (const struct fixture_request[]){
			    { AT(100), 1.5, main_thread, op, 1, "/index" },
			    { AT(200), -0.0, loader, load, 0, "/caf\xc3\xa9\xff!" } },
		    2);
	fixture_host(make);
	make_process_end(make);
}

static inline void fixture_second(struct make *make)
{
	uint32_t step;

	make_process(make, 200, -1);
	/* Its oldest rows are gone, so the totals cannot be made from the others. */
	make->no_totals = true;
	step = make_name(make, "step", "train.py", 7, KYMO_SOURCE_PYTHON, 0);
	make->overwritten = 5;
	make_stream(make, schema_find("trace.zones"),
		    &(struct kymo_zone_row){ AT(100), 300, step, 0, 0, 0, 0 }, 1);
	make_stream(make, &fixture_other_requests,
		    &(struct fixture_other_request){ AT(300), 2.5f, 9 }, 1);
	make_process_end(make);
}

static inline void fixture_small(const char *directory)
{
	struct make *make = malloc(sizeof(*make));

	make_run(make, directory);
	fixture_first(make);
	fixture_second(make);
	free(make);
}

#endif
