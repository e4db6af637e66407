/*
 * What may continue an incomplete SQL text: tables, and columns of the tables that the text names.
 * kymo's own tables are known without a recording; those of the program are read from it, without
 * DuckDB, unless it is packed.
 */
#ifndef KYMO_CMDS_COMPLETION_SQL_WORDS_H
#define KYMO_CMDS_COMPLETION_SQL_WORDS_H

#include <stddef.h>

struct sql_words;

/* target: as of a command line; NULL: latest. A recording that cannot be read has no tables of its
   own. NULL: out of memory. */
struct sql_words *sql_words_open(const char *target);
void sql_words_close(struct sql_words *words);

/* Where the word begins that ends with the text: a name, with dots. */
size_t sql_words_begin(const char *text);

/* Calls offer() with each word that begins like the last one of `before`, and its meaning, in the
   order of the alphabet within tables and columns. after: the text behind the cursor, in which
   tables may be named, too. */
void sql_words_offer(const struct sql_words *words, const char *before, const char *after,
		     void (*offer)(void *context, const char *word, const char *meaning),
		     void *context);

#endif
