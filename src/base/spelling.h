/* Suggestions for mistyped words. */
#ifndef KYMO_BASE_SPELLING_H
#define KYMO_BASE_SPELLING_H

#include <stddef.h>

/* Number of letters to add, drop, change or swap; SIZE_MAX for words of more than 63 letters. */
size_t spelling_distance(const char *a, const char *b);
/* The closest word of the NULL-terminated list; NULL: none is close. */
const char *spelling_word(const char *typed, const char *const *words);

#endif
