#include "replay/trust/replay_trust.h"

#include <stddef.h>
#include <string.h>

static const char *const compile_prefixes[] = {"-O",
                                               "-W",
                                               "-std=",
                                               "-march=",
                                               "-mtune=",
                                               "-mavx",
                                               "-msse",
                                               "-mfma",
                                               "-mf16c",
                                               "-mno-",
                                               "-mprefer-",
                                               "-fno-",
                                               "-ffast-",
                                               "-ffp-",
                                               "-ffinite-",
                                               "-ftree-",
                                               "-funroll-",
                                               "-fstrict-",
                                               "-fassociative-",
                                               "-freciprocal-",
                                               "-funsafe-",
                                               "-fomit-",
                                               "-fwrapv",
                                               "-finline",
                                               "-fopenmp-simd",
                                               "-fexcess-precision=",
                                               NULL};
static const char *const compile_words[] = {"-g", "-g0", "-g1", "-g2", "-g3", "-ggdb", "-w", NULL};
static const char *const link_prefixes[] = {"-l", "-O", NULL};
static const char *const link_words[] = {"-pthread", "-g", NULL};

/* Nothing that names a file or goes on to another program: -Wl,... -Wp,... */
static bool is_plain(const char *word, size_t length) {
    for (size_t i = 0; i < length; ++i) {
        char c = word[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && !strchr("-_=.+", c))
            return false;
    }
    return true;
}

static bool begins_with_one(const char *word, size_t length, const char *const *prefixes) {
    for (; *prefixes; ++prefixes) {
        size_t bytes = strlen(*prefixes);
        if (length >= bytes && memcmp(word, *prefixes, bytes) == 0)
            return true;
    }
    return false;
}

static bool is_one(const char *word, size_t length, const char *const *words) {
    for (; *words; ++words)
        if (length == strlen(*words) && memcmp(word, *words, length) == 0)
            return true;
    return false;
}

static bool all_known(const char *flags, const char *const *prefixes, const char *const *words) {
    static const char blanks[] = " \t\n";
    for (const char *word = flags ? flags + strspn(flags, blanks) : ""; *word;) {
        size_t length = strcspn(word, blanks);
        bool is_known = begins_with_one(word, length, prefixes) || is_one(word, length, words);
        if (!is_known || !is_plain(word, length))
            return false;
        word += length;
        word += strspn(word, blanks);
    }
    return true;
}

bool gbx_flags_are_harmless(const char *compile_flags, const char *link_flags) {
    return all_known(compile_flags, compile_prefixes, compile_words) &&
           all_known(link_flags, link_prefixes, link_words);
}
