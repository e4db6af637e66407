/* The constants that .sql files of this layer name; see tools/embed-sql. */
#ifndef KYMO_TABLES_SQL_CONSTANTS_H
#define KYMO_TABLES_SQL_CONSTANTS_H

#include <kymo/device.h>

#include "base/format.h"
#include "base/schema.h"

#define SQL_WORD(upper, word) "'" word "', "
/* The elements of a list: the word of kind k is its element k + 1. */
#define DEVICE_KIND_WORDS KYMO_DEVICE_KINDS(SQL_WORD) "'?'"

#endif
