/*
 * Changing a word in a file that another process has mapped. The recorded program may cut its
 * files short at any moment (it is theirs, or it is broken), and a mapped page that is no longer
 * in the file raises SIGBUS.
 *
 * Reading avoids that by pread(). A compare-and-swap needs the mapping. So: the length is checked
 * first, which finds every file that was cut before; what is cut between that check and the swap
 * ends in our handler, which jumps out of the one instruction that it guards. Any other SIGBUS is
 * as fatal as without us.
 *
 * One thread only. Install it after the program was started, so that it inherits none of this.
 */
#ifndef KYMO_COLLECT_RUN_GUARD_H
#define KYMO_COLLECT_RUN_GUARD_H

#include <stdint.h>

void guard_install(void);
/* Swaps the word at `offset` of the open file from `expected` to `wanted`. 1: done; 0: it held
   something else; a negative errno: it cannot be reached. */
int guard_swap(int fd, uint64_t offset, uint64_t expected, uint64_t wanted);
/* Adds to it. 0 or a negative errno. */
int guard_add(int fd, uint64_t offset, uint64_t value);

#endif
