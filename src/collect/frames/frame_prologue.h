/*
 * The rules of a function without call frame information, as hand-written kernels of MKL and
 * OpenBLAS are: from the instructions at its beginning, which save registers and move the stack
 * pointer. A guess: the caller checks that it leads to a return address.
 */
#ifndef KYMO_COLLECT_FRAMES_FRAME_PROLOGUE_H
#define KYMO_COLLECT_FRAMES_FRAME_PROLOGUE_H

#include "collect/frames/frame_rules.h"

/* code: from the beginning of the function; reached: how far the thread was in it. False: this
   machine is not supported, or the stack pointer is changed in another way. */
bool frame_prologue_read(const unsigned char *code, size_t bytes, uint64_t reached,
			 struct frame_rules *out);
/* Whether code[0, bytes) ends with a call. */
bool frame_prologue_is_call(const unsigned char *code, size_t bytes);
/* Whether code[0, bytes) ends with a call of a fixed place; *out: how far after its end that is. */
bool frame_prologue_call_distance(const unsigned char *code, size_t bytes, int32_t *out);
#define FRAME_PROLOGUE_CALL_BYTES 7 /* of the longest call */

#endif
