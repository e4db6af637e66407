/*
 * All settings, defined once: the keys of `kymo config`, the KYMO_* environment variables, their
 * offsets in the control page, the help and the man page.
 *
 * The page is shared memory, written from outside while the program runs. A number is one aligned
 * word. A text is framed by config_changes: odd during a write, even afterwards, and changed. A
 * reader thus detects a write during its copy, and a writer that died during a write is superseded
 * by the next one. libc only, no malloc: the recorder reads the environment with this code.
 */
#ifndef KYMO_BASE_SETTINGS_H
#define KYMO_BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/format.h"

enum settings_type {
	SETTINGS_SECONDS, /* a u64 of nanoseconds; 0: never; SETTINGS_ADAPTIVE */
	SETTINGS_SWITCH, /* a bit of the word `on` */
	SETTINGS_FLAG, /* a u32, 0 or 1 */
	SETTINGS_COUNT, /* a u32 */
	SETTINGS_KEEP, /* a u32: enum kymo_keep */
	SETTINGS_EVERY, /* a u32: every n-th; 0: off, 1: all */
	SETTINGS_TEXT, /* NUL-padded */
};

/* The process that applies a change. */
enum settings_who {
	SETTINGS_COLLECTOR, /* the collector */
	SETTINGS_PROGRAM, /* the program, at its next event */
	SETTINGS_NEW_STREAMS, /* the program, for threads and tables that begin later */
};

struct settings_key {
	const char *name;
	enum settings_type type;
	enum settings_who who;
	uint32_t offset; /* in struct kymo_control */
	/* bit of a switch; bytes of a text; minimum of a count; 1: seconds may be "adaptive" */
	uint32_t detail;
	uint32_t most; /* maximum of a count; of SETTINGS_EVERY, the meaning of "on" */
	const char *initial; /* default value, as a text */
	const char *about; /* one line */
};

/* The collector chooses the period: "adaptive" in ASCII, which no damaged page has by chance. */
#define SETTINGS_ADAPTIVE 0x6164617074697665ull

#define SETTINGS_TEXT_BYTES 256
#define SETTINGS_OPS_EVERY 64 /* kymo run --torch-ops */

struct settings_value {
	uint64_t number; /* all kinds but texts */
	char text[SETTINGS_TEXT_BYTES];
};

/* Terminated by a NULL name. */
extern const struct settings_key settings_keys[];

/* "sample_rate", "kymo.sample_rate" or "probing.sample_rate"; NULL: no such key. */
const struct settings_key *settings_find(const char *name);
/* The name without such a prefix. */
const char *settings_bare_name(const char *name);
/* "KYMO_SAMPLE_RATE". */
void settings_variable(const struct settings_key *key, char *out, size_t out_bytes);
/* True if the environment or a later change has set it in this process, be it to its default. */
bool settings_is_set(const struct settings_key *key, const struct kymo_control *control);
/* 0, or -EINVAL and a sentence with the valid values. */
int settings_parse(const struct settings_key *key, const char *text, struct settings_value *out,
		   struct kymo_error *err);
/* In the form that settings_parse() reads. */
void settings_format(const struct settings_key *key, const struct settings_value *value, char *out,
		     size_t out_bytes);
bool settings_equal(const struct settings_key *key, const struct settings_value *a,
		    const struct settings_value *b);

/* From the page, which may be written at the same time. The value is checked like input; if it is
   invalid, *out is the default. */
void settings_load(const struct settings_key *key, const struct kymo_control *control,
		   struct settings_value *out);
/* Into a page of this process. */
void settings_store(const struct settings_key *key, struct kymo_control *control,
		    const struct settings_value *value);
/* The key's bit of config_changed. */
uint64_t settings_bit(const struct settings_key *key);
/* Copies the settings changed in the page of the process that started this one; the others stay as
   the environment sets them. */
void settings_inherit(struct kymo_control *to, const struct kymo_control *from);
/* Sets a page to the defaults, then to the environment. complain is called for each invalid value;
   an invalid value never means on. */
void settings_begin(struct kymo_control *control, void (*complain)(const char *sentence));
/* From one page to another: for the child of a fork. */
void settings_copy(struct kymo_control *to, const struct kymo_control *from);

#endif
