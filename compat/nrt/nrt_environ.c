/* The options of an inspect session from the environment. Invalid values are reported, and the
   default is used. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "nrt_inside.h"

#define PREFIX "NEURON_RT_INSPECT_"

/* False: the word makes no sense. */
typedef bool (*take_fn)(struct nrt_inspect_config *config, const char *word);

/* 0 or 1; -1: neither. */
static int switch_of(const char *word)
{
	static const char *const words[] = { "0", "1", "false", "true", "no", "yes", "off", "on" };

	for (int i = 0; i < (int)(sizeof(words) / sizeof(words[0])); i++)
		if (!strcasecmp(word, words[i]))
			return i % 2;
	return -1;
}

static bool take_bit(struct nrt_inspect_config *config, const char *word, uint32_t bit)
{
	int on = switch_of(word);

	if (on < 0)
		return false;
	config->activities = on ? config->activities | bit : config->activities & ~bit;
	return true;
}

static bool take_flag(const char *word, bool *out)
{
	int on = switch_of(word);

	*out = on > 0;
	return on >= 0;
}

static bool nrt_environ_take_number(const char *word, uint64_t least, uint64_t *out)
{
	size_t digits = strspn(word, "0123456789");
	uint64_t value;

	if (!digits || digits > 18 || word[digits])
		return false;
	value = strtoull(word, NULL, 10);
	if (value >= least)
		*out = value;
	return value >= least;
}

static bool take_enable(struct nrt_inspect_config *config, const char *word)
{
	return take_flag(word, &config->enable);
}

static bool take_output_dir(struct nrt_inspect_config *config, const char *word)
{
	config->output_dir = nrt_copy(word);
	return true; /* without memory: seen by the caller, as there is none then */
}

static bool take_system(struct nrt_inspect_config *config, const char *word)
{
	return take_bit(config, word, NRT_SYSTEM);
}

static bool take_device(struct nrt_inspect_config *config, const char *word)
{
	config->file_per_model = !strcmp(word, "model");
	if (config->file_per_model || !strcmp(word, "session"))
		word = "1";
	return take_bit(config, word, NRT_DEVICE);
}

static bool take_warmup(struct nrt_inspect_config *config, const char *word)
{
	return nrt_environ_take_number(word, 0, &config->warmup);
}

static bool take_on_fail(struct nrt_inspect_config *config, const char *word)
{
	return take_flag(word, &config->on_fail);
}

static bool take_cpu(struct nrt_inspect_config *config, const char *word)
{
	return take_bit(config, word, NRT_CPU_UTIL);
}

static bool take_host_memory(struct nrt_inspect_config *config, const char *word)
{
	return take_bit(config, word, NRT_HOST_MEMORY);
}

/* A number below NRT_CORES, and where it ends. */
static bool core_at(const char **word, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)**word))
		return false;
	*out = strtoull(*word, &end, 10);
	*word = end;
	return *out < NRT_CORES;
}

/* 0,2,4-7 */
static bool take_cores(struct nrt_inspect_config *config, const char *word)
{
	uint64_t bits = 0, first, last;

	do {
		if (!core_at(&word, &first))
			return false;
		last = first;
		if (*word == '-' && (word++, !core_at(&word, &last)))
			return false;
		for (; first <= last; first++)
			bits |= 1ull << first;
	} while (*word == ',' && word++);
	if (!*word)
		config->cores = bits;
	return !*word && bits;
}

/* Names, of which the first says whether it begins with all of them or with none; ^name is left
   out. */
static bool take_events(struct nrt_inspect_config *config, const char *word)
{
	uint32_t events = *word == '^' ? config->events : 0;

	for (;;) {
		bool out = *word == '^';
		size_t bytes = strcspn(word += out, ",");
		uint32_t bits = nrt_event_bits(word, bytes);

		if (!bits)
			return false;
		events = out ? events & ~bits : events | bits;
		if (!word[bytes])
			break;
		word += bytes + 1;
	}
	config->events = events;
	return true;
}

static bool take_events_per_core(struct nrt_inspect_config *config, const char *word)
{
	return nrt_environ_take_number(word, 1, &config->events_per_core);
}

static const struct {
	const char *name; /* after PREFIX */
	take_fn take;
	const char *wanted;
} variables[] = {
	{ "ENABLE", take_enable, "0 or 1" },
	{ "OUTPUT_DIR", take_output_dir, "a directory" },
	{ "SYSTEM_PROFILE", take_system, "0 or 1" },
	{ "DEVICE_PROFILE", take_device, "0, 1, model or session" },
	{ "DEVICE_PROFILE_NUM_WARMUP", take_warmup, "a number" },
	{ "ON_FAIL", take_on_fail, "0 or 1" },
	{ "CPU_UTIL", take_cpu, "0 or 1" },
	{ "HOST_MEMORY", take_host_memory, "0 or 1" },
	{ "EVENT_FILTER_NC", take_cores, "cores from 0 to 63, as 0,2,4-7" },
	{ "EVENT_FILTER_TYPE", take_events,
	  "names of events, hardware or software, each with ^ before it to leave it out" },
	{ "SYS_TRACE_MAX_EVENTS_PER_NC", take_events_per_core, "a number from 1" },
};
#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

/* ---- unknown names ---- */

#define NAME_MOST 64u

/* Letters to add, take away or change; both are shorter than NAME_MOST. */
static unsigned distance(const char *a, size_t a_bytes, const char *b)
{
	unsigned row[NAME_MOST + 1];
	size_t b_bytes = strlen(b);

	for (size_t j = 0; j <= b_bytes; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= a_bytes; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_bytes; j++) {
			unsigned change = diagonal + (a[i - 1] != b[j - 1]);
			unsigned other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);

			diagonal = row[j];
			row[j] = change < other ? change : other;
		}
	}
	return row[b_bytes];
}

static void nrt_environ_check_name(const char *name, size_t bytes)
{
	size_t nearest = 0;
	unsigned least = UINT32_MAX;

	for (size_t i = 0; i < VARIABLES; i++) {
		unsigned far;

		if (strlen(variables[i].name) == bytes && !memcmp(variables[i].name, name, bytes))
			return;
		far = distance(name, bytes < NAME_MOST ? bytes : NAME_MOST, variables[i].name);
		if (far < least) {
			least = far;
			nearest = i;
		}
	}
	nrt_say(PREFIX "%.*s is not known and changes nothing; did you mean " PREFIX "%s?",
		(int)(bytes < NAME_MOST ? bytes : NAME_MOST), name, variables[nearest].name);
}

static void check_names(void)
{
	for (char **at = environ; at && *at; at++)
		if (!strncmp(*at, PREFIX, sizeof(PREFIX) - 1)) {
			const char *name = *at + sizeof(PREFIX) - 1;

			nrt_environ_check_name(name, strcspn(name, "="));
		}
}

/* ---- all of it ---- */

static const char *nrt_environ_word_of(const char *name)
{
	char variable[sizeof(PREFIX) + NAME_MOST] = PREFIX;
	const char *word = secure_getenv(strcat(variable, name));

	return word && *word ? word : NULL;
}

bool nrt_environment_enables(void)
{
	const char *enable = nrt_environ_word_of("ENABLE"),
		   *on_fail = nrt_environ_word_of("ON_FAIL");

	return (enable && switch_of(enable) == 1) || (on_fail && switch_of(on_fail) == 1);
}

NRT_STATUS nrt_config_from_environment(struct nrt_inspect_config *config)
{
	nrt_config_defaults(config);
	config->enable_called = true;
	check_names();
	for (size_t i = 0; i < VARIABLES; i++) {
		const char *word = nrt_environ_word_of(variables[i].name);
		struct nrt_inspect_config before = *config;

		if (!word || variables[i].take(config, word))
			continue;
		*config = before;
		nrt_say(PREFIX "%s=%s is ignored: expected %s", variables[i].name, word,
			variables[i].wanted);
	}
	return nrt_environ_word_of("OUTPUT_DIR") && !config->output_dir ? NRT_RESOURCE
									: NRT_SUCCESS;
}
