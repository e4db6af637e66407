/* An ENUM is a dictionary in Arrow, and nanoarrow writes none: its values are written out, as
   VARCHAR is. */
#ifndef KYMO_TABLES_ARROW_ENUMS_H
#define KYMO_TABLES_ARROW_ENUMS_H

#include <nanoarrow/nanoarrow.h>

/* The columns as they are written; the caller releases it. 0 or an errno. */
int arrow_enums_plain_schema(const struct ArrowSchema *schema, struct ArrowSchema *out);
/* Turns the dictionaries of one chunk into what the plain schema says, at any depth. 0 or an
   errno. */
int arrow_enums_plain_array(const struct ArrowSchema *schema, struct ArrowArray *array,
			    struct ArrowError *why);

#endif
