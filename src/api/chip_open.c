#include "api/device.h"
#include "api/device_probe.h"
#include "chip/device/device.h"
#include "chip/host/chip.h"
#include "runtime/graph.h"

bool gbx_api_device_main(int link_socket) {
    const gbx_program_set programs = gbx_graph_programs(&gbx_device_probe_source);
    return gbx_device_main(link_socket, &programs);
}

gbx_status gbx_chip_open(const gbx_chip_config *config, gbx_chip **out_chip) {
    return gbx_chip_open_with(config, gbx_api_device_main, out_chip);
}
