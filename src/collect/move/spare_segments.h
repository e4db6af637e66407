/*
 * Files for the next segments of a process that seals one after another, made before it needs them:
 * allocating and zeroing memory takes most of what a row of a chain costs, and here it is not the
 * program's thread that pays.
 *
 * A spare is written aside and renamed into place, so it is whole or not there. The program takes
 * it by renaming it again; either side may be killed at any point. It is a new file each time: no
 * reader has ever seen another row in it.
 */
#ifndef KYMO_COLLECT_MOVE_SPARE_SEGMENTS_H
#define KYMO_COLLECT_MOVE_SPARE_SEGMENTS_H

#include <stdint.h>

/* Sees to it that `count` files of so many bytes are there, and that the control page says so.
   Returns how many were missing, or a negative errno: no room. */
int spare_segments_keep(int live_fd, int control_fd, uint64_t bytes, unsigned count);
void spare_segments_remove(int live_fd);

#endif
