/*
 * Names of compiled code, which programs such as node, Java, torch or python -X perf write to
 * /tmp/perf-PID.map. Anyone may create that file, so it counts only if it belongs to the process's
 * user; it is not followed if it is a link, and bounded.
 */
#ifndef KYMO_COLLECT_SYMBOLS_JIT_MAP_H
#define KYMO_COLLECT_SYMBOLS_JIT_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct jit_map;

/* NULL: there is none, or it is not acceptable. */
struct jit_map *jit_map_open(pid_t pid);
/* Parses one map from memory; for jit_map_open() and tests. NULL: out of memory. */
struct jit_map *jit_map_parse(const char *text, size_t bytes);
void jit_map_free(struct jit_map *map);
/* The name of the function that contains the address, and where it begins; NULL: none. Of two that
   overlap, the later one counts. */
const char *jit_map_find(const struct jit_map *map, uint64_t address, uint64_t *out_start);

#endif
