/* Runs a tool in a child: its output is bounded, its time is limited, the client can cancel it. */
#ifndef KYMO_CMDS_MCP_MCP_CALL_H
#define KYMO_CMDS_MCP_MCP_CALL_H

#include <stdbool.h>

#include "cmds/mcp/mcp_input.h"
#include "cmds/mcp/mcp_tools.h"

struct mcp_answer {
	struct buf text; /* what the tool found: at most MCP_ANSWER_MOST bytes, escaped lines */
	struct buf remarks; /* of kymo: what was left out, or why it failed */
	bool failed;
	bool cancelled; /* the client does not want it any more, or has gone */
};

/* id: of the request, for which a cancellation is looked for in the input. */
void mcp_call(const struct mcp_tool *tool, const struct mcp_arguments *arguments,
	      const struct json_part *id, struct mcp_input *input, struct mcp_answer *out);
void mcp_call_fini(struct mcp_answer *answer);

#endif
