/* What joins zones of different tracks: ranks of a collective, launches and their operations. */
#include <errno.h>
#include <string.h>

#include "serve/children/children.h"
#include "serve/serve_inside.h"

static bool read_joins(struct request *request, struct question *out)
{
	static const char *const kinds[] = { "partners", "collectives", "launches", "launched",
					     "links" };
	const char *of = request_get(request, "of");
	size_t kind = 0;

	while (kind < QUESTION_JOINS_KINDS && (!of || strcmp(of, kinds[kind])))
		kind++;
	if (kind == QUESTION_JOINS_KINDS ||
	    !rank_set_read(&out->ranks, request_get(request, "ranks"))) {
		answer_error(request, 400,
			     "of=partners, collectives, launches, launched or links; "
			     "ranks=0,3,8-15",
			     "of or ranks is missing or wrong");
		return false;
	}
	out->joins = (enum question_joins)kind;
	return request_number(request, "from", 0, &out->from_ns) &&
	       request_number(request, "to", INT64_MAX, &out->to_ns) &&
	       request_number(request, "pid", -1, &out->pid) &&
	       request_number(request, "tid", -1, &out->thread);
}

void answer_joins(struct request *request)
{
	struct target *target = request_target(request);
	struct children_ask ask = { .question = { .kind = QUESTION_JOINS,
						  .timeout_ms = 30000,
						  .answer_bytes = UINT64_C(64) << 20,
						  .background = true } };
	struct kymo_error err = { 0 };
	int rc;

	if (!target || !read_joins(request, &ask.question))
		return;
	rc = target_ask(target, &ask, &err);
	if (rc)
		answer_failed(request, rc, &err);
	else
		request->fd = ask.fd;
}
