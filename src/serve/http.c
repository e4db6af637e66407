/* Connections and requests, with libmicrohttpd. */
#include "serve/serve_inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/access/access.h"
#include "serve/access/local_socket.h"
#include "serve/access/peers.h"
#include "serve/access/token.h"
#include "serve/microhttpd.h"

#define CONNECTIONS_MOST 4096
#define LOCAL_CONNECTIONS_MOST 64 /* on the Unix socket */
#define DESCRIPTORS_SPARE 512 /* for recordings, queries and commands */
#define CONNECTIONS_EACH 512 /* of one address, when listening beyond loopback */
#define CONNECTION_BYTES 32768 /* request line and headers; longer ones are refused */
#define IDLE_SECONDS 30
#define IO_THREADS 2
#define PORTS_TRIED 20

static struct serve serve;

/* ---- requests ------------------------------------------------------------------------------- */

static enum MHD_Result add_parameter(void *context, enum MHD_ValueKind kind, const char *key,
				     const char *value)
{
	struct request *request = context;
	size_t at = request->parameter_count;

	(void)kind;
	if (at == SERVE_PARAMETERS || !key)
		return MHD_NO;
	request->keys[at] = strdup(key);
	request->values[at] = strdup(value ? value : "");
	request->parameter_count += request->keys[at] && request->values[at];
	return MHD_YES;
}

static const char *http_header(struct MHD_Connection *connection, const char *name)
{
	return microhttpd.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void free_request(struct request *request)
{
	for (size_t i = 0; i < request->parameter_count; i++) {
		free(request->keys[i]);
		free(request->values[i]);
	}
	buf_fini(&request->body);
	buf_fini(&request->answer);
	if (request->fd >= 0)
		close(request->fd);
	free(request);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode code)
{
	(void)context;
	(void)connection;
	(void)code;
	if (*state)
		free_request(*state);
	*state = NULL;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void add_headers(const struct request *request, struct MHD_Response *response)
{
	static const char *const always[][2] = {
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "X-Frame-Options", "DENY" },
		{ "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src "
					     "'self'; connect-src 'self'; img-src 'self' data:; "
					     "base-uri 'none'; form-action 'none'; frame-ancestors "
					     "'none'; require-trusted-types-for 'script'" },
	};
	char text[160];

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		microhttpd.add_response_header(response, always[i][0], always[i][1]);
	microhttpd.add_response_header(response, "Content-Type", request->type);
	microhttpd.add_response_header(response, "Cache-Control",
				       request->etag[0] ? "no-cache" : "no-store");
	if (request->etag[0])
		microhttpd.add_response_header(response, "ETag", request->etag);
	if (request->asset_gzip)
		microhttpd.add_response_header(response, "Content-Encoding", "gzip");
	if (request->asset)
		microhttpd.add_response_header(response, "Vary", "Accept-Encoding");
	if (request->file[0]) {
		snprintf(text, sizeof(text), "attachment; filename=\"%s\"", request->file);
		microhttpd.add_response_header(response, "Content-Disposition", text);
	}
	if (request->status == 429)
		microhttpd.add_response_header(response, "Retry-After", "1");
	if (request->cookie[0])
		microhttpd.add_response_header(response, "Set-Cookie", request->cookie);
	if (request->location[0])
		microhttpd.add_response_header(response, "Location", request->location);
	if (request->refused)
		microhttpd.add_response_header(response, "Connection", "close");
}

static struct MHD_Response *make_response(struct request *request)
{
	struct MHD_Response *response;
	off_t bytes;

	if (request->fd >= 0) {
		bytes = lseek(request->fd, 0, SEEK_END);
		response = microhttpd.create_response_from_fd(bytes > 0 ? (size_t)bytes : 0,
							      request->fd);
		if (response)
			request->fd = -1; /* closed with it */
		return response;
	}
	if (request->asset)
		return microhttpd.create_response_from_buffer(
			request->asset_bytes, (void *)request->asset, MHD_RESPMEM_PERSISTENT);
	response = microhttpd.create_response_from_buffer(
		request->answer.used, request->answer.data, MHD_RESPMEM_MUST_FREE);
	if (response)
		request->answer = (struct buf){ 0 };
	return response;
}

static enum MHD_Result send_answer(struct request *request)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	if (request->etag[0] && !strcmp(request->etag, request->if_none_match) &&
	    request->status == 200) {
		request->status = 304;
		buf_fini(&request->answer);
		request->asset_bytes = 0;
	}
	response = make_response(request);
	if (!response)
		return MHD_NO;
	add_headers(request, response);
	result = microhttpd.queue_response(request->connection, request->status, response);
	microhttpd.destroy_response(response);
	return result;
}

void http_resume(struct request *request)
{
	request->done = true;
	microhttpd.resume_connection(request->connection);
}

/* ---- one request after another -------------------------------------------------------------- */

/* ---- the client ----------------------------------------------------------------------------- */

static void on_connection(void *context, struct MHD_Connection *connection, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info;

	(void)context;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		peers_leave(*state);
		*state = NULL;
		return;
	}
	info = microhttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	*state = info ? peers_enter(info->connect_fd) : NULL;
}

static struct peer *http_peer(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = microhttpd.get_connection_info(
		connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static enum MHD_Result see_header(void *form, enum MHD_ValueKind kind, const char *name,
				  size_t name_bytes, const char *value, size_t value_bytes)
{
	(void)kind;
	(void)value_bytes;
	access_see_header(form, name, name_bytes, value);
	return MHD_YES;
}

static bool is_odd(struct MHD_Connection *connection, const char *url, const char *version)
{
	struct access_form form = { 0 };

	microhttpd.get_connection_values_n(connection, MHD_HEADER_KIND, see_header, &form);
	return access_form_is_odd(&form, url, version);
}

static void http_read_headers(struct request *request, struct access *access, const char *method)
{
	struct MHD_Connection *connection = request->connection;
	const char *text = http_header(connection, "If-None-Match");

	*access = (struct access){ .host = http_header(connection, "Host"),
				   .origin = http_header(connection, "Origin"),
				   .site = http_header(connection, "Sec-Fetch-Site"),
				   .authorization = http_header(connection, "Authorization"),
				   .cookie = http_header(connection, "Cookie"),
				   .content_type = http_header(connection, "Content-Type"),
				   .post = !strcmp(method, "POST"),
				   .peer = http_peer(connection) };
	snprintf(request->if_none_match, sizeof(request->if_none_match), "%s", text ? text : "");
	text = http_header(connection, "Accept-Encoding");
	request->gzip = text && strstr(text, "gzip");
	text = http_header(connection, "Content-Length");
	request->too_long = text && (strlen(text) > 7 || atol(text) > (long)SERVE_BODY_BYTES);
}

/*
 * A link with the token sets a cookie and leads to the page without it. After a click on another
 * site, or in a file, browsers do not send a SameSite=Strict cookie to the target of a redirect;
 * they do if our own page leads on.
 */
static void welcome(struct request *request, const struct access *access)
{
	const char *secret = token_session(access->peer->uid);
	bool from_elsewhere = access->site && strcmp(access->site, "none") != 0 &&
			      strcmp(access->site, "same-origin") != 0;
	char name[32];

	access_cookie_name(request->serve, name, sizeof(name));
	if (secret)
		snprintf(request->cookie, sizeof(request->cookie),
			 "%s=%s; Path=/; HttpOnly; SameSite=Strict", name, secret);
	if (from_elsewhere) {
		request->type = "text/html; charset=utf-8";
		buf_text(&request->answer,
			 "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=/\">\n");
	} else {
		request->status = 303;
		request->type = "text/plain";
		strcpy(request->location, "/");
		buf_text(&request->answer, "\n");
	}
	request->done = true;
}

static void find_route(struct request *request, const char *url, const char *method)
{
	bool other_method = false;

	request->route = routes_find(url, strcmp(method, "HEAD") ? method : "GET", &other_method);
	if (!request->route && other_method)
		answer_error(request, 405, "docs/api.md lists the methods",
			     "%s does not support %.16s", url, method);
	else if (!request->route)
		answer_error(request, 404, "docs/api.md lists the paths", "no such path: %.80s",
			     url);
	request->done = !request->route;
	if (!request->done && !strncmp(url, "/assets/", 8))
		add_parameter(request, MHD_GET_ARGUMENT_KIND, "asset", url + 8);
}

static struct request *http_begin(struct MHD_Connection *connection, const char *url,
				  const char *method)
{
	struct request *request = calloc(1, sizeof(*request));
	struct access access;

	if (!request)
		return NULL;
	*request = (struct request){ .serve = &serve,
				     .connection = connection,
				     .status = 200,
				     .type = "application/json",
				     .fd = -1 };
	kymo__store_relaxed(&serve.asked_at_ns, target_clock_ns());
	http_read_headers(request, &access, method);
	microhttpd.get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_parameter, request);
	access.link_token = !strcmp(url, "/") ? request_get(request, "token") : NULL;
	if (!access.peer) {
		free_request(request);
		return NULL;
	}
	if (access_check(request, &access))
		request->done = request->refused = true;
	else if (access.link_token)
		welcome(request, &access);
	else
		find_route(request, url, method);
	return request;
}

static enum MHD_Result take_body(struct request *request, const char *data, size_t *bytes)
{
	if (request->body.used + *bytes > SERVE_BODY_BYTES)
		request->too_long = true;
	else if (!request->refused)
		buf_add(&request->body, data, *bytes);
	*bytes = 0;
	return MHD_YES;
}

static enum MHD_Result hand_over(struct request *request)
{
	if (!request->route->answer)
		return events_answer(request) ? MHD_YES : MHD_NO;
	/* Suspended before it is queued, since a worker may resume it at once. */
	microhttpd.suspend_connection(request->connection);
	if (request->route->enter)
		request->route->enter(request);
	if (!workers_add(request)) {
		running_queries_leave(request);
		answer_error(request, 429, "try again later", "too many requests at once");
		http_resume(request);
	}
	return MHD_YES;
}

/* Before its body is read, whose end is not certain. */
static enum MHD_Result refuse_odd(struct request *request)
{
	request->refused = true;
	buf_reset(&request->answer);
	answer_error(
		request, 400, "send one Host, one length and a path",
		"the request is ambiguous: its length or host is given twice, or in a form that "
		"others read differently");
	return send_answer(request);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *bytes, void **state)
{
	struct request *request = *state;

	(void)context;
	if (!request) {
		*state = request = http_begin(connection, url, method);
		if (!request)
			return MHD_NO;
		if (is_odd(connection, url, version))
			return refuse_odd(request);
		if (!request->too_long)
			return MHD_YES;
	}
	if (request->too_long) {
		request->refused = true;
		answer_error(request, 413, "the limit is 1 MiB", "the request is too long");
		return send_answer(request);
	}
	if (*bytes)
		return take_body(request, data, bytes);
	return request->done ? send_answer(request) : hand_over(request);
}

/* ---- listening ------------------------------------------------------------------------------ */

static int bind_to(const struct addrinfo *info, uint16_t port, int *out)
{
	struct sockaddr_storage address;
	int yes = 1, fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	memcpy(&address, info->ai_addr, info->ai_addrlen);
	if (address.ss_family == AF_INET)
		((struct sockaddr_in *)&address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&address)->sin6_port = htons(port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&address, info->ai_addrlen) || listen(fd, 1024))
		rc = -errno;
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc;
}

static bool is_loopback_address(const struct addrinfo *info)
{
	const struct sockaddr_in *four = (const void *)info->ai_addr;
	const struct sockaddr_in6 *six = (const void *)info->ai_addr;

	return info->ai_family == AF_INET ? ntohl(four->sin_addr.s_addr) >> 24 == 127
					  : IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* The requested port, or the next free one. */
static int bind_somewhere(const struct addrinfo *info, int *out, struct kymo_error *err)
{
	uint16_t first = serve.options.port ? serve.options.port : SERVE_PORT;
	int rc = -EADDRINUSE;

	for (unsigned i = 0; i < PORTS_TRIED && rc == -EADDRINUSE && first + i < 65536; i++) {
		serve.address.port = (uint16_t)(first + i);
		serve.address.port_taken = i > 0;
		rc = bind_to(info, serve.address.port, out);
	}
	if (rc)
		return error_set(err, -rc, "cannot listen on %s port %u: %s", serve.address.host,
				 first, strerror(-rc));
	return 0;
}

static int open_socket(int *out, struct kymo_error *err)
{
	const char *listen_to = serve.options.listen ? serve.options.listen : "127.0.0.1";
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *info;
	int rc = getaddrinfo(listen_to, NULL, &hints, &info);

	if (rc)
		return error_set(err, EINVAL, "--listen %s is not an address: %s", listen_to,
				 gai_strerror(rc));
	serve.loopback = is_loopback_address(info);
	snprintf(serve.address.host, sizeof(serve.address.host),
		 strchr(listen_to, ':') ? "[%s]" : "%s", listen_to);
	rc = bind_somewhere(info, out, err);
	freeaddrinfo(info);
	return rc;
}

/* How many connections there may be, so that they never take the last descriptors. */
static size_t raise_files(void)
{
	struct rlimit limit;
	size_t spare;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 256;
	if (limit.rlim_cur < 16384) {
		limit.rlim_cur = limit.rlim_max < 16384 ? limit.rlim_max : 16384;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= CONNECTIONS_MOST + DESCRIPTORS_SPARE)
		return CONNECTIONS_MOST;
	spare = limit.rlim_cur / 2 < DESCRIPTORS_SPARE ? limit.rlim_cur / 2 : DESCRIPTORS_SPARE;
	return limit.rlim_cur - spare;
}

static int choose_token(const struct serve_options *options, struct kymo_error *err)
{
	const char *token = options->token;

	if (token && strlen(token) >= sizeof(serve.address.token))
		return error_set(err, EINVAL, "KYMO_TOKEN is longer than %zu characters",
				 sizeof(serve.address.token) - 1);
	if (token && token[strcspn(token, " ;,\"\\\t\r\n")])
		return error_set(err, EINVAL,
				 "KYMO_TOKEN contains blanks, quotes, commas or semicolons; use "
				 "letters and digits");
	serve.address.token_required = options->require_token || !serve.loopback ||
				       (token && *token);
	if (token && *token)
		strcpy(serve.address.token, token);
	else if (token_make(serve.address.token))
		return error_set(err, EIO,
				 "cannot make a token: the kernel returned no random bytes");
	return 0;
}

/*
 * poll, not epoll: when exactly 128 events arrive at once, libmicrohttpd's epoll loop (0.9.75)
 * waits for more before it handles any of them.
 */
static int start_daemon(int fd, unsigned threads, size_t connections, struct kymo_error *err)
{
	struct MHD_Daemon *daemon = microhttpd.start_daemon(
		MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO, 0, NULL,
		NULL, on_request, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)connections,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		(unsigned)(serve.loopback ? CONNECTIONS_MOST : CONNECTIONS_EACH),
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		/* last: a pool of one thread is none */
		threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, threads,
		MHD_OPTION_END);

	return daemon ? 0
		      : error_set(err, errno ? errno : EIO, "cannot start the server: %s",
				  strerror(errno));
}

/* The address at which a local client reaches the TCP socket. */
static void name_local(int fd, char *out, size_t out_bytes)
{
	union {
		struct sockaddr_storage all;
		struct sockaddr some;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} address = { .all = { 0 } };
	socklen_t bytes = sizeof(address);
	char text[INET6_ADDRSTRLEN] = "";

	if (getsockname(fd, &address.some, &bytes))
		return;
	if (address.some.sa_family == AF_INET) {
		if (!address.four.sin_addr.s_addr)
			address.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		inet_ntop(AF_INET, &address.four.sin_addr, text, sizeof(text));
		snprintf(out, out_bytes, "%s:%u", text, serve.address.port);
	} else {
		if (IN6_IS_ADDR_UNSPECIFIED(&address.six.sin6_addr))
			address.six.sin6_addr = in6addr_loopback;
		inet_ntop(AF_INET6, &address.six.sin6_addr, text, sizeof(text));
		snprintf(out, out_bytes, "[%s]:%u", text, serve.address.port);
	}
}

/* Without it, commands connect to the port. */
static void start_local(int tcp)
{
	struct serve_address *address = &serve.address;
	int fd;

	name_local(tcp, address->local, sizeof(address->local));
	fd = local_socket_listen(address->local, &address->local_error);
	if (fd >= 0 && start_daemon(fd, 1, LOCAL_CONNECTIONS_MOST, &address->local_error))
		close(fd);
}

static void take_targets(const struct serve_options *options)
{
	struct targets *targets = &serve.targets;

	targets_init(targets);
	for (size_t i = 0; i < options->target_count && i < 16; i++)
		snprintf(targets->named[targets->named_count++], KYMO_PATH_BYTES, "%s",
			 options->targets[i]);
}

int serve_start(const struct serve_options *options, struct serve_address *out,
		struct kymo_error *err)
{
	sigset_t mine, before;
	int fd = -1, rc = microhttpd_load(err);
	size_t connections = raise_files();

	serve.options = *options;
	pthread_mutex_init(&serve.running_lock, NULL);
	kymo__store_relaxed(&serve.asked_at_ns, target_clock_ns());
	take_targets(options);
	peers_start(connections);
	/* Signals go to the waiting thread; all others are started with signals blocked. */
	sigemptyset(&mine);
	sigaddset(&mine, SIGINT);
	sigaddset(&mine, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_BLOCK, &mine, &before);
	if (!rc)
		rc = open_socket(&fd, err);
	if (!rc)
		rc = choose_token(options, err);
	if (!rc && workers_start())
		rc = error_set(err, EAGAIN, "cannot start threads");
	if (!rc)
		rc = start_daemon(fd, IO_THREADS, connections, err);
	if (!rc)
		start_local(fd);
	if (!rc && (events_start(&serve) || preload_start(&serve)))
		rc = error_set(err, EAGAIN, "cannot start threads");
	if (!rc && serve.loopback)
		serve.address.users_known = peers_can_identify(fd);
	*out = serve.address;
	return rc;
}

void serve_wait(void)
{
	sigset_t mine;
	int which;

	sigemptyset(&mine);
	sigaddset(&mine, SIGINT);
	sigaddset(&mine, SIGTERM);
	sigwait(&mine, &which);
	local_socket_remove(serve.address.local);
}
