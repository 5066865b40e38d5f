/*
 * The text of an argument's entry as our own manifests lay it out. Where a file has exactly this
 * text, nothing needs to be parsed: that is ten times as fast.
 */
#ifndef GBX_STORE_VERIFY_VERIFY_TEXT_H
#define GBX_STORE_VERIFY_VERIFY_TEXT_H

#include "store/verify/verify_expected.h"

/*
 * Whether `text` is that of the entry number expected->index for a SCALAR or TENSOR record whose
 * task is known. False says nothing: the entry may be laid out in another way.
 */
bool gbx_verify_is_text(const gbx_expected *expected, const gbx_record *record, const char *text,
                        size_t size);

#endif
