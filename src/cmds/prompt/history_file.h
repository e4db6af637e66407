/* The lines that were typed at the prompt, in $XDG_STATE_HOME/kymo/query_history, for its user
   alone. Several prompts can append. */
#ifndef KYMO_CMDS_PROMPT_HISTORY_FILE_H
#define KYMO_CMDS_PROMPT_HISTORY_FILE_H

/* Opens it (0600) and calls each() with its newest lines, the oldest of them first. Returns a
   descriptor to append to, or -1: then there is no history. */
int history_file_open(void (*each)(void *context, const char *line), void *context);
void history_file_add(int fd, const char *line);
void history_file_close(int fd);

#endif
