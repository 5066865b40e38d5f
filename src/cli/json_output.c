#include "cli/json_output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

gbx_status gbx_json_to_stdout(void *context, const void *bytes, size_t size) {
    (void)context;
    if (fwrite(bytes, 1, size, stdout) == size && fflush(stdout) == 0)
        return NULL;
    return gbx_fail(GBX_IO, "writing to stdout: %s", strerror(errno));
}
