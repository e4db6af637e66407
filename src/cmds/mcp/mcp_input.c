#include "cmds/mcp/mcp_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int mcp_input_init(struct mcp_input *input, int fd)
{
	*input = (struct mcp_input){ .fd = fd, .bytes = malloc(MCP_LINE_MOST + 1) };
	return input->bytes ? 0 : -ENOMEM;
}

void mcp_input_fini(struct mcp_input *input)
{
	free(input->bytes);
	input->bytes = NULL;
}

/* Moves what is not taken yet to the front. */
static void mcp_input_make_room(struct mcp_input *input)
{
	memmove(input->bytes, input->bytes + input->begin, input->used - input->begin);
	input->used -= input->begin;
	input->looked = input->looked > input->begin ? input->looked - input->begin : 0;
	input->begin = 0;
}

bool mcp_input_read(struct mcp_input *input)
{
	ssize_t count;

	if (input->begin)
		mcp_input_make_room(input);
	if (input->ended || input->used == MCP_LINE_MOST + 1)
		return false;
	do
		count = read(input->fd, input->bytes + input->used,
			     MCP_LINE_MOST + 1 - input->used);
	while (count < 0 && errno == EINTR);
	input->ended = count <= 0;
	input->used += count > 0 ? (size_t)count : 0;
	return count > 0;
}

/* The buffer is full of one line: forget it. */
static void drop_line(struct mcp_input *input)
{
	input->begin = input->used;
	input->looked = input->used;
	input->dropping = true;
}

bool mcp_input_line(struct mcp_input *input, const char **line, size_t *bytes, bool *too_long)
{
	char *begin = input->bytes + input->begin;
	char *end = memchr(begin, '\n', input->used - input->begin);

	*too_long = false;
	if (!end) {
		if (input->dropping || (input->used - input->begin) > MCP_LINE_MOST)
			drop_line(input);
		return false;
	}
	input->begin = (size_t)(end + 1 - input->bytes);
	*too_long = input->dropping;
	*line = begin;
	*bytes = input->dropping ? 0 : (size_t)(end - begin);
	input->dropping = false;
	return true;
}

static bool is_cancellation(const char *line, size_t bytes, const struct json_part *id)
{
	struct json_part message, params, method, which;

	if (!json_walk_check(line, bytes, &message))
		return false;
	method = json_walk_member(&message, "method");
	params = json_walk_member(&message, "params");
	which = json_walk_member(&params, "requestId");
	return method.bytes == strlen("\"notifications/cancelled\"") &&
	       !memcmp(method.at, "\"notifications/cancelled\"", method.bytes) &&
	       which.bytes == id->bytes && !memcmp(which.at, id->at, id->bytes);
}

bool mcp_input_cancels(struct mcp_input *input, const struct json_part *id)
{
	size_t at = input->looked > input->begin ? input->looked : input->begin;
	bool found = false;
	char *end;

	while ((end = memchr(input->bytes + at, '\n', input->used - at))) {
		found |= is_cancellation(input->bytes + at, (size_t)(end - input->bytes) - at, id);
		at = (size_t)(end + 1 - input->bytes);
	}
	input->looked = at;
	return found;
}
