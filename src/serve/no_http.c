/* serve.h, where microhttpd.h was missing at build time. */
#include "serve/serve.h"

#include <errno.h>

int serve_start(const struct serve_options *options, struct serve_address *out,
		struct kymo_error *err)
{
	(void)options;
	(void)out;
	return error_set(
		err, ENOTSUP,
		"this kymo was built without the viewer: microhttpd.h was missing; run make "
		"setup, which fetches it, then make");
}

void serve_wait(void)
{
}
