#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "text/plain_text.h"

static void check(const char *given, const char *expected) {
    char text[64];
    snprintf(text, sizeof text, "%s", given);
    assert_int_equal(gbx_text_is_plain(given), strcmp(given, expected) == 0);
    gbx_text_make_plain(text);
    assert_string_equal(text, expected);
    assert_true(gbx_text_is_plain(text));
}

static void text_stays(void **state) {
    (void)state;
    check("", "");
    check("kernels[2]: \"inn\" ~", "kernels[2]: \"inn\" ~");
    check("gr\xc3\xb6\xc3\x9f"
          "e \xe2\x98\x83 \xf0\x9f\x98\x80 \xc2\xa0",
          "gr\xc3\xb6\xc3\x9f"
          "e \xe2\x98\x83 \xf0\x9f\x98\x80 \xc2\xa0");
    check("\xf4\x8f\xbf\xbf\xed\x9f\xbf", "\xf4\x8f\xbf\xbf\xed\x9f\xbf");
}

static void controls_are_replaced(void **state) {
    (void)state;
    check("a\nb\tc\rd", "a?b?c?d");
    check("\x1b[31mred", "?[31mred");
    check("\x7f\x01\x1f ", "??? ");
    check("\xc2\x85\xc2\x9b"
          "2J\xc2\x9f",
          "????2J??");
}

static void invalid_utf8_is_replaced(void **state) {
    (void)state;
    check("\xff"
          "a\x80",
          "?a?");
    check("\xc0\xaf\xe0\x80\x80", "?????"); /* longer than needed */
    check("\xed\xa0\x80", "???");           /* half of a pair */
    check("\xf4\x90\x80\x80\xf8", "?????"); /* beyond U+10FFFF */
    check("cut \xe2\x98", "cut ??");        /* in the middle of a character */
    check("\xe2\x98"
          "a\xc3\xb6",
          "??a\xc3\xb6"); /* a character after half of one */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays),
        cmocka_unit_test(controls_are_replaced),
        cmocka_unit_test(invalid_utf8_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
