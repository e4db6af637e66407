/* Stands in for edit_line.c where kymo is built without libedit. */
#include "cmds/prompt/edit.h"

#include <errno.h>

struct edit *edit_open(edit_words *words, void *context, struct kymo_error *err)
{
	(void)words;
	(void)context;
	error_set(err, ENOTSUP,
		  "this kymo was built without libedit: no history, no completion; build it with "
		  "libedit-dev");
	return NULL;
}

void edit_close(struct edit *edit)
{
	(void)edit;
}

enum edit_end edit_read(struct edit *edit, const char *prompt, const char **line)
{
	(void)edit;
	(void)prompt;
	*line = "";
	return EDIT_ENDED;
}

void edit_remember(struct edit *edit, const char *line)
{
	(void)edit;
	(void)line;
}
