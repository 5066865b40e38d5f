#include <glassbox/glassbox.h>

const char *gbx_version(void) {
    return GBX_VERSION;
}
