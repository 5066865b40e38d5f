/*
 * Reads what is needed of callgrind's files: lines `fl=` and `fn=` name the file and the function
 * of the costs that follow, `cfn=` and `calls=` a call, whose cost is on the next line. A name is
 * given once, with a number in brackets; later only the number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks.h"

enum { MAX_NAMES = 1 << 16, LINE_BYTES = 8192 };

/* What is known of a name, by its number. */
typedef struct names {
    unsigned char is_scheduler[MAX_NAMES]; /* of a file */
    unsigned char is_attach[MAX_NAMES];    /* of a function */
    unsigned char is_mmap[MAX_NAMES];
} names;

typedef struct state {
    names known;
    counts sums;
    uint32_t file;
    uint32_t callee;
    bool is_cost_of_call;
    bool has_any;
} state;

/* The number in "(12) name" and, where it is given, the name; 0 when there is none. */
static uint32_t number_of(const char *text, const char **out_name) {
    char *end;
    unsigned long number = text[0] == '(' ? strtoul(text + 1, &end, 10) : 0;
    if (number == 0 || number >= MAX_NAMES || *end != ')')
        return 0;
    *out_name = end[1] == ' ' ? end + 2 : NULL;
    return (uint32_t)number;
}

static uint32_t read_file_name(state *s, const char *text) {
    const char *name = NULL;
    uint32_t number = number_of(text, &name);
    if (name)
        s->known.is_scheduler[number] = strstr(name, "src/sched/") != NULL;
    return number;
}

static uint32_t read_function_name(state *s, const char *text) {
    const char *name = NULL;
    uint32_t number = number_of(text, &name);
    if (name) {
        s->known.is_attach[number] = strcmp(name, "attach_writer") == 0;
        s->known.is_mmap[number] = strcmp(name, "mmap") == 0 || strcmp(name, "mmap64") == 0;
    }
    return number;
}

static void read_cost(state *s, const char *line) {
    const char *cost = strchr(line, ' ');
    if (!cost || s->is_cost_of_call) {
        s->is_cost_of_call = false;
        return;
    }
    uint64_t instructions = strtoull(cost, NULL, 10);
    s->sums.program += instructions;
    s->has_any = true;
    if (s->known.is_scheduler[s->file])
        s->sums.scheduler += instructions;
}

static void read_line(state *s, const char *line) {
    if (strncmp(line, "fl=", 3) == 0) {
        s->file = read_file_name(s, line + 3);
    } else if (strncmp(line, "fi=", 3) == 0 || strncmp(line, "fe=", 3) == 0) {
        read_file_name(s, line + 3); /* of inlined code, which counts for the function */
    } else if (strncmp(line, "cfi=", 4) == 0 || strncmp(line, "cfl=", 4) == 0) {
        read_file_name(s, line + 4);
    } else if (strncmp(line, "fn=", 3) == 0) {
        read_function_name(s, line + 3);
    } else if (strncmp(line, "cfn=", 4) == 0) {
        s->callee = read_function_name(s, line + 4);
    } else if (strncmp(line, "calls=", 6) == 0) {
        uint64_t calls = strtoull(line + 6, NULL, 10);
        s->sums.attach_calls += s->known.is_attach[s->callee] ? calls : 0;
        s->sums.mmap_calls += s->known.is_mmap[s->callee] ? calls : 0;
        s->is_cost_of_call = true;
    } else if (strchr("0123456789+-*", line[0]) && line[0] != '\0') {
        read_cost(s, line);
    }
}

bool counts_read(const char *path, counts *out_counts) {
    char line[LINE_BYTES];
    FILE *file = fopen(path, "re");
    state *s = calloc(1, sizeof *s);
    while (file && s && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        read_line(s, line);
    }
    bool is_read = s && s->has_any && s->sums.scheduler > 0;
    if (is_read)
        *out_counts = s->sums;
    free(s);
    if (file)
        fclose(file);
    return is_read;
}
