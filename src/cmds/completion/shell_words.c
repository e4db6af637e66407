#include "cmds/completion/shell_words.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* The value of an escape of $'…' at `at`, behind the backslash; returns its length. */
static size_t read_ansi(const char *at, const char *end, char *out)
{
	static const char names[] = "abeEfnrtv", values[] = "\a\b\033\033\f\n\r\t\v";
	const char *name = memchr(names, *at, sizeof(names) - 1);
	size_t used = 0;
	int value = 0;

	while (used < 3 && at + used < end && at[used] >= '0' && at[used] <= '7')
		value = value * 8 + (at[used++] - '0');
	*out = used ? (char)value : name ? values[name - names] : *at;
	return used ? used : 1;
}

/* A backslash and the character behind it; returns their length. */
static size_t read_backslash(const char *at, const char *end, enum shell_quotes open,
			     struct buf *out)
{
	char value = '\\';

	if (end - at < 2) /* the line ends */
		return 1;
	if (open == SHELL_ANSI) {
		size_t used = read_ansi(at + 1, end, &value);

		buf_char(out, value);
		return used + 1;
	}
	if (open == SHELL_DOUBLE && !strchr("$`\"\\", at[1]))
		buf_char(out, '\\');
	buf_char(out, at[1]);
	return 2;
}

static enum shell_quotes opened_by(const char *at, const char *end)
{
	if (*at == '\'')
		return SHELL_SINGLE;
	if (*at == '"')
		return SHELL_DOUBLE;
	return *at == '$' && end - at > 1 && at[1] == '\'' ? SHELL_ANSI : SHELL_NONE;
}

const char *shell_words_read(const char *line, const char *end, struct buf *out,
			     enum shell_quotes *open)
{
	*open = SHELL_NONE;
	while (line < end && (*open != SHELL_NONE || !is_blank(*line))) {
		enum shell_quotes opens = opened_by(line, end);

		if (*line == '\\' && *open != SHELL_SINGLE) {
			line += read_backslash(line, end, *open, out);
		} else if (*open == SHELL_NONE && opens != SHELL_NONE) {
			*open = opens;
			line += opens == SHELL_ANSI ? 2 : 1;
		} else if ((*line == '\'' && (*open == SHELL_SINGLE || *open == SHELL_ANSI)) ||
			   (*line == '"' && *open == SHELL_DOUBLE)) {
			*open = SHELL_NONE;
			line++;
		} else {
			buf_char(out, *line++);
		}
	}
	return line;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_inert(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_./:@%+,=-", c));
}

bool shell_words_inert(const char *text)
{
	if (*text == '=') /* zsh: the path of a command */
		return false;
	while (is_inert(*text))
		text++;
	return !*text;
}

/* Bytes at text that are printed as they are: a character with a glyph. 0: none. */
static size_t shown_bytes(const char *text)
{
	char shown[UTF8_SHOWN_BYTES];
	size_t bytes, read = utf8_show(text, strlen(text), shown, &bytes);

	return bytes == read && !memcmp(shown, text, read) ? read : 0;
}

/* Octal escapes have a fixed length, so that a digit may follow. */
static void add_ansi(struct buf *out, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_print(out, "\\%03o", (unsigned char)text[i]);
}

/* Closes the quotes, adds bytes as $'\ooo' and opens the quotes again. */
static void add_apart(struct buf *out, const char *text, size_t bytes, enum shell_quotes open)
{
	const char *mark = open == SHELL_SINGLE ? "'" : open == SHELL_DOUBLE ? "\"" : "";

	if (open == SHELL_ANSI) {
		add_ansi(out, text, bytes);
		return;
	}
	buf_text(out, mark);
	buf_text(out, "$'");
	add_ansi(out, text, bytes);
	buf_char(out, '\'');
	buf_text(out, mark);
}

static void add_ascii(struct buf *out, char c, enum shell_quotes open, bool first)
{
	switch (open) {
	case SHELL_NONE:
		if (!is_inert(c) || (first && c == '='))
			buf_char(out, '\\');
		break;
	case SHELL_SINGLE:
		if (c == '\'' || c == '!') { /* ! is the history's, at the beginning of a line */
			add_apart(out, &c, 1, open);
			return;
		}
		break;
	case SHELL_DOUBLE:
		if (c == '!') {
			add_apart(out, &c, 1, open);
			return;
		}
		if (strchr("$`\"\\", c))
			buf_char(out, '\\');
		break;
	case SHELL_ANSI:
		if (c == '\'' || c == '\\')
			buf_char(out, '\\');
		break;
	}
	buf_char(out, c);
}

void shell_words_quote(struct buf *out, const char *text, enum shell_quotes open)
{
	for (const char *at = text; *at;) {
		size_t shown = shown_bytes(at), hidden = 0;

		while (!shown && at[hidden] && !shown_bytes(at + hidden))
			hidden++;
		if (!shown)
			add_apart(out, at, hidden, open);
		else if (shown == 1)
			add_ascii(out, *at, open, at == text);
		else
			buf_add(out, at, shown);
		at += shown ? shown : hidden;
	}
}
