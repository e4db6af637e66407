#include "cmds/http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cmds/cmds.h"
#include "serve/access/local_socket.h"
#include "serve/json_read.h"
#include "base/files/atomic_file.h"
#include "views/term/text.h"

#define SECONDS 330 /* a little more than the limit of a query */
#define CONNECT_SECONDS 10
#define ANSWER_BYTES (UINT64_C(2) << 30)

/* ---- addresses ------------------------------------------------------------------------------ */

/* The start of the port; NULL: not an address. */
static const char *find_port(const char *target)
{
	size_t host = strcspn(target, "/");
	const char *colon = memrchr(target, ':', host);
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	return colon && colon > target && digits && digits < 6 &&
			       colon + 1 + digits == target + host
		       ? colon + 1
		       : NULL;
}

bool http_client_is(const char *target)
{
	return target && find_port(target) && access(target, F_OK);
}

const char *http_client_name(const char *target)
{
	const char *slash = strchr(target, '/');

	return slash ? slash + 1 : "";
}

void http_client_add(struct buf *path, const char *key, const char *value)
{
	buf_print(path, "%c%s=", memchr(buf_get(path), '?', path->used) ? '&' : '?', key);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (strchr("-_.~", c) || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
		    (c >= 'a' && c <= 'z'))
			buf_char(path, (char)c);
		else
			buf_print(path, "%%%02X", c);
	}
}

/* ---- the connection ------------------------------------------------------------------------- */

struct connection {
	int fd;
	char host[96]; /* for the Host header */
	bool local; /* through the server's Unix socket, which needs no token */
};

static void limit_waiting(int fd, int send_seconds)
{
	struct timeval soon = { .tv_sec = send_seconds }, later = { .tv_sec = SECONDS };

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &later, sizeof(later));
}

static int connect_one(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	limit_waiting(fd, CONNECT_SECONDS);
	if (!connect(fd, info->ai_addr, info->ai_addrlen))
		return fd;
	close(fd);
	return -(errno == EINPROGRESS ? ETIMEDOUT : errno);
}

static bool is_on_loopback(const struct addrinfo *info)
{
	const struct sockaddr_in *four = (const void *)info->ai_addr;
	const struct sockaddr_in6 *six = (const void *)info->ai_addr;

	return info->ai_family == AF_INET
		       ? ntohl(four->sin_addr.s_addr) >> 24 == 127
		       : info->ai_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* Host is the numeric address: the server refuses unknown names, which could be DNS rebinding. */
static void name_host(const struct addrinfo *info, const char *port, struct connection *out)
{
	char numeric[64];

	if (!getnameinfo(info->ai_addr, info->ai_addrlen, numeric, sizeof(numeric), NULL, 0,
			 NI_NUMERICHOST))
		snprintf(out->host, sizeof(out->host), strchr(numeric, ':') ? "[%s]:%s" : "%s:%s",
			 numeric, port);
}

/* A server of this user on loopback has a Unix socket. Another user may listen on the port. */
static bool connect_locally(const struct addrinfo *list, const char *port, struct connection *out)
{
	for (; list && !out->local; list = list->ai_next) {
		if (!is_on_loopback(list))
			continue;
		name_host(list, port, out);
		out->fd = local_socket_connect(out->host);
		out->local = out->fd >= 0;
	}
	if (out->local)
		limit_waiting(out->fd, CONNECT_SECONDS);
	return out->local;
}

static void connect_to_port(const struct addrinfo *list, const char *port, struct connection *out)
{
	out->fd = -EHOSTUNREACH;
	for (; list && out->fd < 0; list = list->ai_next) {
		out->fd = connect_one(list);
		name_host(list, port, out);
	}
}

static int open_connection(const char *target, struct connection *out, struct kymo_error *err)
{
	const char *port = find_port(target);
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	char host[256], number[8];
	int rc;

	*out = (struct connection){ .fd = -1 };
	snprintf(host, sizeof(host), "%.*s", (int)(port - target - 1), target);
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		memmove(host, host + 1, strlen(host));
		host[strlen(host) - 1] = '\0';
	}
	snprintf(number, sizeof(number), "%.*s", (int)strspn(port, "0123456789"), port);
	rc = getaddrinfo(host, number, &hints, &list);
	if (rc)
		return error_set(err, EHOSTUNREACH, "cannot resolve %s: %s", host,
				 gai_strerror(rc));
	if (!connect_locally(list, number, out))
		connect_to_port(list, number, out);
	freeaddrinfo(list);
	if (out->fd < 0)
		return error_set(err, -out->fd,
				 "cannot connect to kymo serve at %s:%s: %s; check that it is "
				 "running and listens on that address (--listen)",
				 host, number, strerror(-out->fd));
	return 0;
}

static void add_request(struct buf *out, const char *path, const struct connection *connection,
			const struct buf *body)
{
	const char *token = connection->local ? NULL : getenv("KYMO_TOKEN");

	/* In HTTP/1.0 the response ends with the connection. */
	buf_print(out, "%s %s HTTP/1.0\r\nHost: %s\r\n", body ? "POST" : "GET", path,
		  connection->host);
	if (token && *token && !token[strcspn(token, "\r\n")])
		buf_print(out, "Authorization: Bearer %s\r\n", token);
	if (body)
		buf_print(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			  body->used);
	buf_text(out, "\r\n");
	if (body)
		buf_add(out, body->data, body->used);
}

static int send_all(int fd, const struct buf *request)
{
	size_t at = 0;

	while (at < request->used) {
		ssize_t sent = send(fd, request->data + at, request->used - at, MSG_NOSIGNAL);

		if (sent <= 0)
			return -errno;
		at += (size_t)sent;
	}
	return 0;
}

static int receive_all(int fd, struct buf *out)
{
	char bytes[65536];
	ssize_t got;

	while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0 && out->used < ANSWER_BYTES)
		buf_add(out, bytes, (size_t)got);
	return got < 0 ? -errno : out->failed || got > 0 ? -ENOMEM : 0;
}

/* ---- the answer ----------------------------------------------------------------------------- */

/* Takes the message of the server. */
static int take_error(const char *body, size_t bytes, int status, struct kymo_error *err)
{
	struct json_read json;
	const char *error, *hint;

	if (json_read_object(body, bytes, &json))
		return error_set(err, EPROTO,
				 "unexpected response with status %d; is it a kymo serve?", status);
	error = json_read_get(&json, "error");
	hint = json_read_get(&json, "hint");
	error_set(err, EREMOTEIO, "%s%s%s", error ? error : "the request failed", hint ? "; " : "",
		  hint ? hint : "");
	json_read_fini(&json);
	return -EREMOTEIO;
}

static int take_answer(const struct buf *all, struct buf *out, struct kymo_error *err)
{
	const char *text = buf_get(all), *body = strstr(text, "\r\n\r\n"), *length;
	int status = 0;
	size_t bytes;

	if (!body || sscanf(text, "HTTP/1.%*1d %3d", &status) != 1)
		return error_set(err, EPROTO, "the response is not HTTP; is it a kymo serve?");
	body += 4;
	bytes = all->used - (size_t)(body - text);
	length = strcasestr(text, "\r\nContent-Length: ");
	if (length && length < body && strtoull(length + 18, NULL, 10) != bytes)
		return error_set(err, EPROTO,
				 "the connection closed before the end of the response");
	if (status >= 300)
		return take_error(body, bytes, status, err);
	buf_add(out, body, bytes);
	return out->failed ? error_set(err, ENOMEM, "out of memory for the response") : 0;
}

int http_client_ask(const char *target, const char *path, const struct buf *body, struct buf *out,
		    struct kymo_error *err)
{
	struct buf request = { 0 }, all = { 0 };
	struct connection connection;
	int rc = open_connection(target, &connection, err);

	if (rc)
		return rc;
	add_request(&request, path, &connection, body);
	rc = request.failed ? -ENOMEM : send_all(connection.fd, &request);
	if (!rc)
		rc = receive_all(connection.fd, &all);
	close(connection.fd);
	if (rc)
		error_set(err, -rc, "cannot read from %s: %s", target, strerror(-rc));
	else
		rc = take_answer(&all, out, err);
	buf_fini(&request);
	buf_fini(&all);
	return rc;
}

static int http_client_write_out(const struct buf *answer, const char *file, bool force,
				 struct kymo_error *err)
{
	struct atomic_file output;
	int rc;

	/* A server on another machine cannot drive the terminal. */
	if (!file && isatty(STDOUT_FILENO)) {
		text_lines(stdout, buf_get(answer), answer->used);
		return 0;
	}
	if (!file) {
		/* not foreign: not a terminal */
		fwrite(buf_get(answer), 1, answer->used, stdout);
		return 0; /* cmds_finish() reports errors */
	}
	rc = atomic_file_open(&output, file, force, err);
	if (rc)
		return rc;
	fwrite(buf_get(answer), 1, answer->used, output.file); /* not foreign: a file */
	return atomic_file_commit(&output, err);
}

int http_client_print(const char *command, const char *target, const char *path,
		      const struct buf *body, const char *file, bool force)
{
	struct buf answer = { 0 }, whole = { 0 };
	struct kymo_error err = { 0 };
	int rc = file ? atomic_file_check(file, force, &err) : 0;

	buf_text(&whole, path);
	if (!body && *http_client_name(target))
		http_client_add(&whole, "target", http_client_name(target));
	if (!rc)
		rc = http_client_ask(target, buf_get(&whole), body, &answer, &err);
	if (!rc)
		rc = http_client_write_out(&answer, file, force, &err);
	buf_fini(&answer);
	buf_fini(&whole);
	return rc ? cmds_fail(command, &err) : cmds_finish(command);
}
