#include "cmds/mcp/mcp_tools.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "cmds/cmds.h"
#include "cmds/http_client.h"
#include "tables/self_limits.h"
#include "tables/tables.h"
#include "views/query/json.h"
#include "views/term/target.h"
#include "views/term/text.h"

/* ---- tools that are commands ---------------------------------------------------------------- */

/* Words of command lines, which are not constant in C. */
static char word_ls[] = "ls", word_f[] = "-f", word_json[] = "json", word_backtrace[] = "backtrace",
	    word_why[] = "--why", word_end[] = "--", word_compare[] = "compare", word_a[] = "--a",
	    word_b[] = "--b", word_all[] = "--all";

static int mcp_recordings(const struct mcp_arguments *arguments)
{
	char *words[] = { word_ls, word_f, word_json, NULL };

	(void)arguments;
	return cmd_ls(3, words);
}

static int mcp_why(const struct mcp_arguments *arguments)
{
	bool last = mcp_tools_flag(arguments, "last");
	const char *target;
	char *words[5];
	int count = 0;

	if (!mcp_tools_target(arguments, "target", &target))
		return CMDS_FAILED;
	words[count++] = word_backtrace;
	if (!last)
		words[count++] = word_why;
	words[count++] = word_end; /* no target is an option */
	if (target)
		words[count++] = (char *)target;
	words[count] = NULL;
	return cmd_backtrace(count, words);
}

static int mcp_compare(const struct mcp_arguments *arguments)
{
	const char *a, *b;
	char *words[7];
	int count = 0;

	if (!mcp_tools_target(arguments, "a", &a) || !mcp_tools_target(arguments, "b", &b))
		return CMDS_FAILED;
	words[count++] = word_compare;
	words[count++] = word_a;
	words[count++] = (char *)a;
	words[count++] = word_b;
	words[count++] = (char *)b;
	if (mcp_tools_flag(arguments, "all"))
		words[count++] = word_all;
	words[count] = NULL;
	return cmd_compare(count, words);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define TARGET_PARAMETER \
	{ \
		"target", "string", false, \
			"recording: a path, name or pid as the tool recordings lists them, or " \
			"latest" \
	}

static const struct mcp_parameter no_parameters[] = { { NULL, NULL, false, NULL } };

static const struct mcp_parameter target_parameters[] = { TARGET_PARAMETER,
							  { NULL, NULL, false, NULL } };

static const struct mcp_parameter query_parameters[] = {
	{ "sql", "string", true, "one SELECT of DuckDB, or its short form FROM table" },
	TARGET_PARAMETER,
	{ "limit", "integer", false, "print at most this many rows (50; at most 1000)" },
	{ "timeout", "integer", false,
	  "seconds after which the query is cancelled (10; at most 60)" },
	{ NULL, NULL, false, NULL }
};

static const struct mcp_parameter schema_parameters[] = {
	{ "table", "string", false,
	  "schema.table: its columns with their types and meaning; without it, a list of all "
	  "tables" },
	TARGET_PARAMETER,
	{ NULL, NULL, false, NULL }
};

static const struct mcp_parameter why_parameters[] = {
	TARGET_PARAMETER,
	{ "last", "boolean", false, "the last sampled stacks of a program that has ended" },
	{ NULL, NULL, false, NULL }
};

static const struct mcp_parameter compare_parameters[] = {
	{ "a", "string", true, "recording before the change" },
	{ "b", "string", true, "recording after the change" },
	{ "all", "boolean", false, "include differences that are not significant" },
	{ NULL, NULL, false, NULL }
};

static const struct mcp_parameter source_parameters[] = {
	{ "file", "string", false,
	  "name of a file as the list has it; without it, a list of the files by time" },
	{ "from", "integer", false, "first line (that of the costliest part)" },
	{ "lines", "integer", false, "number of lines (60; at most 400)" },
	TARGET_PARAMETER,
	{ NULL, NULL, false, NULL }
};

const struct mcp_tool mcp_tools[] = {
	{ "recordings", "Recordings and running programs",
	  "Lists running programs and recordings of this machine, the newest first, as JSON.",
	  no_parameters, "kymo ls -f json in a shell prints all", mcp_recordings },
	{ "findings", "What holds a program up",
	  "Findings about where the time or memory of a recorded run went, each with its numbers, "
	  "its "
	  "place in the source and what to try, then the costliest regions. Begin here.",
	  target_parameters, "ask for single numbers with the tool query", mcp_findings },
	{ "query", "SQL over a recording",
	  "Runs one read-only SELECT (DuckDB) on a recording. The tool schema lists tables and "
	  "columns. "
	  "Durations and moments (*_ns) are nanoseconds. Prefer aggregates to raw rows.",
	  query_parameters, "select fewer columns, aggregate, or use LIMIT and OFFSET", mcp_query },
	{ "schema", "Tables and columns", "Describes the tables of a recording, or one table.",
	  schema_parameters, "name a table to see its columns", mcp_schema },
	{ "why", "What a program waits for",
	  "Stacks of all threads of a running program with what each waits for and how long, "
	  "without "
	  "stopping it; of a job, which rank the others wait for.",
	  why_parameters, "kymo backtrace --why PID in a shell prints all", mcp_why },
	{ "compare", "Two runs compared",
	  "Compares the step and region times of two runs with confidence intervals.",
	  compare_parameters, "kymo compare A B in a shell prints all", mcp_compare },
	{ "source", "Source lines with their time",
	  "Source files that a recording names, with samples, time and allocations of their lines.",
	  source_parameters, "ask for other lines with from and lines", mcp_source },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};

const struct mcp_tool *mcp_tools_find(const char *name)
{
	for (const struct mcp_tool *tool = mcp_tools; tool->name; tool++)
		if (!strcmp(tool->name, name))
			return tool;
	return NULL;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void mcp_tools_key(struct buf *out, const char *key, const char *text)
{
	buf_print(out, "\"%s\":", key);
	json_text(out, text, strlen(text));
}

static void add_schema(struct buf *out, const struct mcp_parameter *parameters)
{
	bool first = true;

	buf_text(out, "{\"type\":\"object\",\"properties\":{");
	for (const struct mcp_parameter *one = parameters; one->name; one++) {
		buf_print(out, "%s\"%s\":{\"type\":\"%s\",", one == parameters ? "" : ",",
			  one->name, one->type);
		mcp_tools_key(out, "description", one->about);
		buf_char(out, '}');
	}
	buf_text(out, "},\"required\":[");
	for (const struct mcp_parameter *one = parameters; one->name; one++)
		if (one->required) {
			buf_print(out, "%s\"%s\"", first ? "" : ",", one->name);
			first = false;
		}
	buf_text(out, "],\"additionalProperties\":false}");
}

static void add_tool(struct buf *out, const struct mcp_tool *tool)
{
	buf_char(out, '{');
	mcp_tools_key(out, "name", tool->name);
	buf_char(out, ',');
	mcp_tools_key(out, "title", tool->title);
	buf_char(out, ',');
	mcp_tools_key(out, "description", tool->about);
	buf_text(out, ",\"inputSchema\":");
	add_schema(out, tool->parameters);
	buf_text(out, ",\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}");
}

void mcp_tools_list(struct buf *out, bool no_source)
{
	buf_char(out, '[');
	for (const struct mcp_tool *tool = mcp_tools; tool->name; tool++) {
		if (no_source && tool->run == mcp_source)
			continue;
		buf_text(out, tool == mcp_tools ? "" : ",");
		add_tool(out, tool);
	}
	buf_char(out, ']');
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool is_of_type(const struct json_read_field *field, const char *type)
{
	if (!strcmp(type, "string"))
		return field->text;
	if (field->text)
		return false;
	if (!strcmp(type, "boolean"))
		return !strcmp(field->value, "true") || !strcmp(field->value, "false");
	return strlen(field->value) < 16 && !field->value[strspn(field->value, "0123456789")];
}

static const struct mcp_parameter *find_parameter(const struct mcp_tool *tool, const char *name)
{
	for (const struct mcp_parameter *one = tool->parameters; one->name; one++)
		if (!strcmp(one->name, name))
			return one;
	return NULL;
}

static void say_parameters(const struct mcp_tool *tool, struct buf *why)
{
	buf_print(why, "; %s takes", tool->name);
	for (const struct mcp_parameter *one = tool->parameters; one->name; one++)
		buf_print(why, "%s %s (%s)", one == tool->parameters ? "" : ",", one->name,
			  one->type);
	buf_text(why, tool->parameters->name ? "" : " no arguments");
}

bool mcp_tools_check(const struct mcp_tool *tool, const struct json_read *arguments,
		     struct buf *why)
{
	for (size_t i = 0; i < arguments->count && !why->used; i++) {
		const struct json_read_field *field = &arguments->fields[i];
		const struct mcp_parameter *parameter = field->inside
								? NULL
								: find_parameter(tool, field->key);

		if (!parameter) {
			buf_text(why, "unknown argument ");
			text_visible(why, field->key, strnlen(field->key, 64));
		} else if ((field->text || strcmp(field->value, "null") != 0) &&
			   !is_of_type(field, parameter->type))
			buf_print(why, "the argument %s is not of type %s", parameter->name,
				  parameter->type);
	}
	for (const struct mcp_parameter *one = tool->parameters; one->name && !why->used; one++)
		if (one->required && !json_read_get(arguments, one->name))
			buf_print(why, "the argument %s is missing", one->name);
	if (why->used)
		say_parameters(tool, why);
	return !why->used;
}

bool mcp_tools_target(const struct mcp_arguments *arguments, const char *key, const char **out)
{
	const char *named = json_read_get(&arguments->json, key);

	*out = named && *named ? named : arguments->target;
	if (!*out || !http_client_is(*out))
		return true;
	cmds_wrong("mcp",
		   "%s is an address, and only recordings of this machine are read; start kymo mcp "
		   "there, for example with ssh",
		   *out);
	return false;
}

bool mcp_tools_flag(const struct mcp_arguments *arguments, const char *key)
{
	const char *value = json_read_get(&arguments->json, key);

	return value && !strcmp(value, "true");
}

uint64_t mcp_tools_number(const struct mcp_arguments *arguments, const char *key,
			  uint64_t otherwise, uint64_t most)
{
	const char *value = json_read_get(&arguments->json, key);
	uint64_t number = value ? strtoull(value, NULL, 10) : otherwise;

	return number < most ? number : most;
}

int mcp_tools_open(const char *target, uint32_t timeout_ms, struct tables **out,
		   struct kymo_error *err)
{
	struct tables_options options = { .timeout_ms = timeout_ms };
	uint64_t cpu_seconds = ((uint64_t)timeout_ms / 1000 + 1) * (uint64_t)get_nprocs();
	char path[KYMO_PATH_BYTES];
	int rc = target_resolve(target, path, sizeof(path), err);

	*out = NULL;
	if (rc)
		return rc;
	cmds_say_latest(target, path);
	rc = tables_open(path, &options, out, err);
	if (!rc)
		rc = self_limits_set(0, (uint32_t)cpu_seconds, err);
	if (!rc)
		cmds_interruptible(*out);
	return rc;
}
