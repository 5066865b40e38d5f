/*
 * The Python program that calls a golden: golden_driver.c has its text. It is called with the
 * directory of the exchange, the golden's file and its entry. exchange.json there lists the
 * arguments; tensors lie in .npy files, by raw bits; the outputs are left as .npy files of numbers.
 * Exit code 3: one sentence on stderr says what is wrong; any other but 0: Python's own message.
 */
#ifndef GBX_SCENE_GOLDEN_DRIVER_H
#define GBX_SCENE_GOLDEN_DRIVER_H

enum { GBX_GOLDEN_DRIVER_SENTENCE = 3 };

extern const char gbx_golden_driver[];

#endif
