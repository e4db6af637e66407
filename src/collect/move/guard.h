/*
 * Changes a word in a file that another process has mapped. The recorded program owns its files and
 * may truncate them at any moment; access to a mapped page beyond the end of the file raises
 * SIGBUS.
 *
 * Reads use pread(). A compare-and-swap needs the mapping: the length is checked first, and if the
 * file is truncated between the check and the swap, our handler jumps out of the one guarded
 * instruction. Any other SIGBUS stays fatal.
 *
 * For one thread. Install it after the program was started, so that the program does not inherit
 * it.
 */
#ifndef KYMO_COLLECT_MOVE_GUARD_H
#define KYMO_COLLECT_MOVE_GUARD_H

#include <stdint.h>

void guard_install(void);
/* Swaps the word at `offset` of the open file from `expected` to `wanted`. 1: done; 0: the word had
   another value; a negative errno: the word is not accessible. */
int guard_swap(int fd, uint64_t offset, uint64_t expected, uint64_t wanted);
/* Adds to the word at `offset`. 0 or a negative errno. */
int guard_add(int fd, uint64_t offset, uint64_t value);

#endif
