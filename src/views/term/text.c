#include "views/term/text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"

#define LINES_USUAL 24
#define COLUMNS_USUAL 80
#define COLUMNS_LEAST 64 /* below it lines wrap */
#define COLUMNS_MOST 400

/* ---- style ---------------------------------------------------------------------------------- */

static bool locale_is_utf8(void)
{
	const char *codeset;

	/* Only the character set: numbers keep the decimal point. */
	setlocale(LC_CTYPE, "");
	codeset = nl_langinfo(CODESET);
	return codeset && (!strcasecmp(codeset, "UTF-8") || !strcasecmp(codeset, "UTF8"));
}

static int columns_of(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) || size.ws_col == 0)
		return COLUMNS_USUAL;
	if (size.ws_col < COLUMNS_LEAST)
		return COLUMNS_LEAST;
	return size.ws_col > COLUMNS_MOST ? COLUMNS_MOST : size.ws_col;
}

int text_lines_of(FILE *out)
{
	struct winsize size;

	return ioctl(fileno(out), TIOCGWINSZ, &size) || !size.ws_row ? LINES_USUAL : size.ws_row;
}

struct text_style text_style_of(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	struct text_style style = { .utf8 = locale_is_utf8(), .columns = COLUMNS_USUAL };

	style.terminal = isatty(fileno(out));
	if (style.terminal)
		style.columns = columns_of(fileno(out));
	style.colour = style.terminal && (!no_color || !no_color[0]) &&
		       (!term || strcmp(term, "dumb") != 0);
	return style;
}

static const char *const paints[] = {
	[TEXT_PLAIN] = "\033[0m", [TEXT_BOLD] = "\033[1m",     [TEXT_DIM] = "\033[2m",
	[TEXT_RED] = "\033[31m",  [TEXT_GREEN] = "\033[32m",   [TEXT_YELLOW] = "\033[33m",
	[TEXT_BLUE] = "\033[34m", [TEXT_MAGENTA] = "\033[35m", [TEXT_CLAUSE] = "\033[1;33m",
};

const char *text_paint(const struct text_style *style, enum text_paint paint)
{
	return style->colour && paint != TEXT_PLAIN ? paints[paint] : "";
}

const char *text_plain(const struct text_style *style)
{
	return style->colour ? paints[TEXT_PLAIN] : "";
}

enum text_paint text_source_paint(const char *source)
{
	static const struct {
		const char *source;
		enum text_paint paint;
	} hues[] = {
		{ "c", TEXT_BLUE },    { "python", TEXT_YELLOW }, { "line", TEXT_MAGENTA },
		{ "torch", TEXT_RED }, { "device", TEXT_GREEN },  { "itt", TEXT_MAGENTA },
		{ "op", TEXT_RED },    { "xla", TEXT_RED },	  { "nvtx", TEXT_MAGENTA },
		{ "mark", TEXT_BLUE },
	};

	for (size_t i = 0; i < sizeof(hues) / sizeof(hues[0]); i++)
		if (!strcmp(hues[i].source, source))
			return hues[i].paint;
	return TEXT_PLAIN;
}

/* ---- characters ----------------------------------------------------------------------------- */

size_t text_character(const char *text, size_t bytes, uint32_t *out)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	size_t need = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	uint32_t code = need == 1 ? s[0] : s[0] & (0x7fu >> need);

	if ((s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4 || need > bytes)
		return 0;
	for (size_t i = 1; i < need; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	if (code < least[need] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	if (out)
		*out = code;
	return need;
}

struct range {
	uint32_t first, last;
};

static bool in_ranges(const struct range *ranges, size_t count, uint32_t code)
{
	for (size_t i = 0; i < count && code >= ranges[i].first; i++)
		if (code <= ranges[i].last)
			return true;
	return false;
}

static size_t columns_taken(uint32_t code)
{
	static const struct range none[] = {
		{ 0x300, 0x36f },   { 0x483, 0x489 },	{ 0x591, 0x5bd },
		{ 0x610, 0x61a },   { 0x64b, 0x65f },	{ 0x20d0, 0x20ff },
		{ 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xe0100, 0xe01ef },
	};
	static const struct range two[] = {
		{ 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },
		{ 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },
		{ 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },
		{ 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f },
		{ 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
	};

	if (code < 0x300)
		return 1;
	if (in_ranges(none, sizeof(none) / sizeof(none[0]), code))
		return 0;
	return in_ranges(two, sizeof(two) / sizeof(two[0]), code) ? 2 : 1;
}

/* As utf8_show(), with the columns that the printable form takes. */
static size_t show(const char *text, size_t bytes, char shown[UTF8_SHOWN_BYTES],
		   size_t *shown_bytes, size_t *columns)
{
	size_t read = utf8_show(text, bytes, shown, shown_bytes);
	uint32_t code = 0;

	*columns = *shown_bytes; /* of an escape */
	if (text_character(shown, *shown_bytes, &code) == *shown_bytes)
		*columns = columns_taken(code);
	return read;
}

void text_visible(struct buf *out, const char *text, size_t bytes)
{
	char shown[UTF8_SHOWN_BYTES];
	size_t shown_bytes, columns;

	for (size_t at = 0; at < bytes;) {
		size_t plain = at;

		/* Nearly all names are printable ASCII, which is copied at once. */
		while (plain < bytes && text[plain] >= 0x20 && text[plain] < 0x7f)
			plain++;
		buf_add(out, text + at, plain - at);
		at = plain;
		if (at == bytes)
			break;
		at += show(text + at, bytes - at, shown, &shown_bytes, &columns);
		buf_add(out, shown, shown_bytes);
	}
}

void text_line(FILE *out, const char *format, ...)
{
	struct buf line = { 0 };
	char *text = NULL;
	va_list args;
	int bytes;

	va_start(args, format);
	bytes = vasprintf(&text, format, args);
	va_end(args);
	if (bytes < 0)
		return;
	text_visible(&line, text, (size_t)bytes);
	buf_char(&line, '\n');
	fwrite(buf_get(&line), 1, line.used, out);
	buf_fini(&line);
	free(text);
}

void text_lines(FILE *out, const char *text, size_t bytes)
{
	struct buf lines = { 0 };

	for (const char *last = text + bytes, *end; text < last; text = end + 1) {
		end = memchr(text, '\n', (size_t)(last - text));
		end = end ? end : last;
		/* CSV ends lines with CR LF. */
		text_visible(&lines, text, (size_t)(end - text) - (end > text && end[-1] == '\r'));
		buf_char(&lines, '\n');
	}
	fwrite(buf_get(&lines), 1, lines.used, out);
	buf_fini(&lines);
}

size_t text_width(const char *text, size_t bytes)
{
	char shown[UTF8_SHOWN_BYTES];
	size_t shown_bytes, columns, width = 0;

	for (size_t at = 0; at < bytes; width += columns)
		at += show(text + at, bytes - at, shown, &shown_bytes, &columns);
	return width;
}

/* Bytes of visible text that fit into width columns; *columns: their width. */
static size_t prefix(const char *text, size_t bytes, size_t width, size_t *columns)
{
	size_t at = 0, one;
	uint32_t code = 0;

	*columns = 0;
	while (at < bytes) {
		one = text_character(text + at, bytes - at, &code);
		if (*columns + columns_taken(code) > width)
			break;
		at += one ? one : 1;
		*columns += columns_taken(code);
	}
	return at;
}

/* Where the last width columns of visible text begin; all: columns of the whole. */
static size_t suffix(const char *text, size_t bytes, size_t all, size_t width, size_t *columns)
{
	size_t at = 0, one;
	uint32_t code = 0;

	*columns = all;
	while (at<bytes && * columns> width) {
		one = text_character(text + at, bytes - at, &code);
		at += one ? one : 1;
		*columns -= columns_taken(code);
	}
	return at;
}

/* The end of a name matters as much as its beginning, so the middle is cut. */
static void text_cut(struct buf *out, const char *text, size_t bytes, size_t all, size_t width,
		     bool utf8)
{
	size_t dots = utf8 ? 1 : 2, left, right, from;

	if (width <= dots) {
		buf_add(out, text, prefix(text, bytes, width, &left));
		buf_fill(out, ' ', width - left);
		return;
	}
	buf_add(out, text, prefix(text, bytes, (width - dots + 1) / 2, &left));
	buf_text(out, utf8 ? "…" : "..");
	from = suffix(text, bytes, all, width - dots - left, &right);
	buf_add(out, text + from, bytes - from);
	buf_fill(out, ' ', width - dots - left - right);
}

void text_fit(struct buf *out, const char *text, size_t width, int pad,
	      const struct text_style *style)
{
	struct buf shown = { 0 };
	size_t all;

	text_visible(&shown, text, strlen(text));
	all = text_width(buf_get(&shown), shown.used);
	if (pad > 0 && all < width)
		buf_fill(out, ' ', width - all);
	if (all > width)
		text_cut(out, buf_get(&shown), shown.used, all, width, style->utf8);
	else
		buf_text(out, buf_get(&shown));
	if (pad < 0 && all < width)
		buf_fill(out, ' ', width - all);
	buf_fini(&shown);
}

void text_pad(struct buf *out, const char *text, size_t width, int pad)
{
	size_t columns = text_width(text, strlen(text)),
	       blanks = columns < width ? width - columns : 0;

	buf_fill(out, ' ', pad > 0 ? blanks : 0);
	buf_text(out, text);
	buf_fill(out, ' ', pad < 0 ? blanks : 0);
}

/* ---- paragraphs ----------------------------------------------------------------------------- */

/* Not between a number and its unit. */
static bool may_break(const char *text, size_t at)
{
	if (text[at] != ' ')
		return false;
	return !at || text[at - 1] < '0' || text[at - 1] > '9';
}

/* Bytes of the next line of at most width columns, broken at a space if possible. */
static size_t line_bytes(const char *text, size_t width)
{
	size_t bytes = strlen(text), columns, fits = prefix(text, bytes, width, &columns),
	       at = fits;

	if (fits == bytes)
		return bytes;
	while (at && !may_break(text, at))
		at--;
	return at ? at : fits ? fits : bytes;
}

static size_t paragraph_width(int indent, const struct text_style *style)
{
	return style->columns > indent + 20 ? (size_t)(style->columns - indent) : 20;
}

static void paint_line(FILE *out, const char *line, size_t bytes, size_t clause,
		       const struct text_style *style)
{
	size_t first = clause < bytes ? clause : bytes;

	if (first)
		fprintf(out, "%s%.*s%s", text_paint(style, TEXT_CLAUSE), (int)first, line,
			text_plain(style));
	if (bytes > first)
		fprintf(out, "%s%.*s%s", text_paint(style, TEXT_BOLD), (int)(bytes - first),
			line + first, text_plain(style));
}

static void print_paragraph(FILE *out, const char *text, int indent, const char *first_indent,
			    bool painted, const struct text_style *style)
{
	const char *colon = painted ? strstr(text, ": ") : NULL; /* not that of aten::mm */
	size_t clause = colon ? (size_t)(colon - text) + 1 : 0, bytes;
	bool first = true;

	for (; *text; text += bytes, clause = clause > bytes ? clause - bytes : 0, first = false) {
		for (; *text == ' ' && !first; text++)
			clause -= clause > 0;
		bytes = line_bytes(text, paragraph_width(indent, style));
		if (first && first_indent)
			fputs(first_indent, out);
		else
			fprintf(out, "%*s", indent, "");
		if (painted)
			paint_line(out, text, bytes, clause, style);
		else
			fwrite(text, 1, bytes, out);
		fputc('\n', out);
	}
}

void text_paragraph(FILE *out, const char *text, int indent, const char *first_indent, bool painted,
		    const struct text_style *style)
{
	struct buf visible = { 0 };

	text_visible(&visible, text, strlen(text));
	print_paragraph(out, buf_get(&visible), indent, first_indent, painted, style);
	buf_fini(&visible);
}

int text_paragraph_lines(const char *text, int indent, const struct text_style *style)
{
	struct buf visible = { 0 };
	int lines = 0;

	text_visible(&visible, text, strlen(text));
	for (const char *at = buf_get(&visible); *at; lines++) {
		while (*at == ' ' && lines)
			at++;
		at += line_bytes(at, paragraph_width(indent, style));
	}
	buf_fini(&visible);
	return lines;
}

/* Removes the last clause, or the last word if there is only one. False: nothing is left. */
static bool shorten_once(char *text, size_t room, const char *dots)
{
	char *end = NULL;

	for (char *at = text; (at = strstr(at, "; ")); at++)
		end = at;
	for (char *at = text; (at = strstr(at, ". ")); at++)
		end = !end || at > end ? at + 1 : end;
	if (end) {
		*end = '\0';
		return true;
	}
	if (strlen(text) > strlen(dots) && !strcmp(text + strlen(text) - strlen(dots), dots))
		text[strlen(text) - strlen(dots)] = '\0';
	end = strrchr(text, ' ');
	if (!end)
		return false;
	snprintf(end, room - (size_t)(end - text), "%s", dots);
	return true;
}

void text_shorten(char *text, size_t room, int indent, int lines, const struct text_style *style)
{
	const char *dots = style->utf8 ? "…" : "...";

	while (strlen(text) > 8 && text_paragraph_lines(text, indent, style) > lines)
		if (!shorten_once(text, room, dots))
			return;
}

/* ---- pictures ------------------------------------------------------------------------------- */

void text_bar(struct buf *out, double share, int width, const struct text_style *style)
{
	static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	int eights;

	share = share > 0 ? share < 1 ? share : 1 : 0;
	eights = (int)(share * width * 8 + 0.5);
	if (!style->utf8) {
		buf_fill(out, '#', (size_t)((eights + 4) / 8));
		return;
	}
	for (int i = 0; i < eights / 8; i++)
		buf_text(out, "█");
	buf_text(out, eighths[eights % 8]);
}

void text_sparkline(struct buf *out, const double *values, size_t count,
		    const struct text_style *style)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const plain[] = { "_", "_", ".", ".", "-", "=", "*", "#" };
	double low = -1, high = -1;
	int level;

	for (size_t i = 0; i < count; i++) {
		if (values[i] < 0)
			continue;
		low = low < 0 || values[i] < low ? values[i] : low;
		high = values[i] > high ? values[i] : high;
	}
	for (size_t i = 0; i < count; i++) {
		level = high > low ? (int)((values[i] - low) / (high - low) * 7.999) : 0;
		if (values[i] < 0)
			buf_char(out, ' ');
		else
			buf_text(out, style->utf8 ? blocks[level] : plain[level]);
	}
}
