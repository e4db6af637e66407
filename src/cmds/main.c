#include "cmds/cmds.h"

#include <stdio.h>
#include <string.h>

#include "base/spelling.h"

static const struct cmds_option ls_options[] = {
	{ 'f', "format", "text|json", "how to print it (text)" },
	{ 'a', "all", NULL, "all that have ended, not the newest 20" },
	{ 0 },
};

static const struct cmds_option attach_options[] = {
	{ 'o', "output", "DIR", "where the recording goes (./kymo-DATE-PID)" },
	{ 0, "force", NULL, "let --output replace a recording" },
	{ 0, "duration", "SECONDS", "end after that long" },
	{ 0, "slow", "SECONDS", "sample Python when a zone or step takes longer" },
	{ 0, "no-summary", NULL, "one line at the end" },
	{ 'q', "quiet", NULL, "say nothing at all; KYMO_QUIET=1 does the same" },
	{ 0 },
};

static const struct cmds_option query_options[] = {
	{ 'f', "format", "table|json|csv|arrow|parquet", "how to print it (table)" },
	{ 'o', "output", "FILE", "write the result to FILE" },
	{ 0, "force", NULL, "let --output replace a file" },
	{ 'n', "limit", "N", "at most N rows" },
	{ 0, "timeout", "SECONDS", "give up after that long" },
	{ 0, "unsafe", NULL, "allow any statement, files and settings" },
	{ 0 },
};

static const struct cmds_option no_options[] = { { 0 } };

static const struct cmds_option report_options[] = {
	{ 'f', "format", "text|html|json|csv", "how to print it (text)" },
	{ 'o', "output", "FILE", "write it to FILE; its ending says the format" },
	{ 0, "force", NULL, "let it replace a file that is no such report" },
	{ 0, "subtract-overhead", NULL, "take the cost of recording off self times" },
	{ 0, NULL, NULL, NULL },
};

static const struct cmds_option file_options[] = {
	{ 'o', "output", "FILE", "the same as FILE" },
	{ 0, "force", NULL, "replace FILE if it is there" },
	{ 0 },
};

static const struct cmds_option compare_options[] = {
	{ 0, "a", "TARGET", "a run of A; may be given several times" },
	{ 0, "b", "TARGET", "a run of B; likewise" },
	{ 'f', "format", "text|html|json", "how to print it (text)" },
	{ 'o', "output", "FILE", "write it to FILE; its ending says the format" },
	{ 0, "force", NULL, "let it replace a file that is no comparison" },
	{ 0, "fail-above", "SHARE", "exit status 1 where a step is slower by that" },
	{ 0, "total", NULL, "regions with what is inside, not by themselves" },
	{ 0, "all", NULL, "also what cannot be told from noise" },
	{ 0, "anyway", NULL, "compare what should not be compared" },
	{ 0 },
};

static const struct cmds_option export_options[] = {
	{ 'f', "format", "perfetto|chrome|speedscope|pprof|folded|parquet|arrow|csv",
	  "for which tool (perfetto)" },
	{ 'o', "output", "FILE", "where to (PROGRAM.EXT); - is standard output" },
	{ 0, "table", "TABLE", "parquet, arrow, csv: this table alone" },
	{ 0, "samples", NULL, "folded, speedscope: Python samples, not zones" },
	{ 0, "force", NULL, "replace FILE if it is there" },
	{ 0 },
};

static const struct cmds_option backtrace_options[] = {
	{ 0, "native", NULL, "C and C++ too; holds each thread for a moment" },
	{ 0, "locals", NULL, "the variables of each function" },
	{ 0, "tree", NULL, "all children too; the odd stack first" },
	{ 0, "why", NULL, "what each thread waits for, and since when" },
	{ 0, "json", NULL, "for programs; the same as -f json" },
	{ 'f', "format", "text|json", "how to print it (text)" },
	{ 0 },
};

static const struct cmds_option rm_options[] = {
	{ 0, "dead", NULL, "all dead recordings in memory (KYMO_DIR)" },
	{ 0, "all-dead", NULL, "all dead ones that kymo ls shows, but no files" },
	{ 0 },
};

static const struct cmds_option doctor_options[] = {
	{ 'f', "format", "text|json", "how to print it (text)" },
	{ 0 },
};

static const struct cmds_option serve_options[] = {
	{ 0, "port", "N", "the port (8086, or the next one that is free)" },
	{ 0, "listen", "ADDRESS", "other than loopback: makes a token and prints it" },
	{ 0, "host", "NAMES", "further names of this machine, parted by commas" },
	{ 0, "open", NULL, "open a browser, too" },
	{ 0, "zoom", "SCALE", "the page larger (1.5) or smaller (0.75)" },
	{ 0, "while", "PID", "ends after that process, if nobody looks" },
	{ 'q', "quiet", NULL, "say no more than the address" },
	{ 0 },
};

const struct cmds_command cmds_table[] = {
	{ "run", cmd_run, "record a program; a summary at the end",
	  "[OPTIONS] -- PROGRAM [ARGUMENTS]", NULL,
	  "kymo run -- python train.py\trecord it, and say where time went\n"
	  "kymo run --python -- python train.py\tand every call of a Python function\n" },
	{ "attach", cmd_attach, "record a program that runs, from outside", "[OPTIONS] PID",
	  attach_options,
	  "kymo attach 4711\tuntil it ends, or Ctrl-C\n"
	  "kymo attach --duration 60 -o hung 4711\n" },
	{ "ls", cmd_ls, "list recordings and live programs", "[OPTIONS]", ls_options,
	  "kymo ls\tlive ones first, then the newest\n"
	  "kymo ls -f json | jq '.[0].path'\tfor programs\n" },
	{ "config", cmd_config, "read or change the settings of a program that runs",
	  "[OPTIONS] TARGET [KEY[=VALUE]...]", NULL,
	  "kymo config 4711\tall settings\n"
	  "kymo config 4711 sample_rate=0.01 torch=on\n"
	  "kymo config latest sample_rate\tone value, for scripts\n" },
	{ "query", cmd_query, "ask a recording in SQL", "[OPTIONS] [TARGET] SQL", query_options,
	  "kymo query 'FROM trace.regions ORDER BY self_ns DESC LIMIT 10'\n"
	  "kymo query 'SHOW TABLES'\twhat can be asked for\n"
	  "kymo query 4711 'FROM trace.open_zones'\twhat a running program is doing\n"
	  "kymo query run.kymo -f csv -o steps.csv 'FROM trace.steps'\n"
	  "kymo query - < question.sql\tSQL from standard input\n" },
	{ "backtrace", cmd_backtrace, "show what every thread of a program is doing now",
	  "[OPTIONS] [TARGET]", backtrace_options,
	  "kymo backtrace 4711\tthe program is not stopped\n"
	  "kymo backtrace --why 4711\tit hangs: on what, since when\n"
	  "kymo backtrace --tree 4711\tall ranks; the odd one first\n" },
	{ "report", cmd_report, "say where the time of a run went", "[OPTIONS] [TARGET] [FILE]",
	  report_options,
	  "kymo report\tthe latest recording\n"
	  "kymo report latest report.html\tone file that opens offline\n"
	  "kymo report -f json | jq .timing\n"
	  "kymo report run.kymo | less\n" },
	{ "compare", cmd_compare, "say whether B is slower than A, where, and how sure that is",
	  "[OPTIONS] A B\n[OPTIONS] A1 A2 A3 -- B1 B2 B3", compare_options,
	  "kymo compare before.kymo after.kymo\n"
	  "kymo compare a1 a2 a3 -- b1 b2 b3\tseveral runs of each: surest\n"
	  "kymo compare a b -o diff.html\ta page that opens offline\n"
	  "kymo compare a b --fail-above 5%\tfor CI\n" },
	{ "export", cmd_export, "write a recording in the format of another tool",
	  "[OPTIONS] [TARGET]", export_options,
	  "kymo export\tfor ui.perfetto.dev\n"
	  "kymo export run.kymo -o run.speedscope.json\n"
	  "kymo export -f folded -o - | flamegraph.pl > flame.svg\n"
	  "kymo export -f parquet -o tables\tall tables, a file each\n"
	  "kymo export -f csv --table trace.steps\n" },
	{ "snapshot", cmd_snapshot, "keep what is recorded until now in one file",
	  "[OPTIONS] [TARGET] FILE", file_options,
	  "kymo snapshot 4711 now.kymosnap\ta running program, which goes on\n"
	  "kymo snapshot latest hung.kymosnap\n" },
	{ "pack", cmd_pack, "make one small DuckDB file of a recording",
	  "[OPTIONS] [TARGET] [FILE]", file_options,
	  "kymo pack\tthe latest one, to PROGRAM.kymo\n"
	  "kymo pack kymo-20250314-1115-4711 run.kymo\n" },
	{ "rm", cmd_rm, "remove dead recordings", "TARGET...\n--dead | --all-dead", rm_options,
	  "kymo rm latest\n"
	  "kymo rm --dead\tfree the memory that they hold\n" },
	{ "doctor", cmd_doctor, "say what works on this machine, and how to mend the rest",
	  "[OPTIONS]", doctor_options, "kymo doctor\tbefore asking why\n" },
	{ "completion", cmd_completion, "print what makes a shell complete these commands",
	  "bash|zsh|fish", no_options,
	  "kymo completion bash > ~/.local/share/bash-completion/completions/kymo\n"
	  "kymo completion fish > ~/.config/fish/completions/kymo.fish\n" },
	{ "serve", cmd_serve, "show programs and recordings in a browser, live",
	  "[OPTIONS] [TARGET...]", serve_options,
	  "kymo serve\tprograms of kymo run appear\n"
	  "kymo serve run.kymo\ta recording, first in the list\n"
	  "kymo serve --listen 0.0.0.0\tfrom other machines, with a token\n" },
	{ "help", cmd_help, "explain a command", "[COMMAND]", no_options, "kymo help query\n" },
	{ "version", cmd_version, "print the version", "", no_options, "kymo version\n" },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};

const struct cmds_command *cmds_find(const char *name)
{
	for (const struct cmds_command *command = cmds_table; command->name; command++)
		if (!strcmp(command->name, name))
			return command;
	return NULL;
}

static int unknown_command(const char *typed)
{
	const char *names[32] = { NULL }, *near;
	size_t count = 0;

	for (const struct cmds_command *command = cmds_table; command->name && count < 31;
	     command++)
		names[count++] = command->name;
	near = spelling_word(typed, names);
	if (near)
		return cmds_wrong(NULL, "no command is called %s; did you mean %s?", typed, near);
	return cmds_wrong(NULL, "no command is called %s; kymo help lists them", typed);
}

/* The recorder is linked into kymo itself, and KYMO=on means the programs that one starts, not this
   one: record/process.c looks for this name. */
extern const int kymo__not_by_environment;
const int kymo__not_by_environment = 1;

int main(int argc, char **argv)
{
	static const struct {
		const char *word, *command;
	} aliases[] = { { "-h", "help" },
			{ "--help", "help" },
			{ "-V", "version" },
			{ "--version", "version" } };
	const struct cmds_command *command;
	const char *name = argc > 1 ? argv[1] : "help";

	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (!strcmp(aliases[i].word, name))
			name = aliases[i].command;
	command = cmds_find(name);
	if (!command)
		return unknown_command(name);
	if (argc < 2)
		return command->run(argc, argv);
	return command->run(argc - 1, argv + 1);
}
