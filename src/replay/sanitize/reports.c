/* Reads what sanitizers print. Their runtimes have no other interface that all of them share. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "replay/sanitize/internal.h"
#include "replay/sanitize/plan.h"

enum { MAX_REPORTS = 4096, MAX_THREADS = 256 };

typedef struct reading {
    const char *const *objects;
    gbx_raw_reports *out;
    uint64_t capacity;
    gbx_raw_report *report; /* that is being read; NULL for none */
    int stack;              /* gbx_sanitize_stack, or -1 for one that does not count */
    uint32_t dispatch;      /* of what comes next */
    uint32_t slot;
    uint64_t stained_bytes;
    uint64_t stained_address;
    uint32_t threads[2];                   /* of the race that is being read */
    uint32_t dispatch_of[MAX_THREADS + 1]; /* by number of a thread */
} reading;

/* --- words --- */

static const char *after(const char *line, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(line, prefix, length) == 0 ? line + length : NULL;
}

/* Within this line; NULL for none. */
static const char *find(const char *line, const char *word) {
    return memmem(line, strcspn(line, "\n"), word, strlen(word));
}

static const char *behind(const char *line, const char *word) {
    const char *at = find(line, word);
    return at ? at + strlen(word) : NULL;
}

static void copy_what(gbx_raw_report *report, const char *from, size_t length) {
    size_t most = sizeof report->what - 1;
    length = length < most ? length : most;
    memcpy(report->what, from, length);
    report->what[length] = '\0';
}

/* --- frames --- */

static uint32_t object_of(const reading *r, const char *module, size_t length) {
    for (uint32_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        const char *name = r->objects[i] ? strrchr(r->objects[i], '/') : NULL;
        size_t size = name ? strlen(name) : 0;
        /* Some runtimes shorten the path of a module. */
        if (name && ((length >= size && memcmp(module + length - size, name, size) == 0) ||
                     (length == size - 1 && memcmp(module, name + 1, length) == 0)))
            return i;
    }
    return GBX_SUBTASK_COUNT;
}

static uint32_t number_before(const char *begin, const char **end) {
    const char *at = *end;
    while (at > begin && isdigit((unsigned char)at[-1]))
        --at;
    uint32_t number = (uint32_t)strtoul(at, NULL, 10);
    *end = at > begin && at[-1] == ':' ? at - 1 : at;
    return number;
}

/* "FUNCTION FILE:LINE:COLUMN (MODULE+OFFSET)" */
static bool read_frame(const reading *r, const char *text, gbx_sanitize_frame *out_frame) {
    const char *line_end = text + strcspn(text, "\n");
    const char *open = line_end;
    while (open > text && *open != '(')
        --open;
    const char *plus = line_end;
    while (plus > open && *plus != '+')
        --plus;
    const char *space = memchr(text, ' ', (size_t)(line_end - text));
    if (open == text || plus == open || !space)
        return false;
    const char *end = open > space + 1 ? open - 1 : open;
    *out_frame = (gbx_sanitize_frame){.function = text,
                                      .function_length = (int)(space - text),
                                      .subtask = object_of(r, open + 1, (size_t)(plus - open - 1))};
    out_frame->column = number_before(space, &end);
    out_frame->line = number_before(space, &end);
    if (out_frame->line > 0 && end > space + 1 && space[1] != '<') {
        out_frame->file = space + 1;
        out_frame->file_length = (int)(end - space - 1);
    }
    return true;
}

bool gbx_sanitize_is_own(const gbx_sanitize_frame *frame) {
    static const char header[] = "/glassbox/kernel.h";
    /* Functions of the compiler and of the system that were inlined. */
    static const char *const foreign[] = {"/usr/lib/gcc/", "/usr/lib/llvm", "/usr/lib/clang",
                                          "/usr/include/"};
    int length = (int)sizeof header - 1;
    for (size_t i = 0; frame->file && i < sizeof foreign / sizeof foreign[0]; ++i)
        if (strncmp(frame->file, foreign[i], strlen(foreign[i])) == 0)
            return false;
    return frame->file &&
           (frame->file_length < length ||
            memcmp(frame->file + frame->file_length - length, header, (size_t)length) != 0);
}

static void take_frame(reading *r, const char *line) {
    gbx_sanitize_frame frame;
    const char *text = behind(line, " in ");
    if (!r->report || r->stack < 0 || !text || !read_frame(r, text, &frame) ||
        frame.subtask == GBX_SUBTASK_COUNT)
        return;
    gbx_sanitize_frame *known = &r->report->frames[r->stack];
    if (r->report->has_frame[r->stack] &&
        (gbx_sanitize_is_own(known) || !gbx_sanitize_is_own(&frame)))
        return;
    *known = frame;
    r->report->has_frame[r->stack] = true;
}

/* --- reports --- */

static gbx_status begin(reading *r, gbx_sanitize_kind kind) {
    r->report = NULL;
    if (r->out->count == MAX_REPORTS)
        return NULL;
    GBX_TRY(gbx_array_reserve(&r->out->items, &r->capacity, r->out->count + 1,
                              "reading the reports of a sanitizer"));
    r->report = &r->out->items[r->out->count++];
    *r->report = (gbx_raw_report){
        .kind = kind, .slot = GBX_CALL_SLOTS, .parties = {r->dispatch, GBX_NO_PARTY}, .count = 1};
    r->stack = GBX_STACK_ACCESS;
    return NULL;
}

/* The words of the address sanitizer, and what they are here. */
static const struct {
    const char *word;
    gbx_sanitize_kind kind;
} address_kinds[] = {{"stack-overflow", GBX_SANITIZE_CRASH},
                     {"stack-", GBX_SANITIZE_STACK},
                     {"dynamic-stack-", GBX_SANITIZE_STACK},
                     {"global-", GBX_SANITIZE_GLOBAL},
                     {"heap-", GBX_SANITIZE_HEAP},
                     {"attempting", GBX_SANITIZE_HEAP},
                     {"alloc-dealloc", GBX_SANITIZE_HEAP},
                     {"use-after-poison", GBX_SANITIZE_READ_OUTSIDE},
                     {"unknown-crash", GBX_SANITIZE_READ_OUTSIDE},
                     {"SEGV", GBX_SANITIZE_CRASH},
                     {"FPE", GBX_SANITIZE_CRASH},
                     {"BUS", GBX_SANITIZE_CRASH},
                     {"ILL", GBX_SANITIZE_CRASH},
                     {"ABRT", GBX_SANITIZE_CRASH}};

static gbx_sanitize_kind kind_of(const char *words) {
    for (size_t i = 0; i < sizeof address_kinds / sizeof address_kinds[0]; ++i)
        if (after(words, address_kinds[i].word))
            return address_kinds[i].kind;
    return GBX_SANITIZE_OTHER;
}

/* "use-after-poison on address 0x7e9000002040 at pc ..." */
static gbx_status begin_error(reading *r, const char *words) {
    GBX_TRY(begin(r, kind_of(words)));
    if (!r->report)
        return NULL;
    const char *address = behind(words, "address 0x");
    const char *end = find(words, " on ");
    const char *alternative = find(words, " (");
    end = end ? end : alternative ? alternative : words + strcspn(words, "\n");
    copy_what(r->report, words, (size_t)(end - words));
    if (address) {
        r->report->has_address = true;
        r->report->address = strtoull(address, NULL, 16);
    }
    return NULL;
}

static gbx_status begin_memory(reading *r) {
    uint32_t slot = r->slot;
    GBX_TRY(begin(r, GBX_SANITIZE_UNINITIALISED));
    if (r->report && slot != GBX_CALL_SLOTS) {
        r->report->slot = slot;
        r->report->has_address = true;
        r->report->address = r->stained_address;
        r->report->stained_bytes = r->stained_bytes;
        r->report->parties[0] = GBX_NO_PARTY;
    }
    r->slot = GBX_CALL_SLOTS;
    return NULL;
}

/* "SLOT ADDRESS BYTES" */
static bool read_stain(reading *r, const char *text) {
    char *end;
    r->slot = (uint32_t)strtoul(text, &end, 10);
    r->stained_address = strtoull(end, &end, 16);
    r->stained_bytes = strtoull(end, NULL, 10);
    return r->slot < GBX_CALL_SLOTS;
}

static gbx_status take_watched(reading *r, const char *text) {
    GBX_TRY(begin(r, GBX_SANITIZE_READ_OUTSIDE));
    if (r->report)
        gbx_sanitize_read_access(text, r->report);
    r->report = NULL;
    return NULL;
}

static gbx_status take_crash(reading *r, const char *text) {
    GBX_TRY(begin(r, GBX_SANITIZE_CRASH));
    if (r->report)
        gbx_sanitize_read_crash(text, r->report);
    r->report = NULL;
    return NULL;
}

static gbx_status take_own_line(reading *r, const char *line) {
    const char *text;
    char *end;
    if ((text = after(line, GBX_PLAN_DISPATCH " "))) {
        r->dispatch = isdigit((unsigned char)*text) ? (uint32_t)strtoul(text, NULL, 10)
                                                    : GBX_NO_PARTY; /* all at once */
    } else if ((text = after(line, GBX_PLAN_OUTPUT " "))) {
        (void)read_stain(r, text);
    } else if ((text = after(line, GBX_PLAN_UNWRITTEN " ")) && read_stain(r, text)) {
        GBX_TRY(begin_memory(r));
        if (r->report)
            r->report->kind = GBX_SANITIZE_UNWRITTEN;
        r->report = NULL;
    } else if ((text = after(line, GBX_PLAN_ACCESS " "))) {
        return take_watched(r, text);
    } else if ((text = after(line, GBX_PLAN_CRASHED " "))) {
        return take_crash(r, text);
    } else if ((text = after(line, GBX_PLAN_TIMES " "))) {
        gbx_sanitize_read_times(text, r->out);
    } else if ((text = after(line, GBX_PLAN_EXITED " "))) {
        r->out->exited = (uint32_t)strtoul(text, NULL, 10);
    } else if ((text = after(line, GBX_PLAN_SCHEDULES " "))) {
        r->out->schedules = (uint32_t)strtoul(text, &end, 10);
        r->out->schedules_wanted = (uint32_t)strtoul(end, NULL, 10);
    } else if ((text = after(line, GBX_PLAN_FAILED " "))) {
        r->out->failure = text;
    } else if ((text = after(line, GBX_PLAN_UNKNOWN " "))) {
        r->out->unknown_of = (uint32_t)strtoul(text, &end, 10);
        r->out->unknown = end + (*end == ' ');
    } else if (after(line, GBX_PLAN_CALLS)) {
        r->out->has_begun = true;
    } else if (after(line, GBX_PLAN_DONE)) {
        r->out->is_done = true;
    }
    return NULL;
}

/* "READ of size 4 at 0x7e9000002040 thread T0", "Previous atomic write of size 4 at ... by thread
 * T2"; false if it is another line. */
static bool take_access(reading *r, const char *line) {
    const char *text = line + strspn(line, " ");
    const char *size = behind(text, " of size ");
    bool is_previous = after(text, "Previous ") != NULL;
    bool is_write = find(text, "WRITE of") || find(text, "Write of") || find(text, " write of");
    if (!r->report || !size ||
        (!is_write && !find(text, "READ of") && !find(text, "Read of") && !find(text, " read of")))
        return false;
    const char *thread = behind(text, "thread T");
    uint32_t number = thread ? (uint32_t)strtoul(thread, NULL, 10) : MAX_THREADS;
    r->threads[is_previous] = number < MAX_THREADS ? number : MAX_THREADS;
    r->stack = is_previous ? GBX_STACK_OTHER : GBX_STACK_ACCESS;
    if (is_previous) {
        r->report->other_is_write = is_write;
        return true;
    }
    const char *address = behind(text, " at 0x");
    r->report->is_write = is_write;
    r->report->bytes = (uint32_t)strtoul(size, NULL, 10);
    r->report->has_address = address != NULL;
    r->report->address = address ? strtoull(address, NULL, 16) : 0;
    if (is_write && r->report->kind == GBX_SANITIZE_READ_OUTSIDE)
        r->report->kind = GBX_SANITIZE_WRITE_OUTSIDE;
    return true;
}

/* "  Thread T2 'dispatch 3' (tid=..." */
static void take_thread(reading *r, const char *line) {
    const char *number = behind(line, "Thread T");
    const char *dispatch = behind(line, "'" GBX_PLAN_DISPATCH " ");
    r->stack = -1;
    if (!number || !dispatch || !r->report)
        return;
    for (int i = 0; i < 2; ++i)
        if (r->threads[i] == (uint32_t)strtoul(number, NULL, 10))
            r->report->parties[i] = (uint32_t)strtoul(dispatch, NULL, 10);
}

static void begin_stack(reading *r, int stack) {
    r->stack = stack;
    if (r->report && stack == GBX_STACK_FIRST)
        r->report->has_frame[stack] = false; /* the last such stack is the first in time */
}

/* "FILE:LINE:COLUMN: runtime error: TEXT" */
static gbx_status begin_undefined(reading *r, const char *line, const char *text) {
    GBX_TRY(begin(r, GBX_SANITIZE_UNDEFINED));
    if (!r->report)
        return NULL;
    gbx_sanitize_frame *frame = &r->report->frames[GBX_STACK_ACCESS];
    const char *end = text - strlen(": runtime error: ");
    const char *address = behind(text, "address 0x");
    copy_what(r->report, text, strcspn(text, "\n"));
    *frame = (gbx_sanitize_frame){.function = "", .file = line, .subtask = GBX_SUBTASK_COUNT};
    frame->column = number_before(line, &end);
    frame->line = number_before(line, &end);
    frame->file_length = (int)(end - line);
    r->report->is_write = after(text, "store ") != NULL;
    if (address) {
        r->report->has_address = true;
        r->report->address = strtoull(address, NULL, 16);
    }
    return NULL;
}

/* The stack below it says which function, and of which kernel. */
static void take_undefined_frame(reading *r, const char *line) {
    gbx_sanitize_frame frame;
    gbx_sanitize_frame *known = &r->report->frames[GBX_STACK_ACCESS];
    const char *text = behind(line, " in ");
    if (known->subtask != GBX_SUBTASK_COUNT || !text || !read_frame(r, text, &frame) ||
        frame.subtask == GBX_SUBTASK_COUNT)
        return;
    known->function = frame.function;
    known->function_length = frame.function_length;
    known->subtask = frame.subtask;
    r->report->has_frame[GBX_STACK_ACCESS] = true;
    if (!gbx_sanitize_is_own(known) && gbx_sanitize_is_own(&frame))
        *known = frame;
    else if (!gbx_sanitize_is_own(known))
        known->subtask = GBX_SUBTASK_COUNT; /* a helper of the header: the next is its caller */
}

static void take_creation(reading *r, const char *text) {
    const char *name = behind(text, "allocation of '");
    begin_stack(r, GBX_STACK_CREATED);
    if (!r->report || r->report->what[0] || !name)
        return;
    char words[GBX_SANITIZE_WHAT_BYTES];
    snprintf(words, sizeof words, "local variable '%.*s'", (int)strcspn(name, "'\n"), name);
    copy_what(r->report, words, strlen(words));
}

/* "[48, 88) 'list' (line 22) <== Memory access at offset 56 partially overflows this variable" */
static void take_variable(reading *r, const char *text) {
    char words[GBX_SANITIZE_WHAT_BYTES + 96];
    const char *name = behind(text, " '");
    size_t length = name ? strcspn(name, "'\n") : 0;
    if (!r->report || length == 0 || length > 64 || r->report->kind != GBX_SANITIZE_STACK ||
        strchr(r->report->what, '\''))
        return;
    snprintf(words, sizeof words, "%s, variable '%.*s'", r->report->what, (int)length, name);
    copy_what(r->report, words, strlen(words));
}

/* --- lines --- */

static gbx_status take_error(reading *r, const char *line) {
    const char *text;
    if (find(line, "WARNING: MemorySanitizer: "))
        return begin_memory(r);
    if ((text = behind(line, "ERROR: AddressSanitizer: ")) ||
        (text = behind(line, "ERROR: MemorySanitizer: ")) ||
        (text = behind(line, "ERROR: ThreadSanitizer: ")) ||
        (text = behind(line, "ERROR: UndefinedBehaviorSanitizer: ")))
        return begin_error(r, text);
    if ((text = behind(line, "WARNING: ThreadSanitizer: "))) {
        r->dispatch = GBX_NO_PARTY;
        r->threads[0] = r->threads[1] = MAX_THREADS;
        GBX_TRY(begin(r, find(text, "data race") ? GBX_SANITIZE_RACE : GBX_SANITIZE_OTHER));
        size_t length = strcspn(text, "(\n");
        while (length > 0 && text[length - 1] == ' ')
            --length;
        if (r->report)
            copy_what(r->report, text, length);
    }
    return NULL;
}

/* What follows the stacks of an access is about allocations, locations and other threads. */
static bool ends_stacks(const reading *r, const char *line) {
    const char *text = line + strspn(line, " ");
    if (after(text, "Location is") || after(text, "Mutex M"))
        return true;
    return r->report && r->stack >= 0 && r->report->has_frame[r->stack] &&
           !strchr(" =\n", line[0]) && line[0];
}

static void take_part(reading *r, const char *line) {
    const char *text = line + strspn(line, " ");
    if (text[0] == '#' && r->report && r->report->kind == GBX_SANITIZE_UNDEFINED)
        take_undefined_frame(r, line);
    else if (text[0] == '#')
        take_frame(r, line);
    else if (after(text, "Thread T"))
        take_thread(r, line);
    else if (after(text, "Uninitialized value was stored"))
        begin_stack(r, r->report && r->report->has_frame[GBX_STACK_STORED] ? GBX_STACK_FIRST
                                                                           : GBX_STACK_STORED);
    else if (after(text, "Uninitialized value was created"))
        take_creation(r, text);
    else if (find(text, "overflows this variable") || find(text, "underflows this variable"))
        take_variable(r, text);
    else if (r->report && find(text, "caused by a WRITE"))
        r->report->is_write = true;
    else if (after(text, "SUMMARY:"))
        r->report = NULL;
    else if (!take_access(r, line) && ends_stacks(r, line))
        r->stack = -1;
}

gbx_status gbx_sanitize_read_reports(const char *text, const char *const objects[GBX_SUBTASK_COUNT],
                                     gbx_raw_reports *out_reports) {
    reading r = {.objects = objects,
                 .out = out_reports,
                 .stack = -1,
                 .dispatch = GBX_NO_PARTY,
                 .slot = GBX_CALL_SLOTS};
    *out_reports = (gbx_raw_reports){.exited = GBX_NO_PARTY};
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *words = after(line, GBX_PLAN_MARK);
        const char *undefined = behind(line, ": runtime error: ");
        if (words)
            GBX_TRY(take_own_line(&r, words));
        else if (undefined)
            GBX_TRY(begin_undefined(&r, line, undefined));
        else if (find(line, "Sanitizer: ") && !after(line, "SUMMARY"))
            GBX_TRY(take_error(&r, line));
        else
            take_part(&r, line);
    }
    return NULL;
}

void gbx_sanitize_free_reports(gbx_raw_reports *reports) {
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        free(reports->located[i]);
    free(reports->items);
    *reports = (gbx_raw_reports){0};
}
