/* What an assistant sends to kymo mcp: any bytes. What is found in a message lies inside of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/mcp/json_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must_be_inside(const struct json_part *part, const struct json_part *whole)
{
	struct json_part again;

	if (!part->at)
		return;
	if (part->at < whole->at || part->bytes > whole->bytes ||
	    part->at + part->bytes > whole->at + whole->bytes)
		abort();
	if (!json_walk_check(part->at, part->bytes, &again))
		abort(); /* a part of a value is a value */
}

static void look(const struct json_part *message)
{
	static const char *const keys[] = { "id", "method", "params", "arguments", "name", "" };
	struct buf text = { 0 };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct json_part member = json_walk_member(message, keys[i]);

		must_be_inside(&member, message);
		buf_reset(&text);
		if (json_walk_text(&member, &text) && text.used > member.bytes)
			abort(); /* decoding makes no text longer */
	}
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	/* A copy of exactly that size: a byte too far is found. */
	char *copy = malloc(bytes ? bytes : 1);
	struct json_part message, params, one;
	size_t at = 0;

	if (!copy)
		return 0;
	memcpy(copy, data, bytes);
	if (json_walk_check(copy, bytes, &message)) {
		look(&message);
		params = json_walk_member(&message, "params");
		if (params.at)
			look(&params);
		while (json_walk_next(&message, &at, &one)) {
			must_be_inside(&one, &message);
			look(&one);
		}
	}
	free(copy);
	return 0;
}
