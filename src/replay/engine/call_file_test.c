#include "replay/engine/call_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checks.h"

/* A valid file with two dispatches and two extents. */
typedef struct made_file {
    gbx_call_file head;
    gbx_call_dispatch dispatches[2];
    gbx_call_extent extents[2];
    unsigned char bytes[64];
} made_file;

static made_file good;

static int prepare(void **state) {
    (void)state;
    memset(&good, 0, sizeof good);
    memcpy(good.head.magic, "GBXCALL1", 8);
    good.head.version = 1;
    good.head.header_bytes = sizeof good.head;
    good.head.file_bytes = sizeof good;
    good.head.gm_base = UINT64_C(0x7e9000000000);
    good.head.gm_bytes = 1 << 20;
    good.head.chip_blocks = 4;
    good.head.block_num = 2;
    good.head.dispatch_count = 2;
    good.head.dispatch_offset = offsetof(made_file, dispatches);
    good.head.extent_offset = offsetof(made_file, extents);
    good.head.extent_count = 2;
    good.head.slots[0] =
        (gbx_call_slot){.kind = GBX_CALL_TENSOR, .role = 2, .tensor = {.ndims = 8}};
    good.head.slots[1] = (gbx_call_slot){.kind = GBX_CALL_SCALAR, .bits = 5};
    strcpy(good.head.objects[1], "/kernel.so");
    good.dispatches[0] = (gbx_call_dispatch){.subtask = 1, .core_id = 1};
    good.dispatches[1] = (gbx_call_dispatch){.subtask = 1, .block_idx = 1, .core_id = 4};
    good.extents[0] = (gbx_call_extent){
        .address = good.head.gm_base + 8, .bytes = 24, .offset = offsetof(made_file, bytes)};
    good.extents[1] = (gbx_call_extent){.address = good.head.gm_base + (1 << 20) - 40,
                                        .bytes = 40,
                                        .offset = offsetof(made_file, bytes) + 24};
    for (unsigned i = 0; i < sizeof good.bytes; ++i)
        good.bytes[i] = (unsigned char)(200 - i);
    return 0;
}

static int write_file(const made_file *file, size_t bytes) {
    int fd = memfd_create("call", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file, bytes), (ssize_t)bytes);
    return fd;
}

static void a_file_is_read_and_fills_memory(void **state) {
    (void)state;
    gbx_loaded_call loaded;
    int fd = write_file(&good, sizeof good);
    assert_int_equal(gbx_loaded_call_read(fd, &loaded), 0);
    gbx_kernel_call *call = &loaded.call;
    assert_int_equal(call->dispatch_count, 2);
    assert_int_equal(call->dispatches[1].core_id, 4);
    assert_int_equal(call->slots[1].bits, 5);
    assert_null(call->kernels[0].object);
    assert_string_equal(call->kernels[1].object, "/kernel.so");
    assert_int_equal(gbx_kernel_call_map(call, -1), 0);
    assert_int_equal(gbx_loaded_call_fill(&loaded, fd), 0);
    const unsigned char *memory = (const unsigned char *)(uintptr_t)call->gm_base;
    for (unsigned i = 0; i < 1 << 20; ++i) {
        unsigned at = i < 8 + 24 ? i - 8 : i - ((1 << 20) - 40) + 24;
        bool is_filled = (i >= 8 && i < 8 + 24) || i >= (1 << 20) - 40;
        assert_int_equal(memory[i], is_filled ? 200 - at : 0);
    }
    assert_int_equal(gbx_kernel_call_map(call, -1), -1); /* it is taken */
    gbx_kernel_call_unmap(call);
    gbx_loaded_call_free(&loaded);
    close(fd);
}

static void assert_refused(const made_file *file, size_t bytes, const char *what) {
    gbx_loaded_call loaded;
    int fd = write_file(file, bytes);
    if (gbx_loaded_call_read(fd, &loaded) != -1)
        fail_msg("%s: accepted", what);
    assert_non_null(strstr(loaded.call.error, "reading a call file: "));
    gbx_loaded_call_free(&loaded);
    close(fd);
}

static void every_length_is_checked(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes < sizeof good; bytes += bytes < sizeof good - 200 ? 1009 : 1)
        assert_refused(&good, bytes, "cut off");
}

#define REFUSE(field, value)                                                                       \
    do {                                                                                           \
        made_file file = good;                                                                     \
        file.field = value;                                                                        \
        assert_refused(&file, sizeof file, #field " = " #value);                                   \
    } while (0)

static void every_field_is_checked(void **state) {
    (void)state;
    REFUSE(head.magic[0], 'g');
    REFUSE(head.version, 2);
    REFUSE(head.header_bytes, 64);
    REFUSE(head.file_bytes, sizeof good + 1);
    REFUSE(head.gm_base, 0);
    REFUSE(head.gm_base, 4097);
    REFUSE(head.gm_base, UINT64_MAX - 4095);
    REFUSE(head.gm_bytes, 0);
    REFUSE(head.gm_bytes, 5000);
    REFUSE(head.gm_bytes, UINT64_C(33) << 30);
    REFUSE(head.chip_blocks, 0);
    REFUSE(head.chip_blocks, 25);
    REFUSE(head.dispatch_count, 0);
    REFUSE(head.dispatch_count, UINT32_MAX);
    REFUSE(head.dispatch_count, 100);
    REFUSE(head.dispatch_offset, UINT64_MAX);
    REFUSE(head.dispatch_offset, sizeof good - 8);
    REFUSE(head.extent_count, UINT64_MAX);
    REFUSE(head.extent_count, 30);
    REFUSE(head.extent_offset, UINT64_MAX - 8);
    REFUSE(head.slots[63].kind, 3);
    REFUSE(head.slots[0].role, 3);
    REFUSE(head.slots[0].tensor.ndims, 9);
    REFUSE(head.objects[1][0], 0);
    REFUSE(head.block_num, 1);
    REFUSE(dispatches[1].subtask, 2); /* has no kernel */
    REFUSE(dispatches[1].subtask, 3);
    REFUSE(dispatches[0].block_idx, 2);
    REFUSE(extents[0].address, good.head.gm_base - 1);
    REFUSE(extents[1].bytes, 41);
    REFUSE(extents[1].bytes, UINT64_MAX);
    REFUSE(extents[1].offset, sizeof good - 39);
    REFUSE(extents[1].offset, UINT64_MAX);
    made_file file = good;
    memset(file.head.objects[2], 'x', sizeof file.head.objects[2]);
    assert_refused(&file, sizeof file, "a path without an end");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_file_is_read_and_fills_memory, prepare),
        cmocka_unit_test_setup(every_length_is_checked, prepare),
        cmocka_unit_test_setup(every_field_is_checked, prepare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
