/*
 * A peer: the GROUP BY of bench/sql/query.c over the same rows in SQLite, a plain table in memory.
 *
 *	sqlite_group RECORDING		peer.sqlite_group_s, peer.sqlite_load_s
 */
#include <sqlite3.h>

#include "bench.h"
#include "store/store.h"

#define BATCH_ROWS 4096u

static void check(sqlite3 *db, int rc, int expected)
{
	if (rc == expected)
		return;
	fprintf(stderr, "sqlite_group: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static void insert(sqlite3_stmt *statement, const struct recording *recording,
		   const struct store_process *process, const struct kymo_zone_row *row)
{
	uint32_t name = row->name < process->name_count ? process->name_of[row->name] : 0;

	sqlite3_bind_text(statement, 1, recording->names[name].text, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, store_clock_ns(&process->clock, row->start_ticks));
	sqlite3_bind_int64(statement, 3, store_clock_span_ns(&process->clock, row->duration_ticks));
	sqlite3_bind_int(statement, 4, row->depth);
	sqlite3_bind_int64(statement, 5, row->thread);
	sqlite3_bind_int64(statement, 6, row->step);
	sqlite3_step(statement);
	sqlite3_reset(statement);
}

static void load_stream(sqlite3_stmt *statement, const struct recording *recording,
			const struct store_stream *stream)
{
	static struct kymo_zone_row rows[BATCH_ROWS];

	for (size_t i = 0; i < stream->chunk_count; i++) {
		const struct store_chunk *chunk = &stream->chunks[i];
		uint64_t got;

		for (uint64_t at = 0; at < chunk->rows; at += got) {
			uint64_t wish = chunk->rows - at < BATCH_ROWS ? chunk->rows - at
								      : BATCH_ROWS;

			got = store_read_rows(stream, chunk, at, wish, rows);
			for (uint64_t j = 0; j < got; j++)
				insert(statement, recording, &recording->processes[stream->process],
				       &rows[j]);
			if (!got)
				break;
		}
	}
}

static void load(sqlite3 *db, const struct recording *recording)
{
	sqlite3_stmt *statement = NULL;

	check(db,
	      sqlite3_exec(db,
			   "CREATE TABLE zones(name TEXT, start_ns INTEGER, duration_ns INTEGER, "
			   "depth INTEGER, "
			   "tid INTEGER, step INTEGER); BEGIN",
			   NULL, NULL, NULL),
	      SQLITE_OK);
	check(db,
	      sqlite3_prepare_v2(db, "INSERT INTO zones VALUES(?, ?, ?, ?, ?, ?)", -1, &statement,
				 NULL),
	      SQLITE_OK);
	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, "trace.zones"))
			load_stream(statement, recording, &recording->streams[i]);
	sqlite3_finalize(statement);
	check(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
}

int main(int argc, char **argv)
{
	struct recording *recording = NULL;
	struct kymo_error err;
	uint64_t from;
	sqlite3 *db = NULL;

	if (argc != 2) {
		fprintf(stderr, "usage: sqlite_group RECORDING\n");
		return 2;
	}
	if (store_open(argv[1], &recording, &err)) {
		fprintf(stderr, "sqlite_group: %s\n", err.text);
		return 1;
	}
	check(db, sqlite3_open(":memory:", &db), SQLITE_OK);
	from = bench_now_ns();
	load(db, recording);
	bench_emit("peer.sqlite_load_s", "s", (double)(bench_now_ns() - from) / 1e9);
	from = bench_now_ns();
	check(db,
	      sqlite3_exec(db,
			   "SELECT name, count(*), sum(duration_ns), max(duration_ns) FROM zones "
			   "GROUP BY name",
			   NULL, NULL, NULL),
	      SQLITE_OK);
	bench_emit("peer.sqlite_group_s", "s", (double)(bench_now_ns() - from) / 1e9);
	sqlite3_close(db);
	store_close(recording);
	return 0;
}
