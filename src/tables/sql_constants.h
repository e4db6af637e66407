/* The constants that .sql files of this layer name; see tools/embed-sql. */
#ifndef KYMO_TABLES_SQL_CONSTANTS_H
#define KYMO_TABLES_SQL_CONSTANTS_H

#include <kymo/device.h>

#include "base/schema.h"
#include "record/memory/memory.h"
#include "tables/packed/packed_foreign.h"

#define DEVICE_BOTH_ENDS (SCHEMA_DEVICE_START | SCHEMA_DEVICE_END)
#define DEVICE_DEPTH_ONE KYMO_DEVICE_DEPTH(1)
#define DEVICE_DEPTH_MASK KYMO_DEVICE_DEPTH(255)

#define COLLECTIVE_BEGUN (SCHEMA_COLLECTIVE_START | SCHEMA_COLLECTIVE_BEGUN)
#define COLLECTIVE_ENDED (SCHEMA_COLLECTIVE_END | SCHEMA_COLLECTIVE_ENDED)

#define SQL_WORD(upper, word) "'" word "', "
/* The elements of a list; element k + 1 is the word of kind k. */
#define DEVICE_KIND_WORDS KYMO_DEVICE_KINDS(SQL_WORD) "'?'"

#endif
