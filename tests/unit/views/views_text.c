/* Text for a terminal, and JSON strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "views/query/json.h"
#include "views/term/text.h"

static const struct text_style utf8 = { .utf8 = true, .columns = 80 };
static const struct text_style plain = { .utf8 = false, .columns = 80 };

static void assert_visible(const char *text, size_t bytes, const char *expected)
{
	struct buf out = { 0 };

	text_visible(&out, text, bytes);
	assert_string_equal(buf_get(&out), expected);
	buf_fini(&out);
}

static void names_cannot_drive_the_terminal(void **state)
{
	(void)state;
	assert_visible("aten::mm", 8, "aten::mm");
	assert_visible("größe", 7, "größe");
	assert_visible("a\nb\tc", 5, "a\\nb\\tc");
	assert_visible("\033[31m", 5, "\\x1b[31m");
	assert_visible("\0", 1, "\\x00");
	assert_visible("\xff\xc3", 2, "\\xff\\xc3");
	assert_visible("\xc2\x9b"
		       "31m",
		       5, "\\u009b31m"); /* CSI as one character */
	assert_visible("a\xe2\x80\xae"
		       "b",
		       5, "a\\u202eb"); /* right to left from here */
	assert_visible("\xed\xa0\x80", 3, "\\xed\\xa0\\x80"); /* a lone surrogate */
	assert_visible("\xc0\xaf", 2, "\\xc0\\xaf"); /* an overlong / */
}

static void assert_fit(const char *text, size_t width, int pad, const struct text_style *style,
		       const char *expected)
{
	struct buf out = { 0 };

	text_fit(&out, text, width, pad, style);
	assert_string_equal(buf_get(&out), expected);
	buf_fini(&out);
}

static void names_are_cut_in_the_middle(void **state)
{
	(void)state;
	assert_fit("short", 8, -1, &utf8, "short   ");
	assert_fit("short", 8, 1, &utf8, "   short");
	assert_fit("exactly8", 8, -1, &utf8, "exactly8");
	assert_fit("scaled_dot_product_attention", 11, -1, &utf8, "scale…ntion");
	assert_fit("scaled_dot_product_attention", 11, -1, &plain, "scale..tion");
	assert_fit("abc", 1, -1, &utf8, "a");
	assert_fit("", 3, -1, &utf8, "   ");
	/* Wide characters take two columns; none is cut in half. */
	assert_fit("時間時間時間", 12, -1, &utf8, "時間時間時間");
	assert_fit("時間時間時間", 8, -1, &utf8, "時間…間 ");
}

static void width_is_what_the_terminal_takes(void **state)
{
	(void)state;
	assert_int_equal(text_width("84.9 µs", strlen("84.9 µs")), 7);
	assert_int_equal(text_width("時間", strlen("時間")), 4);
	assert_int_equal(text_width("e\xcc\x81", 3), 1); /* e and a combining accent */
	assert_int_equal(text_width("\n", 1), 2);
}

static char *paragraph(const char *text, int columns, bool painted, bool colour)
{
	struct text_style style = { .utf8 = true, .columns = columns, .colour = colour };
	char *out = NULL;
	size_t bytes;
	FILE *file = open_memstream(&out, &bytes);

	text_paragraph(file, text, 2, NULL, painted, &style);
	fclose(file);
	return out;
}

/* But not between a number and its unit. */
static void sentences_wrap_at_words(void **state)
{
	char *out = paragraph("Data loading holds up training: it takes 16 %", 24, true, false);

	(void)state;
	assert_string_equal(out, "  Data loading holds up\n  training: it takes\n  16 %\n");
	free(out);
	out = paragraph("A: b", 24, true, true);
	assert_string_equal(out, "  \033[1;33mA:\033[0m\033[1m b\033[0m\n");
	free(out);
	out = paragraph("Is x::y: b", 24, true, true);
	assert_string_equal(out, "  \033[1;33mIs x::y:\033[0m\033[1m b\033[0m\n");
	free(out);
	out = paragraph("averyveryverylongwordthatdoesnotfit", 24, false, false);
	assert_string_equal(out, "  averyveryverylongwordt\n  hatdoesnotfit\n");
	free(out);
}

static void bars_and_sparklines_do_without_utf8(void **state)
{
	static const double values[] = { 1, 8, -1, 4.5 };
	struct buf out = { 0 };

	(void)state;
	text_bar(&out, 0.55, 10, &utf8);
	assert_string_equal(buf_get(&out), "█████▌");
	buf_reset(&out);
	text_bar(&out, 0.55, 10, &plain);
	assert_string_equal(buf_get(&out), "######");
	buf_reset(&out);
	text_bar(&out, 7, 3, &utf8);
	assert_string_equal(buf_get(&out), "███");
	buf_reset(&out);
	text_sparkline(&out, values, 4, &utf8);
	assert_string_equal(buf_get(&out), "▁█ ▄");
	buf_reset(&out);
	text_sparkline(&out, values, 4, &plain);
	assert_string_equal(buf_get(&out), "_# .");
	buf_fini(&out);
}

static void assert_json(const char *text, size_t bytes, const char *expected)
{
	struct buf out = { 0 };

	json_text(&out, text, bytes);
	assert_string_equal(buf_get(&out), expected);
	buf_fini(&out);
}

static void json_strings_are_valid_whatever_they_hold(void **state)
{
	(void)state;
	assert_json("a", 1, "\"a\"");
	assert_json("\"\\\n\x01", 4, "\"\\\"\\\\\\n\\u0001\"");
	assert_json("\0\x7f", 2, "\"\\u0000\\u007f\"");
	assert_json("\xff", 1, "\"\xef\xbf\xbd\"");
	assert_json("é", 2, "\"é\"");
	assert_json("</script>", 9, "\"</script>\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_cannot_drive_the_terminal),
		cmocka_unit_test(names_are_cut_in_the_middle),
		cmocka_unit_test(width_is_what_the_terminal_takes),
		cmocka_unit_test(sentences_wrap_at_words),
		cmocka_unit_test(bars_and_sparklines_do_without_utf8),
		cmocka_unit_test(json_strings_are_valid_whatever_they_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
