/* What was meant by what was typed. */
#ifndef KYMO_BASE_SPELLING_H
#define KYMO_BASE_SPELLING_H

#include <stddef.h>

/* Letters to add, drop, change or swap; words of more than 63 are far from all: SIZE_MAX. */
size_t spelling_distance(const char *a, const char *b);
/* The word of the list (ended by NULL) that is nearest to what was typed; NULL where none is
   near. */
const char *spelling_word(const char *typed, const char *const *words);

#endif
