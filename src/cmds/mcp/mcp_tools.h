/* What an assistant can ask: a row for each tool. A tool runs in a child (mcp_call.h). */
#ifndef KYMO_CMDS_MCP_MCP_TOOLS_H
#define KYMO_CMDS_MCP_MCP_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "serve/json_read.h"

#define MCP_ANSWER_MOST (16u << 10) /* bytes of the text of an answer, before JSON */

struct mcp_arguments {
	struct json_read json;
	const char *target; /* of the command line: where the arguments name none. NULL: latest */
	bool no_source;
};

struct mcp_parameter {
	const char *name; /* NULL ends the list */
	const char *type; /* of JSON Schema: string, integer, boolean */
	bool required;
	const char *about;
};

struct mcp_tool {
	const char *name; /* NULL ends the table */
	const char *title, *about;
	const struct mcp_parameter *parameters;
	const char *more; /* how to get what did not fit into the answer */
	/* Prints the answer on stdout and remarks on stderr. Returns an exit status. */
	int (*run)(const struct mcp_arguments *arguments);
};

extern const struct mcp_tool mcp_tools[];

/* NULL: there is no such tool. */
const struct mcp_tool *mcp_tools_find(const char *name);
/* Adds the array of tools/list. */
void mcp_tools_list(struct buf *out, bool no_source);
/* Whether the arguments are those of the tool; if not, a sentence in *why. */
bool mcp_tools_check(const struct mcp_tool *tool, const struct json_read *arguments,
		     struct buf *why);

/* The recording of the argument `key`, or that of the command line; NULL: latest. False: it is an
   address, with a sentence on stderr. */
bool mcp_tools_target(const struct mcp_arguments *arguments, const char *key, const char **out);
bool mcp_tools_flag(const struct mcp_arguments *arguments, const char *key);
uint64_t mcp_tools_number(const struct mcp_arguments *arguments, const char *key,
			  uint64_t otherwise, uint64_t most);

struct tables;
struct kymo_error;
/* Opens the recording of `target` for a query of at most so long, in a child of cmds_guarded(). */
int mcp_tools_open(const char *target, uint32_t timeout_ms, struct tables **out,
		   struct kymo_error *err);

int mcp_findings(const struct mcp_arguments *arguments);
int mcp_query(const struct mcp_arguments *arguments);
int mcp_schema(const struct mcp_arguments *arguments);
int mcp_source(const struct mcp_arguments *arguments);

#endif
