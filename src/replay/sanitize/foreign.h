/*
 * Functions that a kernel calls and that the sanitizer of this program does not know: it sees
 * neither what they write nor how they order threads, so that its reports would be wrong. Part of
 * the program that calls kernels under a sanitizer; needs only the C library.
 */
#ifndef GBX_REPLAY_SANITIZE_FOREIGN_H
#define GBX_REPLAY_SANITIZE_FOREIGN_H

/* `entry` is an address in the kernel's object, which is loaded. Both return the name of the first
 * such function, which lives as long as the object; NULL for none. */
const char *gbx_foreign_to_memory(const void *entry);  /* may write memory */
const char *gbx_foreign_to_threads(const void *entry); /* orders or starts threads */

#endif
