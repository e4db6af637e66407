/* Messages of kymo while the recorded program runs: whole lines on stderr, or none with --quiet. */
#ifndef KYMO_COLLECT_SAY_H
#define KYMO_COLLECT_SAY_H

#include <stdbool.h>

void say_quiet(bool quiet);
/* Prints "kymo: …" as one line with one write(), because the program writes to stderr, too. Control
   characters of paths and names are escaped. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
