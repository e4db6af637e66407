/* Source files that a recording names. A child reads them: it looks the name up in the recording,
   so that a client cannot choose a path. */
#include "serve/children/children.h"
#include "serve/serve_inside.h"

void answer_source(struct request *request)
{
	struct children_ask ask = { .question = { .kind = QUESTION_SOURCE,
						  .timeout_ms = 60000,
						  .answer_bytes = UINT64_C(64) << 20,
						  .background = true } };
	struct target *target = request_target(request);
	struct kymo_error err = { 0 };
	int rc;

	if (!target)
		return;
	if (!rank_set_read(&ask.question.ranks, request_get(request, "ranks"))) {
		answer_error(request, 400, "ranks=0,3,8-15", "ranks is not a list of ranks");
		return;
	}
	ask.sql = request_get(request, "file");
	rc = target_ask(target, &ask, &err);
	if (rc)
		answer_failed(request, rc, &err);
	else
		request->fd = ask.fd;
}
