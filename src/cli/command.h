/*
 * A command of glassbox: what it takes, what it does, and what help, manual page and completions
 * say of it, all in one gbx_command. commands.c lists them.
 */
#ifndef GBX_CLI_COMMAND_H
#define GBX_CLI_COMMAND_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "report/sink.h"
#include "store/dump_path.h"
#include "text/names.h"

/* --- options --- */

/* How the text after an option is read, and what it is stored as in the command's struct. */
typedef enum gbx_option_kind {
    GBX_OPTION_FLAG,    /* no text: a bool becomes true */
    GBX_OPTION_TEXT,    /* const char *, not empty */
    GBX_OPTION_INTEGER, /* from `min` to `max`: an unsigned integer, or an int64_t, of any width */
    GBX_OPTION_SIZE,    /* "4096", "512M", "1GiB", from `min` to `max` bytes: uint64_t */
    GBX_OPTION_SECONDS, /* a fraction is allowed: milliseconds in a uint32_t */
    GBX_OPTION_CHOICE,  /* one of some words: its number, in an integer of any width */
    GBX_OPTION_CUSTOM   /* `read` does it */
} gbx_option_kind;

/* What a shell offers for the value. */
typedef enum gbx_completion {
    GBX_COMPLETE_WORDS, /* the words of a choice, where it has some */
    GBX_COMPLETE_SORT,  /* the same, and each with a minus before it */
    GBX_COMPLETE_FILE,
    GBX_COMPLETE_DIRECTORY,
    GBX_COMPLETE_SCENE,
    GBX_COMPLETE_COMMAND,
    GBX_COMPLETE_DTYPE,
    GBX_COMPLETE_NUMPY_DTYPE, /* those that numpy has */
    GBX_COMPLETE_KERNEL,      /* kernels of the dump */
    GBX_COMPLETE_CASE,        /* the words of the choice, and the cases of the scene */
    GBX_COMPLETE_FILTER       /* KEY=VALUE,... */
} gbx_completion;

typedef struct gbx_option gbx_option;

/* Reads `text` into the struct; ends the program with argp_error where it is wrong. `text` is NULL
 * where the value may be left out, and is. */
typedef void (*gbx_option_read)(struct argp_state *state, const gbx_option *option,
                                const char *text, void *line);

struct gbx_option {
    const char *name;   /* "dump-tensor"; NULL ends a list */
    const char *value;  /* "LEVEL"; NULL for a flag */
    const char *help;   /* one or two sentences, without a period at the end */
    const char *manual; /* what the manual page says beside that; NULL */
    gbx_option_kind kind;
    size_t offset; /* in the struct of the list */
    size_t bytes;  /* of the member */
    uint64_t min;
    uint64_t max;
    /* The words of CHOICE, and what completions offer for CUSTOM; one of these: */
    const char *const *choices;             /* ends with NULL */
    const char *(*choice_name)(uint32_t i); /* NULL after the last */
    const gbx_name_set *names;
    gbx_option_read read; /* of CUSTOM */
    gbx_completion completion;
    char letter;        /* 'o'; 0 for none */
    bool may_lack_text; /* "--dump-tensor" without "=LEVEL" */
    bool may_repeat;
};

/* .kind, .offset and .bytes of an option. */
#define GBX_STORE(kind_, type, member)                                                             \
    .kind = GBX_OPTION_##kind_, .offset = offsetof(type, member),                                  \
    .bytes = sizeof(((type *)NULL)->member)

/* Options under one heading, with where their struct lies in that of the command. */
typedef struct gbx_option_group {
    const char *heading; /* "Filters:"; NULL for the first */
    const gbx_option *options;
    size_t offset;
} gbx_option_group;

/* For readers of custom options. */
uint64_t gbx_option_integer(struct argp_state *state, const gbx_option *option, const char *text,
                            uint64_t min, uint64_t max);
double gbx_option_real(struct argp_state *state, const gbx_option *option, const char *text);
uint32_t gbx_option_choice(struct argp_state *state, const gbx_option *option, const char *text);

/* The words of an option, one after the other; NULL after the last. *number begins with 0, and is
 * one more than the number of the word. */
const char *gbx_option_next_word(const gbx_option *option, uint32_t *number);

/* --- commands --- */

/* What a command is called with beside its options, and gives back. */
typedef struct gbx_invocation {
    gbx_sink *sink; /* stdout */
    int argc;       /* as the user wrote it */
    char **argv;
    int exit_code; /* where it does not fail */
} gbx_invocation;

typedef struct gbx_exit_meaning {
    int code;
    const char *meaning;
} gbx_exit_meaning;

enum { GBX_GROUPS_MAX = 4, GBX_EXITS_MAX = 6 };

typedef struct gbx_command {
    const char *name;
    const char *summary;                     /* "compare two dumps, task by task" */
    const char *arguments;                   /* "[DUMP]", "SCENE"; NULL for none */
    const char *takes;                       /* "one dump": in "diff takes two dumps" */
    const char *description;                 /* sentences */
    const char *examples;                    /* command lines, each ends with \n */
    gbx_exit_meaning exits[GBX_EXITS_MAX];   /* ends with a NULL meaning */
    gbx_option_group groups[GBX_GROUPS_MAX]; /* ends with NULL options */
    size_t least;                            /* arguments: at least, and at most */
    size_t most;
    size_t arguments_offset;   /* of const char *[most] in the struct */
    gbx_completion completion; /* of the arguments; 0: dumps */
    size_t line_bytes;         /* of the struct that options and arguments go into */
    const void *defaults;      /* its contents before; NULL for zeros */
    /* After the options: those that contradict each other end the program with argp_error. NULL. */
    void (*check)(struct argp_state *state, void *line);
    gbx_status (*run)(void *line, gbx_invocation *invocation);
} gbx_command;

/* The members of a command that is about one dump, which `member` of its struct names. */
#define GBX_TAKES_DUMP(type, member)                                                               \
    .arguments = "[DUMP]", .takes = "one dump", .most = 1,                                         \
    .arguments_offset = offsetof(type, member), .line_bytes = sizeof(type)

#define GBX_DUMP_IS                                                                                \
    "DUMP is a dump directory, its parent or its tensor_dump (default: " GBX_DUMP_PATH_DEFAULT ")"

/* All of them, in the order of the help; ends with NULL. To add one, see commands.c. */
extern const gbx_command *const gbx_commands[];

/* One line for each. */
void gbx_commands_print(FILE *to);

/* NULL where there is none of this name. Knows --help and --version, too. */
const gbx_command *gbx_commands_find(const char *name);

/* Says so on stderr; the exit code. */
int gbx_commands_fail_unknown(const char *name);

/* Parses, runs, reports a failure, and returns the exit code. argv[0] is the command's name. */
int gbx_command_execute(const gbx_command *command, gbx_sink *sink, int argc, char **argv);

#endif
