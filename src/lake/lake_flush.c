#include "lake/lake.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "lake/lake_cursor.h"
#include "lake/lake_file.h"
#include "lake/lake_plan.h"
#include "lake_sql.h"
#include "store/job.h"
#include "tables/catalog/catalog.h"
#include "tables/sql_fill.h"

/* Rows of one file: sorting them has to fit into memory. */
#define FILE_ROWS_MOST (UINT64_C(4) << 20)
#define RETRIES 3
#define LOCK_TRIES 20
#define LOCK_NAP_NS 100000000

struct lake_flush {
	const struct lake_options *options;
	struct recording *recording; /* of the session */
	struct lake_job job;
	struct lake_place place;
	char writer[96]; /* HOST-ID */
	struct lake_cursors cursors;
	int lock;
};

/* ---- the writer and its job -------------------------------------------------------- */

/* The same for every flush of a recording, and no other's. */
static void name_writer(struct lake_flush *flush)
{
	const struct kymo_run_file *run = &flush->recording->run;
	uint64_t hash = LAKE_HASH_BEGIN;
	char host[48], text[96];

	lake_word(run->host[0] ? run->host : "host", host, sizeof(host));
	snprintf(text, sizeof(text), "%" PRIu64 " %d %d %" PRIu64, run->epoch.realtime_ns,
		 (int)run->supervisor_pid, (int)run->target_pid, run->epoch.monotonic_ns);
	hash = lake_hash_column(hash, run->boot_id, text);
	hash = lake_hash_column(hash, run->host, run->job);
	snprintf(flush->writer, sizeof(flush->writer), "%s-%012" PRIx64, host, hash >> 16);
}

static void name_run(const struct lake_flush *flush, char *out, size_t out_bytes)
{
	const struct kymo_run_file *run = &flush->recording->run;
	const time_t start = (time_t)(run->epoch.realtime_ns / 1000000000u);
	char program[64], when[32] = "";
	struct tm tm;

	if (flush->options->run || run->job[0]) {
		lake_word(flush->options->run ? flush->options->run : run->job, out, out_bytes);
		return;
	}
	lake_word(flush->recording->program[0] ? flush->recording->program : "run", program,
		  sizeof(program));
	if (gmtime_r(&start, &tm))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	snprintf(out, out_bytes, "%s-%s-%d", program, when, (int)run->target_pid);
}

static int make_job(struct lake_flush *flush, struct kymo_error *err)
{
	uint64_t epoch = flush->options->epoch_unix_ns ? flush->options->epoch_unix_ns
						       : flush->recording->run.epoch.realtime_ns;
	char run[LAKE_RUN_BYTES];

	name_run(flush, run, sizeof(run));
	return lake_job_make(flush->options->lake, run, flush->recording->program, epoch,
			     &flush->job, err);
}

/* All hosts of a job count from one moment, by their wall clocks. */
static void move_to_job(struct lake_flush *flush)
{
	struct recording *recording = flush->recording;
	uint64_t own = recording->run.epoch.realtime_ns;

	if (own && recording->kind != STORE_JOB)
		job_shift(recording, (int64_t)(own - flush->job.epoch_unix_ns));
}

/* ---- cursors ------------------------------------------------------------------------------- */

static const char *text_cell(struct tables_result *result, size_t column, size_t row, char *out,
			     size_t out_bytes)
{
	struct tables_cell cell = { 0 };

	tables_cell(result, column, row, &cell);
	snprintf(out, out_bytes, "%.*s", cell.kind == TABLES_TEXT ? (int)cell.text_bytes : 0,
		 cell.kind == TABLES_TEXT ? cell.text : "");
	return out;
}

static uint64_t number_cell(struct tables_result *result, size_t column, size_t row)
{
	struct tables_cell cell = { 0 };

	tables_cell(result, column, row, &cell);
	return cell.integer > 0 ? (uint64_t)cell.integer : 0;
}

static int take_flushes(struct lake_flush *flush, const char *sql, struct kymo_error *err)
{
	struct tables_result *result = NULL;
	char key[64], table[64];
	int64_t count = 0;
	int rc = tables_query(flush->place.tables, sql, &result, err);

	while (!rc && (count = tables_next(result, err)) > 0)
		for (size_t row = 0; !rc && row < (size_t)count; row++)
			rc = lake_cursors_set(
				&flush->cursors, text_cell(result, 0, row, key, sizeof(key)),
				text_cell(result, 1, row, table, sizeof(table)),
				number_cell(result, 2, row), number_cell(result, 3, row),
				number_cell(result, 4, row));
	tables_result_close(result);
	return rc ? rc : (int)count;
}

/* What the flush before has left in kymo.flushes. */
static int read_cursors(struct lake_flush *flush, struct kymo_error *err)
{
	struct buf path = { 0 }, quoted = { 0 }, sql = { 0 };
	int rc = lake_cursors_init(&flush->cursors, flush->recording);

	lake_file_path(&flush->job, "kymo", "flushes", flush->writer, &path);
	buf_text(&path, ".parquet");
	if (!rc && !access(buf_get(&path), F_OK)) {
		catalog_quote_text(&quoted, buf_get(&path));
		sql_fill(&sql, sql_cursors,
			 (struct sql_value[]){ { "file", .text = buf_get(&quoted) }, { NULL } });
		rc = sql.failed ? error_set(err, ENOMEM, "no memory to write into the lake")
				: take_flushes(flush, sql.data, err);
	}
	buf_fini(&path);
	buf_fini(&quoted);
	buf_fini(&sql);
	return rc;
}

static int take_footer(struct lake_flush *flush, const char *table, const char *path,
		       struct kymo_error *err)
{
	struct buf quoted = { 0 }, sql = { 0 };
	struct tables_result *result = NULL;
	struct tables_cell cell = { 0 };
	char *text = NULL;
	int rc;

	catalog_quote_text(&quoted, path);
	sql_fill(&sql, sql_footer,
		 (struct sql_value[]){ { "file", .text = buf_get(&quoted) }, { NULL } });
	rc = sql.failed ? -ENOMEM : tables_query(flush->place.tables, sql.data, &result, err);
	if (!rc && tables_next(result, err) > 0)
		tables_cell(result, 0, 0, &cell);
	if (!rc && cell.kind == TABLES_TEXT)
		text = strndup(cell.text, cell.text_bytes);
	if (!rc)
		rc = text ? lake_cursors_take(&flush->cursors, table, text) : -EINVAL;
	if (rc == -EINVAL)
		error_set(err, EINVAL,
			  "cannot continue after %s: its footer does not tell which rows it has",
			  path);
	free(text);
	tables_result_close(result);
	buf_fini(&quoted);
	buf_fini(&sql);
	return rc;
}

static void name_rows(const struct lake_flush *flush, const char *table, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s-r%" PRIu64, flush->writer,
		 lake_cursors_at(&flush->cursors, table));
}

/* Files that a flush has written before it was killed: their footers tell how far they go. */
static int follow_files(struct lake_flush *flush, const char *schema, const char *name,
			struct kymo_error *err)
{
	char table[160], file[LAKE_NAME_BYTES];
	struct buf path = { 0 };
	uint64_t before;
	int rc = 0;

	snprintf(table, sizeof(table), "%s.%s", schema, name);
	do {
		before = lake_cursors_at(&flush->cursors, table);
		name_rows(flush, table, file, sizeof(file));
		buf_reset(&path);
		lake_file_path(&flush->job, schema, name, file, &path);
		buf_text(&path, ".parquet");
		if (!access(buf_get(&path), F_OK))
			rc = take_footer(flush, table, buf_get(&path), err);
	} while (!rc && lake_cursors_at(&flush->cursors, table) > before);
	buf_fini(&path);
	return rc;
}

/* ---- rows ---------------------------------------------------------------------------------- */

struct lake_wanted {
	const struct lake_flush *flush;
	bool by_rank;
};

static bool stream_is_wanted(const void *context, const struct store_stream *stream)
{
	const struct lake_wanted *wanted = context;
	const struct lake_options *options = wanted->flush->options;
	int32_t rank = wanted->flush->recording->processes[stream->process].rank;

	return !wanted->by_rank || !options->wants_rank || rank < 0 ||
	       options->wants_rank(options->context, rank);
}

static void rows_query(struct buf *out, const char *schema, const char *name, const char *order)
{
	buf_text(out, "FROM rec.");
	catalog_quote(out, schema);
	buf_char(out, '.');
	catalog_quote(out, name);
	/* Calls that have not ended are in a file that each flush replaces. */
	if (!strcmp(schema, "dist"))
		buf_text(out, " WHERE state IN ('completed', 'failed')");
	if (order)
		buf_print(out, " ORDER BY %s", order);
}

/* Writes the window that is open. */
static int write_window(struct lake_flush *flush, const char *schema, const char *name,
			const struct lake_plan *plan, struct kymo_error *err)
{
	char table[160], file[LAKE_NAME_BYTES];
	struct buf query = { 0 }, cursors = { 0 };
	struct lake_file_content content = { .schema = schema, .table = name, .name = file };
	int rc;

	snprintf(table, sizeof(table), "%s.%s", schema, name);
	name_rows(flush, table, file, sizeof(file));
	rows_query(&query, schema, name, plan->order);
	lake_cursors_put(&flush->cursors, table, &cursors);
	content.query = buf_get(&query);
	content.cursors = buf_get(&cursors);
	rc = query.failed || cursors.failed ? error_set(err, ENOMEM, "no memory for the rows")
					    : lake_file_write(&flush->place, &content, NULL, err);
	buf_fini(&query);
	buf_fini(&cursors);
	return rc;
}

static int lake_flush_rows(struct lake_flush *flush, const char *schema, const char *name,
			   const struct lake_plan *plan, struct kymo_error *err)
{
	const struct lake_wanted wanted = { flush, plan->tier == LAKE_TIER_ALL };
	char table[160];
	int64_t rows = 1;
	int rc = follow_files(flush, schema, name, err);

	snprintf(table, sizeof(table), "%s.%s", schema, name);
	for (int tries = 0; !rc && rows > 0;) {
		rows = lake_window_open(&flush->cursors, flush->recording, table, FILE_ROWS_MOST,
					stream_is_wanted, &wanted);
		rc = rows < 0 ? error_set(err, ENOMEM, "no memory for the rows of %s", table)
		     : rows   ? write_window(flush, schema, name, plan, err)
			      : 0;
		lake_window_close(&flush->cursors, flush->recording, table, !rc);
		/* Another process has just written these rows. */
		if (rc == -EEXIST && tries++ < RETRIES)
			rc = follow_files(flush, schema, name, err);
	}
	return rc;
}

/* ---- tables that are replaced -------------------------------------------------------------- */

static int write_query(struct lake_flush *flush, const char *schema, const char *name,
		       const char *query, struct kymo_error *err)
{
	const struct lake_file_content content = { .schema = schema,
						   .table = name,
						   .name = flush->writer,
						   .query = query,
						   .replace = true,
						   .even_empty = true };

	return lake_file_write(&flush->place, &content, NULL, err);
}

static int lake_flush_whole(struct lake_flush *flush, const char *schema, const char *name,
			    struct kymo_error *err)
{
	struct buf query = { 0 }, table = { 0 };
	int rc;

	buf_text(&query, "FROM rec.");
	catalog_quote(&query, schema);
	buf_char(&query, '.');
	catalog_quote(&query, name);
	rc = query.failed ? error_set(err, ENOMEM, "no memory for %s.%s", schema, name)
			  : write_query(flush, schema, name, query.data, err);
	buf_fini(&query);
	buf_print(&table, "%s.%s", schema, name);
	if (!rc && !table.failed)
		lake_cursors_whole(&flush->cursors, table.data);
	buf_fini(&table);
	return rc;
}

static void add_flush(struct buf *out, const struct lake_flush *flush,
		      const struct lake_cursor *cursor, uint64_t now_ns)
{
	const struct store_stream *stream = cursor->stream;
	const struct store_process *process = stream ? &flush->recording->processes[stream->process]
						     : NULL;
	uint64_t head = stream ? stream->kept + stream->overwritten : cursor->next;

	catalog_quote_text(out, cursor->table);
	buf_char(out, ',');
	catalog_quote_text(out, cursor->key);
	buf_print(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
		  head + (stream ? stream->dropped_total : 0), cursor->in_lake, cursor->lost,
		  head > cursor->next ? head - cursor->next : 0, stream ? stream->dropped_total : 0,
		  cursor->next);
	if (process)
		buf_print(out, "%d,", (int)process->pid);
	else
		buf_text(out, "NULL,");
	if (process && process->rank >= 0)
		buf_print(out, "%d,", (int)process->rank);
	else
		buf_text(out, "NULL,");
	catalog_quote_text(out, flush->recording->runs[0].host);
	buf_print(out, ",'%s',%" PRIu64, flush->writer, now_ns);
}

/* Last of all: it counts what is in the lake by now. */
static int write_flushes(struct lake_flush *flush, struct kymo_error *err)
{
	struct buf rows = { 0 }, query = { 0 };
	struct timespec now;
	int rc;

	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < flush->cursors.count; i++) {
		buf_text(&rows, i ? ", (" : "(");
		add_flush(&rows, flush, &flush->cursors.list[i],
			  (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
		buf_char(&rows, ')');
	}
	if (!flush->cursors.count)
		return 0;
	sql_fill(&query, sql_flushes,
		 (struct sql_value[]){ { "rows", .text = buf_get(&rows) }, { NULL } });
	rc = query.failed || rows.failed ? error_set(err, ENOMEM, "no memory for kymo.flushes")
					 : write_query(flush, "kymo", "flushes", query.data, err);
	buf_fini(&rows);
	buf_fini(&query);
	return rc;
}

/* ---- a flush ------------------------------------------------------------------------------- */

static int write_table(struct lake_flush *flush, const char *schema, const char *name,
		       struct kymo_error *err)
{
	struct lake_plan plan = lake_plan_of(schema, name);

	if (plan.kind == LAKE_READ || plan.tier > flush->options->tier ||
	    (plan.kind == LAKE_LATER && flush->options->running))
		return 0;
	/* Written first, and again with the rest: the states of ranks have changed since. */
	if (!strcmp(schema, "dist") && !strcmp(name, "ranks"))
		return 0;
	if (!strcmp(schema, "dist") && !strcmp(name, "collectives")) {
		int rc = write_query(flush, schema, name, sql_open_calls, err);

		if (rc)
			return rc;
	}
	return plan.kind == LAKE_ROWS ? lake_flush_rows(flush, schema, name, &plan, err)
				      : lake_flush_whole(flush, schema, name, err);
}

struct lake_names {
	char (*names)[2][64];
	size_t count;
};

/* Names that a file system and a reader take as they are; others are left out. */
static bool lake_flush_is_plain(const char *name)
{
	return *name &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
		       strlen(name);
}

/* All views of the session, those of the program's tables among them. */
static int list_views(struct lake_flush *flush, struct lake_names *out, struct kymo_error *err)
{
	struct tables_result *result = NULL;
	int64_t count = 0;
	int rc = tables_query(flush->place.tables, sql_views, &result, err);

	while (!rc && (count = tables_next(result, err)) > 0) {
		void *more = reallocarray(out->names, out->count + (size_t)count,
					  sizeof(*out->names));

		if (!more) {
			rc = error_set(err, ENOMEM, "no memory for the tables");
			break;
		}
		out->names = more;
		for (size_t row = 0; row < (size_t)count; row++) {
			char(*pair)[64] = out->names[out->count];

			text_cell(result, 0, row, pair[0], sizeof(pair[0]));
			text_cell(result, 1, row, pair[1], sizeof(pair[1]));
			out->count += lake_flush_is_plain(pair[0]) && lake_flush_is_plain(pair[1]);
		}
	}
	tables_result_close(result);
	return rc ? rc : (int)count;
}

/* Times in which the lake could not be written. */
static int write_gaps(struct lake_flush *flush, struct kymo_error *err)
{
	const struct lake_gaps *gaps = flush->options->gaps;
	struct buf rows = { 0 }, query = { 0 };
	int rc = 0;

	for (size_t i = 0; gaps && i < gaps->count; i++) {
		const struct lake_gap *gap = &gaps->list[i];

		buf_print(&rows, "%s(%" PRIu64 ", %" PRIu64 ", %" PRIu32 ", ", i ? ", " : "",
			  gap->from_unix_ns, gap->to_unix_ns, gap->attempts);
		catalog_quote_text(&rows, gap->reason);
		buf_text(&rows, ", ");
		catalog_quote_text(&rows, flush->recording->runs[0].host);
		buf_print(&rows, ", '%s')", flush->writer);
	}
	if (!rows.used)
		return 0;
	sql_fill(&query, sql_flush_gaps,
		 (struct sql_value[]){ { "rows", .text = buf_get(&rows) }, { NULL } });
	rc = query.failed || rows.failed
		     ? error_set(err, ENOMEM, "no memory for kymo.flush_gaps")
		     : write_query(flush, "kymo", "flush_gaps", query.data, err);
	buf_fini(&rows);
	buf_fini(&query);
	return rc;
}

/* With what the lake itself costs. */
static int write_overhead(struct lake_flush *flush, struct kymo_error *err)
{
	const struct lake_gaps *gaps = flush->options->gaps;
	struct buf query = { 0 };
	int rc;

	sql_fill(&query, sql_overhead,
		 (struct sql_value[]){ { "flushes", .number = (int64_t)gaps->flushes },
				       { "cpu_ns", .number = (int64_t)gaps->cpu_ns },
				       { NULL } });
	rc = query.failed ? error_set(err, ENOMEM, "no memory for kymo.overhead")
			  : write_query(flush, "kymo", "overhead", query.data, err);
	buf_fini(&query);
	return rc;
}

static int write_tables(struct lake_flush *flush, struct kymo_error *err)
{
	struct lake_names views = { 0 };
	int rc = write_query(flush, "dist", "ranks", sql_own_ranks, err);

	if (!rc)
		rc = list_views(flush, &views, err);
	for (size_t i = 0; i < views.count && !rc; i++)
		rc = write_table(flush, views.names[i][0], views.names[i][1], err);
	free(views.names);
	if (!rc && flush->options->gaps)
		rc = write_overhead(flush, err);
	if (!rc)
		rc = write_gaps(flush, err);
	if (!rc)
		rc = write_query(flush, "kymo", "now", sql_now, err);
	if (!rc)
		rc = write_flushes(flush, err);
	return rc;
}

/* For a moment the lock may be that of a process that was killed and has not ended yet. */
static bool is_locked(int fd)
{
	const struct timespec nap = { .tv_nsec = LOCK_NAP_NS };

	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

/* Two processes that write one recording would count its rows twice. File systems without locks
   rely on the names of files alone. */
static int lock_writer(struct lake_flush *flush, struct kymo_error *err)
{
	struct buf path = { 0 };
	int rc = 0;

	buf_print(&path, ".%s.lock", flush->writer);
	flush->lock = openat(flush->place.lake, buf_get(&path),
			     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (flush->lock >= 0 && is_locked(flush->lock))
		rc = error_set(err, EBUSY,
			       "another process writes this recording into the lake %s now",
			       flush->job.lake);
	buf_fini(&path);
	return rc;
}

static void unlock_writer(struct lake_flush *flush)
{
	struct buf path = { 0 };

	if (flush->lock < 0)
		return;
	buf_print(&path, ".%s.lock", flush->writer);
	unlinkat(flush->place.lake, buf_get(&path), 0);
	close(flush->lock);
	buf_fini(&path);
}

static int open_session(struct lake_flush *flush, struct kymo_error *err)
{
	const struct tables_options options = {
		.unsafe = true, /* only internal SQL runs here, and it writes files */
		.threads = flush->options->threads,
		.memory_limit_bytes = flush->options->memory_bytes ? flush->options->memory_bytes
								   : tables_own_memory(),
	};

	return tables_open_recording(flush->recording, &options, &flush->place.tables, err);
}

static int flush_recording(const char *path, const struct lake_options *options,
			   int (*write)(struct lake_flush *flush, struct kymo_error *err),
			   struct lake_result *out, struct kymo_error *err)
{
	struct lake_flush flush = { .options = options, .lock = -1, .place.lake = -1 };
	int rc = store_open(path, &flush.recording, err);

	if (rc)
		return rc;
	name_writer(&flush);
	rc = make_job(&flush, err);
	if (!rc)
		rc = lake_place_open(&flush.place, &flush.job, err);
	if (!rc)
		rc = lock_writer(&flush, err);
	if (!rc) {
		lake_file_clean(&flush.place, flush.writer);
		move_to_job(&flush);
	}
	if (rc)
		store_close(flush.recording);
	else
		rc = open_session(&flush, err);
	if (!rc)
		rc = read_cursors(&flush, err);
	if (!rc)
		rc = write(&flush, err);
	tables_close(flush.place.tables);
	lake_cursors_fini(&flush.cursors);
	if (rc != -EBUSY)
		unlock_writer(&flush);
	else if (flush.lock >= 0)
		close(flush.lock);
	lake_place_close(&flush.place);
	snprintf(out->job, sizeof(out->job), "%s/%s", flush.job.lake, flush.job.run);
	out->rows += flush.place.rows;
	out->bytes += flush.place.bytes;
	out->files += flush.place.files;
	return rc;
}

static int write_now(struct lake_flush *flush, struct kymo_error *err)
{
	return write_query(flush, "kymo", "now", sql_now, err);
}

int lake_now(const char *path, const struct lake_options *options, struct kymo_error *err)
{
	struct lake_result ignored = { 0 };

	return flush_recording(path, options, write_now, &ignored, err);
}

/* ---- a job --------------------------------------------------------------------------------- */

/* Each of its recordings by itself, as a host of its own would write it. */
static int add_job(const char *path, const struct lake_options *options, struct lake_result *out,
		   struct kymo_error *err)
{
	struct lake_options each = *options;
	struct recording *job = NULL;
	char(*paths)[KYMO_PATH_BYTES] = NULL;
	size_t count = 0;
	int rc = store_open(path, &job, err);

	if (!rc && !(paths = calloc(job->run_count + 1, sizeof(*paths))))
		rc = error_set(err, ENOMEM, "no memory for the job %s", path);
	for (size_t i = 0; !rc && i < job->run_count; i++) {
		const struct store_run *run = &job->runs[i];

		snprintf(paths[count++], sizeof(*paths), "%s", run->path);
		if (!each.epoch_unix_ns || run->run.epoch.realtime_ns < each.epoch_unix_ns)
			each.epoch_unix_ns = run->run.epoch.realtime_ns;
	}
	store_close(job);
	for (size_t i = 0; !rc && i < count; i++)
		rc = flush_recording(paths[i], &each, write_tables, out, err);
	free(paths);
	return rc;
}

int lake_add(const char *path, const struct lake_options *options, struct lake_result *out,
	     struct kymo_error *err)
{
	if (store_kind(path, NULL) == STORE_JOB)
		return add_job(path, options, out, err);
	return flush_recording(path, options, write_tables, out, err);
}
