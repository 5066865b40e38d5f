// Every public header compiles as C++, and its functions link.
#include "all_public_headers.h"

#include <cstdio>
#include <cstring>

extern "C" void kernel_entry(const uint64_t *args) {
    gbx_tensor_f32(gbx_arg_tensor(args, 0))[0] = gbx_arg_f32(args, 1);
}

int main() {
    float value = 0.0f;
    gbx_tensor tensor = {};
    const int64_t shape[] = {1};
    gbx_status status =
        gbx_tensor_contiguous(reinterpret_cast<uintptr_t>(&value), GBX_FLOAT32, 1, shape, &tensor);
    if (status)
        return 1;
    uint64_t args[GBX_ARG_SLOTS] = {reinterpret_cast<uintptr_t>(&tensor), 0x3fc00000};
    kernel_entry(args);
    gbx_chip_config config = {};
    config.platform = "none";
    gbx_chip *chip = nullptr;
    status = gbx_chip_open(&config, &chip);
    bool is_refused = gbx_status_code(status) == GBX_NOT_FOUND;
    gbx_status_free(status);
    std::printf("%g %s\n", static_cast<double>(value), gbx_dtype_name(tensor.dtype));
    return value == 1.5f && is_refused && std::strcmp(gbx_version(), GBX_VERSION) == 0 ? 0 : 1;
}
