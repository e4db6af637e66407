#include "views/verdicts/rules.h"

#include <string.h>

/* Fills a template with example values. A bar would end the cell of the table. */
static void add_prose(struct buf *out, const char *text)
{
	static const struct {
		const char *word, *example;
	} words[] = {
		{ "{share}", "16 %" },	 { "{won}", "34.5 s" },	    { "{whole}", "211 s" },
		{ "{name}", "NAME" },	 { "{count}", "404" },	    { "{a}", "1.2 ms" },
		{ "{b}", "24.9 ms" },	 { "{a_bytes}", "320 MB" }, { "{b_bytes}", "770 MB" },
		{ "{which}", "KERNEL" }, { "{pid}", "PID" },	    { "{s}", "s" },
	};

	while (*text) {
		size_t i = 0, count = sizeof(words) / sizeof(words[0]);

		while (i < count && strncmp(text, words[i].word, strlen(words[i].word)) != 0)
			i++;
		if (i < count) {
			buf_text(out, words[i].example);
			text += strlen(words[i].word);
			continue;
		}
		if (*text == '|')
			buf_char(out, '\\');
		if (*text != '[' && *text != ']')
			buf_char(out, *text);
		text++;
	}
}

void rules_docs(struct buf *out)
{
	buf_text(out, "| name | sentence, with example values | from | try | numbers |\n"
		      "|---|---|---|---|---|\n");
	for (size_t i = 0; i < rules_count; i++) {
		buf_print(out, "| %s | ", rules[i].name);
		add_prose(out, rules[i].sentence);
		buf_print(out, " | %.0f %%", 100 * rules[i].threshold);
		if (rules[i].least_s > 0)
			buf_print(out, ", runs of %g s", rules[i].least_s);
		buf_text(out, " | ");
		add_prose(out, rules[i].advice);
		buf_print(out, " | `%s` |\n", rules[i].query);
	}
}
