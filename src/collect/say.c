#include "collect/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

static bool silent;

void say_quiet(bool quiet)
{
	silent = quiet;
}

void say(const char *format, ...)
{
	char text[1024], line[2048] = "kymo: ";
	size_t used = strlen(line);
	va_list args;
	ssize_t done;

	if (silent)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	used += utf8_visible(text, strlen(text), line + used, sizeof(line) - used - 1);
	line[used++] = '\n';
	done = write(STDERR_FILENO, line, used);
	(void)done; /* an error on stderr cannot be reported */
}
