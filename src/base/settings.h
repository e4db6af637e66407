/*
 * What can be configured, said once: the keys of `kymo config`, the KYMO_* words of the
 * environment, their places in the control page, the help and the man page all come from these
 * rows.
 *
 * The page is shared memory, written from outside while the program runs. A number is one aligned
 * word. A text is framed by config_changes: odd while somebody writes, even when he is done, and
 * different afterwards. So a reader that copied in between sees that, and a writer who died in
 * between is overtaken by the next one. libc only, no malloc: the recorder reads the environment by
 * it.
 */
#ifndef KYMO_BASE_SETTINGS_H
#define KYMO_BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/format.h"

enum settings_type {
	SETTINGS_SECONDS, /* a u64 of nanoseconds; 0: never */
	SETTINGS_SWITCH, /* a bit of the word `on` */
	SETTINGS_FLAG, /* a u32, 0 or 1 */
	SETTINGS_COUNT, /* a u32 */
	SETTINGS_KEEP, /* a u32: enum kymo_keep */
	SETTINGS_TEXT, /* NUL-padded */
};

/* Who has to act on a change. */
enum settings_who {
	SETTINGS_COLLECTOR, /* the process that watches from outside */
	SETTINGS_PROGRAM, /* the program, at its next event */
	SETTINGS_NEW_STREAMS, /* the program, for threads and tables that begin later */
};

struct settings_key {
	const char *name;
	enum settings_type type;
	enum settings_who who;
	uint32_t offset; /* in struct kymo_control */
	uint32_t detail; /* a switch's bit; a text's bytes; a count's least */
	uint32_t most; /* of a count */
	const char *initial; /* the value before anybody sets it, as a text */
	const char *about; /* one line */
};

#define SETTINGS_TEXT_BYTES 256

struct settings_value {
	uint64_t number; /* all but texts */
	char text[SETTINGS_TEXT_BYTES];
};

/* A name of NULL ends it. */
extern const struct settings_key settings_keys[];

/* "sample_rate", "kymo.sample_rate" or "probing.sample_rate"; NULL: there is no such key. */
const struct settings_key *settings_find(const char *name);
/* The name without such a prefix. */
const char *settings_bare_name(const char *name);
/* "KYMO_SAMPLE_RATE". */
void settings_variable(const struct settings_key *key, char *out, size_t out_bytes);
/* 0, or -EINVAL and a sentence that says what would do. */
int settings_parse(const struct settings_key *key, const char *text, struct settings_value *out,
		   struct kymo_error *err);
/* As settings_parse() reads it. */
void settings_format(const struct settings_key *key, const struct settings_value *value, char *out,
		     size_t out_bytes);
bool settings_equal(const struct settings_key *key, const struct settings_value *a,
		    const struct settings_value *b);

/* From the page, which others may be writing; a value is checked as if it were typed, and *out is
   the initial one where it is none. */
void settings_load(const struct settings_key *key, const struct kymo_control *control,
		   struct settings_value *out);
/* Into a page of this process. */
void settings_store(const struct settings_key *key, struct kymo_control *control,
		    const struct settings_value *value);
/* The key's bit of config_changed. */
uint64_t settings_bit(const struct settings_key *key);
/* Takes over what was changed in the page of the process that started this one; the rest stays as
   the environment says. */
void settings_inherit(struct kymo_control *to, const struct kymo_control *from);
/* Sets a page to the initial values, then to what the environment says. complain is called for each
   word that is none; garbage never means on. */
void settings_begin(struct kymo_control *control, void (*complain)(const char *sentence));
/* From one page to another: the child of a fork. */
void settings_copy(struct kymo_control *to, const struct kymo_control *from);

#endif
