#include "collect/run/inject.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/install_path.h"

/* In a build folder, below a prefix, in an environment that a wheel was installed into. */
static const char *const places[] = {
	"python/kymo/_inject",
	"../lib/kymo/python/kymo/_inject",
	"../lib/python3*/site-packages/kymo/_inject",
	"../lib/python3*/dist-packages/kymo/_inject",
	"../local/lib/python3*/dist-packages/kymo/_inject",
	NULL,
};

int inject_python(struct buf *out, struct kymo_error *err)
{
	const char *now = getenv("PYTHONPATH");
	char folder[PATH_MAX];

	if (!install_path_find(places, folder, sizeof(folder)))
		return error_set(err, ENOENT,
				 "kymo's Python package is not beside the kymo program, so it "
				 "cannot come into another Python; build or install it again");
	if (strchr(folder, ':'))
		return error_set(err, EINVAL,
				 "%s cannot be put on PYTHONPATH, since there is a colon in it; "
				 "install kymo elsewhere",
				 folder);
	buf_text(out, "PYTHONPATH=");
	buf_text(out, folder);
	if (now && *now) {
		buf_char(out, ':');
		buf_text(out, now);
	}
	return out->failed ? error_set(err, ENOMEM, "no memory for the environment") : 0;
}

/* ---- what keeps it out ----------------------------------------------------------------------- */

static bool takes_a_value(const char *word)
{
	return !strcmp(word, "-W") || !strcmp(word, "-X") ||
	       !strcmp(word, "--check-hash-based-pycs");
}

/* -E, -I and -S, also among others as in -sE; what follows c, m, W or X is theirs. */
static const char *closing_letter(const char *letters)
{
	static const char *const options[] = { "-E", "-I", "-S" };
	size_t own = strcspn(letters, "cmWX");

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (memchr(letters, options[i][1], own))
			return options[i];
	return NULL;
}

const char *inject_kept_out_by(char *const *argv)
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
		found = closing_letter(word + 1);
		if (strpbrk(word + 1, "cm"))
			break; /* the program itself */
	}
	return found;
}
