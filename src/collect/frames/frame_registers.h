/* The registers of a thread in DWARF numbering. */
#ifndef KYMO_COLLECT_FRAMES_FRAME_REGISTERS_H
#define KYMO_COLLECT_FRAMES_FRAME_REGISTERS_H

#define FRAME_REGISTERS 33 /* the most of all machines */

#if defined(__x86_64__)
#define FRAME_PC 16
#define FRAME_SP 7
#define FRAME_FP 6
#elif defined(__aarch64__)
#define FRAME_PC 32
#define FRAME_SP 31
#define FRAME_FP 29
#else
#define FRAME_PC 0
#define FRAME_SP 0
#define FRAME_FP 0
#endif

#endif
