/*
 * Prepares files for the next segments of a process that fills them quickly. Allocating and zeroing
 * memory is most of the cost of a row in a chain; this moves it from the program's thread to the
 * collector.
 *
 * A spare segment is written under a temporary name and renamed, so it is complete or missing. The
 * program takes it by renaming it again; either process may be killed at any point. It is always a
 * new file, so no reader has seen other rows in it.
 */
#ifndef KYMO_COLLECT_MOVE_SPARE_SEGMENTS_H
#define KYMO_COLLECT_MOVE_SPARE_SEGMENTS_H

#include <stdint.h>

/* Provides `count` files of `bytes` bytes, and announces the size in the control page. Returns how
   many were missing, or a negative errno (no space). */
int spare_segments_keep(int live_fd, int control_fd, uint64_t bytes, unsigned count);
void spare_segments_remove(int live_fd);

#endif
