/* What kymo has to say while a program of somebody else runs: whole lines on stderr, or nothing. */
#ifndef KYMO_COLLECT_RUN_SAY_H
#define KYMO_COLLECT_RUN_SAY_H

#include <stdbool.h>

void say_quiet(bool quiet);
/* "kymo: …", one line, in one write: the program writes there too. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
