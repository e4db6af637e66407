/*
 * Requests to kymo serve: its own code from the first header to the answer, with a libmicrohttpd
 * that takes the bytes of the fuzzer instead of a socket. SQL and child processes are not part of
 * it: the build has no DuckDB, and posix_spawn() fails.
 *
 *	input	METHOD PATH?QUERY, lines of "Header: value", an empty line, the body
 *
 * Without the token no request gets data; every answer of JSON is JSON; no header has two lines.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "../tests/unit/handmade.h"
#include "scratch.h"
#include "serve/microhttpd.h"
#include "serve/serve_inside.h"

#define TOKEN "s3cret"
#define PAIRS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct pair {
	char *key, *value;
};

struct MHD_Connection {
	struct pair headers[PAIRS], arguments[PAIRS];
	size_t header_count, argument_count;
	struct sockaddr_in peer;
	union MHD_ConnectionInfo info;
	unsigned status; /* of the answer; 0: none yet */
	unsigned answers;
	bool suspended;
};

struct MHD_Response {
	char *data;
	size_t bytes;
	bool json;
	MHD_ContentReaderFreeCallback free_context;
	void *context;
};

struct microhttpd microhttpd;

static MHD_AccessHandlerCallback on_request;
static MHD_RequestCompletedCallback on_completed;

/* ---- JSON, checked ------------------------------------------------------------------------- */

static const char *json_value(const char *at, const char *end, unsigned depth);

static const char *json_blank(const char *at, const char *end)
{
	while (at && at < end && strchr(" \t\r\n", *at))
		at++;
	return at && at < end ? at : NULL;
}

static const char *json_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		if ((unsigned char)*at < 0x20 || (*at == '\\' && ++at == end))
			return NULL;
	return at < end ? at + 1 : NULL;
}

static const char *json_members(const char *at, const char *end, unsigned depth, char close)
{
	at = json_blank(at + 1, end);
	if (at && *at == close)
		return at + 1;
	while (at) {
		if (close == '}') {
			at = *at == '"' ? json_blank(json_string(at, end), end) : NULL;
			at = at && *at == ':' ? json_blank(at + 1, end) : NULL;
		}
		at = at ? json_blank(json_value(at, end, depth + 1), end) : NULL;
		if (at && *at == close)
			return at + 1;
		at = at && *at == ',' ? json_blank(at + 1, end) : NULL;
	}
	return NULL;
}

/* The end of the value; NULL: not JSON. */
static const char *json_value(const char *at, const char *end, unsigned depth)
{
	const char *begin = at;

	if (depth > 64)
		return NULL;
	if (*at == '"')
		return json_string(at, end);
	if (*at == '{' || *at == '[')
		return json_members(at, end, depth, *at == '{' ? '}' : ']');
	while (at < end && (isalnum((unsigned char)*at) || strchr("+-.", *at)))
		at++;
	return at > begin ? at : NULL;
}

static void check_json(const struct MHD_Response *response)
{
	const char *end = response->data + response->bytes;
	const char *at = json_blank(response->data, end);

	at = at ? json_value(at, end, 0) : NULL;
	if (!at || json_blank(at, end)) {
		fprintf(stderr, "not JSON: %.*s\n", (int)response->bytes, response->data);
		abort();
	}
}

/* ---- libmicrohttpd, as far as serve uses it ------------------------------------------------ */

/* Options in front of the one that is wanted have one argument of the size of a pointer or less. */
static struct MHD_Daemon *start_daemon(unsigned flags, uint16_t port,
				       MHD_AcceptPolicyCallback accept, void *accept_context,
				       MHD_AccessHandlerCallback handler, void *context, ...)
{
	static char daemon;
	int option;
	va_list list;

	(void)flags, (void)port, (void)accept, (void)accept_context, (void)context;
	on_request = handler;
	va_start(list, context);
	while ((option = va_arg(list, int)) != MHD_OPTION_END) {
		if (option == MHD_OPTION_NOTIFY_COMPLETED)
			on_completed = va_arg(list, MHD_RequestCompletedCallback);
		(void)va_arg(list, void *);
		if (option == MHD_OPTION_NOTIFY_CONNECTION)
			(void)va_arg(list, void *);
	}
	va_end(list);
	return (void *)&daemon;
}

static const char *lookup(struct MHD_Connection *connection, enum MHD_ValueKind kind,
			  const char *key)
{
	(void)kind;
	for (size_t i = 0; i < connection->header_count; i++)
		if (!strcasecmp(connection->headers[i].key, key))
			return connection->headers[i].value;
	return NULL;
}

static int get_values(struct MHD_Connection *connection, enum MHD_ValueKind kind,
		      MHD_KeyValueIterator each, void *context)
{
	size_t i = 0;

	while (i < connection->argument_count &&
	       each(context, kind, connection->arguments[i].key, connection->arguments[i].value))
		i++;
	return (int)i;
}

static const union MHD_ConnectionInfo *get_info(struct MHD_Connection *connection,
						enum MHD_ConnectionInfoType type, ...)
{
	if (type != MHD_CONNECTION_INFO_CLIENT_ADDRESS)
		return NULL;
	connection->info.client_addr = (struct sockaddr *)&connection->peer;
	return &connection->info;
}

static struct MHD_Response *from_buffer(size_t bytes, void *data, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = calloc(1, sizeof(*response));

	response->data = malloc(bytes + 1);
	memcpy(response->data, data ? data : "", bytes);
	response->bytes = bytes;
	if (mode == MHD_RESPMEM_MUST_FREE)
		free(data);
	return response;
}

static struct MHD_Response *from_fd(size_t bytes, int fd)
{
	(void)bytes;
	close(fd);
	return calloc(1, sizeof(struct MHD_Response));
}

static struct MHD_Response *from_callback(uint64_t bytes, size_t block,
					  MHD_ContentReaderCallback reader, void *context,
					  MHD_ContentReaderFreeCallback free_context)
{
	struct MHD_Response *response = calloc(1, sizeof(*response));
	char room[512];

	(void)bytes, (void)block;
	reader(context, 0, room, sizeof(room));
	response->context = context;
	response->free_context = free_context;
	return response;
}

static enum MHD_Result add_header(struct MHD_Response *response, const char *name,
				  const char *value)
{
	if (!value || value[strcspn(value, "\r\n")] || strlen(value) > 4096)
		abort();
	if (!strcmp(name, "Content-Type"))
		response->json = !strncmp(value, "application/json", 16);
	return MHD_YES;
}

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status,
			     struct MHD_Response *response)
{
	connection->status = status;
	connection->answers++;
	if (response->json && response->data && status != 304)
		check_json(response);
	return MHD_YES;
}

static void destroy(struct MHD_Response *response)
{
	if (response->free_context)
		response->free_context(response->context);
	free(response->data);
	free(response);
}

static void suspend(struct MHD_Connection *connection)
{
	connection->suspended = true;
}

static void resume(struct MHD_Connection *connection)
{
	connection->suspended = false;
}

static enum MHD_Result set_option(struct MHD_Connection *connection,
				  enum MHD_CONNECTION_OPTION option, ...)
{
	(void)connection, (void)option;
	return MHD_YES;
}

static const union MHD_DaemonInfo *daemon_info(struct MHD_Daemon *daemon,
					       enum MHD_DaemonInfoType type, ...)
{
	(void)daemon, (void)type;
	return NULL;
}

int microhttpd_load(struct kymo_error *err)
{
	(void)err;
	microhttpd = (struct microhttpd){ .start_daemon = start_daemon,
					  .get_daemon_info = daemon_info,
					  .queue_response = queue,
					  .create_response_from_buffer = from_buffer,
					  .create_response_from_fd = from_fd,
					  .create_response_from_callback = from_callback,
					  .destroy_response = destroy,
					  .add_response_header = add_header,
					  .lookup_connection_value = lookup,
					  .get_connection_values = get_values,
					  .suspend_connection = suspend,
					  .resume_connection = resume,
					  .get_connection_info = get_info,
					  .set_connection_option = set_option };
	return 0;
}

/* ---- what would be a thread or a process --------------------------------------------------- */

int workers_start(void)
{
	return 0;
}

bool workers_add(struct request *request)
{
	request->route->answer(request);
	http_resume(request);
	return true;
}

int events_start(struct serve *serve)
{
	(void)serve;
	return 0;
}

int preload_start(struct serve *serve)
{
	(void)serve;
	return 0;
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attributes, char *const *words, char *const *environment)
{
	(void)pid, (void)path, (void)actions, (void)attributes, (void)words, (void)environment;
	return EAGAIN;
}

/* ---- the request --------------------------------------------------------------------------- */

/* As libmicrohttpd: %xx and + are decoded; what is not hexadecimal stays. */
static void decode(char *text)
{
	char *out = text;

	for (; *text; text++) {
		if (*text == '%' && isxdigit((unsigned char)text[1]) &&
		    isxdigit((unsigned char)text[2])) {
			char hex[3] = { text[1], text[2], 0 };

			*out++ = (char)strtoul(hex, NULL, 16);
			text += 2;
		} else {
			*out++ = *text == '+' ? ' ' : *text;
		}
	}
	*out = '\0';
}

static void take_arguments(struct MHD_Connection *connection, char *query)
{
	for (char *one; (one = strsep(&query, "&")) && connection->argument_count < PAIRS;) {
		struct pair *pair = &connection->arguments[connection->argument_count++];

		pair->value = strchr(one, '=');
		if (pair->value)
			*pair->value++ = '\0';
		pair->key = one;
		decode(pair->key);
		if (pair->value)
			decode(pair->value);
	}
}

static void take_header(struct MHD_Connection *connection, char *line)
{
	char *colon = strchr(line, ':');

	if (!colon || connection->header_count == PAIRS)
		return;
	*colon++ = '\0';
	connection->headers[connection->header_count++] = (struct pair){
		line, colon + strspn(colon, " \t")
	};
}

static bool shows_token(const struct MHD_Connection *connection)
{
	for (size_t i = 0; i < connection->header_count; i++)
		if (strstr(connection->headers[i].value, TOKEN))
			return true;
	for (size_t i = 0; i < connection->argument_count; i++)
		if (connection->arguments[i].value && strstr(connection->arguments[i].value, TOKEN))
			return true;
	return false;
}

static void check_answer(const struct MHD_Connection *connection, enum MHD_Result result)
{
	unsigned status = connection->status;

	if (connection->answers > 1 || connection->suspended || (result && !connection->answers))
		abort();
	if (connection->answers && (status < 200 || status > 599))
		abort();
	if (connection->answers && !shows_token(connection) && status != 401 && status != 403 &&
	    status != 413)
		abort();
}

static void ask(struct MHD_Connection *connection, const char *url, const char *method,
		const char *body, size_t body_bytes)
{
	void *state = NULL;
	size_t bytes = 0;
	enum MHD_Result result = on_request(NULL, connection, url, method, "HTTP/1.1", NULL, &bytes,
					    &state);

	while (result && !connection->answers && body_bytes) {
		bytes = body_bytes < 1000 ? body_bytes : 1000;
		body_bytes -= bytes;
		result = on_request(NULL, connection, url, method, "HTTP/1.1", body, &bytes,
				    &state);
		body += 1000;
	}
	for (int i = 0; i < 3 && result && !connection->answers; i++) {
		bytes = 0;
		result = on_request(NULL, connection, url, method, "HTTP/1.1", NULL, &bytes,
				    &state);
	}
	if (state)
		on_completed(NULL, connection, &state, MHD_REQUEST_TERMINATED_COMPLETED_OK);
	check_answer(connection, result);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char path[600];
	static const char *const targets[] = { path };
	struct serve_options options = { .targets = targets, .target_count = 1, .token = TOKEN };
	struct serve_address address;
	struct handmade made = { 0 };
	struct kymo_error err = { 0 };

	(void)argc, (void)argv;
	snprintf(path, sizeof(path), "%s/run-1", scratch_make("http"));
	handmade_small(&made, 6000);
	handmade_write(&made, path);
	handmade_free(&made);
	if (serve_start(&options, &address, &err)) {
		fprintf(stderr, "http: %s\n", err.text);
		exit(1);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct MHD_Connection connection = {
		.peer = { .sin_family = AF_INET,
			  .sin_port = htons(40000),
			  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
	};
	char *text = malloc(bytes + 1), *rest = text, *line, *method, *url, *query;

	memcpy(text, data, bytes);
	text[bytes] = '\0';
	line = strsep(&rest, "\n");
	method = strsep(&line, " ");
	url = line ? strsep(&line, " ") : method;
	query = strchr(url, '?');
	if (query) {
		*query++ = '\0';
		take_arguments(&connection, query);
	}
	decode(url);
	while (rest && (line = strsep(&rest, "\n")) && *line)
		take_header(&connection, line);
	ask(&connection, url, method, rest, rest ? (size_t)(text + bytes - rest) : 0);
	free(text);
	return 0;
}
