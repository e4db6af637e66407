#include "base/program_name.h"

#include <stdio.h>
#include <string.h>

static const char *program_name_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *program_name_next_word(const char *word, const char *end)
{
	word += strlen(word) + 1;
	return word < end && *word ? word : NULL;
}

/* The word that names what Python runs: after -m, or the first that is not an option; NULL: a
   command or stdin. */
static const char *script_of(const char *word, const char *end)
{
	while ((word = program_name_next_word(word, end))) {
		if (*word != '-')
			return word;
		if (!strcmp(word, "-m"))
			return program_name_next_word(word, end);
		if (word[1] == 'c' || !word[1])
			return NULL;
		if (!strcmp(word, "-W") || !strcmp(word, "-X"))
			word = program_name_next_word(word, end);
		if (!word)
			return NULL;
	}
	return NULL;
}

void program_name(const char *argv, size_t argv_bytes, char *out, size_t out_bytes)
{
	const char *name = program_name_base_name(argv);
	const char *script = !strncmp(name, "python", 6) ? script_of(argv, argv + argv_bytes)
							 : NULL;

	if (script)
		name = program_name_base_name(script);
	snprintf(out, out_bytes, "%s", *name ? name : "program");
}
