/* `kymo ls`: recordings and live programs. */
#ifndef KYMO_VIEWS_STATUS_LIST_H
#define KYMO_VIEWS_STATUS_LIST_H

#include <stdio.h>

#include "base/error.h"
#include "views/term/text.h"

/* Both print the recordings of store_list(). all: not only the newest 20 of those that have ended.
   json: an array of objects, one per line; always all. */
int list_print(const struct text_style *style, bool all, FILE *out, struct kymo_error *err);
int list_print_json(FILE *out, struct kymo_error *err);

#endif
