/* The terminal of `kymo top`: an own screen, keys without Enter, and their end in any case. */
#ifndef KYMO_CMDS_TOP_TOP_TERMINAL_H
#define KYMO_CMDS_TOP_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

enum top_key {
	TOP_KEY_NONE,
	TOP_KEY_QUIT,
	TOP_KEY_PAUSE,
	TOP_KEY_SORT,
	TOP_KEY_THREADS,
	TOP_KEY_HELP,
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
};

/* In the parent of the process that draws: notes the state of the terminal. False: standard output
   is not a terminal, or there is no keyboard. */
bool top_terminal_prepare(void);
/* In the child: a screen of its own, no echo. */
void top_terminal_enter(void);
/* In the parent, also after the death of the child: as it was before, if it was entered. */
void top_terminal_restore(void);

/* Lines and columns of the terminal, at least 4 and 40; 24 and 80 if unknown. */
int top_terminal_lines(void);
int top_terminal_columns(void);
/* Replaces the screen by text, whose lines end with \n. */
void top_terminal_show(const char *text, size_t bytes);
/* Waits for a key; TOP_KEY_NONE after wait_ms, after a change of the terminal's size or for another
   key. The end of the input and Ctrl-C are TOP_KEY_QUIT. */
enum top_key top_terminal_key(int wait_ms);

#endif
