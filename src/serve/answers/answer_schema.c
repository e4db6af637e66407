/* Tables and columns, with their descriptions. */
#include "serve/children/children.h"
#include "serve/serve_inside.h"

void answer_schema(struct request *request)
{
	struct children_ask ask = { .question = { .kind = QUESTION_SCHEMA,
						  .timeout_ms = 20000,
						  .answer_bytes = UINT64_C(64) << 20,
						  .background = true } };
	struct target *target = request_target(request);
	struct kymo_error err = { 0 };
	int rc = target ? target_ask(target, &ask, &err) : 0;

	if (rc)
		answer_failed(request, rc, &err);
	else if (target)
		request->fd = ask.fd;
}
