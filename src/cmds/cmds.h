/* The commands of `kymo`: rows of one table (main.c), a file each. */
#ifndef KYMO_CMDS_CMDS_H
#define KYMO_CMDS_CMDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { CMDS_OK = 0, CMDS_FAILED = 1, CMDS_WRONG_USE = 2, CMDS_INTERRUPTED = 130 };

struct cmds_option {
	char letter; /* 0: none */
	const char *name; /* without --; NULL ends the list */
	const char *value; /* what to call its value in the help; NULL: it takes none */
	const char *help; /* one line */
};

struct cmds_command {
	const char *name;
	/* argv[0] is the command's name. Returns the exit status. */
	int (*run)(int argc, char **argv);
	const char *summary; /* one line, for `kymo help` */
	const char *usage; /* what follows "kymo NAME"; alternatives are parted by \n */
	const struct cmds_option *options; /* NULL: it reads its own and prints its own --help */
	const char *examples; /* lines "command\tcomment" */
};

/* Rows of the table; a name of NULL ends it. */
extern const struct cmds_command cmds_table[];
const struct cmds_command *cmds_find(const char *name);
/* `kymo run` reads its own, which may have optional values. */
extern const struct cmds_option cmds_run_options[];

int cmd_run(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_query(int argc, char **argv);
int cmd_backtrace(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_pack(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* Options and words of a command line, taken apart against the command's own list. */
struct cmds_args {
	const struct cmds_command *command;
	int argc, at;
	char **argv;
	bool only_words; /* after -- */
	bool takes_sql; /* set by the command: what begins with a comment of SQL is a word */
	const char *rest; /* letters of a bundle: -abc */
	const char *value; /* of the option that cmds_next() gave */
	char **words;
	size_t word_count;
	bool help; /* --help was there and has been answered */
};

void cmds_args_init(struct cmds_args *args, const char *command, int argc, char **argv);
/* The next option's row; NULL when all are read (then .words holds the rest) or when *status is to
   be returned: -1 otherwise. */
const struct cmds_option *cmds_next(struct cmds_args *args, int *status);
/* Gives each option to take(), which returns -1 or the exit status. -1 when all are read, or the
   exit status. */
int cmds_take_all(struct cmds_args *args,
		  int (*take)(void *request, struct cmds_args *args,
			      const struct cmds_option *option),
		  void *request);
/* For commands that have --output FILE and --force alone: what they say. -1, or the exit status. */
int cmds_take_file(struct cmds_args *args, const char **out_file, bool *out_force);
/* Seconds after which a zone or step is slow, as the option or variable of that name says; a
   variable may be unset (NULL) or empty, and *out_ns stays. -1, or the exit status: it is no such
   number. */
int cmds_slow(const char *command, const char *name, const char *text, uint64_t *out_ns);
/* Words of the environment that the program would only complain of when it runs already. -1, or the
   exit status. */
int cmds_check_settings(const char *command);
/* A whole number from 0 to most, else a sentence and *status 2. */
bool cmds_number(struct cmds_args *args, const struct cmds_option *option, double most, double *out,
		 int *status);

/* "kymo NAME: sentence" on stderr, one line; gives 2 and 1. */
int cmds_wrong(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cmds_fail(const char *command, const struct kymo_error *err);

/* --force: what --output names makes way; only a recording, or an empty directory, is ever
   replaced. 0, or the exit status. */
int cmds_make_way(const char *command, const char *directory);

/* The text of `kymo NAME --help`. */
void cmds_print_help(const struct cmds_command *command);

struct tables;
/* From here on Ctrl-C cancels what these tables do (NULL: ends the program), and a second one ends
   it. */
void cmds_interruptible(struct tables *tables);
bool cmds_interrupted(void);

/* Flushes stdout. 1 where it could not be written: said on stderr, but for a closed pipe, which is
   the reader's right. */
int cmds_finish(const char *command);
/* What was written, and how large it is, in one line on stderr; nothing of "-". */
void cmds_say_file(const char *file);

#endif
