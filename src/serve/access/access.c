/*
 * Access control. Refused are requests whose end or host two programs could read differently, pages
 * of other sites (by Host and Origin: DNS rebinding, forged POSTs), and every client that has no
 * token and is not identified by the kernel as the user of the server.
 */
#include "serve/access/access.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "serve/access/peers.h"
#include "serve/access/token.h"

/* ---- the token ------------------------------------------------------------------------------ */

void access_cookie_name(const struct serve *serve, char *out, size_t out_bytes)
{
	/* With the port, because browsers send cookies to all ports of a host. */
	snprintf(out, out_bytes, "kymo-session-%u", serve->address.port);
}

/* Any cookie of that name: a page on another port can add one. */
static bool has_cookie(const struct serve *serve, const struct access *access)
{
	const char *secret = access->cookie ? token_session(access->peer->uid) : NULL;
	char name[32];
	bool right = false;
	size_t bytes;

	access_cookie_name(serve, name, sizeof(name));
	bytes = strlen(name);
	for (const char *at = access->cookie; secret && at && *at; at = strchr(at, ';')) {
		at += strspn(at, "; ");
		if (!strncmp(at, name, bytes) && at[bytes] == '=')
			right |= token_equals(secret, at + bytes + 1,
					      strcspn(at + bytes + 1, "; "));
	}
	return right;
}

static bool has_token(const struct serve *serve, const struct access *access)
{
	const char *token = serve->address.token, *given = access->authorization;

	if (given && !strncasecmp(given, "Bearer ", 7) &&
	    token_equals(token, given + 7, strlen(given + 7)))
		return true;
	if (access->link_token &&
	    token_equals(token, access->link_token, strlen(access->link_token)))
		return true;
	return has_cookie(serve, access);
}

/* ---- Host and Origin ------------------------------------------------------------------------ */

/* The name in "name", "name:port" or "[v6]:port"; false: none of these. */
static bool host_name(const char *host, char *out, size_t out_bytes)
{
	const char *end = host[0] == '[' ? strchr(host, ']') : strchrnul(host, ':');
	size_t bytes;

	if (!end)
		return false;
	end += *end == ']';
	bytes = (size_t)(end - host);
	if (!bytes || bytes >= out_bytes || (*end && *end != ':') ||
	    (*end && end[1 + strspn(end + 1, "0123456789")]))
		return false;
	memcpy(out, host, bytes);
	out[bytes] = '\0';
	return true;
}

static bool in_list(const char *list, const char *name)
{
	size_t bytes = strlen(name);

	for (; list && *list; list += strcspn(list, ",")) {
		list += strspn(list, ", ");
		if (!strncasecmp(list, name, bytes) && (!list[bytes] || list[bytes] == ','))
			return true;
	}
	return false;
}

static bool is_address(const char *name)
{
	unsigned char bytes[16];
	char inner[64];

	if (inet_pton(AF_INET, name, bytes) == 1)
		return true;
	snprintf(inner, sizeof(inner), "%.*s", (int)strcspn(name + 1, "]"), name + 1);
	return name[0] == '[' && inet_pton(AF_INET6, inner, bytes) == 1;
}

static bool is_our_host(const struct serve *serve, const char *host)
{
	char name[256], own[256] = "";

	if (!host || !host_name(host, name, sizeof(name)))
		return false;
	if (in_list("localhost,127.0.0.1,[::1]", name) || in_list(serve->options.hosts, name))
		return true;
	if (serve->loopback)
		return false;
	gethostname(own, sizeof(own) - 1);
	/* Only names can be made to resolve to this machine; addresses are safe. */
	return is_address(name) || !strcasecmp(own, name);
}

static bool is_our_origin(const struct access *access)
{
	const char *origin = access->origin;

	if (!origin)
		return true;
	if (!strncmp(origin, "http://", 7))
		return !strcasecmp(origin + 7, access->host);
	return !strncmp(origin, "https://", 8) && !strcasecmp(origin + 8, access->host);
}

static bool is_our_site(const struct access *access)
{
	return !access->site || !strcmp(access->site, "same-origin") ||
	       !strcmp(access->site, "none");
}

/* ---- the client ----------------------------------------------------------------------------- */

/* The user of the server needs no token, unless one was asked for; on the Unix socket never, since
   a program of that user could read the token anyway. */
static bool is_owner(const struct serve *serve, const struct peer *peer)
{
	return peer->kind == PEER_OWNER && (peer->by_socket || !serve->address.token_required);
}

static unsigned access_refuse(struct request *request, unsigned status, const char *hint,
			      const char *sentence)
{
	answer_error(request, status, hint, "%s", sentence);
	return status;
}

static unsigned refuse_peer(struct request *request, const struct access *access)
{
	static const char hint[] = "use the link printed by kymo serve, or send its token: "
				   "Authorization: Bearer TOKEN (commands: set KYMO_TOKEN)";
	bool silent = !access->authorization && !access->link_token;

	if (silent && access->peer->kind == PEER_OTHER)
		return access_refuse(request, 403, hint, "this server belongs to another user");
	if (silent && access->peer->kind == PEER_UNKNOWN)
		return access_refuse(request, 401, hint,
				     "the kernel does not identify the user of this connection, "
				     "and there is no token");
	return access_refuse(request, 401, hint, "the token is missing or wrong");
}

/* ---- all of it ------------------------------------------------------------------------------ */

unsigned access_check(struct request *request, const struct access *access)
{
	const struct serve *serve = request->serve;
	bool has = has_token(serve, access);

	if (!is_our_host(serve, access->host))
		return access_refuse(
			request, 403,
			"use the address printed by kymo serve, or start it with --host NAME",
			"the Host header is not a name of this machine");
	/* The link may be in a mail or a file. */
	if (!(has && access->link_token && !access->post) &&
	    (!is_our_origin(access) || !is_our_site(access)))
		return access_refuse(request, 403, NULL,
				     "requests from pages of other sites are refused");
	if (!has && !is_owner(serve, access->peer))
		return refuse_peer(request, access);
	if (has)
		peers_trust(access->peer);
	if (access->post &&
	    (!access->content_type || strncasecmp(access->content_type, "application/json", 16)))
		return access_refuse(request, 415, "Content-Type: application/json",
				     "the body of a POST must be JSON");
	return 0;
}

/* ---- the form of a request ------------------------------------------------------------------ */

static bool is_plain_name(const char *name, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!isalnum((unsigned char)name[i]) && !memchr("!#$%&'*+-.^_`|~", name[i], 15))
			return false;
	return bytes > 0;
}

/* libmicrohttpd 0.9.75 appends a folded line to the name of its header, not to the value: "Host: a"
   and " b" become "Hostb: a". A longer name that begins with this one is therefore suspect. */
static bool is_header(struct access_form *form, const char *name, const char *wanted)
{
	size_t bytes = strlen(wanted);

	if (strncasecmp(name, wanted, bytes) != 0)
		return false;
	form->odd |= name[bytes] != '\0';
	return true;
}

void access_see_header(struct access_form *form, const char *name, size_t name_bytes,
		       const char *value)
{
	bool chunked = false, framing = false;

	if (!is_plain_name(name, name_bytes))
		form->odd = true;
	else if (is_header(form, name, "Host"))
		form->odd |= form->hosts++ > 0;
	else if (is_header(form, name, "Transfer-Encoding"))
		framing = chunked = true;
	else
		framing = is_header(form, name, "Content-Length");
	form->chunked |= chunked;
	form->odd |= chunked && (!value || strcasecmp(value, "chunked") != 0);
	/* Two statements of the length, even if they agree. */
	form->odd |= framing && form->lengths++ > 0;
}

bool access_form_is_odd(const struct access_form *form, const char *url, const char *version)
{
	return form->odd || url[0] != '/' || (form->chunked && strcmp(version, "HTTP/1.1") != 0);
}
