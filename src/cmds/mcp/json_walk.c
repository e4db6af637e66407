#include "cmds/mcp/json_walk.h"

#include <string.h>

#include "base/utf8.h"
#include "serve/json_read.h"

/* Where a client's bytes are read. Only what is before end is looked at. */
struct walk {
	const char *at, *end;
};

static void skip_blanks(struct walk *walk)
{
	while (walk->at < walk->end &&
	       (*walk->at == ' ' || *walk->at == '\t' || *walk->at == '\r' || *walk->at == '\n'))
		walk->at++;
}

static bool skip_char(struct walk *walk, char c)
{
	skip_blanks(walk);
	if (walk->at == walk->end || *walk->at != c)
		return false;
	walk->at++;
	return true;
}

static bool walk_word(struct walk *walk, const char *word)
{
	size_t bytes = strlen(word);

	if ((size_t)(walk->end - walk->at) < bytes || memcmp(walk->at, word, bytes) != 0)
		return false;
	walk->at += bytes;
	return true;
}

static size_t skip_digits(struct walk *walk)
{
	const char *begin = walk->at;

	while (walk->at < walk->end && *walk->at >= '0' && *walk->at <= '9')
		walk->at++;
	return (size_t)(walk->at - begin);
}

static bool skip_number(struct walk *walk)
{
	const char *first;
	size_t digits;

	walk_word(walk, "-");
	first = walk->at;
	digits = skip_digits(walk);
	if (!digits || (digits > 1 && *first == '0'))
		return false;
	if (walk_word(walk, ".") && !skip_digits(walk))
		return false;
	if (!walk_word(walk, "e") && !walk_word(walk, "E"))
		return true;
	if (!walk_word(walk, "+"))
		walk_word(walk, "-");
	return skip_digits(walk);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind a backslash. */
static bool skip_escape(struct walk *walk)
{
	if (walk->at == walk->end || !*walk->at || !strchr("\"\\/bfnrtu", *walk->at))
		return false;
	if (*walk->at++ != 'u')
		return true;
	for (int i = 0; i < 4; i++)
		if (walk->at == walk->end || !is_hex(*walk->at++))
			return false;
	return true;
}

/* Behind the opening quotes. */
static bool skip_text(struct walk *walk)
{
	while (walk->at < walk->end) {
		unsigned char c = (unsigned char)*walk->at;
		size_t bytes;

		if (c == '"' || c == '\\') {
			walk->at++;
			if (c == '"')
				return true;
			if (!skip_escape(walk))
				return false;
			continue;
		}
		bytes = c < 0x20 ? 0 : utf8_valid(walk->at, (size_t)(walk->end - walk->at));
		if (!bytes)
			return false;
		walk->at += bytes;
	}
	return false;
}

static bool skip_value(struct walk *walk, int depth);

/* Behind the opening brace or bracket. */
static bool skip_members(struct walk *walk, char last, int depth)
{
	if (!depth)
		return false;
	if (skip_char(walk, last))
		return true;
	do {
		if (last == '}' &&
		    (!skip_char(walk, '"') || !skip_text(walk) || !skip_char(walk, ':')))
			return false;
		if (!skip_value(walk, depth - 1))
			return false;
	} while (skip_char(walk, ','));
	return skip_char(walk, last);
}

static bool skip_value(struct walk *walk, int depth)
{
	skip_blanks(walk);
	if (walk_word(walk, "{"))
		return skip_members(walk, '}', depth);
	if (walk_word(walk, "["))
		return skip_members(walk, ']', depth);
	if (walk_word(walk, "\""))
		return skip_text(walk);
	return walk_word(walk, "true") || walk_word(walk, "false") || walk_word(walk, "null") ||
	       skip_number(walk);
}

/* The value at walk, which is known to be one. */
static struct json_part walk_value(struct walk *walk)
{
	struct json_part part;

	skip_blanks(walk);
	part.at = walk->at;
	if (!skip_value(walk, JSON_WALK_DEPTH))
		return (struct json_part){ NULL, 0 };
	part.bytes = (size_t)(walk->at - part.at);
	return part;
}

bool json_walk_check(const char *bytes, size_t count, struct json_part *out)
{
	struct walk walk = { bytes, bytes + count };

	*out = walk_value(&walk);
	skip_blanks(&walk);
	return out->at && walk.at == walk.end;
}

char json_walk_kind(const struct json_part *part)
{
	return part->at ? *part->at : '\0';
}

struct json_part json_walk_member(const struct json_part *object, const char *key)
{
	struct walk walk = { object->at, object->at + object->bytes };
	size_t bytes = strlen(key);

	if (json_walk_kind(object) != '{')
		return (struct json_part){ NULL, 0 };
	walk.at++;
	while (skip_char(&walk, '"')) {
		const char *name = walk.at;
		bool found;
		struct json_part value;

		if (!skip_text(&walk))
			break;
		found = (size_t)(walk.at - name) == bytes + 1 && !memcmp(name, key, bytes);
		if (!skip_char(&walk, ':'))
			break;
		value = walk_value(&walk);
		if (found || !value.at)
			return value;
		skip_char(&walk, ',');
	}
	return (struct json_part){ NULL, 0 };
}

bool json_walk_next(const struct json_part *array, size_t *at, struct json_part *out)
{
	struct walk walk = { array->at, array->at + array->bytes };

	if (json_walk_kind(array) != '[')
		return false;
	walk.at += *at ? *at : 1;
	skip_char(&walk, ',');
	skip_blanks(&walk);
	if (walk.at == walk.end || *walk.at == ']')
		return false;
	*out = walk_value(&walk);
	*at = (size_t)(walk.at - array->at);
	return out->at;
}

bool json_walk_text(const struct json_part *part, struct buf *out)
{
	struct json_read json;
	struct buf object = { 0 };
	const char *text = NULL;

	if (json_walk_kind(part) != '"')
		return false;
	buf_text(&object, "{\"v\":");
	buf_add(&object, part->at, part->bytes);
	buf_char(&object, '}');
	if (!object.failed && !json_read_object(object.data, object.used, &json)) {
		text = json_read_get(&json, "v");
		buf_text(out, text ? text : "");
		json_read_fini(&json);
	}
	buf_fini(&object);
	return text && !out->failed;
}
