/*
 * Values of options. Each ends the command with code 2 and one sentence (argp_error) when the text
 * is not what is expected; `option` is its name as the user writes it.
 */
#ifndef GBX_CLI_OPTION_VALUES_H
#define GBX_CLI_OPTION_VALUES_H

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

uint64_t gbx_option_integer(struct argp_state *state, const char *option, const char *text,
                            uint64_t min, uint64_t max);

/* Bytes: "4096", "512M", "4G", "1GiB"; powers of 1024. */
uint64_t gbx_option_size(struct argp_state *state, const char *option, const char *text,
                         uint64_t min, uint64_t max);

/* Seconds, with a fraction, as milliseconds from 1 to UINT32_MAX. */
uint32_t gbx_option_seconds(struct argp_state *state, const char *option, const char *text);

/* The index of one of `names`, which ends with NULL. */
size_t gbx_option_choice(struct argp_state *state, const char *option, const char *text,
                         const char *const *names);

#endif
