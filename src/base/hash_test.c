#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/hash.h"

enum { BYTES = 100000 };

typedef struct hash_case {
    size_t size;
    const char *text;
} hash_case;

/* As xxh128sum prints them for the first bytes of the pattern, around the lengths where XXH3
 * switches algorithms. */
static const hash_case cases[] = {
    {0, "99aa06d3014798d86001c324468d497f"},      {240, "de57aab31e77a2ff93e173833f75ab66"},
    {241, "92b991a7192f3f080b3b630948ce4a00"},    {1024, "4c17271c906df79223bc880ebf0d29c6"},
    {100000, "8ce7a24d31cd94b1ccf90df7e7e37036"},
};

static unsigned char pattern[BYTES];

static int fill_pattern(void **state) {
    (void)state;
    for (size_t i = 0; i < BYTES; ++i)
        pattern[i] = (unsigned char)(i * 31 + 7);
    return 0;
}

static void check_text(gbx_hash128 hash, const char *expected) {
    char text[GBX_HASH_TEXT_BYTES];
    gbx_hash_format(hash, text);
    assert_string_equal(text, expected);
}

static void hash_is_what_xxh128sum_prints(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        check_text(gbx_hash_bytes(pattern, cases[i].size), cases[i].text);
    check_text(gbx_hash_bytes("a", 1), "a96faf705af16834e6c632b61e964e1f");
    check_text(gbx_hash_bytes("glassbox", 8), "81e76be7a1d74b442ed4ec04fc597975");
}

static gbx_hash128 hash_in_pieces(size_t size, size_t piece) {
    gbx_hash_state hash;
    gbx_hash_begin(&hash);
    for (size_t at = 0; at < size; at += piece)
        gbx_hash_update(&hash, pattern + at, size - at < piece ? size - at : piece);
    return gbx_hash_end(&hash);
}

static void pieces_hash_as_the_whole(void **state) {
    (void)state;
    static const size_t pieces[] = {1, 7, 64, 255, 256, 257, 16384, BYTES};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; ++k)
            check_text(hash_in_pieces(cases[i].size, pieces[k]), cases[i].text);
    }
}

/* Reading the hash does not change the state: a hash of the bytes so far, and later of all
 * bytes. */
static void hash_goes_on_after_an_end(void **state) {
    (void)state;
    gbx_hash_state hash;
    gbx_hash_begin(&hash);
    gbx_hash_update(&hash, pattern, 1024);
    check_text(gbx_hash_end(&hash), "4c17271c906df79223bc880ebf0d29c6");
    gbx_hash_update(&hash, pattern + 1024, BYTES - 1024);
    check_text(gbx_hash_end(&hash), "8ce7a24d31cd94b1ccf90df7e7e37036");
}

static void text_has_leading_zeros_and_high_half_first(void **state) {
    (void)state;
    gbx_hash128 hash = {.low = 0xab, .high = 1};
    check_text(hash, "000000000000000100000000000000ab");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_what_xxh128sum_prints),
        cmocka_unit_test(pieces_hash_as_the_whole),
        cmocka_unit_test(hash_goes_on_after_an_end),
        cmocka_unit_test(text_has_leading_zeros_and_high_half_first),
    };
    return cmocka_run_group_tests(tests, fill_pattern, NULL);
}
