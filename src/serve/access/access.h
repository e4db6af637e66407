#ifndef KYMO_SERVE_ACCESS_ACCESS_H
#define KYMO_SERVE_ACCESS_ACCESS_H

#include "serve/serve_inside.h"

struct peer;

/* What access depends on. Members that the request lacks are NULL. */
struct access {
	const char *host, *origin, *site, *authorization, *cookie, *content_type;
	const char *link_token; /* ?token= of the page */
	bool post;
	struct peer *peer;
};

/* 0, or the HTTP status of a refusal, with the answer filled in. */
unsigned access_check(struct request *request, const struct access *access);
void access_cookie_name(const struct serve *serve, char *out, size_t out_bytes);

/* The headers that state where a request ends and whom it is for; starts as zeros. */
struct access_form {
	unsigned hosts, lengths;
	bool chunked, odd;
};

void access_see_header(struct access_form *form, const char *name, size_t name_bytes,
		       const char *value);
/* True for a request that a proxy could divide or address differently. It is refused, and its
   connection closed. */
bool access_form_is_odd(const struct access_form *form, const char *url, const char *version);

#endif
