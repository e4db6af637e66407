/*
 * Lines of a client on a descriptor, each a message. A line that is too long is dropped while it
 * arrives, so that memory is bounded.
 */
#ifndef KYMO_CMDS_MCP_MCP_INPUT_H
#define KYMO_CMDS_MCP_MCP_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "cmds/mcp/json_walk.h"

#define MCP_LINE_MOST (1u << 20) /* bytes of a message */

struct mcp_input {
	int fd;
	char *bytes; /* MCP_LINE_MOST + 1 */
	size_t begin, used; /* what is not taken yet */
	size_t looked; /* by mcp_input_cancels(): complete lines before are known */
	bool dropping; /* until the end of a line that was too long */
	bool ended;
};

int mcp_input_init(struct mcp_input *input, int fd);
void mcp_input_fini(struct mcp_input *input);

/* Reads once, and waits for it unless something is there. False: the client has gone, or there is
   no room: take a line first. */
bool mcp_input_read(struct mcp_input *input);
/* The next complete line, without its newline. It stays valid until the next read. *too_long: a
   line was dropped instead, and *line is empty. */
bool mcp_input_line(struct mcp_input *input, const char **line, size_t *bytes, bool *too_long);
/* Whether a line that has come, and was not looked at yet, cancels the request of this id. */
bool mcp_input_cancels(struct mcp_input *input, const struct json_part *id);

#endif
