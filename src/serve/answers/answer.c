#include "serve/serve_inside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "views/query/json.h"

void answer_error(struct request *request, unsigned status, const char *hint, const char *format,
		  ...)
{
	char sentence[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	buf_fini(&request->answer);
	request->status = status;
	request->type = "application/json";
	request->etag[0] = request->file[0] = '\0';
	buf_text(&request->answer, "{\"error\":");
	json_text(&request->answer, sentence, strlen(sentence));
	buf_text(&request->answer, ",\"hint\":");
	if (hint)
		json_text(&request->answer, hint, strlen(hint));
	else
		buf_text(&request->answer, "null");
	buf_text(&request->answer, "}\n");
}

void answer_failed(struct request *request, int code, const struct kymo_error *err)
{
	static const struct {
		int code;
		unsigned status;
		const char *hint;
	} meanings[] = {
		{ EINVAL, 400, NULL },
		{ EPERM, 403, NULL },
		{ ENOENT, 404, "GET /api/targets lists the targets" },
		{ ESRCH, 404, NULL },
		/* Not 408: browsers repeat the request on a reused connection without end. */
		{ ETIMEDOUT, 504, "select less, or raise timeout_s" },
		{ ECANCELED, 504, NULL },
		{ ENOMEM, 413, "select less: WHERE, LIMIT, fewer columns" },
		{ EAGAIN, 503, "try again later" },
		{ EFBIG, 413, "select less: WHERE, LIMIT, fewer columns" },
	};

	code = code < 0 ? -code : code;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].code == code) {
			answer_error(request, meanings[i].status, meanings[i].hint, "%s",
				     err->text);
			return;
		}
	answer_error(request, 500, NULL, "%s", err->text[0] ? err->text : strerror(code));
}

const char *request_get(const struct request *request, const char *key)
{
	for (size_t i = 0; i < request->parameter_count; i++)
		if (!strcmp(request->keys[i], key))
			return request->values[i];
	return NULL;
}

bool request_number(struct request *request, const char *key, int64_t fallback, int64_t *out)
{
	const char *text = request_get(request, key);
	char *end;

	*out = fallback;
	if (!text || !*text)
		return true;
	errno = 0;
	*out = strtoll(text, &end, 10);
	if (!errno && end != text && !*end)
		return true;
	answer_error(request, 400, "numbers are decimal integers", "%s=%.80s is not a number", key,
		     text);
	return false;
}

struct target *request_target(struct request *request)
{
	const char *name = request_get(request, "target");
	struct target *target = targets_find(&request->serve->targets, name);

	if (!target && (!name || !*name))
		answer_error(request, 404, "record one with kymo run -- PROGRAM",
			     "there are no recordings yet");
	else if (!target)
		answer_error(request, 404, "GET /api/targets lists the targets",
			     "no such target: %.80s", name);
	else if (target->entry.unreadable[0]) {
		answer_error(request, 404, NULL, "%s cannot be read: %s", target->entry.path,
			     target->entry.unreadable);
		target = NULL;
	}
	return target;
}
