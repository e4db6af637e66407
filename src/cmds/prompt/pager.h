/*
 * Output that is longer than the screen goes through a pager, as that of git does: $PAGER, or less,
 * with LESS=FRX unless it is set. A process between the command and the pager keeps the first
 * screen, so that a short output is printed as it is, and no pager starts.
 */
#ifndef KYMO_CMDS_PROMPT_PAGER_H
#define KYMO_CMDS_PROMPT_PAGER_H

#include <stdbool.h>

/* Redirects standard output into that process. False: it stays as it is, because standard input or
   output is not a terminal, PAGER is empty or cat, TERM is dumb, or there is no less. */
bool pager_begin(void);
/* Restores standard output and waits until the pager has ended. Also after pager_begin() has
   returned false. */
void pager_end(void);

#endif
