#include "trigger/trigger.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/atomic_file.h"
#include "base/files/safe_path.h"
#include "base/settings.h"

#define EVERY_S 1.0
#define COOLDOWN_S 60.0
#define LIMIT 10
#define LIMIT_BYTES (UINT64_C(1) << 30)
#define FILE_MOST (256u << 10)

/* ---- the set --------------------------------------------------------------------------------- */

void trigger_set_fini(struct trigger_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->triggers[i].sql);
	set->count = 0;
}

struct trigger *trigger_find(struct trigger_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->triggers[i].name, name))
			return &set->triggers[i];
	return NULL;
}

bool trigger_remove(struct trigger_set *set, const char *name)
{
	struct trigger *trigger = trigger_find(set, name);

	if (!trigger)
		return false;
	free(trigger->sql);
	set->count--;
	memmove(trigger, trigger + 1,
		(size_t)(set->triggers + set->count - trigger) * sizeof(*trigger));
	return true;
}

void trigger_complete(struct trigger_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (!set->triggers[i].action_count)
			trigger_add_action(&set->triggers[i], "snapshot", NULL);
}

static const char *ready_sql(const char *name)
{
	for (const struct trigger_ready *ready = trigger_ready; ready->name; ready++)
		if (!strcmp(ready->name, name))
			return ready->sql;
	return NULL;
}

/* It becomes a part of file names. */
static bool is_name(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '-')
			return false;
	return bytes && bytes < TRIGGER_NAME_BYTES && text[0] != '-';
}

static int trigger_set_sql(struct trigger *trigger, const char *sql, struct kymo_error *err)
{
	char *copy = strdup(sql);

	if (!copy)
		return error_set(err, ENOMEM, "no memory for the trigger %s", trigger->name);
	free(trigger->sql);
	trigger->sql = copy;
	return 0;
}

static struct trigger *add_empty(struct trigger_set *set, const char *name, size_t bytes,
				 struct kymo_error *err)
{
	struct trigger *trigger = &set->triggers[set->count];

	if (!is_name(name, bytes)) {
		error_set(err, EINVAL,
			  "\"%.*s\" is no name of a trigger: use letters, digits, _ and -, at most "
			  "%d",
			  (int)bytes, name, TRIGGER_NAME_BYTES - 1);
		return NULL;
	}
	if (set->count == TRIGGER_MOST) {
		error_set(err, ENOSPC, "a run has at most %d triggers", TRIGGER_MOST);
		return NULL;
	}
	*trigger = (struct trigger){ .every_s = EVERY_S,
				     .cooldown_s = COOLDOWN_S,
				     .limit = LIMIT,
				     .limit_bytes = LIMIT_BYTES };
	memcpy(trigger->name, name, bytes);
	if (trigger_find(set, trigger->name)) {
		error_set(err, EEXIST, "there is a trigger %s already", trigger->name);
		return NULL;
	}
	set->count++;
	return trigger;
}

struct trigger *trigger_add(struct trigger_set *set, const char *word, struct kymo_error *err)
{
	const char *equals = strchr(word, '=');
	size_t bytes = equals ? (size_t)(equals - word) : strlen(word);
	struct trigger *trigger = add_empty(set, word, bytes, err);
	const char *sql;

	if (!trigger)
		return NULL;
	sql = equals ? equals + 1 : ready_sql(trigger->name);
	if (!sql)
		error_set(err, ENOENT,
			  "no ready-made trigger is named %s; kymo trigger ls --ready lists them, "
			  "NAME='SELECT …' makes one",
			  trigger->name);
	if (!sql || trigger_set_sql(trigger, sql, err)) {
		set->count--;
		return NULL;
	}
	return trigger;
}

/* ---- actions --------------------------------------------------------------------------------- */

static const struct {
	const char *word;
	enum trigger_action_kind kind;
	bool argument;
} action_words[] = {
	{ "snapshot", TRIGGER_SNAPSHOT, false },
	{ "why", TRIGGER_WHY, false },
	{ "mark", TRIGGER_MARK, false },
	{ "detail", TRIGGER_DETAIL, true },
	{ "run", TRIGGER_RUN, true },
};

/* The index in action_words, or -1. */
static int action_row(const char *action)
{
	size_t word = strcspn(action, " \t");
	const char *rest = action + word + strspn(action + word, " \t");

	for (size_t i = 0; i < sizeof(action_words) / sizeof(action_words[0]); i++)
		if (strlen(action_words[i].word) == word &&
		    !strncmp(action, action_words[i].word, word) &&
		    action_words[i].argument == (*rest != '\0'))
			return (int)i;
	return -1;
}

enum trigger_action_kind trigger_action_kind(const char *action)
{
	int row = action_row(action);

	return row < 0 ? TRIGGER_MARK : action_words[row].kind;
}

bool trigger_detail_parse(const char *action, struct trigger_detail *out)
{
	const char *words = action + strcspn(action, " \t"), *last = strstr(words, " for ");
	char *end;

	words += strspn(words, " \t");
	if (!last || last <= words)
		return false;
	snprintf(out->settings, sizeof(out->settings), "%.*s", (int)(last - words), words);
	out->amount = strtod(last + 5, &end);
	end += strspn(end, " ");
	out->steps = !strncmp(end, "step", 4);
	return out->amount > 0 && out->amount <= 1e9 &&
	       (out->steps || !strcmp(end, "s") || !strncmp(end, "second", 6));
}

static int check_detail(const char *action, struct kymo_error *err)
{
	struct trigger_detail detail;
	char *save = NULL;

	if (!trigger_detail_parse(action, &detail))
		return error_set(err, EINVAL,
				 "\"%s\": write detail KEY=VALUE for N steps, or for N seconds",
				 action);
	for (char *word = strtok_r(detail.settings, " \t", &save); word;
	     word = strtok_r(NULL, " \t", &save)) {
		char *equals = strchr(word, '=');
		const struct settings_key *key;
		struct settings_value value;

		if (equals)
			*equals = '\0';
		key = settings_find(word);
		if (!equals || !key)
			return error_set(err, EINVAL,
					 "\"%s\": %s is no setting; kymo help config lists them",
					 action, word);
		if (settings_parse(key, equals + 1, &value, err))
			return -EINVAL;
	}
	return 0;
}

int trigger_add_action(struct trigger *trigger, const char *action, struct kymo_error *err)
{
	int row = action_row(action);

	if (row < 0)
		return error_set(err, EINVAL,
				 "\"%s\" is no action: snapshot, why, mark, detail KEY=VALUE for N "
				 "steps, or run COMMAND",
				 action);
	if (trigger->action_count == TRIGGER_ACTIONS || strlen(action) >= TRIGGER_ACTION_BYTES)
		return error_set(err, E2BIG, "a trigger has at most %d actions of %d characters",
				 TRIGGER_ACTIONS, TRIGGER_ACTION_BYTES - 1);
	if (action_words[row].kind == TRIGGER_DETAIL && check_detail(action, err))
		return -EINVAL;
	snprintf(trigger->actions[trigger->action_count++], TRIGGER_ACTION_BYTES, "%s", action);
	return 0;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* "1G", "500M", "64k" or bytes. */
static bool trigger_parse_size(const char *text, uint64_t *out)
{
	char *end;
	double value = strtod(text, &end);
	const char *units = "kMGT";
	const char *unit = *end ? strchr(units, *end == 'K' ? 'k' : *end) : NULL;

	if (end == text || value < 0 || (*end && (!unit || end[1])))
		return false;
	for (const char *at = units; unit && at <= unit; at++)
		value *= 1024;
	*out = value < 1e18 ? (uint64_t)value : UINT64_C(1000000000000000000);
	return true;
}

static bool trigger_parse_number(const char *text, double least, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && !*end && *out >= least && *out <= 1e9;
}

int trigger_set_key(struct trigger *trigger, const char *key, const char *value,
		    struct kymo_error *err)
{
	double number;
	bool good = true;

	if (!strcmp(key, "when"))
		return trigger_set_sql(trigger, value, err);
	if (!strcmp(key, "action"))
		return trigger_add_action(trigger, value, err);
	if (!strcmp(key, "every"))
		good = trigger_parse_number(value, 0.1, &trigger->every_s);
	else if (!strcmp(key, "cooldown"))
		good = trigger_parse_number(value, 0, &trigger->cooldown_s);
	else if (!strcmp(key, "limit")) {
		good = trigger_parse_number(value, 1, &number);
		trigger->limit = good ? (uint64_t)number : trigger->limit;
	} else if (!strcmp(key, "bytes"))
		good = trigger_parse_size(value, &trigger->limit_bytes);
	else if (!strcmp(key, "ranks")) {
		trigger->all_ranks = !strcmp(value, "all");
		good = trigger->all_ranks || !strcmp(value, "this");
	} else
		return error_set(err, EINVAL,
				 "%s is no key of a trigger: when, action, every, cooldown, limit, "
				 "bytes, ranks",
				 key);
	return good ? 0 : error_set(err, EINVAL, "%s = %s is invalid", key, value);
}

struct parser {
	struct trigger_set *set;
	struct trigger *now; /* of the section; NULL before the first */
	const char *from;
	unsigned line;
};

static int parser_fail(const struct parser *parser, const struct kymo_error *why,
		       struct kymo_error *err)
{
	return error_set(err, EINVAL, "%s:%u: %s", parser->from, parser->line, why->text);
}

/* A section that ends needs a condition. */
static int end_section(struct parser *parser, struct kymo_error *err)
{
	const char *sql;

	if (!parser->now || parser->now->sql)
		return 0;
	sql = ready_sql(parser->now->name);
	if (!sql)
		return error_set(err, EINVAL, "the trigger %s has no condition: when = SELECT …",
				 parser->now->name);
	return trigger_set_sql(parser->now, sql, err);
}

static int take_section(struct parser *parser, char *line, struct kymo_error *err)
{
	size_t bytes = strcspn(line + 1, "]");

	if (line[1 + bytes] != ']')
		return error_set(err, EINVAL, "a section is written [NAME]");
	if (end_section(parser, err))
		return -EINVAL;
	parser->now = add_empty(parser->set, line + 1, bytes, err);
	return parser->now ? 0 : -EINVAL;
}

/* One logical line: continuation lines are joined. */
static int take_line(struct parser *parser, char *line, struct kymo_error *err)
{
	char *equals = strchr(line, '='), *value;
	size_t end;

	if (line[0] == '[')
		return take_section(parser, line, err);
	if (!equals || !parser->now)
		return error_set(err, EINVAL, "expected [NAME], or KEY = VALUE in such a section");
	value = equals + 1 + strspn(equals + 1, " \t");
	for (end = (size_t)(equals - line); end && isspace((unsigned char)line[end - 1]);)
		end--;
	line[end] = '\0';
	return trigger_set_key(parser->now, line, value, err);
}

static char *trim_end(char *line)
{
	size_t end = strlen(line);

	while (end && isspace((unsigned char)line[end - 1]))
		line[--end] = '\0';
	return line;
}

static bool continues(const char *line)
{
	return (line[0] == ' ' || line[0] == '\t') && line[strspn(line, " \t\r")];
}

static int parse_lines(struct parser *parser, char *text, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	struct buf line = { 0 };
	char *save = text, *at;
	unsigned number = 0;
	int rc = 0;

	while (!rc && (at = strsep(&save, "\n"))) {
		number++;
		trim_end(at);
		if (at[0] == '#' || !*at)
			continue;
		buf_reset(&line);
		parser->line = number;
		buf_text(&line, at);
		while (save && continues(save)) {
			char *more = trim_end(strsep(&save, "\n"));

			number++;
			more += strspn(more, " \t");
			if (*more == '#')
				continue;
			buf_char(&line, ' ');
			buf_text(&line, more);
		}
		rc = line.failed ? error_set(&why, ENOMEM, "out of memory")
				 : take_line(parser, line.data, &why);
	}
	if (!rc)
		rc = end_section(parser, &why);
	buf_fini(&line);
	return rc ? parser_fail(parser, &why, err) : 0;
}

int trigger_parse(struct trigger_set *set, const char *text, const char *from,
		  struct kymo_error *err)
{
	struct parser parser = { .set = set, .from = from };
	char *copy = strdup(text);
	int rc = copy ? parse_lines(&parser, copy, err)
		      : error_set(err, ENOMEM, "no memory for %s", from);

	free(copy);
	return rc;
}

/* Line breaks of the SQL become continuation lines. */
static void format_sql(struct buf *out, const char *sql)
{
	buf_text(out, "when = ");
	for (const char *at = sql; *at; at++) {
		if (*at == '\n' && !at[1 + strspn(at + 1, " \t\r\n")])
			break;
		buf_char(out, *at == '\r' ? ' ' : *at);
		if (*at == '\n') {
			buf_text(out, "       ");
			at += strspn(at + 1, " \t\r\n");
		}
	}
	buf_char(out, '\n');
}

void trigger_format(struct buf *out, const struct trigger_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct trigger *trigger = &set->triggers[i];

		buf_print(out, "%s[%s]\n", i ? "\n" : "", trigger->name);
		format_sql(out, trigger->sql);
		for (size_t k = 0; k < trigger->action_count; k++)
			buf_print(out, "action = %s\n", trigger->actions[k]);
		buf_print(out,
			  "every = %g\ncooldown = %g\nlimit = %llu\nbytes = %llu\nranks = %s\n",
			  trigger->every_s, trigger->cooldown_s, (unsigned long long)trigger->limit,
			  (unsigned long long)trigger->limit_bytes,
			  trigger->all_ranks ? "all" : "this");
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

static int parse_file(struct trigger_set *set, int fd, const char *path, struct kymo_error *err)
{
	char *text = malloc(FILE_MOST + 1);
	struct stat status;
	ssize_t got = -1;
	int rc = 0;

	if (!text || fstat(fd, &status) || !S_ISREG(status.st_mode))
		rc = error_set(err, EINVAL, "cannot read %s: it is no regular file", path);
	else
		got = read(fd, text, FILE_MOST);
	if (!rc && got < 0)
		rc = error_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	if (!rc) {
		text[got] = '\0';
		rc = trigger_parse(set, text, path, err);
	}
	free(text);
	return rc;
}

int trigger_read_file(struct trigger_set *set, const char *path, struct kymo_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc = fd < 0 ? error_set(err, errno, "cannot read %s: %s", path, strerror(errno))
			: parse_file(set, fd, path, err);

	if (fd >= 0)
		close(fd);
	return rc;
}

static int check_owner(int fd, const char *path, struct kymo_error *err)
{
	struct stat status;

	if (fstat(fd, &status))
		return error_set(err, errno, "cannot stat %s: %s", path, strerror(errno));
	if (status.st_uid == geteuid() && !(status.st_mode & 022))
		return 0;
	return error_set(err, EPERM,
			 "%s belongs to user %u with mode %03o: triggers run commands, so only "
			 "those of your own runs are obeyed",
			 path, (unsigned)status.st_uid, (unsigned)(status.st_mode & 0777));
}

int trigger_check_owner(const char *live, struct kymo_error *err)
{
	int fd = open(live, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? error_set(err, errno, "cannot open %s: %s", live, strerror(errno))
			: check_owner(fd, live, err);

	if (fd >= 0)
		close(fd);
	return rc;
}

/* The file is checked, too: what the path leads to may have changed. */
int trigger_read_live(struct trigger_set *set, const char *live, struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES + 16];
	int fd, rc;

	snprintf(path, sizeof(path), "%s/" TRIGGER_FILE, live);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : error_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	rc = check_owner(fd, path, err);
	if (!rc)
		rc = parse_file(set, fd, path, err);
	close(fd);
	return rc;
}

int trigger_write_file(const struct trigger_set *set, const char *live, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	struct safe_dir directory;
	struct buf text = { 0 };
	int rc = safe_dir_open(&directory, live, 0, &why);

	if (rc)
		return error_set(err, -rc, "cannot write the triggers of %s: %s", live,
				 safe_dir_reason(rc, &why));
	trigger_format(&text, set);
	rc = text.failed ? -ENOMEM
			 : atomic_file_put(directory.fd, TRIGGER_FILE, buf_get(&text), text.used);
	buf_fini(&text);
	safe_dir_close(&directory);
	return rc ? error_set(err, -rc, "cannot write the triggers of %s: %s", live, strerror(-rc))
		  : 0;
}
