#include "base/spelling.h"

#include <stdint.h>
#include <string.h>

#define LETTERS 63

static size_t spelling_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t spelling_distance(const char *a, const char *b)
{
	size_t grid[LETTERS + 1][LETTERS + 1], rows = strlen(a), columns = strlen(b);

	if (rows > LETTERS || columns > LETTERS)
		return SIZE_MAX;
	for (size_t i = 0; i <= rows; i++) {
		for (size_t j = 0; j <= columns; j++) {
			if (!i || !j) {
				grid[i][j] = i + j;
				continue;
			}
			grid[i][j] = grid[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			grid[i][j] = spelling_least(
				grid[i][j], spelling_least(grid[i - 1][j], grid[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				grid[i][j] = spelling_least(grid[i][j], grid[i - 2][j - 2] + 1);
		}
	}
	return grid[rows][columns];
}

const char *spelling_word(const char *typed, const char *const *words)
{
	size_t best = strlen(typed) > 4 ? 3 : 2, far;
	const char *near = NULL;

	for (; *words; words++) {
		far = spelling_distance(typed, *words);
		if (strlen(typed) >= 3 && !strncmp(typed, *words, strlen(typed)))
			far = 1; /* a prefix: "snap" */
		if (far < best) {
			best = far;
			near = *words;
		}
	}
	return near;
}
