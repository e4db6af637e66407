/* Opens a page in the desktop's browser, with xdg-open. */
#ifndef KYMO_CMDS_BROWSER_H
#define KYMO_CMDS_BROWSER_H

#include <stdbool.h>

/* A link or a path. False: there is no desktop. */
bool browser_open(const char *link);

#endif
