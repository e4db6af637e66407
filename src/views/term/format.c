#include "views/term/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	double size;
	const char *name;
	const char *plain; /* for terminals without UTF-8 */
};

static const struct unit time_units[] = {
	{ 1.0, "ns", "ns" }, { 1e3, "µs", "us" },  { 1e6, "ms", "ms" },
	{ 1e9, "s", "s" },   { 3.6e12, "h", "h" },
};

static const struct unit byte_units[] = {
	{ 1.0, "B", "B" },   { 1e3, "kB", "kB" },  { 1e6, "MB", "MB" },
	{ 1e9, "GB", "GB" }, { 1e12, "TB", "TB" },
};

static struct format_text group(const char *digits)
{
	struct format_text out = { "" };
	size_t count = strlen(digits), used = 0;

	for (size_t i = 0; i < count && used + 2 < sizeof(out.text); i++) {
		if (i && (count - i) % 3 == 0)
			out.text[used++] = ',';
		out.text[used++] = digits[i];
	}
	out.text[used] = '\0';
	return out;
}

struct format_text format_count(uint64_t count)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, count);
	return group(digits);
}

/* Three significant digits; a whole number from 1,000 on. */
static struct format_text three_digits(double value, const char *unit)
{
	struct format_text out;
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	if (value >= 999.5) {
		out = format_count((uint64_t)llround(value));
		snprintf(out.text + strlen(out.text), sizeof(out.text) - strlen(out.text), " %s",
			 unit);
		return out;
	}
	snprintf(out.text, sizeof(out.text), "%.*f %s", decimals, value, unit);
	return out;
}

struct format_text format_duration(double ns, bool utf8)
{
	struct format_text out, positive;
	size_t i = 0;

	if (!isfinite(ns))
		return (struct format_text){ "?" };
	if (ns < 0) {
		positive = format_duration(-ns, utf8);
		snprintf(out.text, sizeof(out.text), "-%.38s", positive.text);
		return out;
	}
	/* The unit is chosen after rounding: 999.6 µs is 1.00 ms. Seconds go up to 9,999. */
	while (i < 3 && ns / time_units[i].size >= 999.5)
		i++;
	if (i == 3 && ns >= 1e13)
		i = 4;
	if (i == 0) {
		snprintf(out.text, sizeof(out.text), "%.0f ns", ns);
		return out;
	}
	return three_digits(ns / time_units[i].size,
			    utf8 ? time_units[i].name : time_units[i].plain);
}

struct format_text format_clock(double ns, bool utf8)
{
	struct format_text out;
	uint64_t seconds;

	if (!isfinite(ns) || ns < 59.95e9 || ns > 1e18)
		return format_duration(ns, utf8);
	seconds = (uint64_t)llround(ns / 1e9);
	if (seconds < 3600)
		snprintf(out.text, sizeof(out.text), "%" PRIu64 ":%02" PRIu64, seconds / 60,
			 seconds % 60);
	else
		snprintf(out.text, sizeof(out.text), "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
			 seconds / 3600, seconds / 60 % 60, seconds % 60);
	return out;
}

struct format_text format_count_short(uint64_t count)
{
	if (count < 10000000u)
		return format_count(count);
	if (count < 999500000u)
		return three_digits((double)count / 1e6, "M");
	return three_digits((double)count / 1e9, "G");
}

struct format_text format_bytes(double bytes)
{
	struct format_text out;
	size_t i = 0;

	if (!isfinite(bytes) || bytes < 0)
		return (struct format_text){ "?" };
	while (i < 4 && bytes / byte_units[i].size >= 999.5)
		i++;
	if (i < 3) {
		snprintf(out.text, sizeof(out.text), "%.0f %s", bytes / byte_units[i].size,
			 byte_units[i].name);
		return out;
	}
	return three_digits(bytes / byte_units[i].size, byte_units[i].name);
}

struct format_text format_percent(double share)
{
	struct format_text out;
	double percent = share * 100;
	int decimals = percent < 0.995 ? 2 : percent < 9.95 ? 1 : 0;

	if (!isfinite(percent))
		return (struct format_text){ "?" };
	if (percent > 0 && percent < 0.005)
		return (struct format_text){ "< 0.01 %" };
	if (percent < 100 && percent >= 99.5)
		return (struct format_text){ "> 99 %" };
	if (percent <= 0)
		decimals = 0;
	snprintf(out.text, sizeof(out.text), "%.*f %%", decimals, percent > 0 ? percent : 0.0);
	return out;
}

/* Whole doubles keep a ".0", to differ from integers. */
static void mark_as_double(struct format_text *text)
{
	if (!strpbrk(text->text, ".e"))
		snprintf(text->text + strlen(text->text), sizeof(text->text) - strlen(text->text),
			 ".0");
}

struct format_text format_double(double value)
{
	struct format_text out;

	if (isnan(value))
		return (struct format_text){ "nan" };
	if (isinf(value) && value > 0)
		return (struct format_text){ "inf" };
	if (isinf(value))
		return (struct format_text){ "-inf" };
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(out.text, sizeof(out.text), "%.*g", digits, value);
		if (strtod(out.text, NULL) == value)
			break;
	}
	mark_as_double(&out);
	return out;
}

struct format_text format_number(double value, const char *unknown)
{
	struct format_text out = { "" };

	if (!isfinite(value))
		snprintf(out.text, sizeof(out.text), "%s", unknown);
	else if (value == rint(value) && fabs(value) < 9007199254740992.0)
		snprintf(out.text, sizeof(out.text), "%.0f", value);
	else
		return format_double(value);
	return out;
}
