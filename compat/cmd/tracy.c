/*
 * tracy: starts kymo's viewer with the command line of Tracy's. It translates arguments and
 * executes kymo serve.
 *
 *	tracy [-a HOST] [-p PORT]
 *
 * The viewer shows programs of its own machine. For another HOST it prints an ssh command.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "become.h"

enum { FAILED = 1, WRONG_USE = 2 };

static const char usage[] =
	"usage: tracy [-a HOST] [-p PORT] [RECORDING]\n"
	"\nOpens kymo's viewer (kymo serve). TRACY_DPI_SCALE sets the scale of the page.\n"
	"\n  -a HOST    machine of the program (this one)\n"
	"  -p PORT    port of the viewer (8086, or the next free one)\n";

static int is_here(const char *host)
{
	static const char *const names[] = { "", "localhost", "127.0.0.1", "::1" };
	char own[256] = "";

	gethostname(own, sizeof(own) - 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], host))
			return 1;
	return !strcmp(own, host);
}

/* The viewer has to run on the machine of the recordings; only its page is shown here. */
static int print_ssh_command(const char *host, const char *port)
{
	printf("The viewer has to run on %s. To open it here, at http://localhost:%s/:\n"
	       "  ssh -L %s:127.0.0.1:%s %s kymo serve --port %s\n",
	       host, port, port, port, host, port);
	return fflush(stdout) ? FAILED : 0;
}

int main(int argc, char **argv)
{
	const char *host = "", *port = NULL, *scale = getenv("TRACY_DPI_SCALE");
	char *words[12] = { "kymo", "serve", "--open" };
	size_t count = 3;
	int letter;

	if (argc > 1 && !strcmp(argv[1], "--help"))
		return fputs(usage, stdout) < 0 || fflush(stdout) ? FAILED : 0;
	opterr = 0;
	while ((letter = getopt(argc, argv, "a:p:h")) != -1) {
		if (letter == 'h')
			return fputs(usage, stdout) < 0 || fflush(stdout) ? FAILED : 0;
		if (letter == 'a')
			host = optarg;
		else if (letter == 'p')
			port = optarg;
		else
			return fputs("tracy: unknown option; usage: tracy [-a HOST] [-p PORT] "
				     "[RECORDING]\n",
				     stderr),
			       WRONG_USE;
	}
	if (!is_here(host))
		return print_ssh_command(host, port ? port : "8086");
	if (port) {
		words[count++] = "--port";
		words[count++] = (char *)port;
	}
	if (scale && *scale) {
		words[count++] = "--zoom";
		words[count++] = (char *)scale;
	}
	words[count++] = "--";
	if (optind < argc)
		words[count++] = argv[optind];
	become_kymo("tracy", words);
	return FAILED;
}
