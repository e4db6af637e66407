/*
 * Access control. Refused are pages of other sites (by Host and Origin: DNS rebinding, forged
 * POSTs), other users of this machine (by the owner of the client's socket on loopback), and
 * clients on other machines without the token.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "serve/serve_inside.h"

/* ---- the token ------------------------------------------------------------------------------ */

int access_make_token(char *out, size_t out_bytes)
{
	unsigned char bytes[24];
	size_t used = 0;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes) && used + 3 <= out_bytes; i++, used += 2)
		snprintf(out + used, 3, "%02x", bytes[i]);
	return 0;
}

/* In constant time. */
static bool is_token(const struct serve *serve, const char *given, size_t bytes)
{
	const char *token = serve->address.token;
	size_t wanted = strlen(token);
	unsigned char wrong = bytes != wanted;

	for (size_t i = 0; i < wanted; i++)
		wrong |= (unsigned char)(token[i] ^ (bytes ? given[i % bytes] : 0));
	return !wrong;
}

static bool has_cookie(const struct serve *serve, const char *cookies)
{
	static const char name[] = "kymo-token=";

	for (const char *at = cookies; at && *at; at = strchr(at, ';')) {
		at += strspn(at, "; ");
		if (!strncmp(at, name, sizeof(name) - 1)) {
			at += sizeof(name) - 1;
			return is_token(serve, at, strcspn(at, "; "));
		}
	}
	return false;
}

static bool has_token(const struct serve *serve, const struct access *access)
{
	if (!serve->address.token[0])
		return true;
	if (access->authorization && !strncasecmp(access->authorization, "Bearer ", 7))
		return is_token(serve, access->authorization + 7,
				strlen(access->authorization + 7));
	if (access->token)
		return is_token(serve, access->token, strlen(access->token));
	return has_cookie(serve, access->cookie);
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

/* ---- the other end's user ------------------------------------------------------------------- */

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 ask;
};

static void fill_address(const struct sockaddr *address, __be32 out[4], __be16 *port)
{
	const struct sockaddr_in *four = (const void *)address;
	const struct sockaddr_in6 *six = (const void *)address;

	if (address->sa_family == AF_INET) {
		out[0] = four->sin_addr.s_addr;
		*port = four->sin_port;
	} else {
		memcpy(out, &six->sin6_addr, 16);
		*port = six->sin6_port;
	}
}

static int64_t access_read_owner(int fd)
{
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} answer;
	ssize_t got = recv(fd, &answer, sizeof(answer), 0);
	const struct inet_diag_msg *message = NLMSG_DATA(&answer.head);

	if (got < (ssize_t)NLMSG_LENGTH(sizeof(*message)) || !NLMSG_OK(&answer.head, (size_t)got) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -1;
	return message->idiag_uid;
}

/* The uid of the socket that is bound to `peer` and connected to `here`, from the kernel. -1:
   unknown. */
static int64_t access_owner_of(const struct sockaddr *peer, const struct sockaddr *here)
{
	struct question question = {
		.head = { .nlmsg_len = sizeof(question),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST },
		.ask = { .sdiag_family = (__u8)peer->sa_family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = ~0u,
			 .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	struct timeval soon = { .tv_usec = 200000 };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int64_t uid = -1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	fill_address(peer, question.ask.id.idiag_src, &question.ask.id.idiag_sport);
	fill_address(here, question.ask.id.idiag_dst, &question.ask.id.idiag_dport);
	if (send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question))
		uid = access_read_owner(fd);
	close(fd);
	return uid;
}

static bool is_loopback(const struct sockaddr *address)
{
	const struct sockaddr_in *four = (const void *)address;
	const struct sockaddr_in6 *six = (const void *)address;

	if (address->sa_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* The server listens on loopback, so the client connected to 127.0.0.1 or ::1 and our port. */
static int64_t owner_at(const struct sockaddr *peer, uint16_t port)
{
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port),
				    .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	return access_owner_of(peer, peer->sa_family == AF_INET ? (struct sockaddr *)&four
								: (struct sockaddr *)&six);
}

bool access_identifies_users(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in mine = { 0 };
	socklen_t bytes = sizeof(mine);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool known = fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
		     !getsockname(fd, (struct sockaddr *)&mine, &bytes) &&
		     owner_at((struct sockaddr *)&mine, port) == (int64_t)geteuid();

	if (fd >= 0)
		close(fd);
	return known;
}

/* Root can read everything anyway. A valid token counts as the user. */
static bool is_our_user(const struct serve *serve, const struct access *access)
{
	int64_t uid;

	if (!serve->loopback || !access->peer || !serve->address.users_known ||
	    serve->address.token[0] || !is_loopback(access->peer))
		return true;
	uid = owner_at(access->peer, serve->address.port);
	return uid < 0 || uid == 0 || uid == (int64_t)geteuid();
}

/* ---- all of it ------------------------------------------------------------------------------ */

static unsigned access_refuse(struct request *request, unsigned status, const char *hint,
			      const char *sentence)
{
	answer_error(request, status, hint, "%s", sentence);
	return status;
}

unsigned access_check(struct request *request, const struct access *access)
{
	const struct serve *serve = request->serve;

	if (!is_our_host(serve, access->host))
		return access_refuse(
			request, 403,
			"use the address printed by kymo serve, or start it with --host NAME",
			"the Host header is not a name of this machine");
	if (!is_our_origin(access) || !is_our_site(access))
		return access_refuse(request, 403, NULL,
				     "requests from pages of other sites are refused");
	if (!is_our_user(serve, access))
		return access_refuse(request, 403,
				     "start kymo serve with KYMO_TOKEN=… and share the token",
				     "this server belongs to another user");
	if (!has_token(serve, access))
		return access_refuse(request, 401,
				     "use the link printed by kymo serve, or set KYMO_TOKEN",
				     "the token is missing or wrong");
	if (access->post &&
	    (!access->content_type || strncasecmp(access->content_type, "application/json", 16)))
		return access_refuse(request, 415, "Content-Type: application/json",
				     "the body of a POST must be JSON");
	return 0;
}
