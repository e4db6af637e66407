#include "serve/json_read.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Texts are decoded into `store`, which is as long as the input plus a NUL for each: decoding never
   makes a text longer. */
struct reader {
	const char *at, *end;
	char *out;
	struct json_read *json;
};

static void blanks(struct reader *reader)
{
	while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
		reader->at++;
}

static bool is_next(struct reader *reader, char c)
{
	blanks(reader);
	if (reader->at == reader->end || *reader->at != c)
		return false;
	reader->at++;
	return true;
}

static int hex4(struct reader *reader)
{
	int value = 0;

	if (reader->end - reader->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = *reader->at++;
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

static void json_read_put_utf8(struct reader *reader, uint32_t code)
{
	if (code < 0x80) {
		*reader->out++ = (char)code;
	} else if (code < 0x800) {
		*reader->out++ = (char)(0xc0 | code >> 6);
		*reader->out++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*reader->out++ = (char)(0xe0 | code >> 12);
		*reader->out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*reader->out++ = (char)(0x80 | (code & 0x3f));
	} else {
		*reader->out++ = (char)(0xf0 | code >> 18);
		*reader->out++ = (char)(0x80 | (code >> 12 & 0x3f));
		*reader->out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*reader->out++ = (char)(0x80 | (code & 0x3f));
	}
}

static bool unicode(struct reader *reader)
{
	int code = hex4(reader), low;

	if (code <= 0)
		return false;
	if (code >= 0xd800 && code < 0xdc00 && reader->end - reader->at >= 6 &&
	    reader->at[0] == '\\' && reader->at[1] == 'u') {
		reader->at += 2;
		low = hex4(reader);
		if (low < 0xdc00 || low > 0xdfff)
			return false;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	if (code >= 0xd800 && code < 0xe000)
		return false;
	json_read_put_utf8(reader, (uint32_t)code);
	return true;
}

static bool escape(struct reader *reader)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *which;

	if (reader->at == reader->end)
		return false;
	if (*reader->at == 'u') {
		reader->at++;
		return unicode(reader);
	}
	which = *reader->at ? strchr(from, *reader->at) : NULL;
	if (!which)
		return false;
	reader->at++;
	*reader->out++ = to[which - from];
	return true;
}

/* Called after the opening quote; NULL: unterminated or invalid. */
static const char *json_read_text(struct reader *reader)
{
	const char *begin = reader->out;

	while (reader->at < reader->end) {
		char c = *reader->at++;

		if (c == '"') {
			*reader->out++ = '\0';
			return begin;
		}
		if ((unsigned char)c < 0x20 || (c == '\\' && !escape(reader)))
			return NULL;
		if (c != '\\')
			*reader->out++ = c;
	}
	return NULL;
}

/* A number or a word, unchanged. */
static const char *word(struct reader *reader)
{
	const char *begin = reader->out;

	while (reader->at < reader->end && *reader->at && !strchr(",}] \t\r\n", *reader->at) &&
	       reader->out - begin < 64)
		*reader->out++ = *reader->at++;
	if (reader->out == begin || !strchr("-0123456789tfn", *begin))
		return NULL;
	*reader->out++ = '\0';
	return begin;
}

static bool object(struct reader *reader, bool inside);

static bool field(struct reader *reader, bool inside)
{
	struct json_read *json = reader->json;
	struct json_read_field *field = &json->fields[json->count];

	if (json->count == JSONIN_FIELDS || !is_next(reader, '"'))
		return false;
	*field = (struct json_read_field){ .key = json_read_text(reader), .inside = inside };
	if (!field->key || !is_next(reader, ':'))
		return false;
	if (!inside && is_next(reader, '{'))
		return object(reader, true);
	field->text = is_next(reader, '"');
	field->value = field->text ? json_read_text(reader) : word(reader);
	json->count++;
	return field->value;
}

/* Called after the opening brace. */
static bool object(struct reader *reader, bool inside)
{
	if (is_next(reader, '}'))
		return true;
	do {
		if (!field(reader, inside))
			return false;
	} while (is_next(reader, ','));
	return is_next(reader, '}');
}

int json_read_object(const char *bytes, size_t count, struct json_read *out)
{
	struct reader reader = { .at = bytes, .end = bytes + count, .json = out };
	bool good;

	*out = (struct json_read){ .store = malloc(count + 2 * JSONIN_FIELDS + 1) };
	reader.out = out->store;
	good = out->store && count && is_next(&reader, '{') && object(&reader, false);
	blanks(&reader);
	if (good && reader.at == reader.end)
		return 0;
	json_read_fini(out);
	return -EINVAL;
}

void json_read_fini(struct json_read *json)
{
	free(json->store);
	*json = (struct json_read){ 0 };
}

const char *json_read_get(const struct json_read *json, const char *key)
{
	for (size_t i = 0; i < json->count; i++)
		if (!json->fields[i].inside && !strcmp(json->fields[i].key, key))
			return json->fields[i].text || strcmp(json->fields[i].value, "null")
				       ? json->fields[i].value
				       : NULL;
	return NULL;
}
