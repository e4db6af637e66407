#include "collect/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool silent;

void say_quiet(bool quiet)
{
	silent = quiet;
}

void say(const char *format, ...)
{
	char line[2048] = "kymo: ";
	size_t used = strlen(line);
	va_list args;
	ssize_t done;

	if (silent)
		return;
	va_start(args, format);
	vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	strcat(line, "\n");
	done = write(STDERR_FILENO, line, strlen(line));
	(void)done; /* an error on stderr cannot be reported */
}
