#include "cmds/run/run_torch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/settings.h"
#include "cmds/cmds.h"

static bool is_watchable(const char *words)
{
	while (*words) {
		size_t bytes = strcspn(words, ",");
		const char *at = memchr(words, '@', bytes);

		if (!at || at == words || at == words + bytes - 1)
			return false;
		words += bytes + (words[bytes] == ',');
	}
	return true;
}

int run_torch_watch(struct run_torch *torch, const char *words)
{
	size_t used = strlen(torch->watch);

	if (!*words || !is_watchable(words))
		return cmds_wrong(
			"run", "--watch takes NAME@FUNCTION, such as loss@train_step, not \"%s\"",
			words);
	if (used + strlen(words) + 2 > sizeof(torch->watch))
		return cmds_wrong("run", "--watch takes at most %zu bytes of names in all",
				  sizeof(torch->watch) - 1);
	snprintf(torch->watch + used, sizeof(torch->watch) - used, "%s%s", used ? "," : "", words);
	torch->on = true;
	return -1;
}

static bool is_count(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits < 10 && !text[digits] && strtol(text, NULL, 10) > 0;
}

int run_torch_ops(struct run_torch *torch, const char *word)
{
	const struct settings_key *key = settings_find("torch_ops");
	struct settings_value value;

	torch->ops = word && *word ? word : "on";
	if (settings_parse(key, torch->ops, &value, NULL) || !value.number)
		return cmds_wrong("run", "--torch-ops takes all or a number of steps, not \"%s\"",
				  torch->ops);
	torch->on = true;
	return -1;
}

int run_torch_peak(struct run_torch *torch, const char *word)
{
	char *end;
	double flops = strtod(word, &end);

	if (strcmp(word, "measure") != 0 && (end == word || *end || !(flops > 0) || isinf(flops)))
		return cmds_wrong("run",
				  "--peak-flops takes FLOP/s, such as 312e12, or measure, not "
				  "\"%s\"",
				  word);
	torch->peak = word;
	return -1;
}

static int run_torch_check(const struct run_torch *torch)
{
	const size_t pattern_most = sizeof(((struct kymo_control *)0)->torch_modules) - 1;

	if (torch->every && !is_count(torch->every))
		return cmds_wrong("run",
				  "--torch-every needs a number of steps, at least 1, not %s",
				  torch->every);
	if (torch->modules && strlen(torch->modules) > pattern_most)
		return cmds_wrong("run", "--torch-modules takes a pattern of at most %zu bytes",
				  pattern_most);
	return -1;
}

static void run_torch_set(struct run_environment *environment, const char *name, const char *value)
{
	if (value && *value)
		run_environment_set(environment, name, value);
}

int run_torch_prepare(const struct run_torch *torch, char *const *argv,
		      struct run_environment *environment)
{
	bool asked = torch->on || torch->modules || torch->every || torch->peak;
	struct kymo_error err = { 0 };
	int status = run_torch_check(torch);

	/* Without an option KYMO_TORCH in the environment takes precedence. */
	if (status >= 0 || (!asked && (getenv("KYMO_TORCH") || !run_python_is(argv[0]))))
		return status;
	if (run_environment_inject(environment, &err))
		return asked ? cmds_fail("run", &err) : -1;
	run_torch_set(environment, "KYMO_TORCH", "on");
	run_torch_set(environment, "KYMO_TORCH_MODULES", torch->modules);
	run_torch_set(environment, "KYMO_TORCH_EVERY", torch->every);
	run_torch_set(environment, "KYMO_WATCH", torch->watch);
	run_torch_set(environment, "KYMO_TORCH_OPS", torch->ops);
	run_torch_set(environment, "KYMO_PEAK_FLOPS", torch->peak);
	return -1;
}
