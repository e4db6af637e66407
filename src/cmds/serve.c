/* kymo serve: the live viewer and its API. */
#include "serve/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmds/browser.h"
#include "cmds/cmds.h"
#include "serve/access/local_socket.h"
#include "store/store.h"
#include "views/term/text.h"
#include "views/term/target.h"

#define TARGETS 16

struct request {
	struct serve_options options;
	char paths[TARGETS][KYMO_PATH_BYTES];
	const char *targets[TARGETS];
	bool quiet, open;
};

static int serve_take_option(struct request *request, struct cmds_args *args,
			     const struct cmds_option *option)
{
	struct serve_options *options = &request->options;
	int status = -1;
	double number;

	if (!strcmp(option->name, "listen"))
		options->listen = args->value;
	else if (!strcmp(option->name, "host"))
		options->hosts = args->value;
	else if (!strcmp(option->name, "require-token"))
		options->require_token = true;
	else if (!strcmp(option->name, "quiet"))
		request->quiet = true;
	else if (!strcmp(option->name, "open"))
		request->open = true;
	else if (!strcmp(option->name, "zoom") && cmds_number(args, option, 8, &number, &status))
		options->zoom = number < 0.25 ? 0.25 : number;
	else if (!strcmp(option->name, "port") &&
		 cmds_number(args, option, 65535, &number, &status))
		options->port = (uint16_t)number;
	else if (!strcmp(option->name, "while") &&
		 cmds_number(args, option, 1 << 22, &number, &status))
		options->while_pid = (int32_t)number;
	return status;
}

/* A missing recording is an error at the start, not an empty page later. */
static int serve_take_words(struct request *request, const struct cmds_args *args)
{
	struct kymo_error err = { 0 };

	if (args->word_count > TARGETS)
		return cmds_wrong("serve", "at most %d targets are supported", TARGETS);
	for (size_t i = 0; i < args->word_count; i++) {
		if (target_resolve(args->words[i], request->paths[i], KYMO_PATH_BYTES, &err))
			return cmds_fail("serve", &err);
		request->targets[i] = request->paths[i];
	}
	request->options.targets = request->targets;
	request->options.target_count = args->word_count;
	return -1;
}

static void serve_print_address(const struct request *request, const struct serve_address *address)
{
	char own[128] = "this-machine";

	gethostname(own, sizeof(own) - 1);
	if (address->port_taken)
		fprintf(stderr, "kymo serve: port %u is in use; using %u\n",
			request->options.port ? request->options.port : SERVE_PORT, address->port);
	text_line(stderr, "kymo serve: http://%s:%u/?token=%s", address->host, address->port,
		  address->token);
	if (request->quiet)
		return;
	if (!request->options.listen)
		text_line(stderr,
			  "  from another machine: ssh -L %u:127.0.0.1:%u %s, then open the same "
			  "link",
			  address->port, address->port, own);
	if (!address->users_known && !address->token_required)
		fprintf(stderr, "  the kernel does not identify local users here; every client "
				"needs the token\n");
	if (address->local_error.text[0])
		text_line(stderr, "  commands connect to the port: %s", address->local_error.text);
	fprintf(stderr, "  Ctrl-C stops the server\n");
}

/* All users can read the arguments of a browser, so that they may not contain the token. */
static int browser_link(const struct serve_address *address, char *out, size_t out_bytes)
{
	char link[256];
	struct kymo_error err = { 0 };
	int rc;

	if (address->users_known && !address->token_required) {
		snprintf(out, out_bytes, "http://%s:%u/", address->host, address->port);
		return 0;
	}
	snprintf(link, sizeof(link), "http://%s:%u/?token=%s", address->host, address->port,
		 address->token);
	rc = local_socket_write_page(address->local, link, out, out_bytes, &err);
	if (rc)
		text_line(stderr, "kymo serve: cannot open a browser: %s; open the link above",
			  err.text);
	return rc;
}

static void serve_open(const struct serve_address *address)
{
	char link[KYMO_PATH_BYTES + 96];

	if (!browser_link(address, link, sizeof(link)))
		browser_open(link);
}

static int serve(const struct request *request)
{
	struct serve_address address = { .port = 0 };
	struct kymo_error err = { 0 };

	if (serve_start(&request->options, &address, &err))
		return cmds_fail("serve", &err);
	serve_print_address(request, &address);
	if (request->open)
		serve_open(&address);
	serve_wait();
	/* Exits without waiting for running queries; the server writes no files. */
	fflush(NULL);
	_exit(CMDS_OK);
}

int cmd_serve(int argc, char **argv)
{
	struct request *request = calloc(1, sizeof(*request));
	const struct cmds_option *option;
	struct cmds_args args;
	int status;

	if (!request)
		return CMDS_FAILED;
	request->options.token = getenv("KYMO_TOKEN");
	cmds_args_init(&args, "serve", argc, argv);
	while ((option = cmds_next(&args, &status))) {
		status = serve_take_option(request, &args, option);
		if (status >= 0)
			break;
	}
	if (status < 0)
		status = serve_take_words(request, &args);
	if (status < 0)
		status = serve(request);
	free(request);
	return status;
}
