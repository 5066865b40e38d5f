/* The status that every call which can fail returns: a code, where it was raised, one sentence. */
#ifndef GLASSBOX_STATUS_H
#define GLASSBOX_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#    define GBX_API __attribute__((visibility("default")))
#    define GBX_MUST_USE __attribute__((warn_unused_result))
#    define GBX_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#    define GBX_API
#    define GBX_MUST_USE
#    define GBX_PRINTF(format_at, first_at)
#endif

typedef enum gbx_code {
    GBX_OK = 0,
    GBX_INVALID_ARGUMENT = 1, /* the caller passed something that makes no sense */
    GBX_NOT_FOUND = 2,        /* a file, a platform, a symbol or an allocation does not exist */
    GBX_OUT_OF_RANGE = 3,     /* outside an allocation, a tensor or a limit */
    GBX_EXHAUSTED = 4,        /* global memory, address slots or host memory are used up */
    GBX_UNSUPPORTED = 5,      /* this platform or device cannot do it */
    GBX_BAD_KERNEL = 6,       /* a kernel does not compile or load, or has no kernel_entry */
    GBX_IO = 7,               /* the operating system refused; the message has its reason */
    GBX_BAD_FORMAT = 8,       /* a file is damaged or of another format */
    GBX_DEVICE_FAULT = 9,     /* a kernel raised a fatal signal */
    GBX_DEVICE_HUNG = 10,     /* a kernel or the chip made no progress within the timeout */
    GBX_DEVICE_LOST = 11,     /* the chip process ended, or the chip had failed before */
    GBX_INTERNAL = 12,        /* a defect in glassbox */
    GBX_BAD_GRAPH = 13,       /* a task graph, or the orchestration that builds it, is wrong */
    GBX_LOST = 14             /* the run is done, but its dump lacks records, or the disk failed */
} gbx_code;

/* NULL is success. Anything else must be freed with gbx_status_free by the caller that gets it. */
typedef struct gbx_error *gbx_status;

/* All take NULL, too. The strings live as long as the status. */
GBX_API gbx_code gbx_status_code(gbx_status status);
GBX_API const char *gbx_status_message(gbx_status status); /* "" for success */
GBX_API const char *gbx_status_site(gbx_status status);    /* "file.c:123", "" for success */
GBX_API void gbx_status_free(gbx_status status);

/* "device fault" for GBX_DEVICE_FAULT, and so on. Never NULL. */
GBX_API const char *gbx_code_name(gbx_code code);

/* The exit code of a command that failed with this code: 0, 2 (usage and input), 3 (device). */
GBX_API int gbx_code_exit(gbx_code code);

#ifdef __cplusplus
}
#endif
#endif
