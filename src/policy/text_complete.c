/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts for bash, zsh and fish. They offer what this version enforces; names of
 * profiles are asked from the program itself.
 */
#include <string.h>

#include "base/util.h"
#include "policy/text_internal.h"

/* The next row after ID that completion offers; OPT_COUNT past the last. */
static enum option_id next_offered(enum option_id id)
{
	for (size_t i = (size_t)id + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);

		if (o->flag && o->later == LATER_NOTHING)
			return (enum option_id)i;
	}
	return OPT_COUNT;
}

static bool takes_directory(const struct option *o)
{
	return o->id == OPT_CWD;
}

static void add_subcommands(struct buf *out)
{
	for (const struct subcommand *c = subcommands; c->name; c++)
		buf_printf(out, "%s%s", c == subcommands ? "" : " ", c->name);
}

static void add_words(struct buf *out, const struct option *o)
{
	for (size_t i = 0; o->words && o->words[i]; i++)
		buf_printf(out, "%s%s", i ? " " : "", o->words[i]);
}

/* --- bash --------------------------------------------------------------------------------- */

/* "-r|--fs-read" */
static void bash_pattern(struct buf *out, const struct option *o)
{
	if (o->letter)
		buf_printf(out, "-%c|", o->letter);
	buf_add_str(out, o->flag);
}

static void bash_value_case(struct buf *out, const struct option *o)
{
	buf_add_str(out, "\t");
	bash_pattern(out, o);
	if (o->words) {
		buf_add_str(out, ") _sandlock_words \"");
		add_words(out, o);
		buf_add_str(out, "\" ;;\n");
	} else if (o->id == OPT_PROFILE) {
		buf_add_str(out, ") _sandlock_profiles ;;\n");
	} else if (text_takes_path(o)) {
		buf_printf(out, ") _sandlock_files %s ;;\n", takes_directory(o) ? "-d" : "-f");
	} else {
		buf_add_str(out, ") COMPREPLY=() ;;\n");
	}
}

static void bash_flags(struct buf *out)
{
	for (enum option_id id = next_offered(OPT_NONE); id < OPT_COUNT; id = next_offered(id)) {
		const struct option *o = option_get(id);

		if (o->letter)
			buf_printf(out, " -%c", o->letter);
		buf_printf(out, " %s", o->flag);
	}
}

/* Patterns of the flags that take a value, for a case. */
static void bash_valued(struct buf *out)
{
	bool first = true;

	for (enum option_id id = next_offered(OPT_NONE); id < OPT_COUNT; id = next_offered(id)) {
		if (option_is_switch(option_get(id)))
			continue;
		if (!first)
			buf_add_char(out, '|');
		first = false;
		bash_pattern(out, option_get(id));
	}
}

static const char bash_head[] =
	"# bash completion for sandlock\n"
	"_sandlock_words() {\n"
	"\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
	"}\n"
	"_sandlock_files() {\n"
	"\tmapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
	"\tcompopt -o filenames 2>/dev/null\n"
	"}\n"
	"_sandlock_profiles() {\n"
	"\t_sandlock_words \"$(\"${COMP_WORDS[0]}\" profile list 2>/dev/null)\"\n"
	"}\n"
	"_sandlock_live() {\n"
	"\t_sandlock_words \"$(\"${COMP_WORDS[0]}\" ps 2>/dev/null | sed '1d;s/ .*//') $1\"\n"
	"}\n";

static const char bash_run[] = "# Where the command begins, or nothing while the flags go on.\n"
			       "_sandlock_command_index() {\n"
			       "\tlocal i word\n"
			       "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
			       "\t\tword=${COMP_WORDS[i]}\n"
			       "\t\tcase $word in\n"
			       "\t\t--) echo $((i + 1)); return ;;\n"
			       "\t\t=) ;;\n";

static const char bash_run_tail[] =
	"\t\t-*) [ \"${COMP_WORDS[i + 1]}\" = '=' ] && ((i += 2)) ;;\n"
	"\t\t*) echo \"$i\"; return ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"}\n"
	"_sandlock_run() {\n"
	"\tlocal start\n"
	"\tstart=$(_sandlock_command_index)\n"
	"\tif [ -n \"$start\" ]; then\n"
	"\t\tif ((COMP_CWORD == start)); then\n"
	"\t\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\"; compgen -f -- \"$cur\")\n"
	"\t\telif declare -F _command_offset >/dev/null; then\n"
	"\t\t\t_command_offset \"$start\"\n"
	"\t\telse\n"
	"\t\t\t_sandlock_files -f\n"
	"\t\tfi\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tcase $prev in\n";

static const char bash_tail[] =
	"_sandlock_profile() {\n"
	"\tif ((COMP_CWORD == 2)); then\n"
	"\t\t_sandlock_words 'list show delete validate'\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tcase ${COMP_WORDS[2]} in\n"
	"\tshow) _sandlock_profiles; [[ $cur == -* ]] && _sandlock_words '--json' ;;\n"
	"\tdelete) _sandlock_profiles ;;\n"
	"\tvalidate) _sandlock_files -f ;;\n"
	"\tesac\n"
	"}\n"
	"_sandlock() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"\tCOMPREPLY=()\n"
	"\t# --flag=value arrives as three words.\n"
	"\tif [ \"$cur\" = '=' ]; then\n"
	"\t\tcur=''\n"
	"\telif [ \"$prev\" = '=' ] && ((COMP_CWORD > 2)); then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"\tfi\n"
	"\tif ((COMP_CWORD == 1)); then\n";

void text_bash(struct buf *out)
{
	buf_add_str(out, bash_head);
	buf_add_str(out, bash_run);
	buf_add_str(out, "\t\t");
	bash_valued(out);
	buf_add_str(out,
		    ")\n\t\t\t[ \"${COMP_WORDS[i + 1]}\" = '=' ] && ((i++))\n\t\t\t((i++)) ;;\n");
	buf_add_str(out, bash_run_tail);
	for (enum option_id id = next_offered(OPT_NONE); id < OPT_COUNT; id = next_offered(id))
		if (!option_is_switch(option_get(id)))
			bash_value_case(out, option_get(id));
	buf_add_str(out, "\t*) _sandlock_words '--");
	bash_flags(out);
	buf_add_str(out, "' ;;\n\tesac\n}\n");
	buf_add_str(out, bash_tail);
	buf_add_str(out, "\t\t_sandlock_words '");
	add_subcommands(out);
	buf_add_str(out, " --help --version'\n"
			 "\t\treturn\n"
			 "\tfi\n"
			 "\tcase ${COMP_WORDS[1]} in\n"
			 "\trun) _sandlock_run ;;\n"
			 "\tprofile) _sandlock_profile ;;\n"
			 "\tcheck|ps) _sandlock_words '--json --help' ;;\n"
			 "\tinspect) _sandlock_live '--json --toml' ;;\n"
			 "\tkill) _sandlock_live ;;\n"
			 "\tanswer) _sandlock_live ;;\n"
			 "\tcomplete-script) _sandlock_words 'bash zsh fish' ;;\n"
			 "\tesac\n"
			 "}\n"
			 "complete -F _sandlock sandlock\n");
}

/* --- zsh ---------------------------------------------------------------------------------- */

/* Text inside single quotes and the brackets of an _arguments spec. */
static void zsh_text(struct buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		if (*p == '\'')
			buf_add_str(out, "'\\''");
		else if (strchr("[]:\\", *p))
			buf_printf(out, "\\%c", *p);
		else
			buf_add_char(out, *p);
	}
}

static void zsh_spec(struct buf *out, const struct option *o, const char *name)
{
	buf_add_str(out, "\t\t\t'");
	if (option_is_list(o))
		buf_add_char(out, '*');
	buf_printf(out, "%s%s[", name, o->metavar && name[1] == '-' ? "=" : "");
	zsh_text(out, o->help);
	buf_add_char(out, ']');
	if (o->metavar) {
		buf_add_char(out, ':');
		zsh_text(out, o->metavar);
		buf_add_char(out, ':');
		if (o->words) {
			buf_add_char(out, '(');
			add_words(out, o);
			buf_add_char(out, ')');
		} else if (o->id == OPT_PROFILE) {
			buf_add_str(out, "_sandlock_profiles");
		} else if (text_takes_path(o)) {
			buf_add_str(out, takes_directory(o) ? "_files -/" : "_files");
		}
	}
	buf_add_str(out, "' \\\n");
}

void text_zsh(struct buf *out)
{
	buf_add_str(out, "#compdef sandlock\n"
			 "# zsh completion for sandlock\n"
			 "_sandlock_profiles() {\n"
			 "\tlocal -a names\n"
			 "\tnames=($(sandlock profile list 2>/dev/null))\n"
			 "\tcompadd -a names\n"
			 "}\n"
			 "_sandlock_live() {\n"
			 "\tlocal -a names\n"
			 "\tnames=($(sandlock ps 2>/dev/null | sed '1d;s/ .*//'))\n"
			 "\tcompadd -a names\n"
			 "}\n"
			 "_sandlock() {\n"
			 "\tlocal curcontext=\"$curcontext\" state line\n"
			 "\tlocal -a subcommands\n"
			 "\ttypeset -A opt_args\n"
			 "\t_arguments -C '1:command:->command' '*::argument:->arguments'\n"
			 "\tcase $state in\n"
			 "\tcommand)\n"
			 "\t\tsubcommands=(\n");
	for (const struct subcommand *c = subcommands; c->name; c++) {
		buf_printf(out, "\t\t\t'%s:", c->name);
		zsh_text(out, c->help);
		buf_add_str(out, "'\n");
	}
	buf_add_str(out, "\t\t)\n"
			 "\t\t_describe command subcommands\n"
			 "\t\t;;\n"
			 "\targuments)\n"
			 "\t\tcase $line[1] in\n"
			 "\t\trun)\n"
			 "\t\t\t_arguments -s -S \\\n");
	for (enum option_id id = next_offered(OPT_NONE); id < OPT_COUNT; id = next_offered(id)) {
		const struct option *o = option_get(id);
		char letter[3] = {'-', o->letter, '\0'};

		if (o->letter)
			zsh_spec(out, o, letter);
		zsh_spec(out, o, o->flag);
	}
	buf_add_str(out, "\t\t\t'(-)1:command: _command_names -e' \\\n"
			 "\t\t\t'*::argument: _normal'\n"
			 "\t\t\t;;\n"
			 "\t\tprofile)\n"
			 "\t\t\t_arguments '--json[print as JSON]' '1:action:(list show delete "
			 "validate)' \\\n"
			 "\t\t\t'2:profile: _sandlock_profiles'\n"
			 "\t\t\t;;\n"
			 "\t\tinspect)\n"
			 "\t\t\t_arguments '(--toml)--json[print the policy alone]' "
			 "'(--json)--toml[print TOML]' '1:sandbox: _sandlock_live'\n"
			 "\t\t\t;;\n"
			 "\t\tkill)\n"
			 "\t\t\t_arguments '1:sandbox: _sandlock_live'\n"
			 "\t\t\t;;\n"
			 "\t\tanswer)\n"
			 "\t\t\t_arguments '1:sandbox: _sandlock_live' '2:question: ' "
			 "'3:answer:(once run no)'\n"
			 "\t\t\t;;\n"
			 "\t\tcheck|ps)\n"
			 "\t\t\t_arguments '--json[print as JSON]'\n"
			 "\t\t\t;;\n"
			 "\t\tcomplete-script)\n"
			 "\t\t\t_arguments '1:shell:(bash zsh fish)'\n"
			 "\t\t\t;;\n"
			 "\t\tesac\n"
			 "\t\t;;\n"
			 "\tesac\n"
			 "}\n"
			 "if [[ ${funcstack[1]} == _sandlock ]]; then\n"
			 "\t_sandlock \"$@\"\n"
			 "else\n"
			 "\tcompdef _sandlock sandlock\n"
			 "fi\n");
}

/* --- fish --------------------------------------------------------------------------------- */

/* Text inside single quotes. */
static void fish_text(struct buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		if (*p == '\'' || *p == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, *p);
	}
}

static void fish_option(struct buf *out, const struct option *o)
{
	buf_add_str(out, "complete -c sandlock -n __sandlock_run_flags");
	if (o->letter)
		buf_printf(out, " -s %c", o->letter);
	buf_printf(out, " -l %s", o->flag + 2);
	if (!o->metavar) {
		buf_add_str(out, " -f");
	} else if (o->words) {
		buf_add_str(out, " -x -a '");
		add_words(out, o);
		buf_add_char(out, '\'');
	} else if (o->id == OPT_PROFILE) {
		buf_add_str(out, " -x -a '(sandlock profile list 2>/dev/null | string trim)'");
	} else if (takes_directory(o)) {
		buf_add_str(out, " -x -a '(__fish_complete_directories)'");
	} else {
		buf_add_str(out, text_takes_path(o) ? " -r -F" : " -x");
	}
	buf_add_str(out, " -d '");
	fish_text(out, o->help);
	buf_add_str(out, "'\n");
}

void text_fish(struct buf *out)
{
	buf_add_str(out, "# fish completion for sandlock\n"
			 "function __sandlock_run_flags\n"
			 "\tset -l words (commandline -opc)\n"
			 "\ttest (count $words) -ge 2; and test $words[2] = run\n"
			 "\tand not contains -- -- $words\n"
			 "end\n"
			 "function __sandlock_run_command\n"
			 "\tset -l words (commandline -opc)\n"
			 "\ttest (count $words) -ge 2; and test $words[2] = run\n"
			 "\tand contains -- -- $words\n"
			 "end\n"
			 "function __sandlock_run_complete\n"
			 "\tset -l words (commandline -opc) (commandline -ct)\n"
			 "\tset -l dash (contains -i -- -- $words)\n"
			 "\tset -l line (string join ' ' -- $words[(math $dash + 1)..-1])\n"
			 "\tcomplete \"-C$line\"\n"
			 "end\n");
	for (const struct subcommand *c = subcommands; c->name; c++) {
		buf_printf(out, "complete -c sandlock -n __fish_use_subcommand -f -a %s -d '",
			   c->name);
		fish_text(out, c->help);
		buf_add_str(out, "'\n");
	}
	for (enum option_id id = next_offered(OPT_NONE); id < OPT_COUNT; id = next_offered(id))
		fish_option(out, option_get(id));
	buf_add_str(
		out,
		"complete -c sandlock -n __sandlock_run_command -x -a '(__sandlock_run_complete)'\n"
		"complete -c sandlock -n '__fish_seen_subcommand_from profile' -f\n"
		"complete -c sandlock -n '__fish_seen_subcommand_from profile; and not "
		"__fish_seen_subcommand_from list show delete validate' -f -a 'list show delete "
		"validate'\n"
		"complete -c sandlock -n '__fish_seen_subcommand_from profile; and "
		"__fish_seen_subcommand_from show delete' -f -a '(sandlock profile list "
		"2>/dev/null | string trim)'\n"
		"complete -c sandlock -n '__fish_seen_subcommand_from profile; and "
		"__fish_seen_subcommand_from validate' -F\n"
		"complete -c sandlock -n '__fish_seen_subcommand_from profile check ps inspect' -l "
		"json -f -d 'print as JSON'\n"
		"complete -c sandlock -n '__fish_seen_subcommand_from inspect' -l toml -f -d "
		"'print "
		"TOML'\n"
		"complete -c sandlock -n '__fish_seen_subcommand_from inspect kill answer' -f -a "
		"'(sandlock ps 2>/dev/null | sed \"1d;s/ .*//\")'\n"
		"complete -c sandlock -n '__fish_seen_subcommand_from complete-script' -f -a 'bash "
		"zsh fish'\n");
}
