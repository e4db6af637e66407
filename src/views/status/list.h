/* `kymo ls`: recordings and live programs. */
#ifndef KYMO_VIEWS_STATUS_LIST_H
#define KYMO_VIEWS_STATUS_LIST_H

#include <stdio.h>

#include "base/error.h"
#include "views/term/text.h"

/* Both take what store_list() finds. all: those too that ended long ago, beyond the newest 20.
   json: an array of objects, one on a line; always all. */
int list_print(const struct text_style *style, bool all, FILE *out, struct kymo_error *err);
int list_print_json(FILE *out, struct kymo_error *err);

#endif
