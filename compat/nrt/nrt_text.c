/* What the text of a model says: whether it is OpenCL C or a fake, its name, and its operations in
   order. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nrt_inside.h"

#define FAKE "kymo-fake-model"
#define ABOUT "kymo-model:"
#define SIZE_USUAL 1024u
#define SIZE_MOST (1u << 24)
#define MICROSECONDS_MOST 10000000u
#define TEXT_MOST (64u << 20)

static const char too_many[] = "it has more than 64 operations";
static const char neither[] =
	"it is neither OpenCL C with a kernel nor a text that begins with " FAKE;

/* A part of the text, which need not end with NUL. */
struct span {
	const char *at, *end;
};

static bool is_letter(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Part of a file's name, so nothing that would be a path. */
static void nrt_text_take_name(char *out, const char *from, size_t bytes)
{
	bytes = bytes < NRT_NAME_BYTES - 1 ? bytes : NRT_NAME_BYTES - 1;
	for (size_t i = 0; i < bytes; i++)
		out[i] = is_letter(from[i]) || (i && strchr(".-", from[i])) ? from[i] : '_';
	out[bytes] = '\0';
}

static struct span next_line(struct span *text)
{
	const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
	struct span line = { text->at, newline ? newline : text->end };

	text->at = newline ? newline + 1 : text->end;
	return line;
}

static struct span nrt_text_next_word(struct span *line)
{
	struct span word;

	while (line->at < line->end && isspace((unsigned char)*line->at))
		line->at++;
	word.at = line->at;
	while (line->at < line->end && !isspace((unsigned char)*line->at))
		line->at++;
	word.end = line->at;
	return word;
}

static size_t length(struct span span)
{
	return (size_t)(span.end - span.at);
}

static bool is(struct span span, const char *word)
{
	return length(span) == strlen(word) && !memcmp(span.at, word, length(span));
}

static bool nrt_text_number_of(struct span span, uint64_t most, uint64_t *out)
{
	uint64_t value = 0;

	for (const char *c = span.at; c < span.end; c++) {
		if (!isdigit((unsigned char)*c) || value > most)
			return false;
		value = value * 10 + (uint64_t)(*c - '0');
	}
	*out = value;
	return span.at < span.end && value <= most;
}

static const char *nrt_text_add_operation(struct nrt_text *out, struct span name,
					  uint64_t microseconds)
{
	if (out->count == NRT_OPERATIONS)
		return too_many;
	nrt_text_take_name(out->operations[out->count].name, name.at, length(name));
	out->operations[out->count++].microseconds = microseconds;
	return NULL;
}

/* ---- a fake ---------------------------------------------------------------------------------- */

static const char *fake_line(struct span line, struct nrt_text *out)
{
	struct span name = nrt_text_next_word(&line), number = nrt_text_next_word(&line);
	uint64_t value;

	if (name.at == name.end)
		return NULL;
	if (!nrt_text_number_of(number, MICROSECONDS_MOST, &value))
		return "a line of it is not OPERATION MICROSECONDS";
	if (is(name, "fail")) {
		out->fail_every = value;
		return NULL;
	}
	return nrt_text_add_operation(out, name, value);
}

static const char *parse_fake(struct span text, struct nrt_text *out)
{
	struct span line = next_line(&text), name;
	const char *wrong = NULL;

	nrt_text_next_word(&line);
	name = nrt_text_next_word(&line);
	if (name.at == name.end)
		return "it has no name";
	nrt_text_take_name(out->name, name.at, length(name));
	while (!wrong && text.at < text.end)
		wrong = fake_line(next_line(&text), out);
	return wrong || out->count ? wrong : "it has no operations";
}

/* ---- OpenCL C -------------------------------------------------------------------------------- */

static const char *skip_to(struct span text, const char *what)
{
	size_t bytes = strlen(what);
	const char *found = memmem(text.at, length(text), what, bytes);

	return found ? found + bytes : text.end;
}

static const char *skip_quoted(struct span text)
{
	const char *at = text.at + 1;

	while (at < text.end && *at != *text.at && *at != '\n')
		at += *at == '\\' && at + 1 < text.end ? 2 : 1;
	return at < text.end ? at + 1 : at;
}

/* The next word or other character, outside of comments and texts. Empty: the end. */
static struct span next_token(struct span *text)
{
	struct span token = { text->end, text->end };

	while (text->at < text->end) {
		size_t left = length(*text);

		token.at = text->at;
		if (left > 1 && !memcmp(text->at, "//", 2)) {
			text->at = skip_to(*text, "\n");
		} else if (left > 1 && !memcmp(text->at, "/*", 2)) {
			text->at = skip_to((struct span){ text->at + 2, text->end }, "*/");
		} else if (*text->at == '"' || *text->at == '\'') {
			text->at = skip_quoted(*text);
		} else if (isspace((unsigned char)*text->at)) {
			text->at++;
		} else {
			do
				text->at++;
			while (is_letter(*token.at) && text->at < text->end &&
			       is_letter(*text->at));
			token.end = text->at;
			return token;
		}
	}
	token.at = token.end = text->end;
	return token;
}

static void skip_parentheses(struct span *text)
{
	int open = 0;

	for (;;) {
		struct span token = next_token(text);

		open += is(token, "(") - is(token, ")");
		if (open <= 0 || token.at == token.end)
			return;
	}
}

/* After the word kernel: the function's name is the word before the first ( that belongs to no
   attribute. */
static struct span kernel_name(struct span *text)
{
	struct span name = { text->end, text->end }, token;

	for (token = next_token(text); token.at < token.end; token = next_token(text)) {
		if (is(token, "__attribute__"))
			skip_parentheses(text);
		else if (is(token, "("))
			return name;
		else if (!is_letter(*token.at))
			break;
		else
			name = token;
	}
	return (struct span){ text->end, text->end };
}

static bool has_operation(const struct nrt_text *out, struct span name)
{
	for (size_t i = 0; i < out->count; i++)
		if (is(name, out->operations[i].name))
			return true;
	return false;
}

static void parse_about(struct span text, struct nrt_text *out)
{
	struct span line = { skip_to(text, ABOUT), text.end }, word;

	line = next_line(&line);
	for (word = nrt_text_next_word(&line); word.at < word.end;
	     word = nrt_text_next_word(&line)) {
		struct span name = { word.at + 5, word.end };
		uint64_t size;

		if (length(word) <= 5)
			continue;
		if (!memcmp(word.at, "name=", 5))
			nrt_text_take_name(out->name, name.at, length(name));
		else if (!memcmp(word.at, "size=", 5) &&
			 nrt_text_number_of(name, SIZE_MOST, &size) && size)
			out->size = size;
	}
}

static const char *parse_opencl(struct span text, struct nrt_text *out)
{
	struct span rest = text, token;
	const char *wrong = NULL;

	for (token = next_token(&rest); !wrong && token.at < token.end; token = next_token(&rest)) {
		struct span name;

		if (!is(token, "__kernel") && !is(token, "kernel"))
			continue;
		name = kernel_name(&rest);
		if (length(name) >= NRT_NAME_BYTES)
			wrong = "the name of a kernel is longer than 63 letters";
		else if (name.at < name.end && !has_operation(out, name))
			wrong = nrt_text_add_operation(out, name, 0);
	}
	if (wrong || !out->count)
		return wrong ? wrong : neither;
	memcpy(out->name, out->operations[0].name, sizeof(out->name));
	parse_about(text, out);
	return NULL;
}

const char *nrt_text_parse(const char *text, size_t bytes, struct nrt_text *out)
{
	struct span all = { text, text + bytes }, words = all;

	memset(out, 0, sizeof(*out));
	out->size = SIZE_USUAL;
	if (bytes > TEXT_MOST)
		return "it is longer than 64 MiB";
	while (all.end > all.at && !all.end[-1])
		all.end--;
	if (all.at == all.end || memchr(all.at, '\0', length(all)))
		return neither;
	words.end = all.end;
	out->is_fake = is(nrt_text_next_word(&words), FAKE);
	return out->is_fake ? parse_fake(all, out) : parse_opencl(all, out);
}
