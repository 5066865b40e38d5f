/*
 * Where a chip is put together: device, scheduler, runtimes and the writer of dumps know nothing of
 * those above them, so that somebody has to hand them over.
 */
#ifndef GBX_API_DEVICE_H
#define GBX_API_DEVICE_H

#include <stdbool.h>

/* gbx_device_main with all runtimes, and with the writer of dumps. */
bool gbx_api_device_main(int link_socket);

#endif
