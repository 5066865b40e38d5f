/* Whether a kernel can be judged by its source, and where that is. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "replay/sanitize/internal.h"
#include "store/run/source_tree.h"

/* Words of C that a sanitizer does not see through. */
static bool has_word(const char *text, const char *word) {
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += length) {
        bool begins =
            at == text || !(at[-1] == '_' || (at[-1] >= '0' && at[-1] <= '9') ||
                            (at[-1] >= 'A' && at[-1] <= 'Z') || (at[-1] >= 'a' && at[-1] <= 'z'));
        char after = at[length];
        if (begins && (after == ' ' || after == '(' || after == '\n' || after == '\t'))
            return true;
    }
    return false;
}

/* Why reports on a source would be wrong; NULL if they would not. */
static const char *objection(gbx_sanitizer sanitizer, const char *text) {
    bool has_assembly =
        has_word(text, "asm") || has_word(text, "__asm__") || has_word(text, "__asm");
    bool has_fence = has_word(text, "atomic_thread_fence") ||
                     has_word(text, "__atomic_thread_fence") ||
                     has_word(text, "__sync_synchronize");
    if (has_assembly && (sanitizer == GBX_SANITIZE_MEMORY || sanitizer == GBX_SANITIZE_THREAD))
        return "it has inline assembly, which the sanitizer does not understand";
    if (has_fence && sanitizer == GBX_SANITIZE_THREAD)
        return "it has fences, which the sanitizer does not understand";
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
                                     const char *name) {
    gbx_source_tree *tree;
    if (sanitizer == GBX_SANITIZE_MEMORY && links_others(source->link_flags))
        return gbx_fail(GBX_UNSUPPORTED,
                        "kernel %s links libraries; what they write would look uninitialised",
                        name);
    GBX_TRY(gbx_source_tree_read(source->path, &tree));
    const char *why = NULL;
    for (size_t i = 0; i < tree->count && !why; ++i)
        why = objection(sanitizer, tree->texts[i]);
    gbx_source_tree_free(tree);
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
