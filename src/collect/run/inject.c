#include "collect/run/inject.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/install_path.h"

/* In the build folder, below an installation prefix, in an environment with the wheel. */
static const char *const places[] = {
	"python/kymo/_inject",
	"../lib/kymo/python/kymo/_inject",
	"../lib/*/kymo/python/kymo/_inject",
	"../lib/python3*/site-packages/kymo/_inject",
	"../lib/python3*/dist-packages/kymo/_inject",
	"../local/lib/python3*/dist-packages/kymo/_inject",
	NULL,
};

int inject_python(struct buf *out, struct kymo_error *err)
{
	const char *current = getenv("PYTHONPATH");
	char folder[PATH_MAX];

	if (!install_path_find(places, folder, sizeof(folder)))
		return error_set(err, ENOENT,
				 "cannot load kymo into Python: its Python package is not "
				 "installed with the kymo program; build or install it again");
	if (strchr(folder, ':'))
		return error_set(err, EINVAL,
				 "cannot put %s on PYTHONPATH: the path contains a colon; install "
				 "kymo elsewhere",
				 folder);
	buf_text(out, "PYTHONPATH=");
	buf_text(out, folder);
	if (current && *current) {
		buf_char(out, ':');
		buf_text(out, current);
	}
	return out->failed ? error_set(err, ENOMEM, "out of memory for the environment") : 0;
}

/* ---- options that prevent it ----------------------------------------------------------------- */

static bool takes_a_value(const char *word)
{
	return !strcmp(word, "-W") || !strcmp(word, "-X") ||
	       !strcmp(word, "--check-hash-based-pycs");
}

/* -E, -I and -S, also in a bundle such as -sE. The text after c, m, W or X is their value. */
static const char *blocking_letter(const char *letters)
{
	static const char *const options[] = { "-E", "-I", "-S" };
	size_t own = strcspn(letters, "cmWX");

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (memchr(letters, options[i][1], own))
			return options[i];
	return NULL;
}

const char *inject_blocking_option(char *const *argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *found = NULL;

	if (strncmp(slash ? slash + 1 : argv[0], "python", 6) != 0)
		return NULL;
	for (argv++; *argv && argv[0][0] == '-' && !found; argv++) {
		const char *word = *argv;

		if (takes_a_value(word)) {
			if (!*++argv)
				break;
			continue;
		}
		if (word[1] == '-' || !word[1])
			continue;
		found = blocking_letter(word + 1);
		if (strpbrk(word + 1, "cm"))
			break; /* the program itself */
	}
	return found;
}
