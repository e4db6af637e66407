#include "views/verdicts/where.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "views/query/json.h"
#include "views/term/format.h"
#include "views/term/text.h"

/* The " (" between function and file. A demangled name may contain one and so may a path: a path
   usually begins with a slash, and the last one is right for other files. */
static const char *where_split(const char *place)
{
	const char *last = NULL;

	for (const char *at = place; (at = strstr(at, " (")); at += 2) {
		last = at;
		if (at[2] == '/' || at[2] == '<')
			break;
	}
	return last;
}

/* A generator or lambda is named after the function that it stands in: its line tells the rest. */
size_t where_outer_bytes(const char *name)
{
	static const char *const inner[] = {
		".<locals>.<genexpr>", ".<locals>.<listcomp>", ".<locals>.<dictcomp>",
		".<locals>.<setcomp>", ".<locals>.<lambda>",   ".<genexpr>",
		".<listcomp>",	       ".<dictcomp>",	       ".<setcomp>",
	};
	size_t bytes = strlen(name);

	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
		size_t end = strlen(inner[i]);

		if (bytes > end && !memcmp(name + bytes - end, inner[i], end)) {
			bytes -= end;
			i = (size_t)-1; /* one in another */
		}
	}
	return bytes;
}

/* Of a function that the compiler has cloned: "parse.isra.0", "parse.constprop.0.cold". */
static void strip_clone(char *name)
{
	static const char *const clones[] = { ".isra.", ".constprop.", ".part.", ".cold" };

	for (size_t i = 0; i < sizeof(clones) / sizeof(clones[0]); i++) {
		char *at = strstr(name, clones[i]);

		if (at && at > name)
			*at = '\0';
	}
}

void where_set(struct verdict *verdict, const char *place, double share)
{
	const char *file = where_split(place), *line = strrchr(place, ':');
	size_t name_bytes = file ? (size_t)(file - place) : strlen(place);

	verdict->where_file[0] = '\0';
	verdict->where_line = 0;
	verdict->where_share = share;
	snprintf(verdict->where_function, sizeof(verdict->where_function), "%.*s", (int)name_bytes,
		 place);
	verdict->where_function[where_outer_bytes(verdict->where_function)] = '\0';
	strip_clone(verdict->where_function);
	if (!file)
		return;
	if (!line || line < file)
		line = place + strlen(place) - 1; /* the closing parenthesis */
	else
		verdict->where_line = (int)strtol(line + 1, NULL, 10);
	snprintf(verdict->where_file, sizeof(verdict->where_file), "%.*s", (int)(line - file - 2),
		 file + 2);
}

void where_add_line(struct buf *out, const struct verdict *verdict)
{
	const char *file = facts_place(verdict->where_file);

	if (!verdict->where_function[0])
		return;
	text_visible(out, verdict->where_function, strlen(verdict->where_function));
	if (file[0]) {
		buf_text(out, "  ");
		text_visible(out, file, strlen(file));
		if (verdict->where_line > 0)
			buf_print(out, ":%d", verdict->where_line);
	}
	if (verdict->where_share >= 0)
		buf_print(out, "  %s", format_percent(verdict->where_share).text);
}

void where_add_json(struct buf *out, const struct verdict *verdict)
{
	if (!verdict->where_function[0]) {
		buf_text(out, "null");
		return;
	}
	buf_text(out, "{\"function\":");
	json_text(out, verdict->where_function, strlen(verdict->where_function));
	buf_text(out, ",\"file\":");
	if (verdict->where_file[0])
		json_text(out, verdict->where_file, strlen(verdict->where_file));
	else
		buf_text(out, "null");
	buf_text(out, ",\"line\":");
	if (verdict->where_line > 0)
		buf_print(out, "%d", verdict->where_line);
	else
		buf_text(out, "null");
	if (verdict->where_share >= 0)
		buf_print(out, ",\"share\":%.4f}", verdict->where_share);
	else
		buf_text(out, ",\"share\":null}");
}
