/*
 * Where a chip is put together: the device, the scheduler, the runtimes and the writer of dumps
 * know nothing of the layers above them.
 */
#ifndef GBX_API_DEVICE_H
#define GBX_API_DEVICE_H

#include <stdbool.h>

/* gbx_device_main with all runtimes, and with the writer of dumps. */
bool gbx_api_device_main(int link_socket);

#endif
