#include "cmds/cmds.h"

#include <stdio.h>
#include <string.h>

#include "base/spelling.h"
#include "cmds/trigger/trigger_start.h"
#include "serve/children/child.h"
#include "views/export/export.h"

static const struct cmds_option ls_options[] = {
	{ 'f', "format", "text|json", "output format (text)" },
	{ 'a', "all", NULL, "list all ended recordings, not only the newest 20" },
	{ 0 },
};

static const struct cmds_option attach_options[] = {
	{ 'o', "output", "DIR", "directory of the recording (./kymo-DATE-PID)" },
	{ 0, "force", NULL, "replace an existing recording" },
	{ 0, "all", NULL, "record all your programs that start from now on" },
	{ 0, "match", "PATTERN", "with --all: only these, also running ones" },
	{ 0, "duration", "SECONDS", "stop after this time" },
	{ 0, "slow", "SECONDS", "sample Python when a zone or step takes longer" },
	{ 0, "no-native", NULL, "do not sample native stacks" },
	{ 0, "no-summary", NULL, "print one line at the end" },
	{ 'q', "quiet", NULL, "print no messages (or set KYMO_QUIET=1)" },
	{ 0 },
};

static const struct cmds_option query_options[] = {
	{ 'f', "format", "table|json|csv|arrow|parquet", "output format (table)" },
	{ 'o', "output", "FILE", "write the result to FILE" },
	{ 0, "force", NULL, "overwrite an existing file" },
	{ 'n', "limit", "N", "print at most N rows" },
	{ 0, "timeout", "SECONDS", "cancel the query after this time (600); 0: never" },
	{ 'w', "repeat", "SECONDS", "repeat the query every SECONDS" },
	{ 0, "unsafe", NULL, "allow all statements, files and settings" },
	{ 0 },
};

static const struct cmds_option no_options[] = { { 0 } };

static const struct cmds_option report_options[] = {
	{ 'f', "format", "text|html|json|csv", "output format (text)" },
	{ 'o', "output", "FILE", "write to FILE; its extension sets the format" },
	{ 0, "open", NULL, "open the HTML report in a browser" },
	{ 0, "no-source", NULL, "leave the text of source files out of HTML" },
	{ 0, "force", NULL, "overwrite an existing file" },
	{ 0, "subtract-overhead", NULL, "subtract the cost of recording from self times" },
	{ 0, NULL, NULL, NULL },
};

static const struct cmds_option file_options[] = {
	{ 'o', "output", "FILE", "same as FILE" },
	{ 0, "force", NULL, "overwrite an existing file" },
	{ 0 },
};

static const struct cmds_option snapshot_options[] = {
	{ 'o', "output", "FILE", "same as FILE" },
	{ 0, "last", "SECONDS", "only rows of the last SECONDS" },
	{ 0, "since", "SECONDS", "only rows since SECONDS of CLOCK_MONOTONIC" },
	{ 0, "force", NULL, "overwrite an existing file" },
	{ 0 },
};

static const struct cmds_option trigger_options[] = {
	{ 0, "action", "ACTION", "snapshot, why, mark, detail, run; can be repeated" },
	{ 0, "every", "SECONDS", "time between two looks (1)" },
	{ 0, "cooldown", "SECONDS", "time between two firings (60)" },
	{ 'n', "limit", "N", "fire at most N times (10)" },
	{ 0, "bytes", "SIZE", "save at most SIZE in all (1G)" },
	{ 0, "all-ranks", NULL, "act on all recordings of the job" },
	{ 0, "ready", NULL, "ls: list the ready-made triggers" },
	{ 0 },
};

static const struct cmds_option compare_options[] = {
	{ 0, "a", "TARGET", "a run of A; can be repeated" },
	{ 0, "b", "TARGET", "a run of B; can be repeated" },
	{ 'f', "format", "text|html|json", "output format (text)" },
	{ 'o', "output", "FILE", "write to FILE; its extension sets the format" },
	{ 0, "force", NULL, "overwrite an existing file" },
	{ 0, "fail-above", "SHARE", "exit with 1 if steps of B are slower by SHARE" },
	{ 0, "by", "rank|attempt", "compare ranks or attempts of one job, or of two" },
	{ 0, "total", NULL, "compare total times of regions, not self times" },
	{ 0, "ranks", "LIST", "compare these ranks of two jobs: 0,3,8-15" },
	{ 0, "all", NULL, "include differences that are not significant" },
	{ 0, "anyway", NULL, "compare even if the runs are not comparable" },
	{ 0 },
};

static const struct cmds_option import_options[] = {
	{ 'o', "output", "DIR", "directory of the recording (./kymo-FILE)" },
	{ 0, "force", NULL, "replace an existing recording" },
	{ 0, "comm", "PATTERN", "kernels that communicate; can be repeated" },
	{ 'q', "quiet", NULL, "print no messages" },
	{ 0 },
};

static const struct cmds_option export_options[] = {
	{ 'f', "format", EXPORT_WORDS, "output format (perfetto)" },
	{ 'o', "output", "FILE", "output file (PROGRAM.EXT); - is standard output" },
	{ 0, "table", "TABLE", "formats of tables: write only this table" },
	{ 0, "samples", NULL, "formats of stacks: Python samples, not zones" },
	{ 0, "native", NULL, "formats of stacks: native samples, not zones" },
	{ 0, "force", NULL, "overwrite an existing file" },
	{ 0 },
};

static const struct cmds_option flame_options[] = {
	{ 'o', "output", "FILE", "write an SVG file; - is standard output" },
	{ 0, "samples", NULL, "Python samples, not zones" },
	{ 0, "native", NULL, "native samples: C, C++ and Python on a CPU" },
	{ 0, "force", NULL, "overwrite an existing file" },
	{ 0 },
};

static const struct cmds_option top_options[] = {
	{ 'n', "limit", "N", "print at most N screens, one after the other" },
	{ 0, "interval", "SECONDS", "time between two screens (1)" },
	{ 0 },
};

static const struct cmds_option backtrace_options[] = {
	{ 0, "native", NULL, "include C and C++; stops each thread briefly" },
	{ 0, "locals", NULL, "show the variables of each function" },
	{ 0, "tree", NULL, "include child processes; rarest stack first" },
	{ 0, "why", NULL, "show what each thread waits for, and how long" },
	{ 0, "json", NULL, "same as -f json" },
	{ 'f', "format", "text|json", "output format (text)" },
	{ 0 },
};

static const struct cmds_option rm_options[] = {
	{ 0, "dead", NULL, "remove all dead recordings in memory (KYMO_DIR)" },
	{ 0, "all-dead", NULL, "remove all dead recordings of kymo ls, no files" },
	{ 0 },
};

static const struct cmds_option doctor_options[] = {
	{ 'f', "format", "text|json", "output format (text)" },
	{ 0 },
};

static const struct cmds_option config_options[] = {
	{ 'f', "format", "text|json", "output format (text)" },
	{ 0 },
};

static const struct cmds_option serve_options[] = {
	{ 0, "port", "N", "port (8086, or the next free one)" },
	{ 0, "listen", "ADDRESS", "address other than loopback; needs the token" },
	{ 0, "require-token", NULL, "require the token also of the same user" },
	{ 0, "host", "NAMES", "more names of this machine, comma-separated" },
	{ 0, "open", NULL, "open a browser" },
	{ 0, "zoom", "SCALE", "scale of the page, for example 1.5 or 0.75" },
	{ 0, "while", "PID", "exit when PID has ended and no client is connected" },
	{ 'q', "quiet", NULL, "print only the address" },
	{ 0 },
};

static const struct cmds_option mcp_options[] = {
	{ 0, "no-source", NULL, "leave the text of source files out of answers" },
	{ 0 },
};

static const struct cmds_option lake_options[] = {
	{ 0, "run", "NAME", "name of the job (the id of its scheduler)" },
	{ 0, "tier", "N", "0: totals; 1: also steps; 2: all tables (2)" },
	{ 0, "ranks", "LIST", "tables of tier 2 of these ranks only: 0,3,8-15" },
	{ 'f', "format", "text|json", "output format (text)" },
	{ 0 },
};

const struct cmds_command cmds_table[] = {
	{ "run", cmd_run, "record a program and print a summary at its end",
	  "[OPTIONS] -- PROGRAM [ARGUMENTS]", cmds_run_options,
	  "kymo run -- python train.py\trecord a program\n"
	  "kymo run --python -- python train.py\tevery Python call\n" },
	{ "attach", cmd_attach, "record a running program from outside",
	  "[OPTIONS] PID\n--all [OPTIONS]", attach_options,
	  "kymo attach 4711\tuntil it ends or Ctrl-C\n"
	  "kymo attach --duration 60 -o hung 4711\n"
	  "kymo attach --all --match 'python.*train'\ttrainings, as they start\n" },
	{ "ls", cmd_ls, "list running programs and recordings", "[OPTIONS]", ls_options,
	  "kymo ls\trunning programs, newest recordings\n"
	  "kymo ls -f json | jq '.[0].path'\tfor scripts\n" },
	{ "config", cmd_config, "read or change the settings of a running program",
	  "[OPTIONS] TARGET [KEY[=VALUE]...]", config_options,
	  "kymo config 4711\tprint all settings\n"
	  "kymo config 4711 sample_rate=0.01 torch=on\n"
	  "kymo config latest sample_rate\tprint one value\n" },
	{ "query", cmd_query, "query a recording with SQL", "[OPTIONS] [TARGET] [SQL]",
	  query_options,
	  "kymo query 'FROM trace.regions ORDER BY self_ns DESC LIMIT 10'\n"
	  "kymo query 'SHOW TABLES'\tlist tables and columns\n"
	  "kymo query 4711 'FROM trace.open_zones'\topen zones of a running program\n"
	  "kymo query run.kymo -f csv -o steps.csv 'FROM trace.steps'\n"
	  "kymo query -w 1 4711 'FROM trace.open_zones'\tevery second\n"
	  "kymo query - < query.sql\tread the SQL from standard input\n" },
	{ "backtrace", cmd_backtrace, "show the current stack of every thread of a program",
	  "[OPTIONS] [TARGET]", backtrace_options,
	  "kymo backtrace 4711\tdoes not stop the program\n"
	  "kymo backtrace --why 4711\twhy does it hang?\n"
	  "kymo backtrace --why jobs/7\twhich rank do the others wait for?\n"
	  "kymo backtrace --tree 4711\tall ranks; the rarest stack first\n" },
	{ "report", cmd_report, "report where the time of a run went", "[OPTIONS] [TARGET] [FILE]",
	  report_options,
	  "kymo report\tof the latest recording\n"
	  "kymo report latest report.html\tone file, opens offline\n"
	  "kymo report -f json | jq .timing\n"
	  "kymo report run.kymo | less\n" },
	{ "compare", cmd_compare, "compare the step and region times of two runs",
	  "[OPTIONS] A B\n[OPTIONS] A1 A2 A3 -- B1 B2 B3\n--by rank|attempt JOB [JOB2]",
	  compare_options,
	  "kymo compare before.kymo after.kymo\n"
	  "kymo compare a1 a2 a3 -- b1 b2 b3\tseveral runs of each: more reliable\n"
	  "kymo compare a b -o diff.html\tone file, opens offline\n"
	  "kymo compare a b --fail-above 5%\tfor CI\n"
	  "kymo compare --by rank job\teach rank beside the median rank\n" },
	{ "import", cmd_import, "import traces of other tools as a recording", "[OPTIONS] FILE...",
	  import_options,
	  "kymo import trace.json.gz\ttorch.profiler, Chrome\n"
	  "kymo import rank*.json.gz -o job\tall ranks of a job\n"
	  "kymo import traces/ -o job && kymo report job\n" },
	{ "export", cmd_export, "export a recording for another tool", "[OPTIONS] [TARGET]",
	  export_options,
	  "kymo export\tfor ui.perfetto.dev\n"
	  "kymo export run.kymo -o run.speedscope.json\n"
	  "kymo export -o flame.svg\ta flame graph\n"
	  "kymo export -f parquet -o tables\tall tables, one file each\n"
	  "kymo export -f csv --table trace.steps\n" },
	{ "flame", cmd_flame, "show a flame graph, or write it as a picture", "[OPTIONS] [TARGET]",
	  flame_options,
	  "kymo flame\ta tree of callers on the terminal\n"
	  "kymo flame -o flame.svg\ta picture, opens in a browser\n" },
	{ "top", cmd_top, "watch a running program on the terminal", "[OPTIONS] [TARGET]",
	  top_options,
	  "kymo top 4711\tq quits, h shows the keys\n"
	  "kymo top -n 1 | head -5\tone screen, for scripts\n" },
	{ "snapshot", cmd_snapshot, "copy a recording into one file, while it runs",
	  "[OPTIONS] [TARGET] FILE", snapshot_options,
	  "kymo snapshot 4711 now.kymosnap\tdoes not stop the program\n"
	  "kymo snapshot --last 30 4711 now.kymosnap\tonly the last 30 s\n"
	  "kymo snapshot latest hung.kymosnap\n" },
	{ "trigger", cmd_trigger, "save the moment when a condition in SQL holds",
	  "add [OPTIONS] TARGET NAME[=SQL]\nls [TARGET]\nrm TARGET NAME...", trigger_options,
	  "kymo trigger add 4711 slow_step\ta ready-made one\n"
	  "kymo trigger add 4711 big='FROM trace.steps WHERE duration_ns > 1e9'\n"
	  "kymo trigger ls\tdefinitions, and what they did\n" },
	{ "pack", cmd_pack, "convert a recording into one DuckDB file", "[OPTIONS] [TARGET] [FILE]",
	  file_options,
	  "kymo pack\tlatest recording to PROGRAM.kymo\n"
	  "kymo pack kymo-20250314-1115-4711 run.kymo\n" },
	{ "rm", cmd_rm, "remove dead recordings", "TARGET...\n--dead | --all-dead", rm_options,
	  "kymo rm latest\n"
	  "kymo rm --dead\tfree the memory they use\n" },
	{ "doctor", cmd_doctor, "check this machine and suggest fixes", "[OPTIONS]", doctor_options,
	  "kymo doctor\n" },
	{ "completion", cmd_completion, "print a completion script for a shell", "bash|zsh|fish",
	  no_options,
	  "kymo completion bash > ~/.local/share/bash-completion/completions/kymo\n"
	  "kymo completion fish > ~/.config/fish/completions/kymo.fish\n" },
	{ "serve", cmd_serve, "serve the live viewer and its HTTP API", "[OPTIONS] [TARGET...]",
	  serve_options,
	  "kymo serve\tshows programs as they start\n"
	  "kymo serve run.kymo\tshows this recording first\n"
	  "kymo serve --listen 0.0.0.0\tallow other machines, with a token\n" },
	{ "lake", cmd_lake, "write jobs of many hosts into a directory of Parquet files",
	  "add [OPTIONS] RECORDING... LAKE\n"
	  "ls [-f text|json] LAKE\n"
	  "check|align|compact|rm|spark-sql LAKE/JOB",
	  lake_options,
	  "kymo lake add runs/a runs/b /shared/lake\tadd what is new\n"
	  "kymo query /shared/lake/JOB 'FROM dist.late'\tall tables, as of a recording\n"
	  "kymo lake check /shared/lake/JOB\twhich rows are missing, and why\n" },
	{ "mcp", cmd_mcp, "answer the questions of an assistant (Model Context Protocol)",
	  "[OPTIONS] [TARGET]", mcp_options,
	  "kymo mcp\tstarted by the assistant\n"
	  "ssh host kymo mcp\trecordings of another machine\n" },
	{ "help", cmd_help, "show the help of a command", "[COMMAND]", no_options,
	  "kymo help query\n" },
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
	const char *names[32] = { NULL }, *suggestion;
	size_t count = 0;

	for (const struct cmds_command *command = cmds_table; command->name && count < 31;
	     command++)
		names[count++] = command->name;
	suggestion = spelling_word(typed, names);
	if (suggestion)
		return cmds_wrong(NULL, "unknown command %s; did you mean %s?", typed, suggestion);
	return cmds_wrong(NULL, "unknown command %s; kymo help lists the commands", typed);
}

/* The recorder is linked into kymo itself. KYMO=on is meant for the programs it starts:
   record/process.c ignores it where this symbol exists. */
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
	const char *name = argc > 1 ? argv[1] : "";

	if (argc < 2)
		return help_now();
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (!strcmp(aliases[i].word, name))
			name = aliases[i].command;
	/* Started by kymo serve; not for people. */
	if (argc == 2 && !strcmp(name, "answer"))
		return child_main();
	if (argc > 2 && !strcmp(name, "answer")) {
		child_limit_command();
		argc--;
		argv++;
		name = argv[1];
	}
	/* Started by kymo run and kymo trigger add. */
	if (argc > 2 && !strcmp(name, "watch-triggers"))
		return trigger_watch_main(argc - 1, argv + 1);
	command = cmds_find(name);
	if (!command)
		return unknown_command(name);
	return command->run(argc - 1, argv + 1);
}
