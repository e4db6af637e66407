/* A line that a person types, with history and completion: by libedit, which is loaded when it is
   needed. */
#ifndef KYMO_CMDS_PROMPT_EDIT_H
#define KYMO_CMDS_PROMPT_EDIT_H

#include "base/buf.h"
#include "base/error.h"

struct edit;

enum edit_end { EDIT_LINE, EDIT_CANCELLED, EDIT_ENDED }; /* Enter; Ctrl-C; Ctrl-D */

/* Adds the words that can stand at *begin of the text before the cursor, each ended by NUL. */
typedef void edit_words(void *context, const char *before, const char *after, size_t *begin,
			struct buf *out);

/* NULL, with a sentence, if there is no libedit. */
struct edit *edit_open(edit_words *words, void *context, struct kymo_error *err);
void edit_close(struct edit *edit); /* NULL is fine */
/* *line is valid until the next call, and has no newline. */
enum edit_end edit_read(struct edit *edit, const char *prompt, const char **line);
void edit_remember(struct edit *edit, const char *line);

#endif
