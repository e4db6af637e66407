#include "cmds/run/run_python.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cmds/cmds.h"
#include "collect/run/governor.h"
#include "collect/run/inject.h"
#include "collect/say.h"
#include "store/store.h"
#include "views/verdicts/facts.h"

/* ---- variables ------------------------------------------------------------------------------- */

static void take_variable(struct run_environment *environment, char *variable)
{
	if (variable && environment->count < COLLECT_VARIABLES)
		environment->list[environment->count++] = variable;
	else
		free(variable);
}

void run_environment_set(struct run_environment *environment, const char *name, const char *value)
{
	char *variable = NULL;

	if (asprintf(&variable, "%s=%s", name, value) < 0)
		variable = NULL;
	take_variable(environment, variable);
}

/* NULL: not set here. */
static char **environment_find(struct run_environment *environment, const char *name)
{
	size_t bytes = strlen(name);

	for (size_t i = 0; i < environment->count; i++)
		if (!strncmp(environment->list[i], name, bytes) &&
		    environment->list[i][bytes] == '=')
			return &environment->list[i];
	return NULL;
}

bool run_environment_has(struct run_environment *environment, const char *name)
{
	return environment_find(environment, name) != NULL;
}

void run_environment_preload(struct run_environment *environment, const char *library)
{
	char **here = environment_find(environment, "LD_PRELOAD"), *variable = NULL;
	const char *now = here ? *here + strlen("LD_PRELOAD=") : getenv("LD_PRELOAD");

	if (now && strstr(now, library))
		return;
	if (asprintf(&variable, "LD_PRELOAD=%s%s%s", library, now && *now ? ":" : "",
		     now ? now : "") < 0)
		return;
	if (here) {
		free(*here);
		*here = variable;
	} else {
		take_variable(environment, variable);
	}
}

int run_environment_inject(struct run_environment *environment, struct kymo_error *err)
{
	struct buf path = { 0 };
	int rc = environment->injected ? 0 : inject_python(&path, err);

	if (!rc && !environment->injected)
		take_variable(environment, strdup(buf_get(&path)));
	environment->injected |= !rc;
	buf_fini(&path);
	return rc;
}

void run_environment_fini(struct run_environment *environment)
{
	while (environment->count)
		free(environment->list[--environment->count]);
}

/* ---- before ---------------------------------------------------------------------------------- */

static bool take_word(struct run_python *python, const char *word)
{
	if (!strcmp(word, "partial"))
		python->partial = true;
	else if (!strcmp(word, "lines"))
		python->lines = true;
	else if (!strcmp(word, "c-calls"))
		python->c_calls = true;
	else if (!strcmp(word, "off"))
		python->on = false;
	else
		return !strcmp(word, "on");
	return true;
}

int run_python_words(struct run_python *python, const char *words)
{
	char copy[128], *rest = copy, *word;

	python->on = true;
	snprintf(copy, sizeof(copy), "%s", words ? words : "");
	while ((word = strsep(&rest, ",")))
		if (*word && !take_word(python, word))
			return cmds_wrong("run",
					  "--python=%s: unknown word \"%s\"; use on, off, partial, "
					  "lines or c-calls",
					  words, word);
	return -1;
}

int run_python_budget(struct run_python *python, struct collect_options *collect, const char *text)
{
	struct governor governor;

	if (!governor_parse(text, &collect->max_overhead))
		return cmds_wrong("run",
				  "--max-overhead takes a share of the time from 0.05%% to 100%%, "
				  "such as 1%%, not \"%s\"",
				  text);
	governor_init(&governor, collect->max_overhead);
	python->limit = governor.python_limit;
	return -1;
}

static bool run_python_is_number(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits < 10 && !text[digits];
}

static int run_python_check(const struct run_python *python)
{
	bool steps = python->skip || python->take, signposts = python->from || python->to;

	if ((steps || signposts) && !python->on)
		return cmds_wrong("run", "--skip, --take, --from and --to need --python");
	if (python->lines && !python->partial)
		return cmds_wrong("run", "--python=lines needs partial: lines are recorded only "
					 "where a Profiler is enabled");
	if (steps && signposts)
		return cmds_wrong("run", "use either --skip and --take (steps) or --from and --to "
					 "(signposts), not both");
	if ((steps || signposts) && python->partial)
		return cmds_wrong("run", "--skip, --take, --from and --to do not work with "
					 "--python=partial, where a Profiler selects the calls");
	if (python->skip && !run_python_is_number(python->skip))
		return cmds_wrong("run", "--skip needs a number of steps, not %s", python->skip);
	if (python->take &&
	    (!run_python_is_number(python->take) || !strtol(python->take, NULL, 10)))
		return cmds_wrong("run", "--take needs a number of steps, not %s", python->take);
	return -1;
}

static void set_window(const struct run_python *python, struct run_environment *environment)
{
	const struct {
		const char *name, *value;
	} rows[] = {
		{ "KYMO_SKIP", python->skip },
		{ "KYMO_TAKE", python->take },
		{ "KYMO_FROM", python->from },
		{ "KYMO_TO", python->to },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].value)
			run_environment_set(environment, rows[i].name, rows[i].value);
}

int run_python_prepare(const struct run_python *python, bool quiet,
		       struct run_environment *environment)
{
	struct kymo_error err = { 0 };
	char words[64];
	int status = run_python_check(python);

	if (status >= 0 || !python->on)
		return status;
	if (run_environment_inject(environment, &err))
		return cmds_fail("run", &err);
	snprintf(words, sizeof(words), "%s%s%s", python->partial ? "partial" : "on",
		 python->lines ? ",lines" : "", python->c_calls ? ",c-calls" : "");
	run_environment_set(environment, "KYMO_PYTHON", words);
	snprintf(words, sizeof(words), "%u", python->limit);
	if (python->limit)
		run_environment_set(environment, "KYMO_PYTHON_LIMIT", words);
	if (quiet)
		run_environment_set(environment, "KYMO_QUIET", "1");
	set_window(python, environment);
	return -1;
}

bool run_python_is(const char *path)
{
	static const char *const names[] = { "python", "torchrun", "accelerate", "deepspeed" };
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

void run_python_collections(char *const *argv, struct run_environment *environment)
{
	struct kymo_error err = { 0 };

	/* No option requested this, so a failure is not reported. */
	if (getenv("KYMO_GC") || (!environment->injected && !run_python_is(argv[0])) ||
	    run_environment_inject(environment, &err))
		return;
	run_environment_set(environment, "KYMO_GC", "on");
}

/* ---- after ----------------------------------------------------------------------------------- */

/* Zones without garbage collections, which are recorded by default. */
static uint64_t zones_of(const struct recording *recording, const struct store_stream *stream)
{
	uint64_t zones = stream->emitted;

	for (size_t i = 0; i < stream->total_count; i++) {
		const struct store_total *total = &stream->totals[i];

		if (total->name < recording->name_count && total->count <= zones &&
		    !strncmp(recording->names[total->name].text, FACTS_GC, strlen(FACTS_GC)))
			zones -= total->count;
	}
	return zones;
}

static bool has_zones(const char *path)
{
	struct recording *recording = NULL;
	struct kymo_error err = { 0 };
	bool found = false;

	if (store_open(path, &recording, &err))
		return true; /* the summary reports the error */
	for (size_t i = 0; i < recording->stream_count && !found; i++)
		found = !strcmp(recording->streams[i].table, "trace.zones") &&
			zones_of(recording, &recording->streams[i]);
	store_close(recording);
	return found;
}

static void run_python_print_reason(const struct run_python *python, char *const *argv)
{
	const char *option = inject_blocking_option(argv);

	if (option)
		say("no calls recorded: the option %s keeps kymo out of this Python; run it "
		    "without %s%s",
		    option, option,
		    strcmp(option, "-S")
			    ? ", or install kymo in this Python, which works with -E and -I"
			    : "");
	else if (python->partial)
		say("no calls recorded: the program enabled no kymo.Profiler, and no test used the "
		    "fixture kymo_profile or tracy_profile");
	else if (python->from)
		say("no calls recorded: the program set no signpost \"%s\"", python->from);
	else if (python->skip)
		say("no calls recorded: the program made fewer than %ld steps (kymo.step, "
		    "kymo_step or optimizer steps)",
		    strtol(python->skip, NULL, 10) + 1);
	else
		say("no calls recorded: %s ran no Python version that this kymo supports", argv[0]);
}

bool run_python_report_empty(const struct run_python *python, char *const *argv,
			     const char *recording)
{
	if (!python->on || has_zones(recording))
		return false;
	run_python_print_reason(python, argv);
	return true;
}
