/* Files whose disk may fill up or fail. */
#ifndef GBX_STORE_PAYLOAD_DISK_H
#define GBX_STORE_PAYLOAD_DISK_H

/* The end of a message about a write that failed: what its reader can do. Never NULL. */
const char *gbx_disk_advice(int error);

#endif
