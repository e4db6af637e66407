#include "views/term/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_AFTER_NS 1000000000ull
#define AGAIN_AFTER_NS 100000000ull

static uint64_t progress_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

void progress_begin(struct progress *progress, const char *doing, const char *what)
{
	*progress = (struct progress){ .doing = doing,
				       .what = what,
				       .terminal = isatty(STDERR_FILENO) == 1,
				       .began_ns = progress_now_ns() };
}

/* One unit for both numbers, by the larger one. */
void progress_text(const struct progress *progress, uint64_t done, uint64_t all, char *out,
		   size_t out_bytes)
{
	uint64_t most = all > done ? all : done;
	double unit = most >= 1000000 ? 1e6 : most >= 10000 ? 1e3 : 1;
	const char *name = most >= 1000000 ? "M " : most >= 10000 ? "k " : "";
	int digits = unit > 1;

	if (all)
		snprintf(out, out_bytes, "%s %.*f of %.*f %s%s  %.0f %%", progress->doing, digits,
			 (double)(done < all ? done : all) / unit, digits, (double)all / unit, name,
			 progress->what, done < all ? 100.0 * (double)done / (double)all : 100.0);
	else
		snprintf(out, out_bytes, "%s %.*f %s%s", progress->doing, digits,
			 (double)done / unit, name, progress->what);
}

void progress_at(struct progress *progress, uint64_t done, uint64_t all)
{
	uint64_t now;
	char text[128];

	if (!progress->terminal)
		return;
	now = progress_now_ns();
	if (now - progress->began_ns < FIRST_AFTER_NS || now - progress->said_ns < AGAIN_AFTER_NS)
		return;
	progress->said_ns = now;
	progress->shown = true;
	progress_text(progress, done, all, text, sizeof(text));
	fprintf(stderr, "\r%s\033[K", text); /* not foreign: constants and numbers */
}

void progress_end(struct progress *progress)
{
	if (progress->shown)
		fprintf(stderr, "\r\033[K");
	progress->shown = false;
}
