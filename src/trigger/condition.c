#include "trigger/condition.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tables/self_limits.h"
#include "tables/tables.h"
#include "views/query/json.h"

#define MEMORY_BYTES (UINT64_C(256) << 20)
#define TIMEOUT_MS 10000
#define GRACE_MS 2000
#define ROWS_SHOWN 20
#define ROWS_READ 100000
#define ROWS_BYTES (64u << 10)
#define ASK_STEP UINT32_MAX

struct question {
	uint32_t trigger; /* ASK_STEP: the highest step */
	uint32_t refresh;
};

struct reply {
	uint64_t new_rows, cpu_ns;
	double step;
	uint32_t text_bytes; /* that follow: rows, or the problem */
	uint32_t failed;
};

/* ---- rows ------------------------------------------------------------------------------------ */

static uint64_t condition_hash(const char *bytes, size_t count)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
	return hash ? hash : 1;
}

/* True: it was not there. When the memory is three quarters full, all is forgotten but this one. */
static bool condition_remember(struct condition_seen *seen, uint64_t hash)
{
	size_t at = hash % CONDITION_SEEN;

	if (seen->count > CONDITION_SEEN / 4 * 3) {
		memset(seen->rows, 0, sizeof(seen->rows));
		seen->count = 0;
	}
	for (; seen->rows[at]; at = (at + 1) % CONDITION_SEEN)
		if (seen->rows[at] == hash)
			return false;
	seen->rows[at] = hash;
	seen->count++;
	return true;
}

static void add_cell(struct buf *out, const struct tables_cell *cell)
{
	switch (cell->kind) {
	case TABLES_NULL: buf_text(out, "null"); break;
	case TABLES_BOOL: buf_text(out, cell->integer ? "true" : "false"); break;
	case TABLES_INTEGER: buf_print(out, "%lld", (long long)cell->integer); break;
	case TABLES_UNSIGNED:
		buf_print(out, "%llu", (unsigned long long)cell->unsigned_integer);
		break;
	case TABLES_DOUBLE:
		/* JSON has no NaN */
		if (cell->real - cell->real == 0)
			buf_print(out, "%.17g", cell->real);
		else
			buf_text(out, cell->real != cell->real ? "\"nan\"" : "\"inf\"");
		break;
	case TABLES_JSON: buf_add(out, cell->text, cell->text_bytes); break;
	default: json_text(out, cell->text, cell->text_bytes); break;
	}
}

static void condition_add_row(struct buf *out, struct tables_result *result, size_t row)
{
	struct tables_cell cell;

	for (size_t i = 0; i < tables_column_count(result); i++) {
		const char *name = tables_column_name(result, i);

		buf_char(out, i ? ',' : '{');
		json_text(out, name, strlen(name));
		buf_char(out, ':');
		tables_cell(result, i, row, &cell);
		add_cell(out, &cell);
	}
	buf_text(out, "}\n");
}

/* Measured values wobble: the clock's rate gets better known, and a median moves. They do not tell
   rows apart where another column does. */
static bool is_measured(const struct tables_result *result, size_t column)
{
	const char *name = tables_column_name(result, column);
	size_t length = strlen(name);

	return (length > 3 && !strcmp(name + length - 3, "_ns")) ||
	       !strcmp(tables_column_type(result, column), "DOUBLE");
}

/* What makes a row the same one. Times alone are compared by the millisecond. */
static uint64_t row_identity(struct tables_result *result, size_t row)
{
	struct buf key = { 0 };
	struct tables_cell cell;
	bool others = false;
	uint64_t hash;

	for (size_t i = 0; i < tables_column_count(result); i++)
		others |= !is_measured(result, i);
	for (size_t i = 0; i < tables_column_count(result); i++) {
		if (others && is_measured(result, i))
			continue;
		tables_cell(result, i, row, &cell);
		if (!others && cell.kind == TABLES_INTEGER)
			cell.integer /= 1000000;
		if (!others && cell.kind == TABLES_DOUBLE)
			cell.real = (double)(int64_t)(cell.real / 1e6);
		add_cell(&key, &cell);
		buf_char(&key, '\n');
	}
	hash = condition_hash(buf_get(&key), key.used);
	buf_fini(&key);
	return hash;
}

static void condition_take_rows(struct tables_result *result, size_t count,
				struct condition_seen *seen, struct reply *reply, struct buf *shown)
{
	struct buf line = { 0 };

	for (size_t i = 0; i < count; i++) {
		if (!condition_remember(seen, row_identity(result, i)) ||
		    reply->new_rows++ >= ROWS_SHOWN)
			continue;
		buf_reset(&line);
		condition_add_row(&line, result, i);
		if (shown->used + line.used < ROWS_BYTES)
			buf_add(shown, buf_get(&line), line.used);
	}
	buf_fini(&line);
}

/* ---- the child ------------------------------------------------------------------------------- */

static int condition_take_all(struct tables *tables, const char *sql, struct condition_seen *seen,
			      struct reply *reply, struct buf *shown, struct kymo_error *err)
{
	struct tables_result *result;
	uint64_t read = 0;
	int64_t got;
	int rc = tables_query(tables, sql, &result, err);

	if (rc)
		return rc;
	while ((got = tables_next(result, err)) > 0 && read < ROWS_READ) {
		condition_take_rows(result, (size_t)got, seen, reply, shown);
		read += (uint64_t)got;
	}
	tables_result_close(result);
	return got < 0 ? (int)got : 0;
}

static int condition_look_again(struct tables **tables, const char *path, struct kymo_error *err)
{
	const struct tables_options options = { .memory_limit_bytes = MEMORY_BYTES,
						.timeout_ms = TIMEOUT_MS,
						.threads = 1 };
	int rc = *tables ? tables_refresh(*tables, err) : -ESTALE;

	if (rc != -ESTALE)
		return rc;
	tables_close(*tables);
	*tables = NULL;
	return tables_open(path, &options, tables, err);
}

static uint64_t cpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void answer_question(struct conditions *conditions, struct tables **tables,
			    const struct question *question, struct reply *reply, struct buf *shown)
{
	struct kymo_error err = { 0 };
	uint64_t before_ns = cpu_now();
	int rc = question->refresh || !*tables
			 ? condition_look_again(tables, conditions->path, &err)
			 : 0;

	reply->step = -1;
	if (!rc && question->trigger == ASK_STEP)
		reply->step = tables_number(*tables, "SELECT max(step) FROM trace.steps", -1);
	else if (!rc && question->trigger < conditions->set->count)
		rc = condition_take_all(*tables, conditions->set->triggers[question->trigger].sql,
					&conditions->seen[question->trigger], reply, shown, &err);
	if (rc) {
		reply->failed = 1;
		buf_reset(shown);
		buf_text(shown, err.text);
	}
	reply->cpu_ns = cpu_now() - before_ns;
	reply->text_bytes = (uint32_t)shown->used;
}

static void serve_parent(struct conditions *conditions, int fd)
{
	struct tables *tables = NULL;
	struct question question;

	while (read(fd, &question, sizeof(question)) == (ssize_t)sizeof(question)) {
		struct reply reply = { 0 };
		struct buf shown = { 0 };

		answer_question(conditions, &tables, &question, &reply, &shown);
		if (write(fd, &reply, sizeof(reply)) != (ssize_t)sizeof(reply) ||
		    (shown.used && write(fd, shown.data, shown.used) != (ssize_t)shown.used))
			_exit(1);
		buf_fini(&shown);
	}
	_exit(0);
}

static bool start_child(struct conditions *conditions)
{
	pid_t parent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	conditions->child = fork();
	if (!conditions->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(ends[0]);
		setpriority(PRIO_PROCESS, 0, 19);
		self_limits_arm();
		serve_parent(conditions, ends[1]);
	}
	close(ends[1]);
	conditions->fd = ends[0];
	if (conditions->child > 0)
		return true;
	close(ends[0]);
	conditions->child = 0;
	return false;
}

static void condition_end_child(struct conditions *conditions)
{
	if (!conditions->child)
		return;
	kill(conditions->child, SIGKILL);
	while (waitpid(conditions->child, NULL, 0) < 0 && errno == EINTR)
		;
	close(conditions->fd);
	conditions->child = 0;
}

/* ---- the parent ------------------------------------------------------------------------------ */

int conditions_init(struct conditions *conditions, const char *path, const struct trigger_set *set)
{
	memset(conditions, 0, sizeof(*conditions));
	snprintf(conditions->path, sizeof(conditions->path), "%s", path);
	conditions->set = set;
	conditions->seen = mmap(NULL, TRIGGER_MOST * sizeof(*conditions->seen),
				PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (conditions->seen == MAP_FAILED) {
		conditions->seen = NULL;
		return -ENOMEM;
	}
	conditions_restart(conditions, path);
	return 0;
}

void conditions_fini(struct conditions *conditions)
{
	condition_end_child(conditions);
	if (conditions->seen)
		munmap(conditions->seen, TRIGGER_MOST * sizeof(*conditions->seen));
}

void conditions_restart(struct conditions *conditions, const char *path)
{
	condition_end_child(conditions);
	if (path != conditions->path)
		snprintf(conditions->path, sizeof(conditions->path), "%s", path);
	for (size_t i = 0; i < conditions->set->count; i++) {
		const struct trigger *trigger = &conditions->set->triggers[i];
		struct condition_seen *seen = &conditions->seen[i];
		uint64_t hash = condition_hash(trigger->sql, strlen(trigger->sql)) ^
				condition_hash(trigger->name, strlen(trigger->name));

		if (seen->sql_hash == hash)
			continue;
		memset(seen, 0, sizeof(*seen));
		seen->sql_hash = hash;
	}
}

/* Within the time of a query and some more; false: the child has ended or does not answer. */
static bool read_all(int fd, void *out, size_t bytes)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	size_t done = 0;

	while (done < bytes) {
		ssize_t got;

		if (poll(&wait, 1, TIMEOUT_MS + GRACE_MS) <= 0)
			return false;
		got = read(fd, (char *)out + done, bytes - done);
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

static bool ask(struct conditions *conditions, const struct question *question, struct reply *reply,
		struct buf *text)
{
	char part[4096];

	if (!conditions->child && !start_child(conditions))
		return false;
	if (send(conditions->fd, question, sizeof(*question), MSG_NOSIGNAL) !=
		    (ssize_t)sizeof(*question) ||
	    !read_all(conditions->fd, reply, sizeof(*reply)))
		goto failed;
	if (reply->text_bytes > 2 * ROWS_BYTES)
		goto failed;
	for (uint32_t left = reply->text_bytes; left;) {
		uint32_t size = left < sizeof(part) ? left : (uint32_t)sizeof(part);

		if (!read_all(conditions->fd, part, size))
			goto failed;
		buf_add(text, part, size);
		left -= size;
	}
	return true;
failed:
	condition_end_child(conditions);
	return false;
}

void condition_ask(struct conditions *conditions, size_t i, bool refresh,
		   struct condition_answer *answer)
{
	const struct question question = { (uint32_t)i, refresh };
	struct reply reply = { 0 };

	memset(answer, 0, sizeof(*answer));
	if (!ask(conditions, &question, &reply, &answer->rows)) {
		buf_reset(&answer->rows);
		snprintf(answer->problem, sizeof(answer->problem),
			 "the query crashed, exceeded its memory or took more than %d s",
			 TIMEOUT_MS / 1000);
		return;
	}
	answer->new_rows = reply.new_rows;
	answer->cpu_ns = reply.cpu_ns;
	if (!reply.failed)
		return;
	snprintf(answer->problem, sizeof(answer->problem), "%s", buf_get(&answer->rows));
	buf_reset(&answer->rows);
}

double condition_step(struct conditions *conditions)
{
	const struct question question = { ASK_STEP, 1 };
	struct reply reply = { 0 };
	struct buf text = { 0 };
	bool known = ask(conditions, &question, &reply, &text);

	buf_fini(&text);
	return known ? reply.step : -1;
}

int condition_check(const char *path, const char *sql, struct kymo_error *err)
{
	const struct tables_options options = { .memory_limit_bytes = MEMORY_BYTES,
						.timeout_ms = TIMEOUT_MS };
	struct kymo_error why = { 0 };
	struct tables_result *result = NULL;
	struct tables *tables = NULL;
	struct buf explain = { 0 };
	size_t length = strlen(sql);
	int rc = tables_open(path, &options, &tables, err);

	if (rc)
		return rc;
	/* As a part of a SELECT: nothing else passes. A semicolon may end it. */
	while (length && strchr("; \t\r\n", sql[length - 1]))
		length--;
	buf_print(&explain, "EXPLAIN SELECT * FROM (\n%.*s\n)", (int)length, sql);
	rc = tables_query(tables, buf_get(&explain), &result, &why);
	buf_fini(&explain);
	tables_result_close(result);
	tables_close(tables);
	if (!rc || (strstr(why.text, "Table with name") && strstr(why.text, "does not exist")))
		return 0;
	return error_set(err, -rc, "%s", why.text);
}
