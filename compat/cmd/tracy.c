/*
 * tracy: starts the viewer as Tracy's own is started, for people and scripts that are used to it.
 * It only translates words and becomes kymo serve, which lies beside it or in PATH.
 *
 *	tracy [-a HOST] [-p PORT]
 *
 * The viewer shows programs of the machine that it runs on. For another HOST it says how to get
 * there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "become.h"

enum { FAILED = 1, WRONG_USE = 2 };

static const char usage[] =
	"usage: tracy [-a HOST] [-p PORT] [RECORDING]\n"
	"\nOpens kymo's viewer (kymo serve). TRACY_DPI_SCALE makes it larger or smaller.\n"
	"\n  -a HOST    the machine that the program runs on (this one)\n"
	"  -p PORT    the viewer's port (8086, or the next one that is free)\n";

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

/* Its recordings are there, and so is the viewer; what comes here is a page. */
static int say_how(const char *host, const char *port)
{
	printf("the viewer of %s runs there; this shows it here, at http://localhost:%s/\n"
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
			return fputs("tracy: -a HOST, -p PORT and a recording are taken; tracy -h "
				     "says more\n",
				     stderr),
			       WRONG_USE;
	}
	if (!is_here(host))
		return say_how(host, port ? port : "8086");
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
