/* The policy on SQL text. The oracle is a tokenizer of its own, by the rules of DuckDB's parser: in
   a text that the policy lets pass, no function of `never` is called. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tables/sql_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Not taken from the policy: what it must refuse, whatever its own list holds. */
static const char *const never[] = {
	"enable_logging", "json_execute_serialized_sql",
	"query",	  "query_table",
	"read_csv",	  "read_csv_auto",
	"sniff_csv",	  "read_parquet",
	"parquet_scan",	  "parquet_metadata",
	"read_json",	  "read_ndjson",
	"read_text",	  "read_blob",
	"read_duckdb",	  "glob",
	"getenv",	  "duckdb_secrets",
	"checkpoint",	  "arrow_scan",
};

struct token {
	const char *at; /* of a word, without its quotes */
	size_t bytes;
	char kind; /* 'w' word, 's' string, 0 end, else the byte itself */
};

static bool begins_word(char c)
{
	return isalpha((unsigned char)c) || c == '_' || (c & 0x80);
}

/* DuckDB replaces these spaces of Unicode with blanks before it parses. */
static size_t unicode_space(const char *at)
{
	static const char *const spaces[] = {
		"\xc2\xa0",	"\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82", "\xe2\x80\x83",
		"\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
		"\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\x8b", "\xe2\x80\xaf", "\xe2\x81\x9f",
		"\xe3\x80\x80", "\xef\xbb\xbf",
	};

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (!strncmp(at, spaces[i], strlen(spaces[i])))
			return strlen(spaces[i]);
	return 0;
}

static const char *skip_comment(const char *at)
{
	unsigned depth = 1;

	for (at += 2; *at && depth; at++) {
		if (!strncmp(at, "/*", 2)) {
			depth++;
			at++;
		} else if (!strncmp(at, "*/", 2)) {
			depth--;
			at++;
		}
	}
	return at;
}

static const char *skip_space(const char *at)
{
	for (;;) {
		size_t wide = unicode_space(at);

		if (isspace((unsigned char)*at))
			at++;
		else if (wide)
			at += wide;
		else if (!strncmp(at, "--", 2))
			at += strcspn(at, "\r\n");
		else if (!strncmp(at, "/*", 2))
			at = skip_comment(at);
		else
			return at;
	}
}

/* After the opening quote; a doubled one stands for itself. */
static const char *skip_quoted(const char *at, char quote, bool backslash)
{
	for (; *at; at++) {
		if (backslash && *at == '\\' && at[1])
			at++;
		else if (*at == quote && at[1] == quote)
			at++;
		else if (*at == quote)
			return at + 1;
	}
	return at;
}

/* $tag$ … $tag$; NULL: no such string begins here. */
static const char *skip_dollars(const char *at)
{
	const char *end = at + 1;
	size_t tag;

	while (*end && *end != '$' && (begins_word(*end) || (end > at + 1 && isdigit(*end))))
		end++;
	if (*end != '$')
		return NULL;
	tag = (size_t)(end + 1 - at);
	for (end++; *end && strncmp(end, at, tag); end++)
		;
	return *end ? end + tag : end;
}

static const char *take_word(const char *at, struct token *out)
{
	*out = (struct token){ .at = at, .kind = 'w' };
	while (begins_word(*at) || isdigit((unsigned char)*at) || *at == '$') {
		if (unicode_space(at))
			break;
		at++;
	}
	out->bytes = (size_t)(at - out->at);
	return at;
}

/* A number takes the word that is glued to it along: that is an alias at most, never a call. */
static const char *take_other(const char *at, struct token *out)
{
	struct token glued;
	const char *end;

	*out = (struct token){ .at = at, .bytes = 1, .kind = *at };
	if (isdigit((unsigned char)*at))
		return take_word(at, &glued);
	end = *at == '$' ? skip_dollars(at) : NULL;
	if (!end)
		return *at == '$' ? take_word(at, &glued) : at + 1;
	out->kind = 's';
	return begins_word(*end) ? take_word(end, &glued) : end;
}

static const char *take_token(const char *at, struct token *out)
{
	*out = (struct token){ .at = at };
	if (!*at)
		return at;
	if (*at == '\'' || ((*at == 'e' || *at == 'E') && at[1] == '\'')) {
		out->kind = 's';
		return skip_quoted(at + 1 + (*at != '\''), '\'', *at != '\'');
	}
	if (*at == '"') {
		const char *end = skip_quoted(at + 1, '"', false);

		*out = (struct token){ at + 1, (size_t)(end - at - 1), 'w' };
		out->bytes -= out->bytes && end[-1] == '"';
		return end;
	}
	return begins_word(*at) && !unicode_space(at) ? take_word(at, out) : take_other(at, out);
}

static bool is_denied(const struct token *word)
{
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (word->bytes == strlen(never[i]) &&
		    !strncasecmp(word->at, never[i], word->bytes))
			return true;
	return false;
}

static bool calls_denied(const char *sql)
{
	struct token before = { 0 }, token;

	for (const char *at = skip_space(sql); *at; at = skip_space(at)) {
		at = take_token(at, &token);
		if (token.kind == '(' && before.kind == 'w' && is_denied(&before))
			return true;
		before = token;
	}
	return false;
}

static void check_type(unsigned type)
{
	struct kymo_error err = { 0 };
	int rc = sql_policy_check_statement((duckdb_statement_type)type, &err);

	if (type == DUCKDB_STATEMENT_TYPE_SELECT || type == DUCKDB_STATEMENT_TYPE_EXPLAIN)
		return;
	if (!rc || !err.text[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct kymo_error err = { 0 };
	char *sql = malloc(bytes + 1); /* exactly: a byte too far is found */

	if (!sql)
		return 0;
	memcpy(sql, data, bytes);
	sql[bytes] = '\0';
	check_type(bytes ? data[0] : 0);
	if (sql_policy_check_functions(sql, &err)) {
		if (!err.text[0])
			abort();
	} else if (calls_denied(sql)) {
		abort();
	}
	free(sql);
	return 0;
}
