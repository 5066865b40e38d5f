/* Whether a kernel can be judged by its source, and where that is. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "replay/sanitize/internal.h"
#include "store/run/source_tree.h"

/* --- what a source does --- */

typedef struct traits {
    bool has_assembly; /* that may do anything */
    bool has_fence;
    bool has_volatile;
    gbx_sanitize_habits habits;
} traits;

static size_t word_length(const char *at) {
    size_t length = 0;
    while (at[length] == '_' || isalnum((unsigned char)at[length]))
        ++length;
    return length;
}

static bool is_one_of(const char *const *list, size_t count, const char *text, size_t length) {
    for (size_t i = 0; i < count; ++i)
        if (strlen(list[i]) == length && memcmp(list[i], text, length) == 0)
            return true;
    return false;
}
#define IS_ONE_OF(list, text, length) is_one_of(list, sizeof(list) / sizeof *(list), text, length)

static const char *skip_space(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* Assembly without operands, behind its first word: that does nothing, or lets a moment pass, or is
 * a fence. Returns what follows its text; NULL for any other. */
static const char *skip_simple_assembly(const char *at, bool *out_is_fence) {
    static const char *const waits[] = {"", "pause", "yield", "nop", "isb", "rep; nop", "rep;nop"};
    static const char *const fences[] = {"mfence", "lfence",    "sfence", "dmb sy",
                                         "dmb st", "dmb ishst", "dmb ish"};
    for (at = skip_space(at); word_length(at) > 0; at = skip_space(at)) /* volatile */
        at += word_length(at);
    if (*at != '(' || *(at = skip_space(at + 1)) != '"')
        return NULL;
    size_t length = strcspn(++at, "\"");
    if (at[length] != '"')
        return NULL;
    const char *end = skip_space(at + length + 1);
    while (length >= 2 && at[length - 2] == '\\' && strchr("nt", at[length - 1]))
        length -= 2;
    *out_is_fence = IS_ONE_OF(fences, at, length);
    bool has_operands = (*end != ')' && *end != ':') || end[strcspn(end, "()")] != ')';
    return !has_operands && (*out_is_fence || IS_ONE_OF(waits, at, length)) ? end : NULL;
}

static bool is_of_order(const char *word, size_t length) {
    static const char *const prefixes[] = {"__atomic_", "__sync_",  "atomic_",   "_Atomic",
                                           "gbx_flag_", "pthread_", "sem_",      "mtx_",
                                           "cnd_",      "thrd_",    "call_once", "omp"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; ++i)
        if (length >= strlen(prefixes[i]) && memcmp(word, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void look_at(const char *text, traits *found) {
    static const char *const assembly[] = {"asm", "__asm__", "__asm"};
    static const char *const fences[] = {"atomic_thread_fence", "__atomic_thread_fence",
                                         "__sync_synchronize"};
    static const char *const sizes[] = {"buffer_bytes"};
    static const char *const keeps[] = {"volatile", "__volatile__", "__volatile"};
    for (const char *at = text; *at;) {
        size_t length = word_length(at);
        bool is_assembly = IS_ONE_OF(assembly, at, length), is_fence = false;
        const char *behind = is_assembly ? skip_simple_assembly(at + length, &is_fence) : NULL;
        found->has_assembly |= is_assembly && !behind;
        found->has_fence |= is_fence || IS_ONE_OF(fences, at, length);
        found->has_volatile |= IS_ONE_OF(keeps, at, length);
        found->habits.orders_blocks |= (is_assembly && !behind) || is_of_order(at, length);
        found->habits.reads_buffer_bytes |= IS_ONE_OF(sizes, at, length);
        at = behind ? behind : at + (length > 0 ? length : 1);
    }
}

static gbx_status find_traits(const char *path, traits *out_found) {
    gbx_source_tree *tree;
    *out_found = (traits){0};
    GBX_TRY(gbx_source_tree_read(path, &tree));
    for (size_t i = 0; i < tree->count; ++i)
        look_at(tree->texts[i], out_found);
    gbx_source_tree_free(tree);
    return NULL;
}

gbx_sanitize_habits gbx_sanitize_look(const gbx_replay_session *session,
                                      const gbx_replay_task *task) {
    gbx_sanitize_habits all = {0};
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        gbx_replay_source source;
        traits found = {0};
        if (task->func_ids[i] == UINT32_MAX)
            continue;
        gbx_status status = gbx_replay_source_find(session->kernels, task, i, &source);
        if (!status) {
            status = find_traits(source.path, &found);
            gbx_replay_source_free(&source);
        }
        gbx_status_free(status);
        all.orders_blocks |= found.habits.orders_blocks;
        all.reads_buffer_bytes |= found.habits.reads_buffer_bytes;
    }
    return all;
}

/* --- whether a kernel can be judged --- */

/* Why reports on a source would be wrong; NULL if they would not. */
static const char *objection(gbx_sanitizer sanitizer, const traits *found) {
    if (found->has_assembly &&
        (sanitizer == GBX_SANITIZE_MEMORY || sanitizer == GBX_SANITIZE_THREAD))
        return "it has inline assembly, which the sanitizer does not understand";
    if (found->has_fence && found->has_volatile && sanitizer == GBX_SANITIZE_THREAD)
        return "it has fences and volatile variables, and the sanitizer does not understand the "
               "order of those";
    return NULL;
}

/* Whether all of a kernel's code is compiled here: the memory sanitizer takes what other code
 * writes for uninitialised. */
static bool links_others(const char *link_flags) {
    static const char *const harmless[] = {"-lm", "-lpthread", "-pthread", "-g", "-O"};
    for (const char *word = link_flags ? link_flags + strspn(link_flags, " \t\n") : ""; *word;) {
        size_t length = strcspn(word, " \t\n");
        bool is_known = length > 2 && strncmp(word + length - 2, ".c", 2) == 0;
        for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; ++i)
            is_known |= strncmp(word, harmless[i], strlen(harmless[i])) == 0 &&
                        (length == strlen(harmless[i]) || i == 4);
        if (!is_known)
            return true;
        word += length;
        word += strspn(word, " \t\n");
    }
    return false;
}

gbx_status gbx_sanitize_check_source(gbx_sanitizer sanitizer, const gbx_replay_source *source,
                                     const char *name, bool *out_has_fences) {
    traits found;
    if (sanitizer == GBX_SANITIZE_MEMORY && links_others(source->link_flags))
        return gbx_fail(GBX_UNSUPPORTED,
                        "kernel %s links libraries; what they write would look uninitialised",
                        name);
    GBX_TRY(find_traits(source->path, &found));
    const char *why = objection(sanitizer, &found);
    *out_has_fences = found.has_fence;
    return why ? gbx_fail(GBX_UNSUPPORTED, "kernel %s cannot be judged: %s", name, why) : NULL;
}

gbx_status gbx_sanitize_find_roots(const gbx_replay_source *source, gbx_sanitize_roots *out_roots) {
    if (!source->origin)
        return NULL;
    out_roots->compiled = strdup(source->path);
    out_roots->own = strdup(source->origin);
    if (!out_roots->compiled || !out_roots->own)
        return gbx_fail_memory("finding the source of a kernel");
    for (;;) {
        char *left = strrchr(out_roots->compiled, '/'), *right = strrchr(out_roots->own, '/');
        if (!left || !right || strcmp(left, right) != 0)
            return NULL;
        *left = *right = '\0';
    }
}
