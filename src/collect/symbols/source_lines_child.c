/* The process that reads debug information. It may be killed at any time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "collect/symbols/source_lines.h"

#if __has_include(<elfutils/libdwfl.h>)

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>

#include "base/files/install_path.h"
#include "base/grow.h"

#define TEXT_MOST 4096
/* For one address. Debug information may make libdw run in circles; that of a large library takes
   ten seconds at its first address. */
#define CPU_SECONDS_MOST 60

/* Functions of libdw, with their types from the header. */
#define FUNCTIONS(X) \
	X(dwfl_begin) \
	X(dwfl_report_begin_add) \
	X(dwfl_report_elf) \
	X(dwfl_report_end) \
	X(dwfl_module_addrdie) \
	X(dwfl_module_getsrc) \
	X(dwfl_lineinfo) \
	X(dwarf_getscopes) \
	X(dwarf_getscopes_die) \
	X(dwarf_getsrcfiles) \
	X(dwarf_filesrc) \
	X(dwarf_attr_integrate) \
	X(dwarf_attr) \
	X(dwarf_formstring) \
	X(dwarf_formudata) \
	X(dwarf_diename) \
	X(dwarf_tag)

struct debug_file {
	uint32_t number;
	Dwfl_Module *module; /* NULL: it cannot be read */
};

struct reader {
#define X(name) __typeof__(name) *name;
	FUNCTIONS(X)
#undef X
	struct debug_file *files;
	size_t file_count, file_room;
	struct source_frame frames[SOURCE_LINES_DEEPEST];
	size_t frame_count;
};

static bool load_libdw(struct reader *reader)
{
	void *library = install_path_open("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
#define X(name) \
	reader->name = (__typeof__(reader->name))dlsym(library, #name); \
	if (!reader->name) \
		return false;
	FUNCTIONS(X)
#undef X
	return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int no_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		  char **file_name, Elf **elf)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)file_name, (void)elf;
	return -1;
}

static int no_debug_file(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc,
		(void)found;
	return -1;
}

/* One Dwfl for each file, since all begin at address 0. */
static Dwfl_Module *report_file(struct reader *reader, uint32_t number, int fd)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = no_elf,
						  .find_debuginfo = no_debug_file };
	Dwfl *dwfl = reader->dwfl_begin(&callbacks);
	Dwfl_Module *module;
	char name[32];

	if (!dwfl)
		return NULL;
	snprintf(name, sizeof(name), "file %u", number);
	reader->dwfl_report_begin_add(dwfl);
	module = reader->dwfl_report_elf(dwfl, name, name, fd, 0, true);
	reader->dwfl_report_end(dwfl, NULL, NULL);
	return module;
}

static Dwfl_Module *module_for(struct reader *reader, uint32_t number, int fd)
{
	for (size_t i = 0; i < reader->file_count; i++)
		if (reader->files[i].number == number)
			return reader->files[i].module;
	if (fd < 0 || !grow((void **)&reader->files, &reader->file_room, reader->file_count,
			    sizeof(*reader->files)))
		return NULL;
	reader->files[reader->file_count] = (struct debug_file){ number,
								 report_file(reader, number, fd) };
	return reader->files[reader->file_count++].module;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static size_t text_length(const char *text)
{
	return text ? strnlen(text, TEXT_MOST) : 0;
}

/* The mangled name has the arguments of templates. */
static const char *function_name(struct reader *reader, Dwarf_Die *die)
{
	static const unsigned kinds[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attribute;
	const char *name = NULL;

	for (size_t i = 0; i < 2 && !name; i++)
		if (reader->dwarf_attr_integrate(die, kinds[i], &attribute))
			name = reader->dwarf_formstring(&attribute);
	return name ? name : reader->dwarf_diename(die);
}

static const char *call_file(struct reader *reader, Dwarf_Die *unit, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number = 0;
	size_t count;

	if (!reader->dwarf_attr(die, DW_AT_call_file, &attribute) ||
	    reader->dwarf_formudata(&attribute, &number) ||
	    reader->dwarf_getsrcfiles(unit, &files, &count) || number >= count)
		return NULL;
	return reader->dwarf_filesrc(files, (size_t)number, NULL, NULL);
}

static uint32_t call_line(struct reader *reader, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Word line = 0;

	if (!reader->dwarf_attr(die, DW_AT_call_line, &attribute) ||
	    reader->dwarf_formudata(&attribute, &line) || line > INT32_MAX)
		return 0;
	return (uint32_t)line;
}

static void source_lines_child_put_frame(struct reader *reader, const char *func, const char *file,
					 uint32_t line)
{
	if (reader->frame_count == SOURCE_LINES_DEEPEST)
		return;
	reader->frames[reader->frame_count++] = (struct source_frame){
		func ? func : "", text_length(func), file ? file : "", text_length(file), line
	};
}

/* Each function that is inlined at the address, with the line in it: for the innermost that of the
   address, for the others that of the call. */
static void put_scopes(struct reader *reader, Dwarf_Die *unit, Dwarf_Addr address, const char *file,
		       uint32_t line)
{
	Dwarf_Die *scopes = NULL, *chain = NULL;
	int count = reader->dwarf_getscopes(unit, address, &scopes);

	count = count > 0 ? reader->dwarf_getscopes_die(&scopes[0], &chain) : 0;
	for (int i = 0; i < count; i++) {
		int tag = reader->dwarf_tag(&chain[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		source_lines_child_put_frame(reader, function_name(reader, &chain[i]), file, line);
		if (tag == DW_TAG_subprogram)
			break;
		file = call_file(reader, unit, &chain[i]);
		line = call_line(reader, &chain[i]);
	}
	free(scopes);
	free(chain);
}

static void find_frames(struct reader *reader, Dwfl_Module *module, uint64_t address)
{
	Dwarf_Addr bias = 0;
	Dwarf_Die *unit = reader->dwfl_module_addrdie(module, address, &bias);
	Dwfl_Line *found = unit ? reader->dwfl_module_getsrc(module, address) : NULL;
	int line = 0;
	const char *file = found ? reader->dwfl_lineinfo(found, NULL, &line, NULL, NULL, NULL)
				 : NULL;

	if (!unit)
		return;
	put_scopes(reader, unit, address - bias, file, line > 0 ? (uint32_t)line : 0);
	if (!reader->frame_count && file)
		source_lines_child_put_frame(reader, NULL, file, line > 0 ? (uint32_t)line : 0);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void append(char *out, size_t *used, const void *bytes, size_t count)
{
	memcpy(out + *used, bytes, count);
	*used += count;
}

static void source_lines_child_send_answer(struct reader *reader, int fd, uint32_t sequence,
					   uint32_t index)
{
	static char out[SOURCE_ANSWER_MOST];
	struct source_answer head = { .sequence = sequence, .index = index };
	size_t used = 0, bytes = sizeof(head);

	for (; head.frame_count < reader->frame_count; head.frame_count++) {
		const struct source_frame *frame = &reader->frames[head.frame_count];
		size_t more = sizeof(struct source_answer_frame) + frame->func_bytes +
			      frame->file_bytes;

		if (more > sizeof(out) - bytes)
			break;
		bytes += more;
	}
	append(out, &used, &head, sizeof(head));
	for (uint32_t i = 0; i < head.frame_count; i++) {
		const struct source_frame *frame = &reader->frames[i];
		struct source_answer_frame one = { (uint32_t)frame->func_bytes,
						   (uint32_t)frame->file_bytes, frame->line };

		append(out, &used, &one, sizeof(one));
	}
	for (uint32_t i = 0; i < head.frame_count; i++) {
		append(out, &used, reader->frames[i].func, reader->frames[i].func_bytes);
		append(out, &used, reader->frames[i].file, reader->frames[i].file_bytes);
	}
	if (send(fd, out, used, MSG_NOSIGNAL) != (ssize_t)used)
		_exit(1);
}

/* The descriptor that came with a question; -1: none. */
static int received_fd(struct msghdr *message)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

static bool receive_question(int fd, struct source_question *out, int *out_file)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { out, sizeof(*out) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	ssize_t got;

	do
		got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	*out_file = received_fd(&message);
	return got == (ssize_t)sizeof(*out) && out->count <= SOURCE_LINES_AT_ONCE;
}

/* The signal ends this process. */
static void limit_cpu_time(void)
{
	const struct itimerval limit = { .it_value = { .tv_sec = CPU_SECONDS_MOST } };

	setitimer(ITIMER_PROF, &limit, NULL);
}

void source_lines_run(int fd)
{
	static struct reader reader;
	struct source_question question;
	int file;

	if (!load_libdw(&reader))
		_exit(1);
	while (receive_question(fd, &question, &file)) {
		Dwfl_Module *module = module_for(&reader, question.number, file);

		for (uint32_t i = 0; i < question.count; i++) {
			reader.frame_count = 0;
			limit_cpu_time();
			if (module)
				find_frames(&reader, module, question.addresses[i]);
			source_lines_child_send_answer(&reader, fd, question.sequence, i);
		}
	}
	_exit(0);
}

#else

void source_lines_run(int fd)
{
	(void)fd;
	_exit(1);
}

#endif
