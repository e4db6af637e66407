/* What joins zones of different tracks, as rows in JSON. */
#include <errno.h>

#include "serve/children/child.h"
#include "serve_sql.h"
#include "tables/sql_fill.h"
#include "views/query/output.h"

#define JOINS_MOST 2000 /* rows; more lines are not a picture */
#define SLACK_NS 1000

static const char *const joins[] = { [QUESTION_PARTNERS] = sql_joins_partners,
				     [QUESTION_COLLECTIVES] = sql_joins_collectives,
				     [QUESTION_LAUNCHES] = sql_joins_launches,
				     [QUESTION_LAUNCHED] = sql_joins_launched,
				     [QUESTION_LINKS] = sql_joins_links };

static void joins_sql(const struct question *question, struct buf *out)
{
	struct buf ranks = { 0 }, pid = { 0 };

	rank_set_sql(&question->ranks, "rank", &ranks);
	if (question->pid < 0)
		buf_text(&pid, "true");
	else
		buf_print(&pid, "pid = %lld", (long long)question->pid);
	sql_fill(out, joins[question->joins],
		 (struct sql_value[]){ { "from", .number = question->from_ns },
				       { "to", .number = question->to_ns },
				       { "thread", .number = question->thread },
				       { "slack", .number = SLACK_NS },
				       { "limit", .number = JOINS_MOST },
				       { "ranks", .text = buf_get(&ranks) },
				       { "pid", .text = buf_get(&pid) },
				       { NULL } });
	out->failed |= ranks.failed || pid.failed;
	buf_fini(&ranks);
	buf_fini(&pid);
}

int child_joins(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err)
{
	struct output_options options = { .limit = UINT64_MAX };
	struct output_count count = { 0 };
	struct tables_result *result = NULL;
	struct buf filled = { 0 };
	int rc;

	(void)sql;
	joins_sql(question, &filled);
	rc = filled.failed || question->joins >= QUESTION_JOINS_KINDS
		     ? error_set(err, ENOMEM, "out of memory for the query")
		     : tables_query(tables, buf_get(&filled), &result, err);
	if (!rc) {
		fputs("{\"rows\":", out);
		rc = output_json_write(result, &options, out, &count, err);
		fprintf(out, ",\"most\":%d}\n", JOINS_MOST);
	}
	tables_result_close(result);
	buf_fini(&filled);
	return rc;
}
