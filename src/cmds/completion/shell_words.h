/*
 * Words of a shell's command line (bash, zsh): what a person has typed, read without expanding
 * anything, and names written so that the shell takes them as they are.
 */
#ifndef KYMO_CMDS_COMPLETION_SHELL_WORDS_H
#define KYMO_CMDS_COMPLETION_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* The quotes that are open at a place of the line. */
enum shell_quotes { SHELL_NONE, SHELL_SINGLE, SHELL_DOUBLE, SHELL_ANSI }; /* ANSI: $'…' */

/* Adds the text of the word at line to out and returns where the word ends: at a blank outside of
   quotes or at end. *open: the quotes that are open there. */
const char *shell_words_read(const char *line, const char *end, struct buf *out,
			     enum shell_quotes *open);

/* Adds text so that the shell reads it back unchanged, inside the open quotes, which stay open.
   The result is one line without control characters. */
void shell_words_quote(struct buf *out, const char *text, enum shell_quotes open);

/* True if the text means itself in every shell without quotes. */
bool shell_words_inert(const char *text);

#endif
