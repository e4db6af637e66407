/* What a descriptor of another process is: a file, a pipe, a socket with its addresses. */
#ifndef KYMO_COLLECT_WAIT_WAIT_FD_H
#define KYMO_COLLECT_WAIT_WAIT_FD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* Appends a description for a person. */
void wait_fd_describe(struct buf *out, pid_t pid, long fd);
/* Appends the peer of an internet socket, "127.0.0.1:8080", or nothing. Returns whether there is
   one. Reads the kernel's list of sockets. */
bool wait_fd_add_peer(struct buf *out, pid_t pid, uint64_t inode);

#endif
