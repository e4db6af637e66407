/* kymo doctor: checks this machine and suggests fixes. */
#include "cmds/cmds.h"

#include <string.h>

#include "views/status/doctor.h"

int cmd_doctor(int argc, char **argv)
{
	struct doctor_finding findings[DOCTOR_MOST];
	struct text_style style = text_style_of(stdout);
	struct cmds_args args;
	bool json = false, broken = false;
	size_t count;
	int status;

	cmds_args_init(&args, "doctor", argc, argv);
	while (cmds_next(&args, &status)) {
		json = !strcmp(args.value, "json");
		if (!json && strcmp(args.value, "text") != 0)
			return cmds_wrong("doctor", "unknown format %s; use text or json",
					  args.value);
	}
	if (status >= 0)
		return status;
	if (args.word_count)
		return cmds_wrong("doctor", "unexpected argument %s", args.words[0]);
	count = doctor_look(findings);
	if (json)
		doctor_print_json(findings, count, stdout);
	else
		doctor_print(findings, count, &style, stdout);
	for (size_t i = 0; i < count; i++)
		broken = broken || findings[i].state == DOCTOR_BROKEN;
	status = cmds_finish("doctor");
	return status == CMDS_OK && broken ? CMDS_FAILED : status;
}
