/* Compiler flags that come out of a dump, which may be anybody's. */
#ifndef GBX_REPLAY_TRUST_REPLAY_FLAGS_H
#define GBX_REPLAY_TRUST_REPLAY_FLAGS_H

#include <stdbool.h>

/*
 * Whether flags, by blanks, only choose how a source is translated: levels, warnings, the
 * instruction set, some of -f; of link flags, libraries of the system. Others can name files and
 * plugins, or bring code of their own into a source (-D, -include). NULL is harmless.
 */
bool gbx_flags_are_harmless(const char *compile_flags, const char *link_flags);

#endif
